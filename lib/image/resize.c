#include "image/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"
#include "image/resize_kernels.h"

#define PI 3.14159265358979323846
// Less than this is rounding, not a weight.
#define NO_WEIGHT 1e-7

// Bits of the fixed-point weights: as many as keep a weight in 16 bits and a sum
// in 32, when samples have 8 bits (first pass) or 16 (second).
enum { PRECISION_ROWS = 22, PRECISION_PIXELS = 15 };

static const double reach_of[] = {[FILTER_AREA] = 0.5, [FILTER_BILINEAR] = 1, [FILTER_LANCZOS] = 3};

static const struct resize_kernels *kernels_of_this_cpu(void) {
#if defined(__x86_64__)
    switch (cpu_level()) {
    case CPU_AVX512_VNNI:
    case CPU_AVX512:
        return &resize_avx512;
    case CPU_AVX2_VNNI:
    case CPU_AVX2:
        return &resize_avx2;
    case CPU_NEON:
    case CPU_REF:
        break;
    }
#endif
    return &resize_ref;
}

// sinc(x) sinc(x / 3), by sin(3 t) = 3 sin(t) - 4 sin(t)^3.
static double lanczos3(double x) {
    double t = PI * x / 3, s = sin(t);
    if (x >= 3)
        return 0;
    return x == 0 ? 1 : s * s * (3 - 4 * s * s) / (3 * t * t);
}

// The weight of the source sample that covers [at, at + 1), for a result whose
// centre is at `centre` and whose filter is `widen` times as wide as at scale 1.
static double filter_weight(enum filter filter, double at, double centre, double widen) {
    double x = fabs(at + 0.5 - centre) / widen;
    switch (filter) {
    case FILTER_AREA:
        return fmax(0, fmin(at + 1, centre + widen / 2) - fmax(at, centre - widen / 2));
    case FILTER_BILINEAR:
        return fmax(0, 1 - x);
    case FILTER_LANCZOS:
        return lanczos3(x);
    }
    return 0;
}

// Weights of result i, without zeros at either end, adding up to one.
static void set_weights(struct resize_axis *axis, int i, enum filter filter, double centre,
                        double widen, int source) {
    float *weights = axis->weights + (size_t)i * (size_t)axis->stride;
    double reach = reach_of[filter] * widen;
    int first = (int)fmax(0, floor(centre - reach));
    int end = (int)fmin(source, ceil(centre + reach));
    double sum = 0;
    int taps = 0;
    for (int at = first; at < end; at++) {
        double w = filter_weight(filter, at, centre, widen);
        if (taps == 0 && fabs(w) < NO_WEIGHT) {
            first++;
            continue;
        }
        weights[taps++] = (float)w;
        sum += w;
    }
    while (taps > 1 && fabs((double)weights[taps - 1]) < NO_WEIGHT)
        weights[--taps] = 0;
    for (int t = 0; t < taps; t++)
        weights[t] = (float)((double)weights[t] / sum);
    axis->first[i] = first;
    axis->taps[i] = taps;
    axis->most = taps > axis->most ? taps : axis->most;
}

static void axis_free(struct resize_axis *axis) {
    free(axis->first);
    free(axis->weights);
    free(axis->fixed);
}

// Samples of an axis, and those of them, from `first` on, that the picture has.
struct resize_source {
    int count;
    double first, extent;
};

static struct resize_source source_of(int count, int by, int first, int extent) {
    if (!by)
        return (struct resize_source){count, 0, count};
    return (struct resize_source){count, (double)first / by, (double)extent / by};
}

// `count` results from `start` of the `full` that the samples become.
static int axis_init(struct resize_axis *axis, enum filter filter, struct resize_source source,
                     int full, int start, int count, struct error *err) {
    double scale = source.extent / full;
    // A true mean also when enlarging; an interpolation never gets narrower.
    double widen = filter == FILTER_AREA || scale > 1 ? scale : 1;
    int taps = (int)ceil(2 * reach_of[filter] * widen) + 1;
    axis->count = count;
    axis->stride = (taps + RESIZE_PAD - 1) / RESIZE_PAD * RESIZE_PAD;
    axis->first = mem_array((size_t)count, 2 * sizeof *axis->first);
    axis->weights = mem_zeroed((size_t)count * (size_t)axis->stride, sizeof *axis->weights);
    if (!axis->first || !axis->weights)
        return error_nomem(err);
    axis->taps = axis->first + count;
    for (int i = 0; i < count; i++)
        set_weights(axis, i, filter, source.first + (start + i + 0.5) * scale, widen, source.count);
    return STATUS_OK;
}

// Rounds running sums rather than weights: thus the integers of a result add up
// to 1 << precision and a plain surface stays what it is.
static int axis_fix(struct resize_axis *axis, int precision, struct error *err) {
    size_t n = (size_t)axis->count * (size_t)axis->stride;
    float largest = 0;
    axis->fixed = mem_zeroed(n, sizeof *axis->fixed);
    if (!axis->fixed)
        return error_nomem(err);
    for (size_t i = 0; i < n; i++)
        largest = fabsf(axis->weights[i]) > largest ? fabsf(axis->weights[i]) : largest;
    while (ldexpf(largest, precision) >= INT16_MAX - 1)
        precision--;
    axis->precision = precision;
    const double one = ldexp(1, precision);
    for (int i = 0; i < axis->count; i++) {
        size_t at = (size_t)i * (size_t)axis->stride;
        double sum = 0;
        long before = 0;
        for (size_t end = at + (size_t)axis->taps[i]; at < end; at++) {
            sum += (double)axis->weights[at];
            long rounded = lrint(sum * one);
            axis->fixed[at] = (int16_t)(rounded - before);
            before = rounded;
        }
    }
    return STATUS_OK;
}

// What one call works with; freed at its end.
struct resize_plan {
    struct resize_axis x, y;
    int column, columns; // of the source, that the results need
    void *row;           // those columns, between the passes
};

static void plan_free(struct resize_plan *plan) {
    axis_free(&plan->x);
    axis_free(&plan->y);
    free(plan->row);
}

// Makes the columns count from the first one needed.
static void plan_columns(struct resize_plan *plan) {
    int end = 0;
    plan->column = plan->x.first[0];
    for (int i = 0; i < plan->x.count; i++) {
        int stop = plan->x.first[i] + plan->x.taps[i];
        end = stop > end ? stop : end;
        plan->column = plan->x.first[i] < plan->column ? plan->x.first[i] : plan->column;
    }
    for (int i = 0; i < plan->x.count; i++)
        plan->x.first[i] -= plan->column;
    plan->columns = end - plan->column;
}

static int plan_finish(struct resize_plan *plan, const struct image *from, struct error *err) {
    bool u8 = from->type == PIXEL_U8;
    plan_columns(plan);
    size_t values = (size_t)(plan->columns + plan->x.stride) * (size_t)from->channels;
    plan->row = mem_zeroed(values, u8 ? sizeof(int16_t) : sizeof(float));
    if (!plan->row)
        return error_nomem(err);
    if (!u8)
        return STATUS_OK;
    int status = axis_fix(&plan->y, PRECISION_ROWS, err);
    return status ? status : axis_fix(&plan->x, PRECISION_PIXELS, err);
}

// Rows first, as they are the fast pass and see all of a picture that shrinks:
// each result row is summed from source rows, then narrowed.
static void run_u8(struct image *to, const struct image *from, const struct resize_plan *plan) {
    const struct resize_kernels *k = kernels_of_this_cpu();
    const size_t channels = (size_t)from->channels;
    const size_t stride = (size_t)from->width * channels;
    for (int y = 0; y < to->height; y++) {
        const uint8_t *source =
            from->u8 + (size_t)plan->y.first[y] * stride + (size_t)plan->column * channels;
        k->rows_u8(plan->row, source, stride, plan->y.fixed + (size_t)y * (size_t)plan->y.stride,
                   plan->y.taps[y], plan->y.precision, (size_t)plan->columns * channels);
        k->pixels_u8(to->u8 + (size_t)y * (size_t)to->width * channels, plan->row, &plan->x,
                     from->channels);
    }
}

static void run_f32(struct image *to, const struct image *from, const struct resize_plan *plan) {
    const struct resize_kernels *k = kernels_of_this_cpu();
    const size_t channels = (size_t)from->channels;
    const size_t stride = (size_t)from->width * channels;
    for (int y = 0; y < to->height; y++) {
        const float *source =
            from->f32 + (size_t)plan->y.first[y] * stride + (size_t)plan->column * channels;
        k->rows_f32(plan->row, source, stride, plan->y.weights + (size_t)y * (size_t)plan->y.stride,
                    plan->y.taps[y], (size_t)plan->columns * channels);
        k->pixels_f32(to->f32 + (size_t)y * (size_t)to->width * channels, plan->row, &plan->x,
                      from->channels);
    }
}

int image_resize(struct image *to, const struct image *from, enum filter filter, int full_width,
                 int full_height, int left, int top, int width, int height, struct error *err) {
    if (full_width < 1 || full_width > IMAGE_MAX_SIDE || full_height < 1 ||
        full_height > IMAGE_MAX_SIDE)
        return error_set(err, STATUS_DATA, "cannot resize %dx%d pixels to %dx%d", from->width,
                         from->height, full_width, full_height);
    if (left < 0 || top < 0 || width < 1 || height < 1 || width > full_width - left ||
        height > full_height - top)
        return error_set(err, STATUS_DATA, "%dx%d pixels from (%d, %d) are outside of %dx%d", width,
                         height, left, top, full_width, full_height);
    const struct image_true *whole = &from->true_size;
    struct resize_plan plan = {0};
    int status = image_shape(to, width, height, from->channels, from->type, err);
    if (!status)
        status =
            axis_init(&plan.x, filter, source_of(from->width, whole->by, whole->left, whole->width),
                      full_width, left, width, err);
    if (!status)
        status = axis_init(&plan.y, filter,
                           source_of(from->height, whole->by, whole->top, whole->height),
                           full_height, top, height, err);
    if (!status)
        status = plan_finish(&plan, from, err);
    if (!status && from->type == PIXEL_U8)
        run_u8(to, from, &plan);
    else if (!status)
        run_f32(to, from, &plan);
    plan_free(&plan);
    return status;
}
