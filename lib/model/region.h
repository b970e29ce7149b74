// Regions of what a layer gives: some of its maps, or units, and some rows of these, with all
// columns.
#ifndef ADAM_MODEL_REGION_H
#define ADAM_MODEL_REGION_H

#include <stdbool.h>
#include <stddef.h>

struct shape;

struct region {
    int c0, c1, r0, r1; // maps [c0, c1), rows [r0, r1)
};

struct region region_all(const struct shape *shape);
bool region_empty(const struct region *region);
bool region_same(const struct region *a, const struct region *b); // two that are empty are
// What both have; of no maps where that is nothing.
struct region region_meet(const struct region *a, const struct region *b);
// Of w columns.
struct shape region_shape(const struct region *region, int w);
size_t region_size(const struct region *region, int w);

// How n samples lie whose values are those of a region of a layer: plain, or in blocks of so many
// lanes (kernels/kernels.h, "Blocks").
struct region_layout {
    struct region region;
    int w, n, lanes;
};

// The values of `some`, which the region holds, one behind the other in the same order, and back to
// their places; add: to what is there. Of a last block that is not full only its samples.
void region_pack(float *to, const float *from, const struct region_layout *layout,
                 const struct region *some);
void region_put(float *to, const float *from, const struct region_layout *layout,
                const struct region *some, bool add);
// The same between two buffers of one w, n and lanes.
void region_move(float *to, const struct region_layout *to_layout, const float *from,
                 const struct region_layout *from_layout, const struct region *some, bool add);

#endif
