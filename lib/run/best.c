#include "run/best.h"

#include <math.h>

const char *const figure_names[] = {"top1", "map", "r2", NULL};

// No loss is worse than one that is no number.
static bool is_lower(double loss, double than) {
    return isfinite(loss) && !(loss >= than);
}

bool best_take(struct best *best, const struct best *given) {
    struct best kept = *given, *test = &kept;
    kept.value = json_kept(kept.value);
    kept.loss = json_kept(kept.loss);
    if (best->known && best->figure == test->figure &&
        (test->value < best->value ||
         (test->value <= best->value && !is_lower(test->loss, best->loss)))) {
        best->worse++;
        return false;
    }
    *best = *test;
    best->known = true;
    best->worse = 0;
    return true;
}

json_t *best_json(const struct best *best) {
    return json_pack("{s:I, s:f, s:f, s:o, s:I}", "clock", (json_int_t)best->clock, "epoch",
                     best->epoch, figure_names[best->figure], best->value, "loss",
                     json_number(best->loss), "worse", (json_int_t)best->worse);
}

static uint64_t count_of(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

struct best best_read(const json_t *object) {
    const json_t *loss = json_object_get(object, "loss"), *value = NULL;
    int figure = 0;
    while (figure_names[figure] &&
           !json_is_number(value = json_object_get(object, figure_names[figure])))
        figure++;
    if (!figure_names[figure])
        return (struct best){0};
    return (struct best){
        .known = true,
        .figure = (enum figure)figure,
        .value = json_number_value(value),
        .loss = json_is_number(loss) ? json_number_value(loss) : NAN,
        .clock = count_of(object, "clock"),
        .epoch = json_number_value(json_object_get(object, "epoch")),
        .worse = count_of(object, "worse"),
    };
}
