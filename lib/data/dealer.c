// The pile is a list of batches in the order of their places, each put there when its
// places are drawn and made by the thread that drew it. Only the first one of the present
// epoch is dealt, and only when it is made: so leases come in the order of the epoch,
// however many threads make them. Whatever is done for each batch takes the same time
// however high the pile is; it is gone through only when an epoch ends or leases come back.
#include "data/dealer.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/random.h"
#include "data/order.h"
#include "data/rounds.h"

enum {
    SAMPLE_HEAD = sizeof(uint64_t) + sizeof(int32_t), // key and label
    PILE_LEAST = 4,                                   // batches
    PILE_MOST = 1024,
    TOGETHER_BYTES = 256 << 10, // of one lease
    TOGETHER_MOST = 16,         // mini-batches
    TOGETHER_SHARE = 256,       // leases in an epoch, at least
    BUSY_LEAST = 2,             // milliseconds
    BUSY_MOST = 500,
    BUSY_TURN = 5, // until an epoch has ended, or a member is known
};

struct made { // a batch on the pile
    struct made *next;
    struct stretch stretch;
    uint64_t seed;
    uint32_t dealt; // samples of it
    bool ready;
    struct seat seat; // whose it is; of no session: anybody's
    struct buffer *buffer;
};

struct maker {
    struct dealer *dealer;
    pthread_t thread;
    struct image image;
    struct ops_scratch *scratch;
};

struct dealer {
    struct dealer_options options;
    struct dealer_shape shape;
    size_t sample_bytes; // of its values
    uint32_t batch;      // samples of a batch on the pile: of one or more mini-batches
    size_t pile_most;    // batches
    struct maker *makers;
    int started;
    struct pool pool;

    pthread_mutex_t lock; // of all that follows
    pthread_cond_t room;  // for another batch, or something to draw, or the end
    struct leases *leases;
    struct rounds rounds;
    bool stranger; // one has asked
    uint64_t seed;
    struct made *pile, *last;  // by epoch and place
    size_t height, height_now; // of the pile, and of what is not for the next epoch
    uint64_t ready;            // samples on it that are made, and not dealt
    bool dry;                  // a maker found no memory for a batch
    bool closing;
    struct error err;
    uint64_t made, dealt, busy;
    double busy_seconds; // that the makers worked
};

// --- one sample ------------------------------------------------------------------

static int make_picture(struct dealer *dealer, uint32_t index, struct ops_draw draw,
                        struct maker *maker, struct error *err) {
    const struct dealer_options *options = &dealer->options;
    int status = stock_image(options->stock, index, &maker->image, err);
    if (!status && options->ops)
        status = ops_apply(options->ops, maker->scratch, &maker->image, draw, err);
    return status ? error_context(err, "sample '%s'", stock_key(options->stock, index)) : STATUS_OK;
}

static int check_shape(const struct dealer *dealer, uint32_t index, const struct image *image,
                       struct error *err) {
    const struct dealer_shape *shape = &dealer->shape;
    bool same = image->channels == shape->channels && image->height == shape->height &&
                image->width == shape->width;
    if (same && (image->type == shape->type || shape->type == PIXEL_F32))
        return STATUS_OK;
    const char *key = stock_key(dealer->options.stock, index);
    if (same)
        return error_set(err, STATUS_DATA, "sample '%s' has values beyond bytes, others not", key);
    return error_set(err, STATUS_DATA,
                     "sample '%s' is %dx%dx%d (channels x height x width) where the first is "
                     "%dx%dx%d; operations such as 'resize %d; crop %d' make all alike",
                     key, image->channels, image->height, image->width, shape->channels,
                     shape->height, shape->width, shape->width, shape->width);
}

static void put_values(const struct dealer *dealer, void *to, const struct image *image) {
    if (image->type == dealer->shape.type) {
        memcpy(to, image->data, dealer->sample_bytes);
        return;
    }
    float *floats = to;
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)image->u8[i];
}

// --- one batch -------------------------------------------------------------------

// Where the three parts of a buffer begin.
static uint64_t *keys_of(const struct made *made) {
    return made->buffer->data;
}

static int32_t *labels_of(const struct made *made) {
    return (int32_t *)(keys_of(made) + made->stretch.places.count);
}

static char *values_of(const struct made *made) {
    return (char *)(labels_of(made) + made->stretch.places.count);
}

// Pictures between asking for one's lines and reading them: a miss or two.
enum { AHEAD = 4 };

static int fill(struct maker *maker, const struct made *made, struct error *err) {
    struct dealer *dealer = maker->dealer;
    const struct stretch *stretch = &made->stretch;
    struct stock *stock = dealer->options.stock;
    struct order order = order_of(made->seed, stretch->epoch, stock_count(stock));
    for (uint32_t i = 0; i < stretch->places.count; i++) {
        uint32_t index = order_at(&order, stretch->places.first + i);
        if (i + AHEAD < stretch->places.count)
            stock_expect(stock, order_at(&order, stretch->places.first + i + AHEAD));
        keys_of(made)[i] = stock_key_hash(stock, index);
        struct ops_draw draw = {made->seed, stretch->epoch, keys_of(made)[i]};
        int status = make_picture(dealer, index, draw, maker, err);
        if (!status)
            status = check_shape(dealer, index, &maker->image, err);
        if (status)
            return status;
        labels_of(made)[i] = stock_label(stock, index);
        put_values(dealer, values_of(made) + i * dealer->sample_bytes, &maker->image);
    }
    return STATUS_OK;
}

// --- the pile, under the lock ----------------------------------------------------

static bool before(const struct stretch *a, const struct stretch *b) {
    return a->epoch != b->epoch ? a->epoch < b->epoch : a->places.first < b->places.first;
}

static bool is_ahead(const struct dealer *dealer, const struct made *made) {
    return made->stretch.epoch > leases_epoch(dealer->leases);
}

static void count(struct dealer *dealer, const struct made *made) {
    dealer->height++;
    dealer->height_now += !is_ahead(dealer, made);
    if (made->ready)
        dealer->ready += made->stretch.places.count - made->dealt;
}

// Mostly behind the last; what was handed back comes before.
static void insert(struct dealer *dealer, struct made *made) {
    struct made **at = dealer->last && before(&dealer->last->stretch, &made->stretch)
                           ? &dealer->last->next
                           : &dealer->pile;
    while (*at && before(&(*at)->stretch, &made->stretch))
        at = &(*at)->next;
    made->next = *at;
    *at = made;
    if (!made->next)
        dealer->last = made;
    count(dealer, made);
}

static void free_made(struct made *made) {
    buffer_drop(made->buffer);
    free(made);
}

// Takes what is void off the pile, but what is being made, which its maker finds there, and
// counts the rest.
static void sweep(struct dealer *dealer) {
    dealer->last = NULL;
    dealer->height = dealer->height_now = 0;
    dealer->ready = 0;
    for (struct made **at = &dealer->pile; *at;) {
        struct made *made = *at;
        if (made->ready && !leases_wants(dealer->leases, &made->stretch)) {
            *at = made->next;
            free_made(made);
            continue;
        }
        count(dealer, made);
        dealer->last = made;
        at = &made->next;
    }
}

static size_t buffer_size(const struct dealer *dealer, uint32_t samples) {
    return samples * (SAMPLE_HEAD + dealer->sample_bytes);
}

// Memory comes first: what is drawn must be made. NULL: there is no room, or nothing to do.
static struct made *draw(struct dealer *dealer) {
    bool ahead = dealer->height < dealer->pile_most;
    if (dealer->height_now >= dealer->pile_most)
        return NULL;
    struct made *made = mem_zeroed(1, sizeof *made);
    if (made)
        made->buffer = pool_take(&dealer->pool, buffer_size(dealer, dealer->batch));
    dealer->dry = !made || !made->buffer;
    if (!made || !made->buffer ||
        !leases_draw(dealer->leases, dealer->batch, ahead, &made->stretch)) {
        if (made)
            free_made(made);
        return NULL;
    }
    made->seed = dealer->seed;
    insert(dealer, made);
    return made;
}

// --- the makers ------------------------------------------------------------------

static void put_made(struct dealer *dealer, struct made *made, int status, const struct error *err,
                     double seconds) {
    pthread_mutex_lock(&dealer->lock);
    made->ready = true;
    dealer->ready += made->stretch.places.count;
    dealer->made += made->stretch.places.count;
    dealer->busy_seconds += seconds;
    if (status && dealer->err.status == STATUS_OK) {
        dealer->err = *err;
        dealer->closing = true;
        pthread_cond_broadcast(&dealer->room);
    }
    if (!leases_wants(dealer->leases, &made->stretch))
        sweep(dealer);
    pthread_mutex_unlock(&dealer->lock);
}

// The next batch to make; with nothing to make, the cache is filled. NULL: the end.
static struct made *next_made(struct maker *maker) {
    struct dealer *dealer = maker->dealer;
    struct made *made = NULL;
    bool warm = true;
    pthread_mutex_lock(&dealer->lock);
    while (!dealer->closing && !(made = draw(dealer))) {
        if (!warm) {
            pthread_cond_wait(&dealer->room, &dealer->lock);
            continue;
        }
        pthread_mutex_unlock(&dealer->lock);
        warm = stock_warm(dealer->options.stock, &maker->image);
        pthread_mutex_lock(&dealer->lock);
    }
    pthread_mutex_unlock(&dealer->lock);
    return made;
}

static void *make_thread(void *self) {
    struct maker *maker = self;
    struct made *made;
    while ((made = next_made(maker))) {
        struct error err = {0};
        double start = clock_seconds();
        int status = fill(maker, made, &err);
        put_made(maker->dealer, made, status, &err, clock_seconds() - start);
    }
    return NULL;
}

// --- dealing ---------------------------------------------------------------------

// When a batch will be there, by the makers' speed.
static uint64_t busy_time(const struct dealer *dealer) {
    double rate = dealer->busy_seconds > 0 ? (double)dealer->made / dealer->busy_seconds : 0;
    double wait = rate > 0 ? 1000.0 * dealer->batch / rate : BUSY_LEAST;
    return (uint64_t)fmin(fmax(wait, BUSY_LEAST), BUSY_MOST);
}

// What comes first, but for what is void and being made.
static struct made *first_now(const struct dealer *dealer) {
    struct made *made = dealer->pile;
    while (made && !leases_wants(dealer->leases, &made->stretch))
        made = made->next;
    return made && leases_now(dealer->leases, &made->stretch) ? made : NULL;
}

// Makers are woken for several batches at once: there is time while the rest is dealt.
static void wake_makers(struct dealer *dealer) {
    if (dealer->dry || dealer->height_now + dealer->pile_most / 4 <= dealer->pile_most)
        pthread_cond_signal(&dealer->room);
}

static void take_off(struct dealer *dealer, struct made *made) {
    struct made **at = &dealer->pile, *previous = NULL;
    while (*at != made) {
        previous = *at;
        at = &previous->next;
    }
    *at = made->next;
    if (!made->next)
        dealer->last = previous;
    dealer->height--;
    dealer->height_now--;
    free_made(made);
    wake_makers(dealer);
}

static enum deal_answer issue(struct dealer *dealer, const struct deal_wish *wish,
                              struct made *made, double now, struct deal *deal, uint64_t *detail) {
    struct error err = {0};
    uint32_t from = made->dealt, left = made->stretch.places.count - from;
    uint32_t n = wish->samples < left ? wish->samples : left;
    *deal = (struct deal){
        .stretch = made->stretch,
        .buffer = made->buffer,
        .keys = keys_of(made) + from,
        .labels = labels_of(made) + from,
        .values = values_of(made) + from * dealer->sample_bytes,
        .value_bytes = n * dealer->sample_bytes,
    };
    deal->stretch.places = (struct range){made->stretch.places.first + from, n};
    if (leases_issue(dealer->leases, wish->session, &deal->stretch, now, &deal->lease, &err)) {
        *detail = BUSY_MOST;
        return DEAL_BUSY;
    }
    buffer_hold(deal->buffer);
    made->dealt += n;
    made->seat = (struct seat){0};
    dealer->dealt += n;
    dealer->ready -= n;
    if (n == left)
        take_off(dealer, made);
    return DEAL_DONE;
}

// --- rounds ----------------------------------------------------------------------

static struct made *made_for(const struct dealer *dealer, struct seat seat) {
    for (struct made *made = dealer->pile; made; made = made->next)
        if (made->seat.session == seat.session && made->seat.step == seat.step &&
            leases_now(dealer->leases, &made->stretch))
            return made;
    return NULL;
}

static struct made *first_free(const struct dealer *dealer) {
    return made_for(dealer, (struct seat){0});
}

// Gives back what was kept for those who have gone, or are past the step.
static void free_seats(struct dealer *dealer) {
    for (struct made *made = dealer->pile; made; made = made->next) {
        const struct seated *member = rounds_member(&dealer->rounds, made->seat.session);
        if (made->seat.session > 0 && (!member || member->asked > made->seat.step))
            made->seat = (struct seat){0};
    }
}

// Batches go to the seats that are open, in order. Behind the last of the epoch there are
// none for the rest of the round.
static void fill_seats(struct dealer *dealer) {
    struct seat seat;
    while (rounds_first(&dealer->rounds, &seat)) {
        struct made *made = first_free(dealer);
        if (!made)
            break;
        made->seat = seat;
        rounds_fill(&dealer->rounds);
    }
    if (!leases_left(dealer->leases))
        rounds_close(&dealer->rounds);
}

// The round of this step, with who is a member now: as soon as the one before has its
// places, and if there are any for it.
static void open_round(struct dealer *dealer, uint64_t step) {
    struct error err = {0};
    struct seat seat;
    bool any = first_free(dealer) || leases_left(dealer->leases);
    if (any && !rounds_first(&dealer->rounds, &seat) && !rounds_open(&dealer->rounds, step, &err))
        fill_seats(dealer);
}

// A request may be repeated whose answer was lost.
static void take_again(struct dealer *dealer, struct seated *member, uint64_t step) {
    struct error err = {0};
    uint64_t lease = member->lease;
    if (lease == 0 || member->given != step || rounds_again(&dealer->rounds, member, &err))
        return;
    leases_return(dealer->leases, member->session, lease);
    pthread_cond_signal(&dealer->room);
}

// Who had places in a step of another data server may have those of the next step here
// before others come for the first one. Places that are with the later round do not come
// back while its members wait for the turns of these: they take them without samples.
// And who got places of a step from another may never come for those that are kept for it
// here: they are free again as soon as anybody knows that the step is over.
static enum deal_answer deal_round(struct dealer *dealer, const struct deal_wish *wish, double now,
                                   struct deal *deal, uint64_t *detail) {
    const struct seat seat = {wish->step, wish->session};
    struct seated *member = rounds_member(&dealer->rounds, wish->session);
    *detail = BUSY_TURN;
    if (!member) {
        dealer->stranger = true;
        return DEAL_BUSY;
    }
    take_again(dealer, member, wish->step);
    bool passed = rounds_reach(&dealer->rounds, member, wish->step);
    if (rounds_over(&dealer->rounds, wish->clock < wish->step ? wish->clock : wish->step) || passed)
        free_seats(dealer);
    fill_seats(dealer);
    if (!rounds_opened(&dealer->rounds, wish->step))
        open_round(dealer, wish->step);
    if (!rounds_opened(&dealer->rounds, wish->step))
        return rounds_opened_later(&dealer->rounds, wish->step) ? DEAL_IDLE : DEAL_BUSY;
    struct made *made = made_for(dealer, seat);
    if (!made && !rounds_is_open(&dealer->rounds, seat))
        return DEAL_IDLE;
    if (!made || !made->ready) {
        *detail = busy_time(dealer);
        return DEAL_BUSY;
    }
    enum deal_answer answer = issue(dealer, wish, made, now, deal, detail);
    if (answer == DEAL_DONE) {
        member->given = wish->step;
        member->lease = deal->lease.number;
    }
    return answer;
}

// --- all -------------------------------------------------------------------------

static enum deal_answer deal_first(struct dealer *dealer, const struct deal_wish *wish, double now,
                                   struct deal *deal, uint64_t *detail) {
    struct made *made = first_now(dealer);
    if (made && made->ready)
        return issue(dealer, wish, made, now, deal, detail);
    *detail = busy_time(dealer);
    return DEAL_BUSY;
}

static enum deal_answer deal_locked(struct dealer *dealer, const struct deal_wish *wish, double now,
                                    struct deal *deal, uint64_t *detail) {
    if (dealer->err.status)
        return DEAL_FAILED;
    if (leases_done(dealer->leases))
        return DEAL_NONE;
    *detail = leases_epoch(dealer->leases);
    if (wish->epoch < *detail)
        return DEAL_OVER;
    enum deal_answer answer = DEAL_BUSY;
    *detail = BUSY_LEAST;
    if (wish->samples > 0)
        answer =
            (dealer->options.rounds ? deal_round : deal_first)(dealer, wish, now, deal, detail);
    dealer->busy += answer == DEAL_BUSY;
    return answer;
}

enum deal_answer dealer_deal(struct dealer *dealer, const struct deal_wish *wish, double now,
                             struct deal *deal, uint64_t *detail) {
    pthread_mutex_lock(&dealer->lock);
    enum deal_answer answer = deal_locked(dealer, wish, now, deal, detail);
    pthread_mutex_unlock(&dealer->lock);
    return answer;
}

int dealer_members(struct dealer *dealer, const uint64_t *sessions, size_t count,
                   struct error *err) {
    pthread_mutex_lock(&dealer->lock);
    int status = rounds_members(&dealer->rounds, sessions, count, err);
    free_seats(dealer);
    pthread_mutex_unlock(&dealer->lock);
    return status;
}

bool dealer_met_stranger(struct dealer *dealer) {
    pthread_mutex_lock(&dealer->lock);
    bool met = dealer->stranger;
    dealer->stranger = false;
    pthread_mutex_unlock(&dealer->lock);
    return met;
}

void dealer_release(struct dealer *dealer, struct buffer *buffer) {
    buffer_drop(buffer);
    pthread_mutex_lock(&dealer->lock);
    if (dealer->dry)
        pthread_cond_signal(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
}

// --- leases ----------------------------------------------------------------------

// An epoch may have ended, or places have come back: the makers look.
static void unlock_changed(struct dealer *dealer) {
    sweep(dealer);
    pthread_cond_broadcast(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
}

bool dealer_finish(struct dealer *dealer, uint64_t session, uint64_t number, double now,
                   uint32_t *epoch, struct range *places) {
    pthread_mutex_lock(&dealer->lock);
    uint32_t present = leases_epoch(dealer->leases);
    bool open = leases_finish(dealer->leases, session, number, now, epoch, places);
    if (leases_epoch(dealer->leases) != present)
        unlock_changed(dealer);
    else
        pthread_mutex_unlock(&dealer->lock);
    return open;
}

// Its seat in the round is not open again: the step went on without these places, which go
// to a later one.
uint32_t dealer_return(struct dealer *dealer, uint64_t session, uint64_t number) {
    pthread_mutex_lock(&dealer->lock);
    uint32_t places = leases_return(dealer->leases, session, number);
    if (places > 0)
        pthread_cond_broadcast(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
    return places;
}

void dealer_gone(struct dealer *dealer, uint64_t session) {
    pthread_mutex_lock(&dealer->lock);
    leases_gone(dealer->leases, session);
    rounds_gone(&dealer->rounds, session);
    free_seats(dealer);
    unlock_changed(dealer);
}

uint64_t dealer_expire(struct dealer *dealer, double now, double *next) {
    pthread_mutex_lock(&dealer->lock);
    uint64_t places = leases_expire(dealer->leases, now, next);
    unlock_changed(dealer);
    return places;
}

uint64_t dealer_session(struct dealer *dealer, size_t index) {
    pthread_mutex_lock(&dealer->lock);
    uint64_t session = leases_session(dealer->leases, index);
    pthread_mutex_unlock(&dealer->lock);
    return session;
}

void dealer_rules(struct dealer *dealer, const struct lease_rules *rules) {
    pthread_mutex_lock(&dealer->lock);
    leases_rules(dealer->leases, rules);
    unlock_changed(dealer);
}

struct range *dealer_cursor(struct dealer *dealer, uint64_t *seed, uint32_t *epoch, size_t *count) {
    pthread_mutex_lock(&dealer->lock);
    const struct ranges *cursor = leases_cursor(dealer->leases);
    struct range *copy = mem_array(cursor->count + 1, sizeof *copy);
    if (copy && cursor->count > 0)
        memcpy(copy, cursor->at, cursor->count * sizeof *copy);
    *seed = dealer->seed;
    *epoch = leases_epoch(dealer->leases);
    *count = cursor->count;
    pthread_mutex_unlock(&dealer->lock);
    return copy;
}

int dealer_set_cursor(struct dealer *dealer, uint64_t seed, uint32_t epoch,
                      const struct range *finished, size_t count, struct error *err) {
    pthread_mutex_lock(&dealer->lock);
    int status = leases_set_cursor(dealer->leases, epoch, finished, count, err);
    if (!status) {
        dealer->seed = seed;
        rounds_clear(&dealer->rounds);
    }
    unlock_changed(dealer);
    return status;
}

// --- figures ---------------------------------------------------------------------

struct dealer_shape dealer_shape(const struct dealer *dealer) {
    return dealer->shape;
}

int dealer_status(struct dealer *dealer, struct error *err) {
    pthread_mutex_lock(&dealer->lock);
    int status = dealer->err.status;
    if (status && err)
        *err = dealer->err;
    pthread_mutex_unlock(&dealer->lock);
    return status;
}

struct dealer_figures dealer_figures(struct dealer *dealer) {
    pthread_mutex_lock(&dealer->lock);
    struct dealer_figures figures = {
        .epoch = leases_epoch(dealer->leases),
        .done = leases_done(dealer->leases),
        .progress = leases_progress(dealer->leases),
        .finished = leases_finished(dealer->leases),
        .dealt = dealer->dealt,
        .made = dealer->made,
        .busy = dealer->busy,
        .ready = dealer->ready,
    };
    pthread_mutex_unlock(&dealer->lock);
    return figures;
}

// --- beginning and end -----------------------------------------------------------

// The shape of all pictures is that of the first.
static int look_at_first(struct dealer *dealer, struct error *err) {
    struct maker maker = {.dealer = dealer, .scratch = ops_scratch_new()};
    struct ops_draw draw = {dealer->seed, 0, stock_key_hash(dealer->options.stock, 0)};
    int status = maker.scratch ? make_picture(dealer, 0, draw, &maker, err) : error_nomem(err);
    const struct image *image = &maker.image;
    dealer->shape =
        (struct dealer_shape){image->channels, image->height, image->width, image->type};
    dealer->sample_bytes = image_bytes(image);
    if (!status && buffer_size(dealer, 1) > POOL_MOST)
        status = error_set(err, STATUS_DATA, "sample '%s' is larger than %u bytes",
                           stock_key(dealer->options.stock, 0), POOL_MOST);
    image_free(&maker.image);
    ops_scratch_free(maker.scratch);
    return status;
}

uint32_t dealer_together(uint64_t samples, uint32_t batch, size_t sample_bytes) {
    uint64_t n = TOGETHER_MOST, fit = TOGETHER_BYTES / (batch * (SAMPLE_HEAD + sample_bytes));
    uint64_t share = samples / TOGETHER_SHARE / batch;
    n = fit < n ? fit : n;
    n = share < n ? share : n;
    return n > 0 ? (uint32_t)n : 1;
}

static void size_pile(struct dealer *dealer) {
    size_t most = POOL_MOST / buffer_size(dealer, 1);
    dealer->batch = dealer->options.batch > 0 ? dealer->options.batch : 1;
    if (!dealer->options.rounds)
        dealer->batch *= dealer_together(stock_count(dealer->options.stock), dealer->batch,
                                         dealer->sample_bytes);
    if (dealer->batch > most)
        dealer->batch = most > 0 ? (uint32_t)most : 1;
    size_t bytes = buffer_size(dealer, dealer->batch);
    dealer->pile_most = dealer->options.ahead / bytes;
    if (dealer->pile_most < PILE_LEAST)
        dealer->pile_most = PILE_LEAST;
    if (dealer->pile_most > PILE_MOST)
        dealer->pile_most = PILE_MOST;
    // A pile for each of two epochs, and as much again on its way; sizes are powers of two.
    dealer->pool.limit = 2 * bytes * (4 * dealer->pile_most + (size_t)dealer->options.threads);
}

static int start_makers(struct dealer *dealer, struct error *err) {
    dealer->makers = mem_zeroed((size_t)dealer->options.threads, sizeof *dealer->makers);
    if (!dealer->makers)
        return error_nomem(err);
    for (int i = 0; i < dealer->options.threads; i++) {
        struct maker *maker = &dealer->makers[i];
        maker->dealer = dealer;
        maker->scratch = ops_scratch_new();
        if (!maker->scratch)
            return error_nomem(err);
        if (pthread_create(&maker->thread, NULL, make_thread, maker))
            return error_set(err, STATUS_IO, "cannot start a thread");
        dealer->started++;
    }
    return STATUS_OK;
}

int dealer_open(struct dealer **out, const struct dealer_options *options, struct error *err) {
    struct dealer *dealer = mem_zeroed(1, sizeof *dealer);
    if (!dealer)
        return error_nomem(err);
    dealer->options = *options;
    dealer->seed = options->seed;
    pthread_mutex_init(&dealer->lock, NULL);
    pthread_cond_init(&dealer->room, NULL);
    int status = leases_open(&dealer->leases, stock_count(options->stock), options->number,
                             &options->rules, err);
    if (!status)
        status = look_at_first(dealer, err);
    if (!status) {
        size_pile(dealer);
        status = start_makers(dealer, err);
    }
    if (status)
        dealer_close(dealer);
    else
        *out = dealer;
    return status;
}

static void stop_makers(struct dealer *dealer) {
    pthread_mutex_lock(&dealer->lock);
    dealer->closing = true;
    pthread_cond_broadcast(&dealer->room);
    pthread_mutex_unlock(&dealer->lock);
    for (int i = 0; i < dealer->started; i++)
        pthread_join(dealer->makers[i].thread, NULL);
    for (int i = 0; dealer->makers && i < dealer->options.threads; i++) {
        ops_scratch_free(dealer->makers[i].scratch);
        image_free(&dealer->makers[i].image);
    }
    free(dealer->makers);
}

void dealer_close(struct dealer *dealer) {
    if (!dealer)
        return;
    stop_makers(dealer);
    while (dealer->pile) {
        struct made *next = dealer->pile->next;
        free_made(dealer->pile);
        dealer->pile = next;
    }
    leases_close(dealer->leases);
    rounds_free(&dealer->rounds);
    pool_free(&dealer->pool);
    pthread_cond_destroy(&dealer->room);
    pthread_mutex_destroy(&dealer->lock);
    free(dealer);
}
