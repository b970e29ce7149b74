#include "image/gauss.h"

#include <math.h>

#include "core/cpu.h"

int gauss_radius(double sigma) {
    return (int)ceil(3 * sigma);
}

size_t gauss_room(int width, int height, int channels, double sigma) {
    size_t row = (size_t)width * (size_t)channels;
    return row * (size_t)height + row + 2 * (size_t)gauss_radius(sigma) * (size_t)channels;
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

void gauss_smooth(float *field, float *room, int width, int height, int channels, double sigma) {
    float weight[GAUSS_RADIUS_MOST + 1];
    int radius = gauss_radius(sigma);
    gaussian(weight, radius, sigma);
    filter_of_this_cpu()(field, room, width, height, channels, weight, radius);
}
