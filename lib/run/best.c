#include "run/best.h"

#include <math.h>

// No loss is worse than one that is no number.
static bool is_lower(double loss, double than) {
    return isfinite(loss) && !(loss >= than);
}

bool best_take(struct best *best, double top1, double loss, uint64_t clock, double epoch) {
    if (best->known && (top1 < best->top1 || (top1 <= best->top1 && !is_lower(loss, best->loss)))) {
        best->worse++;
        return false;
    }
    *best = (struct best){true, top1, loss, clock, epoch, 0};
    return true;
}

json_t *best_json(const struct best *best) {
    return json_pack("{s:I, s:f, s:f, s:o, s:I}", "clock", (json_int_t)best->clock, "epoch",
                     best->epoch, "top1", best->top1, "loss", json_number(best->loss), "worse",
                     (json_int_t)best->worse);
}

static uint64_t count_of(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

struct best best_read(const json_t *object) {
    const json_t *top1 = json_object_get(object, "top1"), *loss = json_object_get(object, "loss");
    if (!json_is_number(top1))
        return (struct best){0};
    return (struct best){
        .known = true,
        .top1 = json_number_value(top1),
        .loss = json_is_number(loss) ? json_number_value(loss) : NAN,
        .clock = count_of(object, "clock"),
        .epoch = json_number_value(json_object_get(object, "epoch")),
        .worse = count_of(object, "worse"),
    };
}
