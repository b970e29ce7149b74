#include "image/warp.h"

#include <math.h>
#include <string.h>

#include "core/cpu.h"
#include "core/error.h"
#include "image/warp_rows.h"

// Coordinates beyond this are refused, so that fixed point never overflows.
static const double REACH = 1 << 29;

static const int64_t ONE = INT64_C(1) << WARP_POINT;
// By so much may the loops over stretches fall below the exact coordinate.
static const int64_t UNIT = INT64_C(1) << WARP_CUT;

struct affine affine_identity(void) {
    return (struct affine){.a = 1, .e = 1};
}

struct affine affine_then(struct affine first, struct affine second) {
    const struct affine *m = &first, *n = &second;
    return (struct affine){
        .a = m->a * n->a + m->b * n->d,
        .b = m->a * n->b + m->b * n->e,
        .c = m->a * n->c + m->b * n->f + m->c,
        .d = m->d * n->a + m->e * n->d,
        .e = m->d * n->b + m->e * n->e,
        .f = m->d * n->c + m->e * n->f + m->f,
    };
}

bool affine_whole(const struct affine *map) {
    return fabs(map->a) == 1 && map->b == 0 && map->d == 0 && fabs(map->e) == 1 &&
           map->c == rint(map->c) && map->f == rint(map->f);
}

// One warp under way: what the functions below share.
struct warp {
    struct image *to;
    const struct image *from;
    enum border border;
    float value;
    uint8_t byte; // the value as a byte
    struct warp_source source;
};

static struct warp warp_of(struct image *to, const struct image *from, enum border border,
                           float value) {
    return (struct warp){
        .to = to,
        .from = from,
        .border = border,
        .value = value,
        .byte = (uint8_t)lrintf(fminf(fmaxf(value, 0), 255)),
        .source = {from->data, (ptrdiff_t)from->width * from->channels, from->channels},
    };
}

static size_t value_size(const struct image *image) {
    return image->type == PIXEL_F32 ? sizeof(float) : 1;
}

static void *pixel_at(const struct image *image, int x, int y) {
    size_t index = ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
    return (char *)image->data + index * value_size(image);
}

// The column or row to read instead of i, or -1 for the constant.
static int bordered_index(int64_t i, int n, enum border border) {
    if (i >= 0 && i < n)
        return (int)i;
    if (border == BORDER_VALUE)
        return -1;
    if (border == BORDER_EDGE)
        return i < 0 ? 0 : n - 1;
    if (i < 0)
        i = -1 - i;
    if (i >= 2 * (int64_t)n) // rare: a division is slow
        i %= 2 * (int64_t)n;
    return (int)(i < n ? i : 2 * (int64_t)n - 1 - i);
}

static int byte_of(const struct warp *warp, int x, int y, int channel) {
    if (x < 0 || y < 0)
        return warp->byte;
    return ((const uint8_t *)pixel_at(warp->from, x, y))[channel];
}

static float float_of(const struct warp *warp, int x, int y, int channel) {
    if (x < 0 || y < 0)
        return warp->value;
    return ((const float *)pixel_at(warp->from, x, y))[channel];
}

static void sample_u8(const struct warp *warp, uint8_t *to, int64_t x, int64_t y) {
    int w = warp->from->width, h = warp->from->height;
    int x0 = bordered_index(x >> WARP_POINT, w, warp->border);
    int x1 = bordered_index((x >> WARP_POINT) + 1, w, warp->border);
    int y0 = bordered_index(y >> WARP_POINT, h, warp->border);
    int y1 = bordered_index((y >> WARP_POINT) + 1, h, warp->border);
    for (int c = 0; c < warp->from->channels; c++)
        to[c] = (uint8_t)warp_blend(byte_of(warp, x0, y0, c), byte_of(warp, x1, y0, c),
                                    byte_of(warp, x0, y1, c), byte_of(warp, x1, y1, c),
                                    warp_fx(warp_cut(x)), warp_fy(warp_cut(y)));
}

static void sample_f32(const struct warp *warp, float *to, int64_t x, int64_t y) {
    int w = warp->from->width, h = warp->from->height;
    int x0 = bordered_index(x >> WARP_POINT, w, warp->border);
    int x1 = bordered_index((x >> WARP_POINT) + 1, w, warp->border);
    int y0 = bordered_index(y >> WARP_POINT, h, warp->border);
    int y1 = bordered_index((y >> WARP_POINT) + 1, h, warp->border);
    float fx = (float)(uint32_t)x * 0x1p-32f, fy = (float)(uint32_t)y * 0x1p-32f;
    for (int c = 0; c < warp->from->channels; c++) {
        float p = float_of(warp, x0, y0, c), q = float_of(warp, x0, y1, c);
        float r = float_of(warp, x1, y0, c), s = float_of(warp, x1, y1, c);
        float left = p + (q - p) * fy, right = r + (s - r) * fy;
        to[c] = left + (right - left) * fx;
    }
}

static bool is_inside(const struct warp *warp, int64_t x, int64_t y) {
    int64_t column = x >> WARP_POINT, row = y >> WARP_POINT;
    return column >= 0 && column < warp->from->width - WARP_MARGIN && row >= 0 &&
           row < warp->from->height - 1;
}

static int64_t floor_div(int64_t a, int64_t b) { // b > 0
    return a / b - (a % b < 0);
}

// Narrows [*first, *end) to those i for which 0 <= start + i * step < limit.
static void narrow_range(int64_t start, int64_t step, int64_t limit, int *first, int *end) {
    int64_t low = *first, high = *end;
    if (step == 0) {
        if (start < 0 || start >= limit)
            high = low;
    } else if (step > 0) {
        low = floor_div(-start - 1, step) + 1;
        high = floor_div(limit - start - 1, step) + 1;
    } else {
        low = floor_div(start - limit, -step) + 1;
        high = floor_div(start, -step) + 1;
    }
    *first = low > *end ? *end : low > *first ? (int)low : *first;
    *end = high < *first ? *first : high < *end ? (int)high : *end;
}

static void warp_pixels(const struct warp *warp, int y, int first, int end, struct warp_step at) {
    for (int i = first; i < end; i++) {
        void *to = pixel_at(warp->to, i, y);
        if (warp->to->type == PIXEL_F32)
            sample_f32(warp, to, at.x + i * at.dx, at.y + i * at.dy);
        else
            sample_u8(warp, to, at.x + i * at.dx, at.y + i * at.dy);
    }
}

static void warp_stretch(const struct warp *warp, int y, int first, int end, struct warp_step at,
                         bool avx2) {
    void *to = pixel_at(warp->to, first, y);
    int n = end - first;
    at.x += first * at.dx, at.y += first * at.dy;
    if (warp->to->type == PIXEL_F32) {
        warp_row_f32(to, &warp->source, n, at);
        return;
    }
    int done = 0;
#if defined(__x86_64__)
    if (avx2)
        done = warp_row_rgb_avx2(to, &warp->source, n, at);
#else
    (void)avx2;
#endif
    at.x += done * at.dx, at.y += done * at.dy;
    warp_row_u8((uint8_t *)to + done * warp->from->channels, &warp->source, n - done, at);
}

static int64_t to_fixed(double v) {
    return llrint(v * 0x1p32);
}

// What bytes are rounded by before their weights are cut; floats keep all bits.
static int64_t half_x(const struct image *image) {
    return image->type == PIXEL_F32 ? 0 : WARP_X_HALF;
}

static int64_t half_y(const struct image *image) {
    return image->type == PIXEL_F32 ? 0 : WARP_Y_HALF;
}

static void warp_rows(const struct warp *warp, const struct affine *map) {
    const struct image *from = warp->from;
    bool avx2 = cpu_level() >= CPU_AVX2 && from->channels == 3 &&
                warp->source.stride <= INT16_MAX && from->height <= INT16_MAX;
    for (int y = 0; y < warp->to->height; y++) {
        struct warp_step at = {
            .x = to_fixed(map->b * y + map->c) + half_x(from),
            .y = to_fixed(map->e * y + map->f) + half_y(from),
            .dx = to_fixed(map->a),
            .dy = to_fixed(map->d),
        };
        int first = 0, end = warp->to->width;
        narrow_range(at.x - UNIT, at.dx, (from->width - WARP_MARGIN) * ONE - UNIT, &first, &end);
        narrow_range(at.y - UNIT, at.dy, (from->height - 1) * ONE - UNIT, &first, &end);
        warp_pixels(warp, y, 0, first, at);
        warp_stretch(warp, y, first, end, at, avx2);
        warp_pixels(warp, y, end, warp->to->width, at);
    }
}

// A map of whole pixels: rows are copied, forwards or mirrored.
static void copy_pixel(const struct warp *warp, char *to, int x, int y) {
    size_t size = (size_t)warp->from->channels * value_size(warp->from);
    if (x >= 0 && y >= 0)
        memcpy(to, pixel_at(warp->from, x, y), size);
    else if (warp->from->type == PIXEL_U8)
        memset(to, warp->byte, size);
    else
        for (int c = 0; c < warp->from->channels; c++)
            memcpy(to + (size_t)c * sizeof(float), &warp->value, sizeof(float));
}

static inline void mirror_sized(char *to, const char *from, int n, size_t size) {
    for (int i = 0; i < n; i++, to += size, from -= size)
        memcpy(to, from, size);
}

// n pixels from `from` on backwards; the usual sizes become single moves.
static void mirror_pixels(char *to, const char *from, int n, size_t size) {
    switch (size) {
    case 1:
        mirror_sized(to, from, n, 1);
        break;
    case 3:
        mirror_sized(to, from, n, 3);
        break;
    case 4:
        mirror_sized(to, from, n, 4);
        break;
    default:
        mirror_sized(to, from, n, size);
    }
}

// Columns [first, end) of a row, one by one, wherever they come from.
static void copy_pixels(const struct warp *warp, char *to, int first, int end, int64_t left,
                        int64_t step, int row) {
    int width = warp->from->width;
    size_t size = (size_t)warp->from->channels * value_size(warp->from);
    for (int x = first; x < end; x++)
        copy_pixel(warp, to + (size_t)x * size,
                   bordered_index(left + x * step, width, warp->border), row);
}

static void copy_rows(const struct warp *warp, const struct affine *map) {
    const struct image *from = warp->from;
    size_t size = (size_t)from->channels * value_size(from);
    int64_t left = (int64_t)map->c, step = (int64_t)map->a;
    for (int y = 0; y < warp->to->height; y++) {
        int row = bordered_index((int64_t)(map->e * y + map->f), from->height, warp->border);
        int first = 0, end = row < 0 ? 0 : warp->to->width;
        narrow_range(left, step, from->width, &first, &end);
        char *to = pixel_at(warp->to, 0, y), *middle = to + (size_t)first * size;
        copy_pixels(warp, to, 0, first, left, step, row);
        copy_pixels(warp, to, end, warp->to->width, left, step, row);
        if (first == end)
            continue;
        const char *source = pixel_at(from, (int)(left + first * step), row);
        if (step > 0)
            memcpy(middle, source, (size_t)(end - first) * size);
        else
            mirror_pixels(middle, source, end - first, size);
    }
}

// Whether every corner of the result is read within REACH.
static bool is_reachable(const struct affine *m, int width, int height) {
    for (int corner = 0; corner < 4; corner++) {
        double x = corner & 1 ? width : 0, y = corner & 2 ? height : 0;
        if (!(fabs(m->a * x + m->b * y + m->c) < REACH) ||
            !(fabs(m->d * x + m->e * y + m->f) < REACH))
            return false;
    }
    return true;
}

static int shape_result(struct image *to, const struct image *from, int width, int height,
                        const struct affine *map, struct error *err) {
    if (!is_reachable(map, width, height))
        return error_set(err, STATUS_DATA, "a transformation reaches too far outside the picture");
    return image_shape(to, width, height, from->channels, from->type, err);
}

int image_warp(struct image *to, const struct image *from, int width, int height, struct affine map,
               enum border border, float value, struct error *err) {
    int status = shape_result(to, from, width, height, &map, err);
    if (status)
        return status;
    struct warp warp = warp_of(to, from, border, value);
    if (affine_whole(&map))
        copy_rows(&warp, &map);
    else
        warp_rows(&warp, &map);
    return STATUS_OK;
}

// Within REACH, whatever the displacement says.
static double within_reach(double v) {
    return !(v > -REACH) ? -REACH : !(v < REACH) ? REACH : v;
}

static void field_pixel(const struct warp *warp, void *to, int64_t x, int64_t y) {
    if (warp->to->type == PIXEL_F32) {
        if (is_inside(warp, x, y))
            warp_pixel_f32(to, &warp->source, x, y);
        else
            sample_f32(warp, to, x, y);
    } else {
        if (is_inside(warp, x, y))
            warp_pixel_u8(to, &warp->source, warp_cut(x), warp_cut(y));
        else
            sample_u8(warp, to, x, y);
    }
}

int image_warp_field(struct image *to, const struct image *from, int width, int height,
                     struct affine map, const float *dx, const float *dy, enum border border,
                     float value, struct error *err) {
    int status = shape_result(to, from, width, height, &map, err);
    if (status)
        return status;
    struct warp warp = warp_of(to, from, border, value);
    char *at = to->data;
    size_t size = (size_t)to->channels * value_size(to);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, at += size) {
            double u = x + (double)*dx++, v = y + (double)*dy++;
            field_pixel(&warp, at,
                        to_fixed(within_reach(map.a * u + map.b * v + map.c)) + half_x(from),
                        to_fixed(within_reach(map.d * u + map.e * v + map.f)) + half_y(from));
        }
    return STATUS_OK;
}
