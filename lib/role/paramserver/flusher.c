#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/mem.h"
#include "role/paramserver/flusher_internal.h"

enum {
    LOOKS = 8,   // at the stamps while a change gets as old as it may
    STAMPS = 64, // looked at together
};

static uint32_t shards_of(size_t parameters) {
    return (uint32_t)((parameters + PROTO_SHARD_FLOATS - 1) / PROTO_SHARD_FLOATS);
}

static uint32_t copies_of(size_t parameters) {
    uint32_t shards = shards_of(parameters);
    return shards < COPIES ? shards : COPIES;
}

uint32_t flusher_room(const struct flusher *flusher) {
    return copies_of(flusher->options.parameters);
}

static uint32_t floats_of(const struct flusher *flusher, uint32_t shard) {
    size_t rest = flusher->options.parameters - (size_t)shard * PROTO_SHARD_FLOATS;
    return (uint32_t)(rest < PROTO_SHARD_FLOATS ? rest : PROTO_SHARD_FLOATS);
}

uint64_t flusher_memory(size_t parameters, int states) {
    return (uint64_t)copies_of(parameters) * PROTO_SHARD_FLOATS * sizeof(float) *
           (uint64_t)(1 + states);
}

// --- what is dirty ----------------------------------------------------------------------

// With ack = durable the store may be ahead of the shard, by what is prepared for it: that stays.
// All that was acknowledged is in the newer of two stamps.
static bool is_dirty(const struct flusher *flusher, const struct watched *shard,
                     const struct proto_piece *stamp) {
    bool newer = stamp->epoch > shard->epoch ||
                 (stamp->epoch == shard->epoch && stamp->version > shard->version);
    bool other = stamp->version != shard->version || stamp->epoch != shard->epoch;
    return flusher->options.durable ? newer : other;
}

static void note_stamp(const struct flusher *flusher, struct watched *shard,
                       const struct proto_piece *stamp, double now) {
    shard->dirty = is_dirty(flusher, shard, stamp);
    if (!shard->dirty)
        shard->clean = now;
}

static void look_at_stamps(struct flusher *flusher) {
    struct proto_piece stamps[STAMPS];
    double now = clock_seconds();
    for (uint32_t first = 0; first < flusher->shard_count; first += STAMPS) {
        uint32_t n = ps_stamps(flusher->options.ps, first, STAMPS, stamps), i = 0;
        for (uint32_t s = first; s < flusher->shard_count && s - first < STAMPS; s++) {
            bool has = i < n && stamps[i].shard == s;
            if (has)
                note_stamp(flusher, &flusher->shards[s], &stamps[i++], now);
            else
                flusher->shards[s] = (struct watched){flusher->shards[s].epoch,
                                                      flusher->shards[s].version, now, false};
        }
    }
}

// Tells the others, and returns for how long something has been dirty.
static double publish(struct flusher *flusher) {
    struct persist_figures written;
    uint64_t bytes = 0;
    double now = clock_seconds(), oldest = now;
    persist_figures(flusher->persist, &written);
    for (uint32_t s = 0; s < flusher->shard_count; s++) {
        const struct watched *shard = &flusher->shards[s];
        if (!shard->dirty)
            continue;
        bytes += floats_of(flusher, s) * sizeof(float) * (size_t)(1 + flusher->options.states);
        oldest = shard->clean < oldest ? shard->clean : oldest;
    }
    pthread_mutex_lock(&flusher->lock);
    flusher->dirty_bytes = bytes;
    flusher->oldest = oldest;
    flusher->written = written;
    pthread_mutex_unlock(&flusher->lock);
    return now - oldest;
}

// --- copies -----------------------------------------------------------------------------

static void end_copy(void *context, const struct ps_answer *answer) {
    struct copy *copy = context;
    struct flusher *flusher = copy->flusher;
    copy->code = answer->code;
    if (atomic_fetch_sub(&flusher->uncopied, 1) == 1)
        gate_open(&flusher->copied);
}

static void wait_for_copies(struct flusher *flusher) {
    for (uint32_t seen = gate_look(&flusher->copied); atomic_load(&flusher->uncopied);
         seen = gate_look(&flusher->copied))
        gate_wait(&flusher->copied, seen, -1);
}

void flusher_copy(struct flusher *flusher, uint32_t count) {
    atomic_store(&flusher->uncopied, count);
    for (uint32_t i = 0; i < count; i++) {
        struct copy *copy = &flusher->copies[i];
        copy->time = clock_seconds();
        ps_snapshot(flusher->options.ps, &copy->snapshot, end_copy, copy);
    }
    wait_for_copies(flusher);
}

// Copies of dirty shards from `first` on; returns how many, and where to go on.
static uint32_t copy_shards(struct flusher *flusher, uint32_t *first) {
    uint32_t n = 0;
    for (; *first < flusher->shard_count && n < flusher_room(flusher); ++*first)
        if (flusher->shards[*first].dirty)
            flusher->copies[n++].snapshot.shard = *first;
    flusher_copy(flusher, n);
    return n;
}

static bool convert_pushes(struct copy *copy) {
    const struct ps_snapshot *snapshot = &copy->snapshot;
    if (snapshot->push_count > copy->push_room) {
        struct persist_push *more =
            mem_resize(copy->pushes, snapshot->push_room, sizeof *copy->pushes);
        if (!more)
            return false;
        copy->pushes = more;
        copy->push_room = snapshot->push_room;
    }
    for (uint32_t i = 0; i < snapshot->push_count; i++)
        copy->pushes[i] = (struct persist_push){
            snapshot->pushes[i].session, snapshot->pushes[i].high, snapshot->pushes[i].applied};
    return true;
}

_Static_assert(KEPT_MOST <= PERSIST_STATES, "a record holds all that an optimizer keeps");

static struct persist_record record_of(const struct flusher *flusher, const struct copy *copy) {
    const struct ps_snapshot *snapshot = &copy->snapshot;
    uint32_t buckets = atomic_load(&flusher->buckets);
    struct persist_record record = {
        .shard = snapshot->shard,
        .bucket = buckets ? proto_bucket_of(snapshot->shard, buckets) : PROTO_NOBODY,
        .epoch = snapshot->epoch,
        .version = snapshot->version,
        .floats = snapshot->floats,
        .states = (uint32_t)flusher->options.states,
        .weights = snapshot->weights,
        .pushes = copy->pushes,
        .push_count = snapshot->push_count,
    };
    for (int i = 0; i < flusher->options.states; i++)
        record.state[i] = snapshot->states[i];
    return record;
}

// --- writing ----------------------------------------------------------------------------

// The shard is in the store as it was copied: what changed since is as old as the copy at most.
static void note_durable(struct flusher *flusher, const struct copy *copy) {
    flusher->shards[copy->snapshot.shard] = (struct watched){
        .epoch = copy->snapshot.epoch, .version = copy->snapshot.version, .clean = copy->time};
}

// One group of shards; one that has no weights any more is left out.
static int write_copies(struct flusher *flusher, uint32_t count, struct error *err) {
    struct persist_record records[COPIES];
    const struct copy *copies[COPIES];
    size_t n = 0, durable = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct copy *copy = &flusher->copies[i];
        if (copy->code != PROTO_REFUSAL_NONE)
            continue;
        if (!convert_pushes(copy))
            return error_nomem(err);
        copies[n] = copy;
        records[n++] = record_of(flusher, copy);
    }
    int status = persist_write(flusher->persist, records, n, &durable, err);
    for (size_t i = 0; i < durable; i++)
        note_durable(flusher, copies[i]);
    return status;
}

// As many bytes as were new: cleaning never falls behind, as it copies less than is new.
static int clean_store(struct flusher *flusher, uint64_t bytes, struct error *err) {
    struct persist_figures before, now;
    int status = STATUS_OK;
    persist_figures(flusher->persist, &before);
    do {
        if (persist_wants_cleaning(flusher->persist))
            status = persist_clean(flusher->persist, err);
        persist_figures(flusher->persist, &now);
    } while (!status && now.copied - before.copied < bytes &&
             persist_wants_cleaning(flusher->persist));
    return status;
}

int flusher_write(struct flusher *flusher, uint32_t count, struct error *err) {
    int status = write_copies(flusher, count, err);
    uint64_t bytes = flusher_memory(flusher->options.parameters, flusher->options.states);
    int cleaned = clean_store(flusher, bytes, status ? NULL : err);
    publish(flusher);
    return status ? status : cleaned;
}

// All that is dirty, some shards at a time.
static int flush_shards(struct flusher *flusher, struct error *err) {
    int status = STATUS_OK;
    for (uint32_t first = 0, n; !status && (n = copy_shards(flusher, &first)) > 0;)
        status = flusher_write(flusher, n, err);
    return status;
}

typedef int flusher_work(struct flusher *flusher, struct error *err);

static int work_and_tell(struct flusher *flusher, flusher_work *work) {
    struct error err = {0};
    int status = work(flusher, &err);
    look_at_stamps(flusher);
    publish(flusher);
    pthread_mutex_lock(&flusher->lock);
    flusher->failing = status != STATUS_OK;
    flusher->why = err;
    pthread_mutex_unlock(&flusher->lock);
    return status;
}

// Until something is wished, where `heeds`.
static void rest(struct flusher *flusher, double seconds, bool heeds) {
    double end = clock_seconds() + seconds;
    for (uint32_t seen = gate_look(&flusher->wake); !atomic_load(&flusher->stopping);
         seen = gate_look(&flusher->wake)) {
        double left = end - clock_seconds();
        if (left <= 0 || (heeds && flusher_has_wishes(flusher)))
            return;
        gate_wait(&flusher->wake, seen, left);
    }
}

static void *keep_store(void *self) {
    struct flusher *flusher = self;
    double every = flusher->options.every, look = every / LOOKS;
    while (!atomic_load(&flusher->stopping)) {
        int status = STATUS_OK;
        look_at_stamps(flusher);
        bool due = publish(flusher) >= every;
        if (flusher_has_wishes(flusher))
            status = work_and_tell(flusher, flusher_grant);
        else if (due)
            status = work_and_tell(flusher, flush_shards);
        rest(flusher, status ? every : look, status == STATUS_OK);
    }
    look_at_stamps(flusher);
    if (!work_and_tell(flusher, flush_shards))
        persist_seal(flusher->persist, NULL);
    return NULL;
}

// --- putting back -----------------------------------------------------------------------

static bool fits(const struct flusher *flusher, const struct persist_record *record) {
    return record->shard < flusher->shard_count &&
           record->floats == floats_of(flusher, record->shard) && record->version &&
           record->states == (uint32_t)flusher->options.states;
}

// Into the shard, from a record that fits.
static int put_back(struct flusher *flusher, const struct persist_record *record,
                    struct error *err) {
    struct copy *copy = &flusher->copies[0];
    struct ps_snapshot snapshot = {
        .shard = record->shard,
        .blocks = PS_BLOCKS,
        .epoch = record->epoch,
        .version = record->version,
        .weights = (float *)record->weights,
        .floats = record->floats,
        .pushes = mem_array(record->push_count + 1, sizeof *snapshot.pushes),
        .push_count = record->push_count,
    };
    if (!snapshot.pushes)
        return error_nomem(err);
    for (uint32_t i = 0; i < record->states; i++)
        snapshot.states[i] = (float *)record->state[i];
    for (uint32_t i = 0; i < record->push_count; i++)
        snapshot.pushes[i] = (struct push_history){
            record->pushes[i].session, record->pushes[i].high, record->pushes[i].applied};
    atomic_store(&flusher->uncopied, 1);
    ps_restore(flusher->options.ps, &snapshot, end_copy, copy);
    wait_for_copies(flusher);
    free(snapshot.pushes);
    if (copy->code != PROTO_REFUSAL_NONE)
        return error_set(err, STATUS_IO, "cannot put back shard %" PRIu32 ": %s", record->shard,
                         proto_refusal_text(copy->code));
    flusher->shards[record->shard] =
        (struct watched){.epoch = record->epoch, .version = record->version};
    return STATUS_OK;
}

static int restore_shard(struct flusher *flusher, uint32_t shard, struct flusher_restored *restored,
                         struct error *err) {
    struct persist_copy copy;
    struct error why = {0};
    int status = persist_read(flusher->persist, shard, &copy, &why);
    if (status == STATUS_DATA) {
        restored->first = restored->damaged++ ? restored->first : shard;
        return STATUS_OK;
    }
    if (status)
        return error_set(err, status, "%s", why.text);
    if (!fits(flusher, &copy.record)) {
        restored->strange++;
    } else if (!(status = put_back(flusher, &copy.record, err))) {
        restored->shards++;
        if (copy.record.version > restored->version)
            restored->version = copy.record.version;
    }
    persist_copy_free(&copy);
    return status;
}

static int restore_shards(struct flusher *flusher, struct flusher_restored *restored,
                          struct error *err) {
    size_t count;
    int status = STATUS_OK;
    const struct persist_entry *entries = persist_entries(flusher->persist, &count);
    for (size_t i = 0; i < count && !status; i++)
        status = restore_shard(flusher, entries[i].shard, restored, err);
    return status;
}

// --- open, close ------------------------------------------------------------------------

static bool make_copy(struct flusher *flusher, struct copy *copy) {
    struct ps_snapshot *snapshot = &copy->snapshot;
    copy->flusher = flusher;
    snapshot->blocks = PS_BLOCKS;
    snapshot->weights = mem_untouched_floats(PROTO_SHARD_FLOATS);
    bool made = snapshot->weights != NULL;
    for (int i = 0; i < flusher->options.states; i++) {
        snapshot->states[i] = mem_untouched_floats(PROTO_SHARD_FLOATS);
        made = made && snapshot->states[i];
    }
    return made;
}

static bool make_copies(struct flusher *flusher) {
    bool made = true;
    for (uint32_t i = 0; i < copies_of(flusher->options.parameters); i++)
        made = made && make_copy(flusher, &flusher->copies[i]);
    return made;
}

static void free_copy(struct copy *copy) {
    free(copy->snapshot.weights);
    for (int i = 0; i < KEPT_MOST; i++)
        free(copy->snapshot.states[i]);
    free(copy->snapshot.pushes);
    free(copy->pushes);
}

static void flusher_free(struct flusher *flusher) {
    for (int i = 0; i < COPIES; i++)
        free_copy(&flusher->copies[i]);
    persist_close(flusher->persist);
    pthread_mutex_destroy(&flusher->lock);
    free(flusher->shards);
    free(flusher);
}

int flusher_open(struct flusher **out, const struct flusher_options *options,
                 struct flusher_restored *restored, struct error *err) {
    struct flusher *flusher = mem_zeroed(1, sizeof *flusher);
    *restored = (struct flusher_restored){0};
    if (!flusher)
        return error_nomem(err);
    flusher->options = *options;
    flusher->last_wish = &flusher->wishes;
    flusher->shard_count = shards_of(options->parameters);
    flusher->shards = mem_zeroed(flusher->shard_count, sizeof *flusher->shards);
    pthread_mutex_init(&flusher->lock, NULL);
    int status = flusher->shards && make_copies(flusher) ? STATUS_OK : error_nomem(err);
    if (!status)
        status =
            persist_open(&flusher->persist, options->files, &options->owner, PERSIST_SEGMENT, err);
    if (!status)
        status = restore_shards(flusher, restored, err);
    flusher->oldest = clock_seconds();
    if (!status && pthread_create(&flusher->thread, NULL, keep_store, flusher))
        status = error_set(err, STATUS_IO, "no thread for the store");
    if (status)
        flusher_free(flusher);
    else
        *out = flusher;
    return status;
}

int flusher_close(struct flusher *flusher, struct error *err) {
    if (!flusher)
        return STATUS_OK;
    atomic_store(&flusher->stopping, true);
    gate_open(&flusher->wake);
    pthread_join(flusher->thread, NULL);
    flusher_give_up(flusher);
    int status = STATUS_OK;
    if (flusher->failing)
        status = error_set(err, STATUS_IO, "%" PRIu64 " bytes of shards are not in the store: %s",
                           flusher->dirty_bytes, flusher->why.text);
    flusher_free(flusher);
    return status;
}

// --- from outside -----------------------------------------------------------------------

void flusher_route(struct flusher *flusher, uint32_t buckets) {
    atomic_store(&flusher->buckets, buckets);
}

void flusher_figures(struct flusher *flusher, struct flusher_figures *figures) {
    pthread_mutex_lock(&flusher->lock);
    *figures = (struct flusher_figures){
        .dirty_bytes = flusher->dirty_bytes,
        .at_risk = flusher->dirty_bytes ? clock_seconds() - flusher->oldest : 0,
        .flushed = flusher->written.asked,
        .written = flusher->written.written,
        .failures = flusher->written.failures,
    };
    pthread_mutex_unlock(&flusher->lock);
}

void flusher_watch(struct flusher *flusher) {
    struct flusher_figures figures;
    flusher_figures(flusher, &figures);
    flusher->paused = figures.at_risk > FLUSHER_LIMIT * flusher->options.every;
    ps_pause(flusher->options.ps, flusher->paused);
}

static bool tell_failing(struct flusher *flusher, char text[FLUSHER_NEWS]) {
    pthread_mutex_lock(&flusher->lock);
    bool failing = flusher->failing, news = failing != flusher->told_failing;
    if (news && failing)
        snprintf(text, FLUSHER_NEWS,
                 "%s; it is tried again, and what changes meanwhile may be lost",
                 flusher->why.text);
    else if (news)
        snprintf(text, FLUSHER_NEWS, "the store is written again");
    pthread_mutex_unlock(&flusher->lock);
    flusher->told_failing = failing;
    return news;
}

bool flusher_news(struct flusher *flusher, char text[FLUSHER_NEWS]) {
    if (tell_failing(flusher, text))
        return true;
    if (flusher->paused == flusher->told_paused)
        return false;
    flusher->told_paused = flusher->paused;
    snprintf(text, FLUSHER_NEWS, "%s",
             flusher->paused ? "pushes are told to come later: the disk of the store cannot keep up"
                             : "pushes are taken again: the store has caught up");
    return true;
}
