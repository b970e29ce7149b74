// The pictures of one or several data sets, kept decoded in memory as far as it goes.
//
// "The data servers pre-cache images utilizing nearly the entire system memory as an image
//  cache to speed image serving." (Adam 3.1)
//
// Every picture is asked for once an epoch, in a random order. So none is worth more than
// another, and what is in the cache stays there: the first that come fill it.
//
// Threads: all functions but open, hint and close may be called by any thread at any time.
#ifndef ADAM_DEAL_PICTURE_CACHE_H
#define ADAM_DEAL_PICTURE_CACHE_H

#include "data/dataset.h"

struct error;

struct picture_cache;

struct picture_cache_options {
    const char *const *paths;
    size_t path_count;
    struct source_options source;
    uint32_t part, parts; // of its samples those of part 1..parts; 0: all
    uint64_t cache;       // bytes
};

// Classes are those of the first data set; another's class that it lacks is STATUS_DATA.
// Statuses as dataset_open.
int picture_cache_open(struct picture_cache **out, const struct picture_cache_options *options,
                       struct error *err);
void picture_cache_close(struct picture_cache *pictures);
// How pictures are decoded, before the first one is asked for.
void picture_cache_hint(struct picture_cache *pictures, const struct decode_options *decode);

uint32_t picture_cache_count(const struct picture_cache *pictures); // of its part
uint32_t picture_cache_first(const struct picture_cache *pictures); // of its part, within the whole
uint64_t picture_cache_whole(const struct picture_cache *pictures); // samples of all data sets
uint32_t picture_cache_digest(const struct picture_cache *pictures);
// As dataset_target_count, of all data sets alike.
int picture_cache_target_count(const struct picture_cache *pictures);
const struct classes *picture_cache_classes(const struct picture_cache *pictures);
// Of sample `index` of its part, 0..count-1.
int32_t picture_cache_label(const struct picture_cache *pictures, uint32_t index);
const float *picture_cache_targets(const struct picture_cache *pictures, uint32_t index);
const char *picture_cache_key(const struct picture_cache *pictures, uint32_t index);
uint64_t picture_cache_key_hash(const struct picture_cache *pictures, uint32_t index);

// It will be asked for soon: what the cache has of it comes nearer to the processor.
void picture_cache_expect(const struct picture_cache *pictures, uint32_t index);
// The picture, copied from the cache, or decoded and put there.
int picture_cache_image(struct picture_cache *pictures, uint32_t index, struct image *image,
                        struct error *err);
// Decodes the next picture that is not in the cache yet, with `image` for room. False: all
// are, or the cache is full. What cannot be decoded is left to picture_cache_image.
bool picture_cache_warm(struct picture_cache *pictures, struct image *image);

struct picture_cache_figures {
    uint64_t hits, misses; // of picture_cache_image
    uint64_t bytes;        // in the cache
};
struct picture_cache_figures picture_cache_figures(const struct picture_cache *pictures);

#endif
