// The pictures of one or several data sets, kept decoded in memory as far as it goes.
//
// "The data servers pre-cache images utilizing nearly the entire system memory as an image
//  cache to speed image serving." (Adam 3.1)
//
// Every picture is asked for once an epoch, in a random order. So none is worth more than
// another, and what is in the cache stays there: the first that come fill it.
//
// Threads: all functions but open, hint and close may be called by any thread at any time.
#ifndef ADAM_DEAL_STOCK_H
#define ADAM_DEAL_STOCK_H

#include "data/dataset.h"

struct stock;

struct stock_options {
    const char *const *paths;
    size_t path_count;
    struct source_options source;
    uint32_t part, parts; // of its samples those of part 1..parts; 0: all
    uint64_t cache;       // bytes
};

// Classes are those of the first data set; another's class that it lacks is STATUS_DATA.
// Statuses as dataset_open.
int stock_open(struct stock **out, const struct stock_options *options, struct error *err);
void stock_close(struct stock *stock);
// How pictures are decoded, before the first one is asked for.
void stock_hint(struct stock *stock, const struct decode_options *decode);

uint32_t stock_count(const struct stock *stock); // of its part
uint32_t stock_first(const struct stock *stock); // of its part, within the whole
uint64_t stock_whole(const struct stock *stock); // samples of all data sets
uint32_t stock_digest(const struct stock *stock);
const struct classes *stock_classes(const struct stock *stock);
// Of sample `index` of its part, 0..count-1.
int32_t stock_label(const struct stock *stock, uint32_t index);
const char *stock_key(const struct stock *stock, uint32_t index);
uint64_t stock_key_hash(const struct stock *stock, uint32_t index);

// It will be asked for soon: what the cache has of it comes nearer to the processor.
void stock_expect(const struct stock *stock, uint32_t index);
// The picture, copied from the cache, or decoded and put there.
int stock_image(struct stock *stock, uint32_t index, struct image *image, struct error *err);
// Decodes the next picture that is not in the cache yet, with `image` for room. False: all
// are, or the cache is full. What cannot be decoded is left to stock_image.
bool stock_warm(struct stock *stock, struct image *image);

struct stock_figures {
    uint64_t hits, misses; // of stock_image
    uint64_t bytes;        // in the cache
};
struct stock_figures stock_figures(const struct stock *stock);

#endif
