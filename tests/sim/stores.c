// The stores of the parameter servers: the real log (persist/) on a simulated disk, and a flusher
// with the rules of role/paramserver/flusher.h, whose thread is a packet here.
#include "core/error.h"
#include "sim.h"

enum {
    WORDS = WORKERS * PUSHES / 64,
    SEGMENT = 16 * PERSIST_BLOCK,
    OPERATIONS = 12, // of a flush, about
    LATE = 10,       // times the flush setting that may be at risk
    CLEANINGS = 4,   // steps after a flush
};

static const struct persist_owner owner = {{1}, "ps"};

static struct store *store_of(const struct server *s) {
    return &s->world->stores[s->slot];
}

static bool same_stamp(struct replica_stamp a, struct replica_stamp b) {
    return a.epoch == b.epoch && a.version == b.version;
}

// --- records --------------------------------------------------------------------------------

struct encoded {
    float weights[COUNTERS];
    struct persist_push pushes[WORDS];
};

static struct persist_record encode(const struct world *w, const struct copy *copy,
                                    struct encoded *encoded) {
    const struct values *values = &copy->state.values;
    for (uint32_t i = 0; i < COUNTERS; i++)
        encoded->weights[i] = (float)values->counters[i];
    for (uint32_t i = 0; i < WORDS; i++)
        encoded->pushes[i] = (struct persist_push){
            i + 1, PUSHES, values->applied[i / (PUSHES / 64)][i % (PUSHES / 64)]};
    return (struct persist_record){
        .shard = copy->shard,
        .bucket = proto_bucket_of(copy->shard, w->bucket_count),
        .epoch = copy->state.stamp.epoch,
        .version = copy->state.stamp.version,
        .floats = COUNTERS,
        .weights = encoded->weights,
        .pushes = encoded->pushes,
        .push_count = WORDS,
    };
}

static bool decode(const struct persist_record *record, struct state *state) {
    *state = (struct state){.stamp = {record->epoch, record->version}};
    if (record->floats != COUNTERS || record->push_count != WORDS)
        return false;
    for (uint32_t i = 0; i < COUNTERS; i++)
        state->values.counters[i] = (int32_t)record->weights[i];
    for (uint32_t i = 0; i < WORDS; i++)
        state->values.applied[i / (PUSHES / 64)][i % (PUSHES / 64)] = record->pushes[i].applied;
    state->values.version = record->version;
    return true;
}

// --- opening --------------------------------------------------------------------------------

static int restore_shard(struct server *s, uint32_t shard) {
    struct store *store = store_of(s);
    struct state state = {.stamp = {0, 0}};
    struct persist_copy copy;
    int status = persist_read(store->persist, shard, &copy, NULL);
    if (status == STATUS_DATA || (!status && !decode(&copy.record, &state)))
        fault(s->world, "the store of server %u is damaged", s->slot);
    persist_copy_free(&copy);
    if (status && status != STATUS_NOINPUT)
        return status;
    check_restored(s->world, s->slot, shard, &state);
    check_has(s->world, s->slot, shard, &state);
    s->values[shard] = state.values;
    s->installed[shard] = store->shards[shard].stamp = state.stamp;
    store->shards[shard].clean = s->world->now;
    return STATUS_OK;
}

bool store_open(struct server *s) {
    struct store *store = store_of(s);
    struct world *w = s->world;
    struct error err = {0};
    int status = persist_open(&store->persist, &store->disk.files, &owner, SEGMENT, &err);
    if (status == STATUS_DATA)
        fault(w, "the store of server %u cannot be read: %s", s->slot, err.text);
    for (uint32_t i = 0; !status && i < w->shard_count; i++)
        status = restore_shard(s, i);
    store->lived = w->now;
    if (status) {
        persist_close(store->persist);
        store->persist = NULL;
    }
    return !status;
}

// --- what is dirty --------------------------------------------------------------------------

// What counts of a shard: under ack = durable what is prepared, before it is installed.
static struct state newest_state(struct server *s, uint32_t shard) {
    const struct state *prepared = &store_of(s)->prepared[shard];
    if (s->replica && !server_is_primary(s, shard) && prepared->stamp.version > 0 &&
        same_stamp(replica_stamp(s->replica, shard), prepared->stamp))
        return *prepared;
    return server_state(s, shard);
}

// Under ack = durable the store may be ahead, by what was prepared and dropped again.
static bool is_dirty(const struct world *w, struct replica_stamp here,
                     struct replica_stamp stored) {
    bool newer =
        here.epoch != stored.epoch ? here.epoch > stored.epoch : here.version > stored.version;
    return here.version > 0 && (w->durable ? newer : !same_stamp(here, stored));
}

static void look(struct server *s, uint32_t shard, const struct state *state) {
    struct watched *watched = &store_of(s)->shards[shard];
    watched->dirty = is_dirty(s->world, state->stamp, watched->stamp);
    check_has(s->world, s->slot, shard, state);
    if (watched->dirty)
        return;
    watched->clean = s->world->now;
    check_counts(s->world, s->slot, shard, watched->stamp);
}

// A flush writes what is installed. What is prepared, and may count, is so as a rule within a tick;
// but not while the primary cannot be reached and no other takes over.
static void look_at_held(struct server *s, uint32_t shard) {
    struct store *store = store_of(s);
    struct world *w = s->world;
    struct replica_stamp top = replica_stamp(s->replica, shard);
    if (server_is_primary(s, shard) || same_stamp(top, s->installed[shard]) ||
        !same_stamp(top, store->held[shard].stamp)) {
        store->held[shard].stamp = top;
        store->held[shard].since = w->now;
    }
    if (w->now < store->held[shard].since + STUCK)
        return;
    if (w->now > store->unstuck + store_window(w) + STUCK)
        store->stuck = store->held[shard].since;
    store->unstuck = w->now;
}

// For how long something has been dirty.
static uint64_t at_risk(const struct server *s) {
    const struct store *store = store_of(s);
    uint64_t oldest = s->world->now;
    for (uint32_t i = 0; i < s->world->shard_count; i++)
        if (store->shards[i].dirty && store->shards[i].clean < oldest)
            oldest = store->shards[i].clean;
    return s->world->now - oldest;
}

bool store_is_late(const struct server *s) {
    return store_of(s)->persist && at_risk(s) > LATE * s->world->every;
}

// --- a flush --------------------------------------------------------------------------------

static void post_flush(struct server *s, bool flushed, uint64_t delay) {
    uint8_t node = (uint8_t)(FIRST_SERVER + s->slot);
    const struct packet packet = {.kind = PACKET_FLUSH,
                                  .from = node,
                                  .to = node,
                                  .incarnation = s->incarnation,
                                  .flushed = flushed};
    packet_post(s->world, &packet, delay);
}

// What was prepared and is so no more is not wanted any more; a primary has it in what it has.
static struct wish take_wish(struct server *s, uint32_t shard, struct replica_stamp stamp) {
    struct wish wish = store_of(s)->wishes[shard];
    store_of(s)->wishes[shard].any = false;
    wish.any =
        wish.any && (!wish.exact || server_is_primary(s, shard) || same_stamp(wish.stamp, stamp));
    return wish;
}

static void take_copy(struct server *s, uint32_t shard) {
    struct store *store = store_of(s);
    const struct state state = newest_state(s, shard);
    struct wish wish = take_wish(s, shard, state.stamp);
    look(s, shard, &state);
    if (state.stamp.version > 0 && (store->shards[shard].dirty || wish.any))
        store->copies[store->copy_count++] = (struct copy){shard, state, s->world->now, wish};
}

static void begin_flush(struct server *s) {
    for (uint32_t i = 0; i < s->world->shard_count; i++)
        take_copy(s, i);
    if (store_of(s)->copy_count)
        post_flush(s, true, 1 + drawn(s->world, s->world->flush));
}

// How many copies are durable.
static size_t write_copies(struct server *s, int *status) {
    struct store *store = store_of(s);
    struct persist_record records[SHARDS];
    struct encoded encoded[SHARDS];
    size_t durable = 0;
    for (uint32_t i = 0; i < store->copy_count; i++)
        records[i] = encode(s->world, &store->copies[i], &encoded[i]);
    *status = persist_write(store->persist, records, store->copy_count, &durable, NULL);
    for (int i = 0; i < CLEANINGS && persist_wants_cleaning(store->persist); i++)
        if (persist_clean(store->persist, NULL))
            break;
    return durable;
}

static void note_durable(struct server *s, const struct copy *copy) {
    store_of(s)->shards[copy->shard] = (struct watched){copy->state.stamp, copy->taken, false};
    if (copy->wish.any && s->replica)
        replica_kept(s->replica, copy->shard, copy->wish.stamp, s->world->now);
}

static void note_failed(struct server *s, const struct copy *copy) {
    struct wish *wish = &store_of(s)->wishes[copy->shard];
    if (!wish->any)
        *wish = copy->wish;
}

// While a process is stopped, and shortly after, its window is larger.
static uint64_t awake(const struct server *s, uint64_t time) {
    const struct node *node = &s->world->nodes[FIRST_SERVER + s->slot];
    bool stopped =
        node->paused > 0 && time > node->since && time < node->paused + store_window(s->world);
    return stopped ? node->since : time;
}

static void end_flush(struct server *s) {
    struct store *store = store_of(s);
    int status;
    size_t durable = write_copies(s, &status);
    for (size_t i = 0; i < store->copy_count; i++)
        if (i < durable)
            note_durable(s, &store->copies[i]);
        else
            note_failed(s, &store->copies[i]);
    if (!status)
        store->failing = 0;
    else if (!store->failing)
        store->failing = awake(s, store->copies[0].taken);
    if (status)
        store->rest = s->world->now + s->world->every;
    for (size_t i = 0; i < store->copy_count; i++)
        trace(s->world, "server %u %s shard %u at (%llu, %llu)", s->slot,
              i < durable ? "flushed" : "cannot flush", store->copies[i].shard,
              (unsigned long long)store->copies[i].state.stamp.epoch,
              (unsigned long long)store->copies[i].state.stamp.version);
    store->copy_count = 0;
}

static bool is_wanted(const struct server *s) {
    for (uint32_t i = 0; i < s->world->shard_count; i++)
        if (store_of(s)->wishes[i].any)
            return true;
    return false;
}

static void flush_if_due(struct server *s) {
    const struct store *store = store_of(s);
    bool due = is_wanted(s) || at_risk(s) >= s->world->every;
    if (due && !store->copy_count && s->world->now >= store->rest)
        begin_flush(s);
}

void store_keep(struct server *s, uint32_t shard, struct replica_stamp stamp,
                const struct state *prepared) {
    struct store *store = store_of(s);
    trace(s->world, "server %u is to keep shard %u at (%llu, %llu)", s->slot, shard,
          (unsigned long long)stamp.epoch, (unsigned long long)stamp.version);
    store->wishes[shard] = (struct wish){true, prepared != NULL, stamp};
    if (prepared)
        store->prepared[shard] = *prepared;
    if (!store->woken)
        post_flush(s, false, 0);
    store->woken = true;
}

void store_receive(struct server *s, bool flushed) {
    struct store *store = store_of(s);
    store->lived = s->world->now;
    if (flushed)
        end_flush(s);
    else
        store->woken = false;
    flush_if_due(s);
}

void store_tick(struct server *s) {
    store_of(s)->lived = s->world->now;
    for (uint32_t i = 0; i < s->world->shard_count; i++) {
        const struct state state = newest_state(s, i);
        look(s, i, &state);
        if (s->replica)
            look_at_held(s, i);
    }
    flush_if_due(s);
}

// --- the end --------------------------------------------------------------------------------

// The power goes, or the process is killed, in the middle of a flush; or after it.
static void break_off_flush(struct server *s) {
    struct store *store = store_of(s);
    int status;
    store->disk.cut_at = store->disk.operations + 1 + drawn(s->world, OPERATIONS);
    if (store->copy_count)
        write_copies(s, &status);
}

static void write_rest(struct server *s) {
    struct store *store = store_of(s);
    int status;
    if (store->copy_count)
        end_flush(s);
    for (uint32_t i = 0; i < s->world->shard_count; i++)
        take_copy(s, i);
    write_copies(s, &status);
    if (!status)
        persist_seal(store->persist, NULL);
}

static void end_life(struct server *s) {
    const struct store *store = store_of(s);
    uint64_t time = store->failing ? store->failing : awake(s, store->lived);
    bool stuck = store->unstuck > 0 && time < store->unstuck + store_window(s->world) + STUCK;
    check_ended(s->world, s->slot, time, stuck ? store->stuck : time);
}

void store_close(struct server *s, enum crash how) {
    struct store *store = store_of(s);
    struct world *w = s->world;
    if (store->persist)
        end_life(s);
    if (store->persist && how == CRASH_ORDERLY)
        write_rest(s);
    else if (store->persist)
        break_off_flush(s);
    persist_close(store->persist);
    if (how == CRASH_POWER)
        sim_power(&store->disk, happens(w, 300) ? SIM_LOSES_ALL : SIM_LOSES_SOME);
    const struct sim_disk disk = store->disk;
    uint64_t mended = store->mended, room = store->room;
    bool replaced = store->replaced;
    *store = (struct store){.disk = disk, .mended = mended, .room = room, .replaced = replaced};
    store->disk.files.self = &store->disk;
    store->disk.dead = false;
    store->disk.cut_at = 0;
}

// --- disks ----------------------------------------------------------------------------------

// One operation fails, or all for a time, or there is no room for a time.
void store_break(struct world *w, uint32_t slot) {
    struct store *store = &w->stores[slot];
    struct sim_disk *disk = &store->disk;
    uint32_t what = drawn(w, 3);
    if (store->mended > w->now)
        return;
    trace(w, "the disk of server %u %s", slot,
          what == 0   ? "fails once"
          : what == 1 ? "fails"
                      : "is full");
    disk->fail_at = disk->fail_until = 0;
    if (what == 0) {
        disk->fail_at = disk->operations + 1 + drawn(w, OPERATIONS);
        disk->fail_until = disk->fail_at + drawn(w, 3);
        return;
    }
    store->mended = w->now + 50 + drawn(w, 400);
    disk->broken = what == 1;
    store->room = what == 2 ? disk->room : 0;
    disk->room -= store->room;
}

void store_replace(struct world *w, uint32_t slot) {
    struct store *store = &w->stores[slot];
    uint64_t seed = store->disk.seed;
    trace(w, "server %u gets another disk", slot);
    sim_end(&store->disk);
    *store = (struct store){.replaced = true};
    sim_begin(&store->disk);
    store->disk.seed = seed;
    w->stored_at[slot] = 0; // nothing is to be on it
}

void stores_mend(struct world *w, bool all) {
    for (uint32_t i = 0; i < w->server_count; i++) {
        struct store *store = &w->stores[i];
        if (all)
            store->disk.fail_at = 0;
        if (!store->mended || (store->mended > w->now && !all))
            continue;
        store->mended = 0;
        store->disk.broken = false;
        store->disk.room += store->room;
        store->room = 0;
    }
}
