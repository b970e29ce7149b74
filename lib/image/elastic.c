#include "image/elastic.h"

#include <math.h>

#include "core/cpu.h"
#include "image/gauss.h"

enum { RADIUS_MAX = 3 * ELASTIC_SIGMA_MAX };

static int radius_of(double sigma) {
    return (int)ceil(3 * sigma);
}

size_t elastic_room(int width, int height, double sigma) {
    return (size_t)width * (size_t)height + (size_t)width + 2 * (size_t)radius_of(sigma);
}

// weight[0..radius] of a Gaussian that sums to 1 over both sides.
static void gaussian(float *weight, int radius, double sigma) {
    double sum = 1;
    for (int k = 1; k <= radius; k++)
        sum += 2 * exp(-0.5 * k * k / (sigma * sigma));
    for (int k = 0; k <= radius; k++)
        weight[k] = (float)(exp(-0.5 * k * k / (sigma * sigma)) / sum);
}

static gauss_filter *filter_of_this_cpu(void) {
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2)
        return gauss_filter_avx2;
#endif
    return gauss_filter_ref;
}

// n numbers between -alpha and alpha, as 2 random_unit - 1 gives them.
static void fill_uniform(float *to, size_t n, float alpha, struct random *random) {
    uint32_t words[256];
    for (size_t i = 0; i < n; i += 256) {
        size_t m = n - i < 256 ? n - i : 256;
        random_words(random, words, m);
        for (size_t j = 0; j < m; j++)
            to[i + j] = alpha * ((float)(int32_t)(words[j] >> 8) * 0x1p-23f - 1);
    }
}

void elastic_fields(float *dx, float *dy, float *room, int width, int height, double sigma,
                    double alpha, struct random *random) {
    float weight[RADIUS_MAX + 1], *fields[] = {dx, dy};
    int radius = radius_of(sigma);
    gaussian(weight, radius, sigma);
    gauss_filter *filter = filter_of_this_cpu();
    size_t n = (size_t)width * (size_t)height;
    for (int i = 0; i < 2; i++) {
        fill_uniform(fields[i], n, (float)alpha, random);
        filter(fields[i], room, width, height, weight, radius);
    }
}
