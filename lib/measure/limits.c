#include "measure/limits.h"

#include "core/clock.h"
#include "kernels/kernels.h"

enum { TRIALS = 10, LEAST = 1 << 20 }; // bytes that a trial reads at least

static double measure_flops(const struct kernels *kernels) {
    double best = 0;
    for (int i = 0; i < TRIALS; i++) {
        float sum;
        double begin = clock_busy();
        uint64_t count = kernels->multiply_adds(&sum, 200 * 1000);
        double rate = 2 * (double)count / (clock_busy() - begin);
        best = rate > best ? rate : best;
    }
    return best;
}

static double measure_bandwidth(const struct kernels *kernels, const float *floats, size_t count) {
    size_t size = count * sizeof *floats, times = size ? LEAST / size + 1 : 0;
    volatile uint32_t kept = 0; // so that the reading is not left out
    double best = 0;
    for (int i = 0; i < TRIALS; i++) {
        double begin = clock_busy();
        for (size_t j = 0; j < times; j++)
            kept ^= kernels->read(floats, count);
        double rate = (double)(times * size) / (clock_busy() - begin);
        best = rate > best ? rate : best;
    }
    (void)kept;
    return best;
}

struct limits limits_measure(const struct kernels *kernels, const float *floats, size_t count) {
    return (struct limits){.flops = measure_flops(kernels),
                           .bytes = measure_bandwidth(kernels, floats, count)};
}
