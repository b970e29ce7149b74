// What must be in the store before it counts. With ack = durable "committed" is what is on the
// disks of all members: the primary's own disk has what the shard has by then, and that of a
// secondary what is prepared, before it answers so. Else it is what a joiner was sent whole, and
// installed.
#include <stdlib.h>

#include "core/mem.h"
#include "role/paramserver/flusher.h"
#include "role/paramserver/replicator_internal.h"

struct keeping {
    struct flusher_wish wish; // the first: it is found by it
    struct replicator *replicator;
    struct replica_load *load; // the wish's, held; NULL: none
    struct keeping *next;
};

// By the flusher's thread, or when that has ended.
static void end_keeping(struct flusher_wish *wish) {
    struct keeping *keeping = (struct keeping *)wish;
    struct replicator *r = keeping->replicator;
    pthread_mutex_lock(&r->lock);
    keeping->next = r->kept;
    r->kept = keeping;
    pthread_mutex_unlock(&r->lock);
    gate_open(&r->work);
}

static void free_keeping(struct keeping *keeping) {
    if (keeping->load)
        load_release(keeping->load);
    free(keeping);
}

// What the shard has by now; {0}: no weights.
static struct replica_stamp installed(const struct replicator *r, uint32_t shard) {
    struct proto_piece stamp = {0};
    ps_stamps(r->options.ps, shard, 1, &stamp);
    return (struct replica_stamp){stamp.epoch, stamp.version};
}

// A copy has the base of a load that it is sent, or the load is whole (replica/). Installing is
// this thread's, too.
void replicator_keep(struct replicator *r, uint32_t shard, struct replica_stamp stamp,
                     struct replica_load *load) {
    struct keeping *keeping;
    while (!(keeping = mem_zeroed(1, sizeof *keeping)))
        replicator_wait_for_memory();
    keeping->replicator = r;
    keeping->wish = (struct flusher_wish){.shard = shard, .stamp = stamp, .done = end_keeping};
    if (load && !replicator_is_primary(r, shard)) {
        load_hold(load);
        keeping->load = load;
        keeping->wish.load = load;
        keeping->wish.base = installed(r, shard);
    }
    r->attended[shard].keepings++;
    flusher_keep(r->options.keeper, &keeping->wish);
}

static struct keeping *take_kept(struct replicator *r) {
    pthread_mutex_lock(&r->lock);
    struct keeping *list = r->kept;
    r->kept = NULL;
    pthread_mutex_unlock(&r->lock);
    return list;
}

static void tell_kept(struct replicator *r, const struct flusher_wish *wish) {
    struct attended *shard = &r->attended[wish->shard];
    struct queued_request *waiting = shard->waiting;
    shard->keepings--;
    shard->waiting = NULL;
    r->hearing = waiting;
    replica_kept(r->replica, wish->shard, wish->stamp, replicator_now());
    if (waiting)
        replicator_settle(r, waiting);
}

void replicator_take_kept(struct replicator *r) {
    for (struct keeping *keeping = take_kept(r), *next; keeping; keeping = next) {
        next = keeping->next;
        tell_kept(r, &keeping->wish);
        free_keeping(keeping);
    }
}

void replicator_forget_kept(struct replicator *r) {
    for (struct keeping *keeping = take_kept(r), *next; keeping; keeping = next) {
        next = keeping->next;
        free_keeping(keeping);
    }
    for (uint32_t shard = 0; r->attended && shard < r->shards; shard++)
        if (r->attended[shard].waiting)
            queued_request_free(r->attended[shard].waiting);
}
