#include "model/region.h"
#include "core/least.h"

#include <string.h>

#include "model/model.h"

struct region region_all(const struct shape *shape) {
    return (struct region){0, shape->c, 0, shape->h};
}

bool region_empty(const struct region *region) {
    return region->c0 >= region->c1 || region->r0 >= region->r1;
}

bool region_same(const struct region *a, const struct region *b) {
    if (region_empty(a) || region_empty(b))
        return region_empty(a) && region_empty(b);
    return a->c0 == b->c0 && a->c1 == b->c1 && a->r0 == b->r0 && a->r1 == b->r1;
}

struct region region_meet(const struct region *a, const struct region *b) {
    struct region both = {most_int(a->c0, b->c0), least_int(a->c1, b->c1), most_int(a->r0, b->r0),
                          least_int(a->r1, b->r1)};
    return region_empty(&both) ? (struct region){0} : both;
}

struct shape region_shape(const struct region *region, int w) {
    return region_empty(region)
               ? (struct shape){0, 0, 0}
               : (struct shape){region->c1 - region->c0, region->r1 - region->r0, w};
}

size_t region_size(const struct region *region, int w) {
    return shape_size(region_shape(region, w));
}

// --- runs -------------------------------------------------------------------------------

// Values of a region that lie one behind the other, all of one map of a sample, or all of one pixel
// of a block.
struct runs {
    size_t count, length;
};

// Samples, or blocks of them.
static size_t group_count(const struct region_layout *layout) {
    int lanes = layout->lanes ? layout->lanes : 1;
    return (size_t)((layout->n + lanes - 1) / lanes);
}

// Whether values of `some` are all of each run of the layout's, so that its runs are one.
static bool is_one_run(const struct region_layout *layout, const struct region *some) {
    const struct region *all = &layout->region;
    return layout->lanes ? some->c0 == all->c0 && some->c1 == all->c1
                         : some->r0 == all->r0 && some->r1 == all->r1;
}

// Of one sample or block: a run for each map, or each pixel; or one of all.
static struct runs runs_of(const struct region_layout *a, const struct region_layout *b,
                           const struct region *some) {
    size_t maps = (size_t)(some->c1 - some->c0);
    size_t pixels = (size_t)(some->r1 - some->r0) * (size_t)a->w;
    size_t lanes = (size_t)(a->lanes ? a->lanes : 1);
    if (is_one_run(a, some) && is_one_run(b, some))
        return (struct runs){1, maps * pixels * lanes};
    return a->lanes ? (struct runs){pixels, maps * lanes} : (struct runs){maps, pixels};
}

// Where run number i of `some` begins in a sample or block.
static size_t run_at(const struct region_layout *layout, const struct region *some, size_t i) {
    const struct region *all = &layout->region;
    size_t w = (size_t)layout->w, c = (size_t)(all->c1 - all->c0);
    size_t map = (size_t)(some->c0 - all->c0), row = (size_t)(some->r0 - all->r0);
    size_t rows = (size_t)(all->r1 - all->r0);
    if (layout->lanes)
        return ((row * w + i) * c + map) * (size_t)layout->lanes;
    return ((map + i) * rows + row) * w;
}

static size_t group_size(const struct region_layout *layout) {
    return region_size(&layout->region, layout->w) * (size_t)(layout->lanes ? layout->lanes : 1);
}

static void put_run(float *to, const float *from, size_t length, bool add) {
    if (!add)
        memcpy(to, from, length * sizeof *to);
    for (size_t i = 0; add && i < length; i++)
        to[i] += from[i];
}

void region_move(float *to, const struct region_layout *to_layout, const float *from,
                 const struct region_layout *from_layout, const struct region *some, bool add) {
    const struct runs runs = runs_of(to_layout, from_layout, some);
    size_t groups = region_empty(some) ? 0 : group_count(to_layout);
    for (size_t g = 0; g < groups;
         g++, to += group_size(to_layout), from += group_size(from_layout))
        for (size_t i = 0; i < runs.count; i++)
            put_run(to + run_at(to_layout, some, i), from + run_at(from_layout, some, i),
                    runs.length, add);
}

// --- packed -----------------------------------------------------------------------------

static struct region_layout packed_layout(const struct region_layout *layout,
                                          const struct region *some) {
    struct region_layout packed = *layout;
    packed.region = *some;
    return packed;
}

// The samples of block b.
static int samples_of(const struct region_layout *layout, size_t b) {
    int left = layout->n - (int)b * layout->lanes;
    return left < layout->lanes ? left : layout->lanes;
}

// Of each `lanes` values of a run so many.
static size_t pack_run(float *to, const float *from, size_t length, size_t lanes, size_t samples) {
    for (size_t i = 0; i < length; i += lanes, to += samples)
        memcpy(to, from + i, samples * sizeof *to);
    return length / lanes * samples;
}

static size_t put_packed(float *to, const float *from, size_t length, size_t lanes, size_t samples,
                         bool add) {
    for (size_t i = 0; i < length; i += lanes, from += samples)
        put_run(to + i, from, samples, add);
    return length / lanes * samples;
}

// Whole blocks are moved; of the last one only its samples.
static int whole_blocks(const struct region_layout *layout) {
    return layout->lanes ? layout->n / layout->lanes * layout->lanes : layout->n;
}

void region_pack(float *to, const float *from, const struct region_layout *layout,
                 const struct region *some) {
    struct region_layout whole = *layout, packed = packed_layout(layout, some);
    whole.n = packed.n = whole_blocks(layout);
    region_move(to, &packed, from, &whole, some, false);
    if (whole.n == layout->n || region_empty(some))
        return;
    const struct runs runs = runs_of(layout, &packed, some);
    size_t b = group_count(&whole), lanes = (size_t)layout->lanes;
    size_t samples = (size_t)samples_of(layout, b);
    to += b * group_size(&packed), from += b * group_size(layout);
    for (size_t i = 0; i < runs.count; i++)
        to += pack_run(to, from + run_at(layout, some, i), runs.length, lanes, samples);
}

void region_put(float *to, const float *from, const struct region_layout *layout,
                const struct region *some, bool add) {
    struct region_layout whole = *layout, packed = packed_layout(layout, some);
    whole.n = packed.n = whole_blocks(layout);
    region_move(to, &whole, from, &packed, some, add);
    if (whole.n == layout->n || region_empty(some))
        return;
    const struct runs runs = runs_of(layout, &packed, some);
    size_t b = group_count(&whole), lanes = (size_t)layout->lanes;
    size_t samples = (size_t)samples_of(layout, b);
    from += b * group_size(&packed), to += b * group_size(layout);
    for (size_t i = 0; i < runs.count; i++)
        from += put_packed(to + run_at(layout, some, i), from, runs.length, lanes, samples, add);
}
