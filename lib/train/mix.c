#include "train/mix.h"

#include <math.h>

#include "core/random.h"

struct mix mix_of(const struct settings *settings, const struct model *model) {
    return (struct mix){
        .mixup = settings->mixup,
        .cutmix = settings->cutmix,
        .shape = model_input(model)->out,
        .outputs = model_classes(model),
        .seed = (uint64_t)settings->seed,
    };
}

bool mix_wanted(const struct mix *mix) {
    return mix->mixup > 0 || mix->cutmix > 0;
}

// --- shares -----------------------------------------------------------------------

// The logarithm of a number of the gamma distribution, which itself may be too small for a double:
// Marsaglia and Tsang 2000, "A Simple Method for Generating Gamma Variables".
static double draw_log_gamma(double alpha, struct random *random) {
    double grown = alpha < 1 ? alpha + 1 : alpha;
    double d = grown - 1.0 / 3, c = 1 / sqrt(9 * d), x, v;
    do {
        x = (double)random_normal(random);
        v = pow(1 + c * x, 3);
    } while (!(v > 0) ||
             log(1 - (double)random_unit(random)) >= x * x / 2 + d - d * v + d * log(v));
    double shrunk = alpha < 1 ? log(1 - (double)random_unit(random)) / alpha : 0;
    return log(d * v) + shrunk;
}

// A number of Beta(alpha, alpha), from 0 to 1.
static double draw_beta(double alpha, struct random *random) {
    double first = draw_log_gamma(alpha, random), second = draw_log_gamma(alpha, random);
    return 1 / (1 + exp(second - first));
}

// --- one pair ---------------------------------------------------------------------

// A pair of samples; each keeps the share that is returned, and has the rest from the other.
typedef float mix_pair(const struct mix *mix, float *a, float *b, struct random *random);

// Each keeps a share, and has the rest from the other.
static void mix_numbers(float *a, float *b, size_t n, float share) {
    for (size_t i = 0; i < n; i++) {
        float mixed = share * a[i] + (1 - share) * b[i];
        b[i] = share * b[i] + (1 - share) * a[i];
        a[i] = mixed;
    }
}

static float mix_values(const struct mix *mix, float *a, float *b, struct random *random) {
    float share = (float)draw_beta(mix->mixup, random);
    mix_numbers(a, b, shape_size(mix->shape), share);
    return share;
}

static void swap_values(float *a, float *b, int n) {
    for (int i = 0; i < n; i++) {
        float value = a[i];
        a[i] = b[i];
        b[i] = value;
    }
}

// `part` pixels of `whole` around a random middle, as far as they are inside.
static void draw_stretch(int whole, double part, struct random *random, int *first, int *end) {
    int middle = (int)random_below(random, (uint32_t)whole), half = (int)(whole * part / 2);
    *first = middle > half ? middle - half : 0;
    *end = middle + half < whole ? middle + half : whole;
}

static float swap_rectangle(const struct mix *mix, float *a, float *b, struct random *random) {
    const struct shape *shape = &mix->shape;
    double side = sqrt(1 - draw_beta(mix->cutmix, random));
    int left, right, top, bottom;
    draw_stretch(shape->w, side, random, &left, &right);
    draw_stretch(shape->h, side, random, &top, &bottom);
    for (int c = 0; c < shape->c; c++)
        for (int y = top; y < bottom; y++) {
            size_t at = ((size_t)c * (size_t)shape->h + (size_t)y) * (size_t)shape->w;
            swap_values(a + at + left, b + at + left, right - left);
        }
    double swapped = (double)(right - left) * (bottom - top);
    return (float)(1 - swapped / ((double)shape->w * shape->h));
}

static mix_pair *draw_way(const struct mix *mix, struct random *random) {
    bool both = mix->mixup > 0 && mix->cutmix > 0;
    bool cut = both ? random_u32(random) & 1 : mix->cutmix > 0;
    return cut ? swap_rectangle : mix_values;
}

static bool can_mix(const struct batch *batch, int i, int j) {
    return i < j && (batch->target || (batch->label[i] >= 0 && batch->label[j] >= 0));
}

static void mix_targets(const struct mix *mix, struct batch *batch, int i, int j, float share) {
    size_t n = (size_t)mix->outputs;
    if (batch->target)
        mix_numbers(batch->target + (size_t)i * n, batch->target + (size_t)j * n, n, share);
}

void mix_batch(const struct mix *mix, struct batch *batch, int32_t *other, float *share) {
    size_t size = shape_size(mix->shape);
    for (int i = 0, j = batch->n - 1; i <= j; i++, j--) {
        float kept = 1;
        if (can_mix(batch, i, j)) {
            struct random random = random_stream(mix->seed, batch->draw[i], batch->draw[j]);
            kept = draw_way(mix, &random)(mix, batch->input + (size_t)i * size,
                                          batch->input + (size_t)j * size, &random);
            mix_targets(mix, batch, i, j, kept);
        }
        share[i] = share[j] = kept;
        other[i] = batch->label[j], other[j] = batch->label[i];
    }
    batch->other = other;
    batch->share = share;
}
