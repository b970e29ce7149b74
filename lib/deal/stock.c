#include "deal/stock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/random.h"

struct cached {   // a picture, never changed
    uint64_t key; // its hash: keys lie elsewhere, each a miss of the processor's caches
    int width, height, channels;
    enum pixel type;
    uint8_t data[];
};

// Bytes of one that are asked for ahead: the processor itself follows a row of lines.
enum { LINE = 64, EXPECTED = 8 * LINE };

struct set {
    struct dataset *dataset;
    uint64_t first; // of its samples within the whole
};

struct stock {
    struct stock_options options;
    struct decode_options decode;
    struct set *sets;
    size_t set_count;
    uint64_t whole;
    uint32_t first, count; // the part
    uint32_t digest;
    _Atomic(struct cached *) *cache; // by sample of the part
    _Atomic uint64_t bytes, hits, misses;
    _Atomic uint32_t next_warm;
};

// The data set of a sample of the part; *index becomes that within the data set.
static const struct dataset *find(const struct stock *stock, uint32_t *index) {
    uint64_t place = (uint64_t)stock->first + *index;
    size_t i = stock->set_count - 1;
    while (i > 0 && stock->sets[i].first > place)
        i--;
    *index = (uint32_t)(place - stock->sets[i].first);
    return stock->sets[i].dataset;
}

// --- the cache -------------------------------------------------------------------

static bool take_cached(const struct cached *cached, struct image *image, int *status,
                        struct error *err) {
    if (!cached)
        return false;
    *status =
        image_shape(image, cached->width, cached->height, cached->channels, cached->type, err);
    if (*status == STATUS_OK)
        memcpy(image->data, cached->data, image_bytes(image));
    return true;
}

// Room in the cache is taken before it is filled, so that it never becomes too large.
static bool take_room(struct stock *stock, uint64_t bytes) {
    uint64_t now = atomic_load(&stock->bytes);
    do {
        if (bytes > stock->options.cache || now > stock->options.cache - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&stock->bytes, &now, now + bytes));
    return true;
}

uint64_t stock_key_hash(const struct stock *stock, uint32_t index) {
    const struct cached *cached = atomic_load(&stock->cache[index]);
    if (cached)
        return cached->key;
    const struct dataset *dataset = find(stock, &index);
    return dataset_key_hash(dataset, index);
}

// False: the cache is full. Of two threads with the same picture the first keeps its.
static bool keep(struct stock *stock, uint32_t index, const struct image *image) {
    size_t bytes = sizeof(struct cached) + image_bytes(image);
    if (!take_room(stock, bytes))
        return false;
    struct cached *cached = malloc(bytes), *none = NULL;
    if (cached) {
        cached->key = stock_key_hash(stock, index);
        cached->width = image->width, cached->height = image->height;
        cached->channels = image->channels, cached->type = image->type;
        memcpy(cached->data, image->data, image_bytes(image));
    }
    if (cached && atomic_compare_exchange_strong(&stock->cache[index], &none, cached))
        return true;
    free(cached);
    atomic_fetch_sub(&stock->bytes, bytes);
    return none != NULL;
}

// --- samples ---------------------------------------------------------------------

int32_t stock_label(const struct stock *stock, uint32_t index) {
    const struct dataset *dataset = find(stock, &index);
    return dataset_label(dataset, index);
}

const char *stock_key(const struct stock *stock, uint32_t index) {
    const struct dataset *dataset = find(stock, &index);
    return dataset_key(dataset, index);
}

static int decode(struct stock *stock, uint32_t index, struct image *image, struct error *err) {
    const struct dataset *dataset = find(stock, &index);
    return dataset_image(dataset, index, &stock->decode, image, err);
}

void stock_expect(const struct stock *stock, uint32_t index) {
    const char *cached = (const char *)atomic_load(&stock->cache[index]);
    for (size_t i = 0; cached && i < EXPECTED; i += LINE)
        __builtin_prefetch(cached + i);
}

int stock_image(struct stock *stock, uint32_t index, struct image *image, struct error *err) {
    int status;
    if (take_cached(atomic_load(&stock->cache[index]), image, &status, err)) {
        atomic_fetch_add(&stock->hits, 1);
        return status;
    }
    atomic_fetch_add(&stock->misses, 1);
    status = decode(stock, index, image, err);
    if (status == STATUS_OK)
        keep(stock, index, image);
    return status;
}

bool stock_warm(struct stock *stock, struct image *image) {
    struct error unwanted = {0};
    uint32_t index;
    do {
        if (atomic_load(&stock->next_warm) >= stock->count)
            return false;
        index = atomic_fetch_add(&stock->next_warm, 1);
        if (index >= stock->count)
            return false;
    } while (atomic_load(&stock->cache[index]));
    if (decode(stock, index, image, &unwanted) || keep(stock, index, image))
        return true;
    atomic_store(&stock->next_warm, stock->count);
    return false;
}

struct stock_figures stock_figures(const struct stock *stock) {
    return (struct stock_figures){atomic_load(&stock->hits), atomic_load(&stock->misses),
                                  atomic_load(&stock->bytes)};
}

// --- opening ---------------------------------------------------------------------

void stock_hint(struct stock *stock, const struct decode_options *decode) {
    stock->decode = *decode;
}

uint32_t stock_count(const struct stock *stock) {
    return stock->count;
}

uint32_t stock_first(const struct stock *stock) {
    return stock->first;
}

uint64_t stock_whole(const struct stock *stock) {
    return stock->whole;
}

uint32_t stock_digest(const struct stock *stock) {
    return stock->digest;
}

const struct classes *stock_classes(const struct stock *stock) {
    return dataset_classes(stock->sets[0].dataset);
}

static int open_sets(struct stock *stock, struct error *err) {
    const struct stock_options *options = &stock->options;
    stock->sets = mem_zeroed(options->path_count, sizeof *stock->sets);
    if (!stock->sets)
        return error_nomem(err);
    for (size_t i = 0; i < options->path_count; i++) {
        struct set *set = &stock->sets[i];
        int status = dataset_open(&set->dataset, options->paths[i], &options->source, true,
                                  i > 0 ? stock_classes(stock) : NULL, err);
        if (status)
            return status;
        stock->set_count++;
        set->first = stock->whole;
        stock->whole += dataset_count(set->dataset);
        uint32_t digest = dataset_digest(set->dataset);
        stock->digest = i > 0 ? (uint32_t)hash_mix(stock->digest, digest) : digest;
    }
    return STATUS_OK;
}

// Part i of n begins where part i - 1 ends, so that all parts are the whole.
static int cut_part(struct stock *stock, struct error *err) {
    const struct stock_options *options = &stock->options;
    uint64_t parts = options->part ? options->parts : 1, part = options->part ? options->part : 1;
    if (stock->whole > UINT32_MAX)
        return error_set(err, STATUS_DATA, "more than 2^32 - 1 samples");
    uint64_t first = stock->whole * (part - 1) / parts, end = stock->whole * part / parts;
    if (end == first)
        return error_set(err, STATUS_DATA, "part %u of %u of %llu samples is empty", options->part,
                         options->parts, (unsigned long long)stock->whole);
    stock->first = (uint32_t)first;
    stock->count = (uint32_t)(end - first);
    return STATUS_OK;
}

int stock_open(struct stock **out, const struct stock_options *options, struct error *err) {
    struct stock *stock = mem_zeroed(1, sizeof *stock);
    if (!stock)
        return error_nomem(err);
    stock->options = *options;
    int status = open_sets(stock, err);
    if (!status)
        status = cut_part(stock, err);
    if (!status && !(stock->cache = mem_zeroed(stock->count, sizeof *stock->cache)))
        status = error_nomem(err);
    if (status)
        stock_close(stock);
    else
        *out = stock;
    return status;
}

void stock_close(struct stock *stock) {
    if (!stock)
        return;
    for (uint32_t i = 0; stock->cache && i < stock->count; i++)
        free(atomic_load(&stock->cache[i]));
    for (size_t i = 0; i < stock->set_count; i++)
        dataset_close(stock->sets[i].dataset);
    free((void *)stock->cache);
    free(stock->sets);
    free(stock);
}
