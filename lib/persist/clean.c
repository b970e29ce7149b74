#include <string.h>

#include "core/error.h"
#include "core/invariant.h"
#include "persist/persist_internal.h"

uint64_t live_bytes(const struct persist *persist) {
    uint64_t sum = 0;
    for (size_t i = 0; i < persist->index.count; i++)
        sum += persist->index.entries[i].size;
    return sum;
}

uint64_t segment_bytes(const struct persist *persist) {
    uint64_t sum = 0;
    for (size_t i = 0; i < persist->segment_count; i++)
        sum += persist->segments[i].size;
    return sum;
}

static uint64_t record_bytes(const struct persist *persist) {
    uint64_t sum = 0;
    for (size_t i = 0; i < persist->segment_count; i++)
        sum += persist->segments[i].records;
    return sum;
}

bool persist_wants_cleaning(const struct persist *persist) {
    uint64_t live = live_bytes(persist), segment = persist->segment_size;
    return record_bytes(persist) > 2 * live + segment ||
           segment_bytes(persist) > 4 * live + 8 * segment;
}

// --- one step ---------------------------------------------------------------------------

enum { STEP_RECORDS = 64 };

struct step {
    struct item items[STEP_RECORDS];
    struct persist_copy copies[STEP_RECORDS];
    size_t count;
    uint64_t bytes;
};

static int take_entry(struct persist *persist, struct step *step, const struct persist_entry *entry,
                      struct error *err) {
    struct item *item = &step->items[step->count];
    struct persist_copy *copy = &step->copies[step->count];
    struct error damage;
    const struct persist_record known = {.shard = entry->shard,
                                         .bucket = entry->bucket,
                                         .epoch = entry->epoch,
                                         .version = entry->version};
    uint64_t size = entry->size;
    int status = persist_read(persist, entry->shard, copy, &damage);
    if (status && status != STATUS_DATA)
        return error_set(err, status, "%s", damage.text);
    *item = (struct item){status ? known : copy->record, status != STATUS_OK};
    step->count++;
    step->bytes += size;
    return STATUS_OK;
}

// Those of the segment's records that count, as many as a step may have.
static int take_step(struct persist *persist, struct step *step, uint64_t segment,
                     struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; i < persist->index.count && step->count < STEP_RECORDS && !status; i++) {
        const struct persist_entry *entry = &persist->index.entries[i];
        if (entry->segment == segment &&
            (!step->count || step->bytes + entry->size <= PERSIST_STEP))
            status = take_entry(persist, step, entry, err);
    }
    return status;
}

static int copy_step(struct persist *persist, const struct step *step, struct error *err) {
    int status = STATUS_OK;
    for (size_t done = 0, taken = 0; done < step->count && !status; done += taken)
        status = append_group(persist, step->items + done, step->count - done, &taken, err);
    if (!status)
        persist->figures.copied += step->bytes;
    return status;
}

// Nothing counts in the oldest segment any more. It does no harm when its name comes back after a
// crash: all that it holds has newer records. But the one behind it must be there then, which says
// where the log went on: else what is missing between would count as damage.
static int remove_oldest(struct persist *persist, struct error *err) {
    const struct files *files = persist->files;
    char name[SEGMENT_NAME_MAX];
    segment_name(persist->segments[0].number, name);
    int why = files->remove(files->self, name);
    if (why)
        return files_error(why, "remove", name, err);
    persist->segment_count--;
    memmove(&persist->segments[0], &persist->segments[1],
            persist->segment_count * sizeof *persist->segments);
    why = files->sync_names(files->self);
    return why ? files_error(why, "sync the removal of", name, err) : STATUS_OK;
}

int persist_clean(struct persist *persist, struct error *err) {
    struct step step = {.count = 0};
    if (!persist_wants_cleaning(persist))
        return STATUS_OK;
    INVARIANT(persist->head < 0 || persist->segment_count > 1);
    int status = take_step(persist, &step, persist->segments[0].number, err);
    if (!status)
        status = step.count ? copy_step(persist, &step, err) : remove_oldest(persist, err);
    for (size_t i = 0; i < step.count; i++)
        persist_copy_free(&step.copies[i]);
    return status;
}
