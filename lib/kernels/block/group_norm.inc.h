// Group normalisation of blocks: of each pixel the run of a group, its maps times the samples.
#ifndef ADAM_KERNELS_BLOCK_GROUP_NORM_INC_H
#define ADAM_KERNELS_BLOCK_GROUP_NORM_INC_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/hogwild.h"
#include "kernels/blocks.h"
#include "kernels/group_norm.h"

// One group of one block. Its runs, of `run` floats, begin `stride` floats apart.
struct norm_run {
    int pixels, maps, lanes, run;
    size_t stride;
};

// Float i of a run is of sample i % lanes.
static void norm_of_samples(float *to, const float *of_samples, const struct norm_run *r) {
    for (int m = 0; m < r->maps; m++)
        memcpy(to + m * r->lanes, of_samples, (size_t)r->lanes * sizeof *to);
}

// The mean over a group of what `sums` has of each float of its runs, for each sample.
static void norm_means(float *of_samples, const float *sums, const struct norm_run *r) {
    for (int l = 0; l < r->lanes; l++) {
        double sum = 0;
        for (int i = l; i < r->run; i += r->lanes)
            sum += (double)sums[i];
        of_samples[l] = (float)(sum / ((double)r->maps * r->pixels));
    }
}

// `means` and `sums` are of a run.
static void norm_block_measure(float *mean, float *inverse, float *means, float *sums,
                               const float *x, float epsilon, const struct norm_run *r) {
    memset(sums, 0, (size_t)r->run * sizeof *sums);
    for (int p = 0; p < r->pixels; p++)
        for (int i = 0; i < r->run; i++)
            sums[i] += x[(size_t)p * r->stride + (size_t)i];
    norm_means(mean, sums, r);
    norm_of_samples(means, mean, r);
    memset(sums, 0, (size_t)r->run * sizeof *sums);
    for (int p = 0; p < r->pixels; p++)
        for (int i = 0; i < r->run; i++) {
            float from = x[(size_t)p * r->stride + (size_t)i] - means[i];
            sums[i] += from * from;
        }
    norm_means(inverse, sums, r);
    for (int l = 0; l < r->lanes; l++)
        inverse[l] = 1 / sqrtf(inverse[l] + epsilon);
}

// factor: inverse * scale of each float of a run.
HOGWILD static void norm_factors(float *factor, const float *inverse, const float *scale,
                                 const struct norm_run *r) {
    for (int m = 0; m < r->maps; m++)
        for (int l = 0; l < r->lanes; l++)
            factor[m * r->lanes + l] = inverse[l] * scale[m];
}

HOGWILD static void norm_repeat(float *to, const float *of_maps, const struct norm_run *r) {
    for (int m = 0; m < r->maps; m++)
        for (int l = 0; l < r->lanes; l++)
            to[m * r->lanes + l] = of_maps[m];
}

static struct norm_run norm_run_of(const struct group_norm *norm, int lanes) {
    int maps = norm->c / norm->groups;
    return (struct norm_run){norm->pixels, maps, lanes, maps * lanes,
                             (size_t)norm->c * (size_t)lanes};
}

static void group_norm_block(float *y, float *kept, const float *x, const float *scale,
                             const float *shift, int blocks, int lanes,
                             const struct group_norm *norm, float *scratch) {
    const struct norm_run r = norm_run_of(norm, lanes);
    float *means = scratch, *factor = means + r.run, *shifts = factor + r.run;
    size_t size = (size_t)r.pixels * r.stride;
    for (int b = 0; b < blocks; b++, x += size, y += size)
        for (int g = 0; g < norm->groups; g++, kept += 2 * lanes) {
            const float *from = x + g * r.run;
            float *to = y + g * r.run;
            norm_block_measure(kept, kept + lanes, means, factor, from, norm->epsilon, &r);
            norm_factors(factor, kept + lanes, scale + g * r.maps, &r);
            norm_repeat(shifts, shift + g * r.maps, &r);
            for (int p = 0; p < r.pixels; p++, from += r.stride, to += r.stride)
                for (int i = 0; i < r.run; i++)
                    to[i] = (from[i] - means[i]) * factor[i] + shifts[i];
        }
}

// The gradients of one group's scales and shifts, added; and for each sample the means of scale *
// dy and of scale * dy * x^. `plain` and `along` are the sums of dy and dy * x^ of a run.
HOGWILD static void norm_block_sums(float *dscale, float *dshift, float *mean_plain,
                                    float *mean_along, float *plain, float *along,
                                    const float *scale, const struct norm_run *r) {
    for (int m = 0; m < r->maps; m++)
        for (int l = 0; l < r->lanes; l++) {
            int i = m * r->lanes + l;
            dscale[m] += along[i];
            dshift[m] += plain[i];
            along[i] *= scale[m];
            plain[i] *= scale[m];
        }
    norm_means(mean_plain, plain, r);
    norm_means(mean_along, along, r);
}

static void norm_block_errors(float *plain, float *along, const float *dy, const float *x,
                              const float *means, const float *inverses, const struct norm_run *r) {
    memset(plain, 0, (size_t)r->run * sizeof *plain);
    memset(along, 0, (size_t)r->run * sizeof *along);
    for (int p = 0; p < r->pixels; p++, dy += r->stride, x += r->stride)
        for (int i = 0; i < r->run; i++) {
            plain[i] += dy[i];
            along[i] += dy[i] * ((x[i] - means[i]) * inverses[i]);
        }
}

static void group_norm_block_back(float *dx, float *dscale, float *dshift, const float *dy,
                                  const float *kept, const float *x, const float *scale, int blocks,
                                  int lanes, const struct group_norm *norm, float *scratch) {
    const struct norm_run r = norm_run_of(norm, lanes);
    float *means = scratch, *inverses = means + r.run, *plain = inverses + r.run;
    float *along = plain + r.run, *factor = along + r.run;
    size_t size = (size_t)r.pixels * r.stride;
    memset(dscale, 0, (size_t)norm->c * sizeof *dscale);
    memset(dshift, 0, (size_t)norm->c * sizeof *dshift);
    for (int b = 0; b < blocks; b++)
        for (int g = 0; g < norm->groups; g++, kept += 2 * lanes) {
            size_t at = (size_t)b * size + (size_t)(g * r.run);
            int first = g * r.maps;
            float mean_plain[KERNELS_LANES_MOST], mean_along[KERNELS_LANES_MOST];
            norm_of_samples(means, kept, &r);
            norm_of_samples(inverses, kept + lanes, &r);
            norm_block_errors(plain, along, dy + at, x + at, means, inverses, &r);
            norm_block_sums(dscale + first, dshift + first, mean_plain, mean_along, plain, along,
                            scale + first, &r);
            if (!dx)
                continue;
            norm_factors(factor, kept + lanes, scale + first, &r);
            norm_of_samples(plain, mean_plain, &r);
            norm_of_samples(along, mean_along, &r);
            for (int i = 0; i < r.run; i++)
                along[i] *= inverses[i];
            for (int p = 0; p < r.pixels; p++, at += r.stride)
                for (int i = 0; i < r.run; i++)
                    dx[at + (size_t)i] =
                        dy[at + (size_t)i] * factor[i] -
                        inverses[i] * (plain[i] + (x[at + (size_t)i] - means[i]) * along[i]);
        }
}

#endif
