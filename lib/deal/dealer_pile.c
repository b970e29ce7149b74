// The pile is a list of batches in the order of their places, each put there when its
// places are drawn and made by the thread that drew it. Only the first one of the present
// epoch is dealt, and only when it is made: so leases come in the order of the epoch,
// however many threads make them. Whatever is done for each batch takes the same time
// however high the pile is; it is gone through only when an epoch ends or leases come back,
// and where each batch is for a seat (dealer_rounds.c).
#include <stdlib.h>

#include "core/mem.h"
#include "deal/dealer_internal.h"

enum {
    PILE_LEAST = 4, // batches
    PILE_MOST = 1024,
    TOGETHER_BYTES = 256 << 10, // of one lease
    TOGETHER_MOST = 16,         // mini-batches
    TOGETHER_SHARE = 256,       // leases in an epoch, at least
};

// --- memory of a batch -----------------------------------------------------------

struct proto_samples made_samples(const struct dealer *dealer, const struct made *made) {
    return proto_samples_in(made->buffer->data, made->stretch.places.count, dealer->sample_bytes);
}

static size_t buffer_size(const struct dealer *dealer, uint32_t samples) {
    return proto_samples_bytes(samples, dealer->sample_bytes);
}

static struct made *new_made(struct dealer *dealer) {
    struct made *made = mem_zeroed(1, sizeof *made);
    if (!made)
        return NULL;
    made->buffer = pool_take(&dealer->pool, buffer_size(dealer, dealer->batch));
    if (made->buffer)
        return made;
    free(made);
    return NULL;
}

static void free_made(struct made *made) {
    buffer_drop(made->buffer);
    free(made);
}

// --- beginning and end -----------------------------------------------------------

uint32_t dealer_together(uint64_t samples, uint32_t batch, size_t sample_bytes) {
    uint64_t n = TOGETHER_MOST, fit = TOGETHER_BYTES / proto_samples_bytes(batch, sample_bytes);
    uint64_t share = samples / TOGETHER_SHARE / batch;
    n = fit < n ? fit : n;
    n = share < n ? share : n;
    return n > 0 ? (uint32_t)n : 1;
}

int pile_open(struct dealer *dealer, struct error *err) {
    const struct dealer_options *options = &dealer->options;
    size_t most = POOL_MOST / buffer_size(dealer, 1);
    if (most == 0)
        return error_set(err, STATUS_DATA, "sample '%s' is larger than %u bytes",
                         picture_cache_key(options->pictures, 0), POOL_MOST);
    dealer->batch = options->batch > 0 ? options->batch : 1;
    if (!options->rounds)
        dealer->batch *= dealer_together(picture_cache_count(options->pictures), dealer->batch,
                                         dealer->sample_bytes);
    if (dealer->batch > most)
        dealer->batch = (uint32_t)most;
    size_t bytes = buffer_size(dealer, dealer->batch);
    dealer->pile_most = options->ahead / bytes;
    if (dealer->pile_most < PILE_LEAST)
        dealer->pile_most = PILE_LEAST;
    if (dealer->pile_most > PILE_MOST)
        dealer->pile_most = PILE_MOST;
    // A pile for each of two epochs, and as much again on its way; sizes are powers of two, from
    // POOL_LEAST on.
    size_t room = bytes > POOL_LEAST ? 2 * bytes : POOL_LEAST;
    dealer->pool.limit = room * (4 * dealer->pile_most + (size_t)options->threads);
    return STATUS_OK;
}

void pile_free(struct dealer *dealer) {
    for (struct made *made = TAILQ_FIRST(&dealer->pile.batches), *next; made; made = next) {
        next = TAILQ_NEXT(made, others);
        free_made(made);
    }
    pool_free(&dealer->pool);
}

// --- up --------------------------------------------------------------------------

static bool before(const struct stretch *a, const struct stretch *b) {
    return a->epoch != b->epoch ? a->epoch < b->epoch : a->places.first < b->places.first;
}

static void count(struct dealer *dealer, const struct made *made) {
    struct pile *pile = &dealer->pile;
    pile->height++;
    pile->height_now += made->stretch.epoch <= leases_epoch(dealer->leases);
    if (made->ready)
        pile->ready += made->stretch.places.count - made->dealt;
}

// Mostly behind the last; what was handed back comes before.
static void insert(struct dealer *dealer, struct made *made) {
    struct made *above = TAILQ_LAST(&dealer->pile.batches, made_list);
    while (above && !before(&above->stretch, &made->stretch))
        above = TAILQ_PREV(above, made_list, others);
    if (above)
        TAILQ_INSERT_AFTER(&dealer->pile.batches, above, made, others);
    else
        TAILQ_INSERT_HEAD(&dealer->pile.batches, made, others);
    count(dealer, made);
}

// Memory comes first: what is drawn must be made.
struct made *pile_draw(struct dealer *dealer) {
    struct pile *pile = &dealer->pile;
    bool ahead = pile->height < dealer->pile_most;
    if (pile->height_now >= dealer->pile_most)
        return NULL;
    struct made *made = new_made(dealer);
    pile->dry = !made;
    if (!made)
        return NULL;
    if (!leases_draw(dealer->leases, dealer->batch, ahead, &made->stretch)) {
        free_made(made);
        return NULL;
    }
    made->seed = dealer->seed;
    insert(dealer, made);
    return made;
}

void pile_ready(struct dealer *dealer, struct made *made) {
    made->ready = true;
    dealer->pile.ready += made->stretch.places.count;
    if (!leases_wants(dealer->leases, &made->stretch))
        pile_sweep(dealer);
}

// --- down ------------------------------------------------------------------------

// What is being made stays, for its maker. All that stays is counted anew.
void pile_sweep(struct dealer *dealer) {
    struct pile *pile = &dealer->pile;
    pile->height = pile->height_now = 0;
    pile->ready = 0;
    for (struct made *made = TAILQ_FIRST(&pile->batches), *next; made; made = next) {
        next = TAILQ_NEXT(made, others);
        if (!made->ready || leases_wants(dealer->leases, &made->stretch)) {
            count(dealer, made);
            continue;
        }
        TAILQ_REMOVE(&pile->batches, made, others);
        free_made(made);
    }
}

// What is void, and being made still, is passed over.
struct made *pile_first(const struct dealer *dealer) {
    struct made *made = TAILQ_FIRST(&dealer->pile.batches);
    while (made && !leases_wants(dealer->leases, &made->stretch))
        made = TAILQ_NEXT(made, others);
    return made && leases_now(dealer->leases, &made->stretch) ? made : NULL;
}

struct made *pile_of(const struct dealer *dealer, struct seat seat) {
    struct made *made;
    TAILQ_FOREACH(made, &dealer->pile.batches, others)
    if (made->seat.session == seat.session && made->seat.step == seat.step &&
        leases_now(dealer->leases, &made->stretch))
        return made;
    return NULL;
}

// Makers are woken for several batches at once: there is time while the rest is dealt.
static void wake_makers(struct dealer *dealer) {
    const struct pile *pile = &dealer->pile;
    if (pile->dry || pile->height_now + dealer->pile_most / 4 <= dealer->pile_most)
        pthread_cond_signal(&dealer->room);
}

void pile_deal(struct dealer *dealer, struct made *made, uint32_t samples) {
    struct pile *pile = &dealer->pile;
    made->dealt += samples;
    pile->ready -= samples;
    if (made->dealt < made->stretch.places.count)
        return;
    TAILQ_REMOVE(&pile->batches, made, others);
    pile->height--;
    pile->height_now--;
    free_made(made);
    wake_makers(dealer);
}
