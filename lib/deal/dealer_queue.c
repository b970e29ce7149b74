// The queue is a list of batches in the order of their places, each put there when its
// places are drawn and made by the thread that drew it. Only the first one of the present
// epoch is leased, and only when it is made: so leases come in the order of the epoch,
// however many threads make them. Whatever is done for each batch takes the same time
// however long the queue is; it is gone through only when an epoch ends or leases come back,
// and where each batch is for a slot (dealer_rounds.c).
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "deal/dealer_internal.h"

enum {
    QUEUE_LEAST = 4, // batches
    QUEUE_MOST = 1024,
    TOGETHER_BYTES = 256 << 10, // of one lease
    TOGETHER_MOST = 16,         // mini-batches
    TOGETHER_SHARE = 256,       // leases in an epoch, at least
};

// --- memory of a batch -----------------------------------------------------------

struct proto_samples made_batch_samples(const struct dealer *dealer,
                                        const struct made_batch *batch) {
    return proto_samples_in(batch->buffer->data, batch->drawn.places.count, dealer->targets,
                            dealer->sample_bytes);
}

static size_t buffer_size(const struct dealer *dealer, uint32_t samples) {
    return proto_samples_bytes(samples, dealer->targets, dealer->sample_bytes);
}

static struct made_batch *batch_new(struct dealer *dealer) {
    struct made_batch *batch = mem_zeroed(1, sizeof *batch);
    if (!batch)
        return NULL;
    batch->buffer = pool_take(&dealer->pool, buffer_size(dealer, dealer->batch));
    if (batch->buffer)
        return batch;
    free(batch);
    return NULL;
}

static void batch_free(struct made_batch *batch) {
    buffer_drop(batch->buffer);
    free(batch);
}

// --- beginning and end -----------------------------------------------------------

uint32_t dealer_together(uint64_t samples, uint32_t batch, size_t sample_bytes) {
    uint64_t n = TOGETHER_MOST, fit = TOGETHER_BYTES / proto_samples_bytes(batch, 0, sample_bytes);
    uint64_t share = samples / TOGETHER_SHARE / batch;
    n = fit < n ? fit : n;
    n = share < n ? share : n;
    return n > 0 ? (uint32_t)n : 1;
}

int queue_open(struct dealer *dealer, struct error *err) {
    const struct dealer_options *options = &dealer->options;
    size_t most = POOL_MOST / buffer_size(dealer, 1);
    if (most == 0)
        return error_set(err, STATUS_DATA, "sample '%s' is larger than %u bytes",
                         picture_cache_key(options->pictures, 0), POOL_MOST);
    dealer->batch = options->batch > 0 ? options->batch : 1;
    if (!options->rounds)
        dealer->batch *= dealer_together(picture_cache_count(options->pictures), dealer->batch,
                                         dealer->sample_bytes + dealer->targets * sizeof(float));
    if (dealer->batch > most)
        dealer->batch = (uint32_t)most;
    size_t bytes = buffer_size(dealer, dealer->batch);
    dealer->queue_most = options->ahead / bytes;
    if (dealer->queue_most < QUEUE_LEAST)
        dealer->queue_most = QUEUE_LEAST;
    if (dealer->queue_most > QUEUE_MOST)
        dealer->queue_most = QUEUE_MOST;
    // A queue for each of two epochs, and as much again on its way; sizes are powers of two, from
    // POOL_LEAST on.
    size_t room = bytes > POOL_LEAST ? 2 * bytes : POOL_LEAST;
    dealer->pool.limit = room * (4 * dealer->queue_most + (size_t)options->threads);
    return STATUS_OK;
}

void queue_free(struct dealer *dealer) {
    for (struct made_batch *batch = TAILQ_FIRST(&dealer->queue.batches), *next; batch;
         batch = next) {
        next = TAILQ_NEXT(batch, others);
        batch_free(batch);
    }
    pool_free(&dealer->pool);
}

// --- adding ------------------------------------------------------------------------

static bool comes_before(const struct drawn_range *a, const struct drawn_range *b) {
    return a->epoch != b->epoch ? a->epoch < b->epoch : a->places.first < b->places.first;
}

static void count_batch(struct dealer *dealer, const struct made_batch *batch) {
    struct batch_queue *queue = &dealer->queue;
    queue->count++;
    queue->count_now += batch->drawn.epoch <= leases_epoch(dealer->leases);
    if (batch->ready)
        queue->ready += batch->drawn.places.count - batch->leased;
}

// Mostly behind the last; what was handed back comes before.
static void insert_batch(struct dealer *dealer, struct made_batch *batch) {
    struct made_batch *above = TAILQ_LAST(&dealer->queue.batches, made_batch_list);
    while (above && !comes_before(&above->drawn, &batch->drawn))
        above = TAILQ_PREV(above, made_batch_list, others);
    if (above)
        TAILQ_INSERT_AFTER(&dealer->queue.batches, above, batch, others);
    else
        TAILQ_INSERT_HEAD(&dealer->queue.batches, batch, others);
    count_batch(dealer, batch);
}

// Memory comes first: what is drawn must be made.
struct made_batch *queue_draw(struct dealer *dealer) {
    struct batch_queue *queue = &dealer->queue;
    bool ahead = queue->count < dealer->queue_most;
    if (queue->count_now >= dealer->queue_most)
        return NULL;
    struct made_batch *batch = batch_new(dealer);
    queue->no_memory = !batch;
    if (!batch)
        return NULL;
    if (!leases_draw(dealer->leases, dealer->batch, ahead, &batch->drawn)) {
        batch_free(batch);
        return NULL;
    }
    batch->seed = dealer->seed;
    insert_batch(dealer, batch);
    return batch;
}

void queue_ready(struct dealer *dealer, struct made_batch *batch) {
    batch->ready = true;
    dealer->queue.ready += batch->drawn.places.count;
    if (!leases_wants(dealer->leases, &batch->drawn))
        queue_remove_void(dealer);
}

// --- taking ----------------------------------------------------------------------

// What is being made stays, for its maker. All that stays is counted anew.
void queue_remove_void(struct dealer *dealer) {
    struct batch_queue *queue = &dealer->queue;
    queue->count = queue->count_now = 0;
    queue->ready = 0;
    for (struct made_batch *batch = TAILQ_FIRST(&queue->batches), *next; batch; batch = next) {
        next = TAILQ_NEXT(batch, others);
        if (!batch->ready || leases_wants(dealer->leases, &batch->drawn)) {
            count_batch(dealer, batch);
            continue;
        }
        TAILQ_REMOVE(&queue->batches, batch, others);
        batch_free(batch);
    }
}

// What is void, and being made still, is passed over.
struct made_batch *queue_first(const struct dealer *dealer) {
    struct made_batch *batch = TAILQ_FIRST(&dealer->queue.batches);
    while (batch && !leases_wants(dealer->leases, &batch->drawn))
        batch = TAILQ_NEXT(batch, others);
    return batch && leases_now(dealer->leases, &batch->drawn) ? batch : NULL;
}

struct made_batch *queue_find_slot(const struct dealer *dealer, struct round_slot slot) {
    struct made_batch *batch;
    TAILQ_FOREACH(batch, &dealer->queue.batches, others)
    if (batch->slot.session == slot.session && batch->slot.step == slot.step &&
        leases_now(dealer->leases, &batch->drawn))
        return batch;
    return NULL;
}

// Makers are woken for several batches at once: there is time while the rest is leased.
static void wake_makers(struct dealer *dealer) {
    const struct batch_queue *queue = &dealer->queue;
    if (queue->no_memory || queue->count_now + dealer->queue_most / 4 <= dealer->queue_most)
        pthread_cond_signal(&dealer->room);
}

void queue_lease_out(struct dealer *dealer, struct made_batch *batch, uint32_t samples) {
    struct batch_queue *queue = &dealer->queue;
    batch->leased += samples;
    queue->ready -= samples;
    if (batch->leased < batch->drawn.places.count)
        return;
    TAILQ_REMOVE(&queue->batches, batch, others);
    queue->count--;
    queue->count_now--;
    batch_free(batch);
    wake_makers(dealer);
}
