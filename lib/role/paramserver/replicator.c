#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "role/paramserver/replicator_internal.h"

enum {
    // Milliseconds. A primary that dies has a successor when its lease is over, and two that hear
    // each other never differ by more than these.
    PULSE = 100,
    SILENCE = 500,
    RESEND = 300,
    PATIENCE = 1000,
    GATHER = 20, // changes that need not be answered for are sent together
    LOOK = 50,   // between two askings for places
    WHOLES = 4,
    MEMORY_PAUSE = 10,
    LOADS = 1 << 30, // bytes of values that are on their way to others
};

uint64_t replicator_now(void) {
    return (uint64_t)(clock_seconds() * 1000);
}

// --- what the replica asks for ----------------------------------------------------------

static struct replica_load *host_read(void *self, uint32_t shard, uint64_t blocks,
                                      struct replica_read *read) {
    struct replicator *r = self;
    return load_read(&r->place, shard, blocks, read);
}

void replicator_wait_for_memory(void) {
    static const struct timespec pause = {.tv_nsec = MEMORY_PAUSE * 1000000};
    nanosleep(&pause, NULL);
}

// What is committed must be installed.
static void host_install(void *self, uint32_t shard, struct replica_stamp stamp, uint64_t blocks,
                         bool whole, struct replica_load *load) {
    struct replicator *r = self;
    (void)whole; // it has all blocks
    while (load_install(&r->place, shard, stamp, blocks, load) == PROTO_REFUSAL_BUSY)
        replicator_wait_for_memory();
}

static void host_keep(void *self, uint32_t shard, struct replica_stamp stamp,
                      struct replica_load *load) {
    replicator_keep(self, shard, stamp, load);
}

static void host_hold(void *self, struct replica_load *load) {
    (void)self;
    load_hold(load);
}

static void host_release(void *self, struct replica_load *load) {
    (void)self;
    load_release(load);
}

static void host_send(void *self, const struct replica_message *message) {
    replicator_send(self, message);
}

static void host_propose(void *self, const struct proto_proposal *proposal) {
    struct replicator *r = self;
    if (r->proposal_count < MEMBER_PROPOSALS)
        r->proposals[r->proposal_count++] = *proposal;
}

static void host_replicated(void *self, uint32_t shard, uint64_t version) {
    const struct replicator *r = self;
    ps_replicated(r->options.ps, shard, version);
}

// ps_withdraw has refused what waited.
static void host_closed(void *self, uint32_t shard) {
    (void)self;
    (void)shard;
}

static void host_outdated(void *self) {
    struct replicator *r = self;
    uint64_t now = replicator_now();
    r->outdated = r->hearing != NULL;
    if (now < r->looked + LOOK)
        return;
    r->looked = now;
    member_look_places(r->options.member);
}

// --- places -----------------------------------------------------------------------------

bool replicator_is_primary(const struct replicator *r, uint32_t shard) {
    return replica_bucket(r->replica, proto_bucket_of(shard, r->buckets)).role == REPLICA_PRIMARY;
}

// The shards that this server has by now.
static void restore_shards(struct replicator *r) {
    struct proto_piece stamp;
    for (uint32_t shard = 0; shard < r->shards; shard++)
        if (ps_stamps(r->options.ps, shard, 1, &stamp))
            replica_restore(r->replica, shard, (struct replica_stamp){stamp.epoch, stamp.version});
}

static void open_replica(struct replicator *r, uint32_t buckets) {
    const struct replica_options options = {
        .member = r->options.identity.member,
        .shards = r->shards,
        .buckets = buckets,
        .pulse = PULSE,
        .silence = SILENCE,
        .resend = RESEND,
        .patience = PATIENCE,
        .interval = r->options.replicates ? 0 : GATHER,
        .wholes = WHOLES,
        .delayed = r->options.delayed,
    };
    while (replica_open(&r->replica, &options, &r->host, replicator_now(), NULL))
        replicator_wait_for_memory();
    r->buckets = buckets;
    restore_shards(r);
}

// The last versions of shards under their present places.
static void withdraw_shards(struct replicator *r, const struct proto_list *places) {
    const struct proto_place *at = places->at;
    for (uint32_t shard = 0; shard < r->shards; shard++) {
        const struct proto_place *place = &at[proto_bucket_of(shard, places->count)];
        if (place->epoch > replica_bucket(r->replica, place->bucket).place.epoch &&
            ps_withdraw(r->options.ps, shard, place, r->options.identity.member))
            replica_applied(r->replica, shard, 0, load_version(&r->place, shard), replicator_now());
    }
}

static struct kept *take_places(struct replicator *r) {
    pthread_mutex_lock(&r->lock);
    struct kept *places = r->places;
    r->places = NULL;
    pthread_mutex_unlock(&r->lock);
    return places;
}

// A server that has no copies to wait for knows at once what is kept, before its shards are served.
static void tell_kept(const struct replicator *r) {
    for (uint32_t shard = 0; r->attended && shard < r->shards; shard++)
        if (replicator_is_primary(r, shard) && replica_has_replicated(r->replica, shard, 0))
            ps_replicated(r->options.ps, shard, replica_version(r->replica, shard));
}

// Who has the shards is known to the replica before they are served.
static void obey_places(struct replicator *r) {
    struct kept *kept = take_places(r);
    if (!kept)
        return;
    const struct proto_list *places = &kept->message.places.places;
    if (!r->replica)
        open_replica(r, places->count);
    withdraw_shards(r, places);
    replica_route(r->replica, places->at, places->count, replicator_now());
    ps_route(r->options.ps, places->at, places->count, r->options.identity.member);
    tell_kept(r);
    kept_drop(kept);
    replicator_take_early(r);
}

// --- changes ----------------------------------------------------------------------------

static void tell_applied(struct replicator *r, uint32_t shard) {
    struct proto_piece stamp;
    if (replicator_is_primary(r, shard) && ps_stamps(r->options.ps, shard, 1, &stamp))
        replica_applied(r->replica, shard, 0, stamp.version, replicator_now());
}

static void take_applied(struct replicator *r) {
    for (uint32_t first = 0; r->replica && first < r->shards; first += 64) {
        uint64_t bits = atomic_exchange(&r->applied[first / 64], 0);
        for (; bits; bits &= bits - 1)
            tell_applied(r, first + (uint32_t)__builtin_ctzll(bits));
    }
}

void replicator_applied(struct replicator *r, uint32_t shard) {
    uint64_t bit = UINT64_C(1) << shard % 64;
    if (!(atomic_fetch_or(&r->applied[shard / 64], bit) & bit))
        gate_open(&r->work);
}

// --- the thread -------------------------------------------------------------------------

static double seconds_left(const struct replicator *r) {
    uint64_t now = replicator_now(), deadline;
    if (!r->replica)
        return -1;
    deadline = replica_deadline(r->replica);
    return deadline > now ? (double)(deadline - now) / 1000 : 0;
}

// All that is wanted now: what was wanted before and was not sent yet is not sent any more.
static void send_proposals(struct replicator *r) {
    if (r->proposal_count || r->proposed)
        member_propose(r->options.member, r->proposals, r->proposal_count);
    r->proposed = r->proposal_count > 0;
    r->proposal_count = 0;
}

static void let_time_pass(struct replicator *r) {
    uint64_t now = replicator_now();
    if (!r->replica)
        return;
    replica_lease(r->replica, atomic_load(&r->lease));
    if (now < replica_deadline(r->replica))
        return;
    replica_tick(r->replica, now);
    send_proposals(r);
}

static void *replicate(void *context) {
    struct replicator *r = context;
    for (uint32_t seen = gate_look(&r->work); !atomic_load(&r->closing);
         seen = gate_look(&r->work)) {
        obey_places(r);
        replicator_take_requests(r);
        replicator_take_answers(r);
        replicator_take_kept(r);
        take_applied(r);
        let_time_pass(r);
        double left = seconds_left(r);
        if (left != 0)
            gate_wait(&r->work, seen, left);
    }
    return NULL;
}

// --- what the owner tells ---------------------------------------------------------------

static bool are_all(const struct replicator *r, const struct proto_list *places) {
    const struct proto_place *at = places->at;
    bool all = places->count > 0 && (!r->listed || places->count == r->listed);
    for (uint32_t i = 0; i < places->count && all; i++)
        all = at[i].bucket == i;
    return all;
}

int replicator_route(struct replicator *r, struct kept *places, struct error *err) {
    const struct proto_list *list = &places->message.places.places;
    if (!are_all(r, list)) {
        kept_drop(places);
        return error_set(err, STATUS_DATA, "the controller gives no places of all buckets");
    }
    r->listed = list->count;
    pthread_mutex_lock(&r->lock);
    struct kept *before = r->places;
    r->places = places;
    pthread_mutex_unlock(&r->lock);
    kept_drop(before);
    gate_open(&r->work);
    return STATUS_OK;
}

void replicator_know(struct replicator *r, struct kept *members) {
    pthread_mutex_lock(&r->lock);
    struct kept *before = r->members;
    r->members = members;
    pthread_mutex_unlock(&r->lock);
    kept_drop(before);
}

int replicator_meet(struct replicator *r, const struct proto_routes *routes, struct error *err) {
    return peers_set(r->peers, &routes->servers, err);
}

void replicator_lease(struct replicator *r, double until) {
    atomic_store(&r->lease, (uint64_t)(until * 1000));
}

// --- open and close ---------------------------------------------------------------------

static int open_peers(struct replicator *r, struct error *err) {
    const struct replicator_options *o = &r->options;
    const struct peers_options options = {
        .hello = {.role = PROTO_ROLE_PARAMETER_SERVER,
                  .run = o->identity.run,
                  .model = o->identity.model,
                  .session = o->identity.session,
                  .name = proto_text(o->name)},
        .member = o->identity.member,
        .keys = o->keys,
        .insecure = o->insecure,
    };
    return peers_open(&r->peers, &options, err);
}

static void set_host(struct replicator *r) {
    r->host = (struct replica_host){
        .self = r,
        .read = host_read,
        .install = host_install,
        .hold = host_hold,
        .release = host_release,
        .keep = r->options.keeper ? host_keep : NULL,
        .send = host_send,
        .propose = host_propose,
        .replicated = host_replicated,
        .closed = host_closed,
        .outdated = host_outdated,
    };
}

int replicator_open(struct replicator **out, const struct replicator_options *options,
                    struct error *err) {
    struct replicator *r = mem_zeroed(1, sizeof *r);
    if (!r)
        return error_nomem(err);
    r->options = *options;
    r->place = (struct load_place){.ps = options->ps,
                                   .pool = {.limit = LOADS},
                                   .states = options->states,
                                   .parameters = options->parameters};
    r->shards = load_shards(&r->place);
    r->last = &r->first;
    set_host(r);
    request_queue_open(&r->inbox, &r->work);
    pthread_mutex_init(&r->lock, NULL);
    r->applied = mem_zeroed(r->shards / 64 + 1, sizeof *r->applied);
    if (options->keeper)
        r->attended = mem_zeroed(r->shards, sizeof *r->attended);
    bool room = r->applied && (r->attended || !options->keeper);
    int status = room ? open_peers(r, err) : error_nomem(err);
    if (!status && pthread_create(&r->thread, NULL, replicate, r))
        status = error_set(err, STATUS_IO, "no thread for replication");
    if (status) {
        peers_close(r->peers);
        replicator_free(r);
    } else {
        *out = r;
    }
    return status;
}

void replicator_traffic(struct replicator *r, uint64_t *received, uint64_t *sent) {
    peers_traffic(r->peers, received, sent);
}

void replicator_close(struct replicator *r) {
    if (!r)
        return;
    atomic_store(&r->closing, true);
    gate_open(&r->work);
    pthread_join(r->thread, NULL);
    peers_close(r->peers);
    replicator_take_answers(r);
    replica_close(r->replica);
    r->replica = NULL;
}

void replicator_free(struct replicator *r) {
    if (!r)
        return;
    request_queue_close(&r->inbox);
    replicator_forget_kept(r);
    replicator_forget_early(r);
    peers_free(r->peers);
    kept_drop(r->places);
    kept_drop(r->members);
    pool_free(&r->place.pool);
    pthread_mutex_destroy(&r->lock);
    free((void *)r->applied);
    free(r->attended);
    free(r);
}
