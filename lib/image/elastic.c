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

void elastic_fields(float *dx, float *dy, float *room, int width, int height, double sigma,
                    double alpha, struct random *random) {
    float weight[RADIUS_MAX + 1], *fields[] = {dx, dy};
    int radius = radius_of(sigma);
    gaussian(weight, radius, sigma);
    gauss_filter *filter = filter_of_this_cpu();
    size_t n = (size_t)width * (size_t)height;
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < n; j++)
            fields[i][j] = (float)alpha * (2 * random_unit(random) - 1);
        filter(fields[i], room, width, height, weight, radius);
    }
}
