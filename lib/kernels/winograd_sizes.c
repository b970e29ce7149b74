#include "kernels/winograd_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv_sizes.h"

enum {
    MAPS_MOST = 1 << 14, // so that no size overflows
    L2_FLOATS = 1 << 18,
    CHUNK_FLOATS = L2_FLOATS / 2, // of data and products at a time
    CHUNK_LEAST = 3,              // tiles that a kernel read from far is used for,
    CHUNK_LEAST_SUMS = 8,         // and that a sum read and written far is
    CHUNK_MOST = 24,
};

static int rounded_up(int n, int unit) {
    return (n + unit - 1) / unit * unit;
}

static bool possible(const struct convolution *conv) {
    const struct window *v = &conv->window;
    return v->kernel_h == v->kernel_w && (v->kernel_h == 3 || v->kernel_h == 5) &&
           v->stride_h == 1 && v->stride_w == 1 && v->pad_h < v->kernel_h &&
           v->pad_w < v->kernel_w && v->c <= MAPS_MOST && conv->maps <= MAPS_MOST;
}

// Each chunk of the gradient of the weights goes once through the sums of all kernels.
static int chunk_of(const struct winograd_sizes *s, int lanes, enum conv_pass pass) {
    int chunk = CHUNK_FLOATS / (s->points * s->points * lanes) / (s->channels + s->maps);
    bool far = pass == CONV_BACK_WEIGHTS && s->kernels > L2_FLOATS;
    int least = far ? CHUNK_LEAST_SUMS : CHUNK_LEAST;
    return chunk < least ? least : chunk > CHUNK_MOST ? CHUNK_MOST : chunk;
}

struct winograd_sizes winograd_sizes(const struct convolution *conv, int lanes,
                                     enum conv_pass pass) {
    const struct window *v = &conv->window;
    if (!possible(conv))
        return (struct winograd_sizes){0};
    struct winograd_sizes s = {
        .points = v->kernel_h + WINOGRAD_TILE - 1,
        .down = rounded_up(v->out_h, WINOGRAD_TILE) / WINOGRAD_TILE,
        .across = rounded_up(v->out_w, WINOGRAD_TILE) / WINOGRAD_TILE,
        .channels = v->c / conv->groups,
        .maps = conv->maps / conv->groups,
    };
    size_t slices = (size_t)(s.points * s.points), maps = (size_t)rounded_up(s.maps, lanes);
    s.kernels = slices * maps * (size_t)s.channels;
    s.chunk = chunk_of(&s, lanes, pass);
    // A line more: slices must not all begin in the same set of a cache.
    size_t vectors = (size_t)(s.chunk * lanes);
    s.data_slice = vectors * (size_t)s.channels + 16;
    s.value_slice = vectors * (size_t)s.maps + 16;
    s.error_slice = vectors * maps + 16;
    s.data = slices * s.data_slice;
    s.values = slices * s.error_slice;
    return s;
}

static struct winograd_sizes sizes_of(const struct convolution *conv, int lanes,
                                      enum conv_pass pass) {
    struct convolution turned = conv_turned(conv);
    return winograd_sizes(pass == CONV_BACK_INPUT ? &turned : conv, lanes, pass);
}

size_t winograd_scratch(const struct convolution *conv, int lanes) {
    size_t most = 0;
    for (enum conv_pass pass = CONV_FORWARD; pass <= CONV_BACK_WEIGHTS; pass++) {
        struct winograd_sizes s = sizes_of(conv, lanes, pass);
        size_t all = s.kernels + s.data + s.values;
        most = all > most ? all : most;
    }
    return most;
}

// Costs as measured, in vector multiply-adds for each slice: of one value of a tile
// to the points and back, and of one kernel.
static const double data_cost = 12, output_cost = 8, kernel_cost = 1.5;
// Shares of the peak that the products and the direct way reach.
static const double product_share = 0.85, direct_share = 0.95, direct_weights_share = 0.75;

// Somebody may want the rounding of the direct way.
static bool switched_off(void) {
    const char *wanted = getenv("ADAM_WINOGRAD");
    return wanted && strcmp(wanted, "0") == 0;
}

double winograd_cost(const struct convolution *conv, int lanes, enum conv_pass pass) {
    struct winograd_sizes s = sizes_of(conv, lanes, pass);
    if (s.points == 0 || switched_off())
        return INFINITY;
    bool weights = pass == CONV_BACK_WEIGHTS; // with maps in the lanes
    double slices = s.points * s.points, tiles = s.down * s.across, channels = s.channels;
    double maps = weights ? rounded_up(s.maps, lanes) : s.maps;
    double each = channels * maps / product_share + data_cost * channels +
                  (weights ? data_cost : output_cost) * maps;
    return conv->groups * slices * (tiles * each + kernel_cost * channels * maps);
}

bool winograd_fits(const struct convolution *conv, int lanes, enum conv_pass pass) {
    double taps = (double)window_taps(&conv->window) * conv->maps * (conv->window.c / conv->groups);
    double share = pass == CONV_BACK_WEIGHTS ? direct_weights_share : direct_share;
    return winograd_cost(conv, lanes, pass) < taps / share;
}
