#include "train/predictor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/allowance.h"
#include "core/mem.h"
#include "image/codec.h"
#include "sample/sample.h"

// Bytes of a picture that a call keeps for the next one: photographs of 20 million pixels have
// less.
enum { PICTURE_MOST = 64 << 20 };
// Pixels up to which a picture is not counted among the large ones.
enum { SMALL_PICTURE = 8 << 20 };

// What a call has for itself.
struct seat {
    struct scorer scorer;
    struct seat *next;
};

struct predictor {
    struct scoring scoring;
    _Atomic uint64_t passes;
    struct allowance pixels; // of large pictures that are decoded, until they are in a mini-batch
    _Atomic int *first;      // of so many samples; 0: not reckoned yet, which may be done twice
    pthread_mutex_t lock;    // of all below
    int under_way;           // calls
    struct seat *free;       // seats that nobody has
    struct seat *shared;     // that of several threads; NULL: somebody has it, or there is none
};

static void close_seat(struct seat *seat) {
    scorer_close(&seat->scorer);
    free(seat);
}

static int open_seat(struct predictor *p, struct seat **out, int threads, struct error *err) {
    struct seat *seat = mem_zeroed(1, sizeof *seat);
    if (!seat)
        return error_nomem(err);
    int status = scorer_open(&seat->scorer, &p->scoring, threads, err);
    if (status)
        close_seat(seat);
    else
        *out = seat;
    return status;
}

int predictor_open(struct predictor **out, const struct scoring_config *config, int threads,
                   struct error *err) {
    struct predictor *p = mem_zeroed(1, sizeof *p);
    if (!p)
        return error_nomem(err);
    pthread_mutex_init(&p->lock, NULL);
    allowance_open(&p->pixels, PREDICTOR_PICTURES * decode_most(&config->decode));
    struct scoring_config few = *config;
    few.few = true;
    int status = scoring_open(&p->scoring, &few, err);
    if (!status) {
        p->first = mem_zeroed((size_t)predictor_batch(p) + 1, sizeof *p->first);
        status = p->first ? STATUS_OK : error_nomem(err);
    }
    if (!status && threads > 1)
        status = open_seat(p, &p->shared, threads, err);
    if (status)
        predictor_close(p);
    else
        *out = p;
    return status;
}

void predictor_close(struct predictor *p) {
    if (!p)
        return;
    if (p->shared)
        close_seat(p->shared);
    while (p->free) {
        struct seat *seat = p->free;
        p->free = seat->next;
        close_seat(seat);
    }
    scoring_close(&p->scoring);
    free(p->first);
    pthread_mutex_destroy(&p->lock);
    allowance_close(&p->pixels);
    free(p);
}

int predictor_batch(const struct predictor *p) {
    return p->scoring.config.batch;
}

int predictor_first(struct predictor *p, int count) {
    const struct scoring_config *config = &p->scoring.config;
    int n = count < config->batch ? count : config->batch, first = atomic_load(&p->first[n]);
    if (first == 0) {
        first = net_first(config->model, config->kernels, n);
        atomic_store(&p->first[n], first);
    }
    return first;
}

size_t predictor_values(const struct predictor *p) {
    return input_values(&p->scoring.input);
}

uint64_t predictor_passes(const struct predictor *p) {
    return atomic_load(&p->passes);
}

// For a call of so many samples, which the lock has counted.
static struct seat *free_seat(struct predictor *p, int count) {
    struct seat **from = count == 1 && p->under_way == 1 && p->shared ? &p->shared : &p->free;
    struct seat *seat = *from;
    if (seat)
        *from = seat->next;
    return seat;
}

static int take_seat(struct predictor *p, struct seat **out, int count, struct error *err) {
    pthread_mutex_lock(&p->lock);
    p->under_way++;
    *out = free_seat(p, count);
    pthread_mutex_unlock(&p->lock);
    return *out ? STATUS_OK : open_seat(p, out, 1, err);
}

static void leave_seat(struct predictor *p, struct seat *seat) {
    if (seat)
        input_trim(&seat->scorer.input, PICTURE_MOST);
    pthread_mutex_lock(&p->lock);
    p->under_way--;
    struct seat **to = seat && seat->scorer.team ? &p->shared : &p->free;
    if (seat) {
        seat->next = *to;
        *to = seat;
    }
    pthread_mutex_unlock(&p->lock);
}

// A picture that is decoded, and what it has of the allowance.
struct large {
    struct predictor *predictor;
    uint64_t taken;
};

static void claim_pixels(void *self, uint64_t pixels) {
    struct large *large = self;
    if (pixels > SMALL_PICTURE)
        large->taken = allowance_take(&large->predictor->pixels, pixels);
}

static void add_picture(struct predictor *p, struct seat *seat, struct predictor_sample *sample) {
    struct image *image = &seat->scorer.input.image; // which operations may change
    struct large large = {.predictor = p};
    struct decode_options decode = p->scoring.decode;
    decode.claim = claim_pixels;
    decode.self = &large;
    sample->status = image_decode(image, sample->bytes, sample->size, &decode, &sample->why);
    if (sample->status == STATUS_OK)
        sample->status = scorer_add_picture(&seat->scorer, image, LABEL_NONE, NULL, &sample->why);
    if (large.taken == 0)
        return;
    input_trim(&seat->scorer.input, PICTURE_MOST);
    allowance_give(&p->pixels, large.taken);
}

// From the bytes to a place in the mini-batch.
static void add_sample(struct predictor *p, struct seat *seat, struct predictor_sample *sample) {
    if (!sample->floats) {
        add_picture(p, seat, sample);
        return;
    }
    sample->status = STATUS_OK;
    scorer_add_floats(&seat->scorer, sample->floats);
}

static void score_batch(struct predictor *p, struct seat *seat,
                        struct predictor_sample *const *samples, int count) {
    size_t classes = (size_t)model_classes(p->scoring.config.model);
    seat->scorer.batch.n = 0;
    for (int i = 0; i < count; i++)
        add_sample(p, seat, samples[i]);
    if (seat->scorer.batch.n == 0)
        return;
    const float *scores;
    struct error why = {0};
    int status = scorer_pass(&seat->scorer, atomic_fetch_add(&p->passes, 1), &scores, &why);
    for (int i = 0; i < count; i++)
        if (status && samples[i]->status == STATUS_OK) {
            samples[i]->status = status;
            samples[i]->why = why;
        } else if (samples[i]->status == STATUS_OK) {
            memcpy(samples[i]->scores, scores, classes * sizeof *scores);
            scores += classes;
        }
}

int predictor_score(struct predictor *p, struct predictor_sample *const *samples, int count,
                    struct error *err) {
    struct seat *seat;
    int status = take_seat(p, &seat, count, err);
    for (int i = 0, n; i < count && !status; i += n) {
        n = predictor_first(p, count - i);
        score_batch(p, seat, samples + i, n);
    }
    leave_seat(p, seat);
    return status;
}
