#include "kernels/winograd_sizes.h"

#include "kernels/conv_sizes.h"

// Tiles at a time: as many as keep their slices near.
static int chunk_of(const struct winograd_sizes *s, int lanes) {
    int chunk = (1 << 20) / (s->points * s->points * lanes) / (s->channels + s->maps);
    return chunk < 6 ? 6 : chunk > 48 ? 48 : chunk;
}

enum { MAPS_MOST = 1 << 14 }; // so that no size overflows

static bool possible(const struct convolution *conv) {
    const struct window *v = &conv->window;
    return v->kernel_h == v->kernel_w && (v->kernel_h == 3 || v->kernel_h == 5) &&
           v->stride_h == 1 && v->stride_w == 1 && v->pad_h < v->kernel_h &&
           v->pad_w < v->kernel_w && v->c <= MAPS_MOST && conv->maps <= MAPS_MOST;
}

struct winograd_sizes winograd_sizes(const struct convolution *conv, int lanes) {
    const struct window *v = &conv->window;
    if (!possible(conv))
        return (struct winograd_sizes){0};
    struct winograd_sizes s = {
        .points = v->kernel_h + WINOGRAD_TILE - 1,
        .down = (v->out_h + WINOGRAD_TILE - 1) / WINOGRAD_TILE,
        .across = (v->out_w + WINOGRAD_TILE - 1) / WINOGRAD_TILE,
        .channels = v->c / conv->groups,
        .maps = conv->maps / conv->groups,
    };
    size_t slices = (size_t)(s.points * s.points);
    size_t maps = (size_t)((s.maps + lanes - 1) / lanes * lanes);
    s.chunk = chunk_of(&s, lanes);
    // An odd line more: slices must not all begin in the same set of a cache.
    size_t vectors = (size_t)(s.chunk * lanes);
    s.data_slice = vectors * (size_t)s.channels + 16;
    s.value_slice = vectors * (size_t)s.maps + 16;
    s.error_slice = vectors * maps + 16;
    s.kernels = slices * maps * (size_t)s.channels;
    s.data = slices * s.data_slice;
    s.values = slices * s.error_slice;
    return s;
}

bool winograd_fits(const struct convolution *conv, int lanes, enum conv_pass pass) {
    (void)lanes, (void)pass;
    return possible(conv) && conv->window.out_h > 2 && conv->window.out_w > 2;
}

size_t winograd_scratch(const struct convolution *conv, int lanes) {
    struct convolution turned = conv_turned(conv);
    struct winograd_sizes there = winograd_sizes(conv, lanes);
    struct winograd_sizes back = winograd_sizes(&turned, lanes);
    size_t most = there.kernels + there.data + there.values;
    size_t more = back.kernels + back.data + back.values;
    return most > more ? most : more;
}
