// The gradient of the weights by Winograd's minimal filtering (winograd_gradient.inc.h) of single
// samples: maps are in the lanes already, of error gradients and of data.
#ifndef ADAM_KERNELS_BLOCK_WINOGRAD_SINGLE_GRADIENT_INC_H
#define ADAM_KERNELS_BLOCK_WINOGRAD_SINGLE_GRADIENT_INC_H

#include "kernels/block/winograd_gradient.inc.h"

// Writes a vector of maps of a tile's error gradients, with zeros outside the picture. Returns
// their sum.
static vector single_square(const struct tiles *t, float *square, const float *from,
                            struct tile_position p) {
    const struct window *v = t->winograd->window;
    size_t pixel = (size_t)t->winograd->maps * LANES, row = (size_t)v->out_w * pixel;
    vector sum = {0};
    for (int i = 0; i < t->part->high; i++)
        for (int j = 0; j < t->part->wide; j++) {
            bool inside = p.y + i < v->out_h && p.x + j < v->out_w;
            vector error = {0};
            if (inside)
                error = *(const vector *)(from + (size_t)i * row + (size_t)j * pixel);
            *(vector *)(square + (i * WINOGRAD_TILE + j) * LANES) = error;
            sum += error;
        }
    return sum;
}

// Transforms the error gradients of the tiles into w->values, and adds their sums to dbiases,
// unless nobody wants them.
static void single_errors(const struct tiles *t, const float *dy, float *dbiases) {
    const struct winograd *w = t->winograd;
    const struct winograd_sizes *s = &w->sizes;
    size_t pixel = (size_t)w->maps * LANES;
    ALIGNED float square[TILE_PIXELS * LANES];
    struct square line;
    for (int i = 0; i < t->count; i++) {
        struct tile_position p = tile_position(t, i);
        const float *from =
            dy + (p.block * window_out_pixels(w->window) + (size_t)(p.y * w->window->out_w + p.x)) *
                     pixel;
        for (int m = 0; m < w->maps; m++) {
            float *to = w->values + (size_t)(m * s->chunk + i) * LANES;
            vector sum = single_square(t, square, from + m * LANES, p);
            if (dbiases)
                *(vector *)(dbiases + m * LANES) += sum;
            if (s->far)
                ask_to_write(t->high, t->wide, to + AHEAD, (size_t)t->wide * s->value_slice,
                             s->value_slice);
            t->down->error_columns(&line, square, WINOGRAD_TILE * LANES, LANES, t->part->wide);
            t->across->error_rows(to, s->value_slice, &line, t->high);
        }
    }
}

// Sums one slice of the gradient over the tiles into w->kernels; `add`: on top of the sums there.
static void single_gradient_slice(const struct tiles *t, int slice, bool add) {
    const struct winograd *w = t->winograd;
    const struct winograd_sizes *s = &w->sizes;
    size_t bundle = (size_t)(s->points * s->points) * s->kernel_slice;
    size_t errors = (size_t)(s->chunk * LANES);
    float *sums = w->kernels + kernel_slice(t, slice);
    for (int b = 0, columns; b < s->maps; b += columns) {
        columns = equal_part(s->maps - b, PRODUCT_COLUMNS);
        for (int c = 0; c < s->channels * LANES; c += PRODUCT_ROWS) {
            product_function *product = FAMILY(products_sums)[columns - 1][PRODUCT_ROWS - 1];
            product(&(struct slice_product){
                .a = w->data + (size_t)slice * s->data_slice + (size_t)c,
                .a_step = (size_t)(s->channels * LANES),
                .b = w->values + (size_t)slice * s->value_slice + (size_t)b * errors,
                .b_column = errors,
                .outer = 1,
                .inner = t->count,
                .to = sums + (size_t)b * bundle + (size_t)c * LANES,
                .to_column = bundle,
                .add = add,
            });
        }
    }
}

void FAMILY(winograd_single_gradient)(float *dweights, float *dbiases, const float *dy,
                                      const float *x, int blocks, const struct convolution *conv,
                                      float *scratch) {
    const struct winograd_sizes whole = winograd_sizes(conv, LANES, CONV_BACK_WEIGHTS);
    struct winograd w = winograd_lay(conv, true, CONV_BACK_WEIGHTS, scratch);
    const struct winograd_sizes *s = &w.sizes;
    bool add = clear_if_points_lack(&w);
    if (dbiases)
        memset(dbiases, 0, (size_t)conv->maps * sizeof *dbiases);
    for (int p = 0; p < s->part_count; p++)
        for (struct tiles t = tiles_of(&w, &s->parts[p]); tiles_next(&t, blocks); add = true) {
            winograd_data(&t, x);
            single_errors(&t, dy, dbiases);
            for (int slice = 0; slice < t.high * t.wide; slice++)
                single_gradient_slice(&t, slice, add);
        }
    gradient_back(&whole, dweights, w.kernels);
}

#endif
