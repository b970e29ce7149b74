// Makers: threads that make samples, and batches of them. Each draws a batch from the queue,
// fills it without the lock, and says there that it is ready.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "data/order.h"
#include "deal/dealer_internal.h"

enum { AHEAD = 4 }; // pictures between asking for one's lines and reading them: a miss or two

// --- one sample ------------------------------------------------------------------

static int make_picture(struct dealer *dealer, uint32_t index, struct ops_draw draw,
                        struct maker *maker, struct error *err) {
    const struct dealer_options *options = &dealer->options;
    int status = picture_cache_image(options->pictures, index, &maker->image, err);
    if (!status && options->ops)
        status = ops_apply(options->ops, maker->scratch, &maker->image, draw, err);
    return status ? error_context(err, "sample '%s'", picture_cache_key(options->pictures, index))
                  : STATUS_OK;
}

static int check_shape(const struct dealer *dealer, uint32_t index, const struct image *image,
                       struct error *err) {
    const struct dealer_shape *shape = &dealer->shape;
    bool same = image->channels == shape->channels && image->height == shape->height &&
                image->width == shape->width;
    if (same && (image->type == shape->type || shape->type == PIXEL_F32))
        return STATUS_OK;
    const char *key = picture_cache_key(dealer->options.pictures, index);
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

int makers_look(struct dealer *dealer, struct error *err) {
    struct maker maker = {.dealer = dealer, .scratch = ops_scratch_new()};
    struct ops_draw draw = {dealer->seed, 0, picture_cache_key_hash(dealer->options.pictures, 0)};
    int status = maker.scratch ? make_picture(dealer, 0, draw, &maker, err) : error_nomem(err);
    const struct image *image = &maker.image;
    dealer->shape =
        (struct dealer_shape){image->channels, image->height, image->width, image->type};
    dealer->sample_bytes = image_bytes(image);
    image_free(&maker.image);
    ops_scratch_free(maker.scratch);
    return status;
}

// --- one batch -------------------------------------------------------------------

static int fill_batch(struct maker *maker, const struct made_batch *batch, struct error *err) {
    struct dealer *dealer = maker->dealer;
    const struct drawn_range *drawn = &batch->drawn;
    struct picture_cache *pictures = dealer->options.pictures;
    struct order order = order_of(batch->seed, drawn->epoch, picture_cache_count(pictures));
    const struct proto_samples samples = made_batch_samples(dealer, batch);
    for (uint32_t i = 0; i < samples.count; i++) {
        uint32_t index = order_at(&order, drawn->places.first + i);
        if (i + AHEAD < samples.count)
            picture_cache_expect(pictures, order_at(&order, drawn->places.first + i + AHEAD));
        samples.keys[i] = picture_cache_key_hash(pictures, index);
        samples.labels[i] = picture_cache_label(pictures, index);
        if (samples.target_count > 0)
            memcpy(samples.targets + (size_t)i * samples.target_count,
                   picture_cache_targets(pictures, index),
                   samples.target_count * sizeof *samples.targets);
        struct ops_draw draw = {batch->seed, drawn->epoch, samples.keys[i]};
        int status = make_picture(dealer, index, draw, maker, err);
        if (!status)
            status = check_shape(dealer, index, &maker->image, err);
        if (status)
            return status;
        put_values(dealer, proto_sample_values(&samples, i), &maker->image);
    }
    return STATUS_OK;
}

// --- the threads -----------------------------------------------------------------

// The next batch to make; with nothing to make, the cache is filled. NULL: the end.
static struct made_batch *next_batch(struct maker *maker) {
    struct dealer *dealer = maker->dealer;
    struct made_batch *batch = NULL;
    bool warm = true;
    pthread_mutex_lock(&dealer->lock);
    while (!dealer->closing && !(batch = queue_draw(dealer))) {
        if (!warm) {
            pthread_cond_wait(&dealer->room, &dealer->lock);
            continue;
        }
        pthread_mutex_unlock(&dealer->lock);
        warm = picture_cache_warm(dealer->options.pictures, &maker->image);
        pthread_mutex_lock(&dealer->lock);
    }
    pthread_mutex_unlock(&dealer->lock);
    return batch;
}

// With the first that fails all makers end.
static void hand_over_batch(struct dealer *dealer, struct made_batch *batch, int status,
                            const struct error *err, double seconds) {
    pthread_mutex_lock(&dealer->lock);
    dealer->made += batch->drawn.places.count;
    dealer->busy_seconds += seconds;
    if (status && dealer->err.status == STATUS_OK) {
        dealer->err = *err;
        dealer->closing = true;
        pthread_cond_broadcast(&dealer->room);
    }
    queue_ready(dealer, batch);
    pthread_mutex_unlock(&dealer->lock);
}

static void *make_thread(void *self) {
    struct maker *maker = self;
    struct made_batch *batch;
    while ((batch = next_batch(maker))) {
        struct error err = {0};
        double start = clock_seconds();
        int status = fill_batch(maker, batch, &err);
        hand_over_batch(maker->dealer, batch, status, &err, clock_seconds() - start);
    }
    return NULL;
}

int makers_start(struct dealer *dealer, struct error *err) {
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

void makers_stop(struct dealer *dealer) {
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
