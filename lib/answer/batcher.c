#include "answer/batcher.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

// Requests in the order of their coming.
struct row {
    struct ask *first, **end;
};

struct batcher {
    struct predictor *predictor;
    batcher_told *told;
    void *self;
    pthread_mutex_t lock; // of all below
    pthread_cond_t came;
    struct row closed, open; // requests that wait for `open`, and for a pass
    int waiting;             // samples of those that are open, which nobody has taken
    bool ends;
    struct hand *hands; // the threads; without any, one for who calls batcher_work
    int count, threads; // hands; those that were started
};

// One who passes, and the batch that is taken.
struct hand {
    struct batcher *batcher;
    pthread_t thread;
    struct predictor_sample **samples;
    struct ask **asks; // whose each sample is
};

static void row_put(struct row *row, struct ask *ask) {
    ask->next = NULL;
    *row->end = ask;
    row->end = &ask->next;
}

static struct ask *row_take(struct row *row) {
    struct ask *ask = row->first;
    row->first = ask->next;
    if (!row->first)
        row->end = &row->first;
    return ask;
}

static void tell(const struct batcher *b) {
    if (b->told)
        b->told(b->self);
}

// Finds the samples of the oldest request. The lock is not held meanwhile.
static void open_ask(struct batcher *b) {
    struct ask *ask = row_take(&b->closed);
    pthread_mutex_unlock(&b->lock);
    bool any = ask->open(ask) && ask->count > 0;
    if (!any) {
        ask->done(ask);
        tell(b);
    }
    pthread_mutex_lock(&b->lock);
    if (!any)
        return;
    ask->taken = 0;
    ask->left = ask->count;
    b->waiting += ask->count;
    row_put(&b->open, ask);
}

// The oldest samples, those of a pass.
static int take_samples(struct batcher *b, struct hand *hand) {
    int n = 0, most = predictor_first(b->predictor, b->waiting);
    b->waiting -= most;
    while (n < most) {
        struct ask *ask = b->open.first;
        hand->asks[n] = ask;
        hand->samples[n++] = &ask->samples[ask->taken++];
        if (ask->taken == ask->count)
            row_take(&b->open);
    }
    if (b->open.first)
        pthread_cond_signal(&b->came); // another has them
    return n;
}

static void score_samples(struct batcher *b, struct hand *hand, int n) {
    struct error err = {0};
    int status = predictor_score(b->predictor, hand->samples, n, &err);
    for (int i = 0; i < n && status; i++) {
        hand->samples[i]->status = status;
        hand->samples[i]->why = err;
    }
}

// Each request whose last sample was among these is done.
static void leave_samples(struct batcher *b, struct hand *hand, int n) {
    int done = 0;
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < n; i++)
        if (--hand->asks[i]->left == 0)
            hand->asks[done++] = hand->asks[i];
    pthread_mutex_unlock(&b->lock);
    for (int i = 0; i < done; i++)
        hand->asks[i]->done(hand->asks[i]);
    if (done > 0)
        tell(b);
}

// Until there are samples, which it has found of all requests, with the lock. False: there will be
// none.
static bool wait_for_samples(struct batcher *b) {
    for (;;) {
        if (b->closed.first)
            open_ask(b);
        else if (b->open.first || b->ends)
            return b->open.first != NULL;
        else
            pthread_cond_wait(&b->came, &b->lock);
    }
}

// With the lock, and samples that wait; it is not held meanwhile.
static void pass_once(struct batcher *b, struct hand *hand) {
    int n = take_samples(b, hand);
    pthread_mutex_unlock(&b->lock);
    score_samples(b, hand, n);
    leave_samples(b, hand, n);
    pthread_mutex_lock(&b->lock);
}

static void *work(void *argument) {
    struct hand *hand = argument;
    struct batcher *b = hand->batcher;
    pthread_mutex_lock(&b->lock);
    while (wait_for_samples(b))
        pass_once(b, hand);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

bool batcher_work(struct batcher *b) {
    pthread_mutex_lock(&b->lock);
    while (b->closed.first)
        open_ask(b);
    if (b->open.first)
        pass_once(b, b->hands);
    bool more = b->closed.first || b->open.first;
    pthread_mutex_unlock(&b->lock);
    return more;
}

static int open_hand(struct batcher *b, struct hand *hand, struct error *err) {
    size_t most = (size_t)predictor_batch(b->predictor);
    hand->batcher = b;
    hand->samples = mem_array(most, sizeof(struct predictor_sample *));
    hand->asks = mem_array(most, sizeof(struct ask *));
    return hand->samples && hand->asks ? STATUS_OK : error_nomem(err);
}

static int open_hands(struct batcher *b, struct error *err) {
    int status = STATUS_OK;
    b->hands = mem_zeroed((size_t)b->count, sizeof *b->hands);
    if (!b->hands)
        return error_nomem(err);
    for (int i = 0; i < b->count && !status; i++)
        status = open_hand(b, &b->hands[i], err);
    return status;
}

static int start_threads(struct batcher *b, int threads, struct error *err) {
    for (; b->threads < threads; b->threads++)
        if (pthread_create(&b->hands[b->threads].thread, NULL, work, &b->hands[b->threads]))
            return error_set(err, STATUS_IO, "cannot start a thread");
    return STATUS_OK;
}

int batcher_open(struct batcher **out, struct predictor *predictor, int threads, batcher_told *told,
                 void *self, struct error *err) {
    struct batcher *b = mem_zeroed(1, sizeof *b);
    if (!b)
        return error_nomem(err);
    b->predictor = predictor;
    b->told = told;
    b->self = self;
    b->closed.end = &b->closed.first;
    b->open.end = &b->open.first;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->came, NULL);
    b->count = threads > 0 ? threads : 1;
    int status = open_hands(b, err);
    if (!status)
        status = start_threads(b, threads, err);
    if (status)
        batcher_close(b);
    else
        *out = b;
    return status;
}

void batcher_put(struct batcher *b, struct ask *ask) {
    pthread_mutex_lock(&b->lock);
    row_put(&b->closed, ask);
    pthread_cond_signal(&b->came);
    pthread_mutex_unlock(&b->lock);
}

void batcher_close(struct batcher *b) {
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->ends = true;
    pthread_cond_broadcast(&b->came);
    pthread_mutex_unlock(&b->lock);
    for (int i = 0; i < b->threads; i++)
        pthread_join(b->hands[i].thread, NULL);
    while (b->threads == 0 && batcher_work(b))
        continue;
    for (int i = 0; b->hands && i < b->count; i++) {
        free(b->hands[i].samples);
        free(b->hands[i].asks);
    }
    pthread_cond_destroy(&b->came);
    pthread_mutex_destroy(&b->lock);
    free(b->hands);
    free(b);
}
