#include "remote/portion.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/cut.h"

struct gathering {
    struct placed_span *spans; // NULL: they are counted
    size_t count;
};

// One span where the run goes on with the one before.
static void gather_run(void *self, const struct cut_run *run) {
    struct gathering *gathering = self;
    struct placed_span *before =
        gathering->spans && gathering->count > 0 ? &gathering->spans[gathering->count - 1] : NULL;
    if (before && before->span.first + before->span.n == run->whole &&
        before->at + before->span.n == run->own)
        before->span.n += run->count;
    else if (gathering->spans)
        gathering->spans[gathering->count++] =
            (struct placed_span){{run->whole, run->count}, run->own};
    else
        gathering->count++;
}

static int by_place(const void *a, const void *b) {
    const struct placed_span *one = a, *other = b;
    return one->span.first < other->span.first ? -1 : one->span.first > other->span.first;
}

typedef void visit_all(const struct cut *cut, int partition, cut_visit *visit, void *self);

static int gather(struct placed_span **spans, size_t *count, const struct cut *cut, int partition,
                  visit_all *all, struct error *err) {
    struct gathering gathering = {0};
    all(cut, partition, gather_run, &gathering);
    *spans = mem_array(gathering.count + 1, sizeof **spans);
    if (!*spans)
        return error_nomem(err);
    gathering = (struct gathering){*spans, 0};
    all(cut, partition, gather_run, &gathering);
    *count = gathering.count;
    qsort(*spans, *count, sizeof **spans, by_place);
    return STATUS_OK;
}

int portion_open(struct portion *portion, const struct cut *cut, int partition, struct error *err) {
    *portion = (struct portion){0};
    int status = gather(&portion->used, &portion->used_count, cut, partition, cut_runs, err);
    if (!status)
        status =
            gather(&portion->given, &portion->given_count, cut, partition, cut_given_runs, err);
    return status;
}

void portion_free(struct portion *portion) {
    free(portion->used);
    free(portion->given);
    *portion = (struct portion){0};
}
