#include "deal/picture_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"

struct cached {   // a picture, never changed
    uint64_t key; // its hash: keys lie elsewhere, each a miss of the processor's caches
    int width, height, channels;
    enum pixel type;
    struct image_true true_size;
    uint8_t data[];
};

// Bytes of one that are asked for ahead: the processor itself follows a row of lines.
enum { LINE = 64, EXPECTED = 8 * LINE };

struct cached_set {
    struct dataset *dataset;
    uint64_t first; // of its samples within the whole
};

struct picture_cache {
    struct picture_cache_options options;
    struct decode_options decode;
    struct cached_set *sets;
    size_t set_count;
    uint64_t whole;
    uint32_t first, count; // the part
    uint32_t digest;
    _Atomic(struct cached *) *entries; // by sample of the part
    _Atomic uint64_t bytes, hits, misses;
    _Atomic uint32_t next_warm;
};

// The data set of a sample of the part; *index becomes that within the data set.
static const struct dataset *dataset_of(const struct picture_cache *pictures, uint32_t *index) {
    uint64_t place = (uint64_t)pictures->first + *index;
    size_t i = pictures->set_count - 1;
    while (i > 0 && pictures->sets[i].first > place)
        i--;
    *index = (uint32_t)(place - pictures->sets[i].first);
    return pictures->sets[i].dataset;
}

// --- the cache -------------------------------------------------------------------

static bool copy_cached(const struct cached *cached, struct image *image, int *status,
                        struct error *err) {
    if (!cached)
        return false;
    *status =
        image_shape(image, cached->width, cached->height, cached->channels, cached->type, err);
    if (*status == STATUS_OK) {
        memcpy(image->data, cached->data, image_bytes(image));
        image->true_size = cached->true_size;
    }
    return true;
}

// Room in the cache is taken before it is filled, so that it never becomes too large.
static bool reserve_bytes(struct picture_cache *pictures, uint64_t bytes) {
    uint64_t now = atomic_load(&pictures->bytes);
    do {
        if (bytes > pictures->options.cache || now > pictures->options.cache - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&pictures->bytes, &now, now + bytes));
    return true;
}

uint64_t picture_cache_key_hash(const struct picture_cache *pictures, uint32_t index) {
    const struct cached *cached = atomic_load(&pictures->entries[index]);
    if (cached)
        return cached->key;
    const struct dataset *dataset = dataset_of(pictures, &index);
    return dataset_key_hash(dataset, index);
}

// False: the cache is full. Of two threads with the same picture the first keeps its.
static bool cache_picture(struct picture_cache *pictures, uint32_t index,
                          const struct image *image) {
    size_t bytes = sizeof(struct cached) + image_bytes(image);
    if (!reserve_bytes(pictures, bytes))
        return false;
    struct cached *cached = malloc(bytes), *none = NULL;
    if (cached) {
        cached->key = picture_cache_key_hash(pictures, index);
        cached->width = image->width, cached->height = image->height;
        cached->channels = image->channels, cached->type = image->type;
        cached->true_size = image->true_size;
        memcpy(cached->data, image->data, image_bytes(image));
    }
    if (cached && atomic_compare_exchange_strong(&pictures->entries[index], &none, cached))
        return true;
    free(cached);
    atomic_fetch_sub(&pictures->bytes, bytes);
    return none != NULL;
}

// --- samples ---------------------------------------------------------------------

int32_t picture_cache_label(const struct picture_cache *pictures, uint32_t index) {
    const struct dataset *dataset = dataset_of(pictures, &index);
    return dataset_label(dataset, index);
}

const float *picture_cache_targets(const struct picture_cache *pictures, uint32_t index) {
    const struct dataset *dataset = dataset_of(pictures, &index);
    return dataset_targets(dataset, index);
}

const char *picture_cache_key(const struct picture_cache *pictures, uint32_t index) {
    const struct dataset *dataset = dataset_of(pictures, &index);
    return dataset_key(dataset, index);
}

static int decode_picture(struct picture_cache *pictures, uint32_t index, struct image *image,
                          struct error *err) {
    const struct dataset *dataset = dataset_of(pictures, &index);
    return dataset_image(dataset, index, &pictures->decode, image, err);
}

void picture_cache_expect(const struct picture_cache *pictures, uint32_t index) {
    const char *cached = (const char *)atomic_load(&pictures->entries[index]);
    for (size_t i = 0; cached && i < EXPECTED; i += LINE)
        __builtin_prefetch(cached + i);
}

int picture_cache_image(struct picture_cache *pictures, uint32_t index, struct image *image,
                        struct error *err) {
    int status;
    if (copy_cached(atomic_load(&pictures->entries[index]), image, &status, err)) {
        atomic_fetch_add(&pictures->hits, 1);
        return status;
    }
    atomic_fetch_add(&pictures->misses, 1);
    status = decode_picture(pictures, index, image, err);
    if (status == STATUS_OK)
        cache_picture(pictures, index, image);
    return status;
}

bool picture_cache_warm(struct picture_cache *pictures, struct image *image) {
    struct error unwanted = {0};
    uint32_t index;
    do {
        if (atomic_load(&pictures->next_warm) >= pictures->count)
            return false;
        index = atomic_fetch_add(&pictures->next_warm, 1);
        if (index >= pictures->count)
            return false;
    } while (atomic_load(&pictures->entries[index]));
    if (decode_picture(pictures, index, image, &unwanted) || cache_picture(pictures, index, image))
        return true;
    atomic_store(&pictures->next_warm, pictures->count);
    return false;
}

struct picture_cache_figures picture_cache_figures(const struct picture_cache *pictures) {
    return (struct picture_cache_figures){atomic_load(&pictures->hits),
                                          atomic_load(&pictures->misses),
                                          atomic_load(&pictures->bytes)};
}

// --- opening ---------------------------------------------------------------------

void picture_cache_hint(struct picture_cache *pictures, const struct decode_options *decode) {
    pictures->decode = *decode;
}

uint32_t picture_cache_count(const struct picture_cache *pictures) {
    return pictures->count;
}

uint32_t picture_cache_first(const struct picture_cache *pictures) {
    return pictures->first;
}

uint64_t picture_cache_whole(const struct picture_cache *pictures) {
    return pictures->whole;
}

uint32_t picture_cache_digest(const struct picture_cache *pictures) {
    return pictures->digest;
}

int picture_cache_target_count(const struct picture_cache *pictures) {
    return dataset_target_count(pictures->sets[0].dataset);
}

const struct classes *picture_cache_classes(const struct picture_cache *pictures) {
    return dataset_classes(pictures->sets[0].dataset);
}

static int open_datasets(struct picture_cache *pictures, struct error *err) {
    const struct picture_cache_options *options = &pictures->options;
    pictures->sets = mem_zeroed(options->path_count, sizeof *pictures->sets);
    if (!pictures->sets)
        return error_nomem(err);
    for (size_t i = 0; i < options->path_count; i++) {
        struct cached_set *set = &pictures->sets[i];
        int status = dataset_open(&set->dataset, options->paths[i], &options->source, true,
                                  i > 0 ? picture_cache_classes(pictures) : NULL, err);
        if (status)
            return status;
        pictures->set_count++;
        set->first = pictures->whole;
        pictures->whole += dataset_count(set->dataset);
        uint32_t digest = dataset_digest(set->dataset);
        pictures->digest = i > 0 ? (uint32_t)hash_mix(pictures->digest, digest) : digest;
    }
    return STATUS_OK;
}

// Part i of n begins where part i - 1 ends, so that all parts are the whole.
static int set_part(struct picture_cache *pictures, struct error *err) {
    const struct picture_cache_options *options = &pictures->options;
    uint64_t parts = options->part ? options->parts : 1, part = options->part ? options->part : 1;
    if (pictures->whole > UINT32_MAX)
        return error_set(err, STATUS_DATA, "more than 2^32 - 1 samples");
    uint64_t first = pictures->whole * (part - 1) / parts, end = pictures->whole * part / parts;
    if (end == first)
        return error_set(err, STATUS_DATA, "part %u of %u of %llu samples is empty", options->part,
                         options->parts, (unsigned long long)pictures->whole);
    pictures->first = (uint32_t)first;
    pictures->count = (uint32_t)(end - first);
    return STATUS_OK;
}

int picture_cache_open(struct picture_cache **out, const struct picture_cache_options *options,
                       struct error *err) {
    struct picture_cache *pictures = mem_zeroed(1, sizeof *pictures);
    if (!pictures)
        return error_nomem(err);
    pictures->options = *options;
    int status = open_datasets(pictures, err);
    if (!status)
        status = set_part(pictures, err);
    if (!status && !(pictures->entries = mem_zeroed(pictures->count, sizeof *pictures->entries)))
        status = error_nomem(err);
    if (status)
        picture_cache_close(pictures);
    else
        *out = pictures;
    return status;
}

void picture_cache_close(struct picture_cache *pictures) {
    if (!pictures)
        return;
    for (uint32_t i = 0; pictures->entries && i < pictures->count; i++)
        free(atomic_load(&pictures->entries[i]));
    for (size_t i = 0; i < pictures->set_count; i++)
        dataset_close(pictures->sets[i].dataset);
    free((void *)pictures->entries);
    free(pictures->sets);
    free(pictures);
}
