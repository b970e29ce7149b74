// Wishes, in groups: each group is written with one sync, while the next one gathers.
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ps/blocks.h"
#include "role/paramserver/flusher_internal.h"
#include "role/paramserver/load.h"

// --- the queue --------------------------------------------------------------------------

void flusher_keep(struct flusher *flusher, struct flusher_wish *wish) {
    wish->next = NULL;
    pthread_mutex_lock(&flusher->lock);
    *flusher->last_wish = wish;
    flusher->last_wish = &wish->next;
    pthread_mutex_unlock(&flusher->lock);
    gate_open(&flusher->wake);
}

bool flusher_has_wishes(struct flusher *flusher) {
    pthread_mutex_lock(&flusher->lock);
    bool has = flusher->wishes != NULL;
    pthread_mutex_unlock(&flusher->lock);
    return has;
}

static struct flusher_wish *take_wish(struct flusher *flusher) {
    pthread_mutex_lock(&flusher->lock);
    struct flusher_wish *wish = flusher->wishes;
    if (wish)
        flusher->wishes = wish->next;
    if (!flusher->wishes)
        flusher->last_wish = &flusher->wishes;
    pthread_mutex_unlock(&flusher->lock);
    return wish;
}

// It is the oldest again.
static void put_back(struct flusher *flusher, struct flusher_wish *wish) {
    pthread_mutex_lock(&flusher->lock);
    if (!flusher->wishes)
        flusher->last_wish = &wish->next;
    wish->next = flusher->wishes;
    flusher->wishes = wish;
    pthread_mutex_unlock(&flusher->lock);
}

void flusher_give_up(struct flusher *flusher) {
    for (struct flusher_wish *wish; (wish = take_wish(flusher));)
        wish->done(wish);
}

// --- a group ----------------------------------------------------------------------------

// Nothing is to be written: a shard without weights is as none, and the store may have it already.
static bool is_granted(const struct flusher *flusher, const struct flusher_wish *wish) {
    const struct watched *stored = &flusher->shards[wish->shard];
    bool epoch = stored->epoch == wish->stamp.epoch;
    bool version = wish->load ? stored->version == wish->stamp.version
                              : stored->version >= wish->stamp.version;
    return wish->stamp.version == 0 || (epoch && version);
}

static bool has_shard(struct flusher_wish *const group[], uint32_t count, uint32_t shard) {
    for (uint32_t i = 0; i < count; i++)
        if (group[i]->shard == shard)
            return true;
    return false;
}

// The oldest wishes, of different shards.
static uint32_t take_group(struct flusher *flusher, struct flusher_wish *group[COPIES]) {
    uint32_t n = 0;
    for (struct flusher_wish *wish; n < flusher_room(flusher) && (wish = take_wish(flusher));) {
        if (has_shard(group, n, wish->shard)) {
            put_back(flusher, wish);
            break;
        }
        if (is_granted(flusher, wish))
            wish->done(wish);
        else
            group[n++] = wish;
    }
    return n;
}

// --- what is written --------------------------------------------------------------------

static bool take_history(struct ps_snapshot *snapshot, const struct replica_load *load) {
    if (load->push_count > snapshot->push_room) {
        struct push_history *more =
            mem_resize(snapshot->pushes, load->push_count, sizeof *snapshot->pushes);
        if (!more)
            return false;
        snapshot->pushes = more;
        snapshot->push_room = load->push_count;
    }
    if (load->push_count)
        memcpy(snapshot->pushes, load->pushes, load->push_count * sizeof *load->pushes);
    snapshot->push_count = load->push_count;
    return true;
}

// The values of the base: all blocks of a shard that has none come with the load.
static bool is_base(const struct copy *copy, const struct flusher_wish *wish) {
    const struct ps_snapshot *snapshot = &copy->snapshot;
    uint64_t all = blocks_of(wish->load->floats);
    if (copy->code == PROTO_REFUSAL_NOT_READY)
        return wish->base.version == 0 && (wish->load->blocks & all) == all;
    return snapshot->epoch == wish->base.epoch && snapshot->version == wish->base.version;
}

// What is prepared, unless it was installed meanwhile: then the shard has it, and perhaps more.
static bool add_load(struct copy *copy, const struct flusher_wish *wish) {
    struct ps_snapshot *snapshot = &copy->snapshot;
    if (!wish->load || !is_base(copy, wish))
        return true;
    if (!take_history(snapshot, wish->load))
        return false;
    load_unpack(wish->load, snapshot->weights, snapshot->states);
    snapshot->epoch = wish->stamp.epoch;
    snapshot->version = wish->stamp.version;
    snapshot->floats = wish->load->floats;
    copy->code = PROTO_REFUSAL_NONE;
    return true;
}

static int write_group(struct flusher *flusher, struct flusher_wish *const group[], uint32_t count,
                       struct error *err) {
    for (uint32_t i = 0; i < count; i++)
        flusher->copies[i].snapshot.shard = group[i]->shard;
    flusher_copy(flusher, count);
    for (uint32_t i = 0; i < count; i++)
        if (flusher->copies[i].code == PROTO_REFUSAL_BUSY ||
            !add_load(&flusher->copies[i], group[i]))
            return error_nomem(err);
    return flusher_write(flusher, count, err);
}

int flusher_grant(struct flusher *flusher, struct error *err) {
    struct flusher_wish *group[COPIES];
    uint32_t count = take_group(flusher, group);
    int status = count ? write_group(flusher, group, count, err) : STATUS_OK;
    if (status)
        while (count > 0)
            put_back(flusher, group[--count]);
    for (uint32_t i = 0; i < count; i++)
        group[i]->done(group[i]);
    return status;
}
