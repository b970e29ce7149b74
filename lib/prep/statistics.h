// What is in a data set: counts, shapes, mean and deviation.
#ifndef ADAM_PREP_STATISTICS_H
#define ADAM_PREP_STATISTICS_H

#include "prep/inputs.h"

struct error;

#define STATISTICS_CHANNELS 16

struct statistics {
    char kind[32];                                // of the inputs, "mixed" when they differ
    uint64_t samples, unlabelled, damaged, bytes; // bytes of the pictures as they are stored
    // With a value that is not finite: how many, and the path of the first. They count as
    // samples, but not in what follows from their values.
    uint64_t not_finite;
    char *first_not_finite;
    struct classes classes;
    uint64_t *counts;                     // samples of each class
    int width[2], height[2], channels[2]; // least and most
    // Mean and standard deviation of each channel over all pixels. Bytes count as
    // 0..1, floats as they are. 0 channels: pictures of too many kinds.
    int moments;
    bool floats;
    double mean[STATISTICS_CHANNELS], deviation[STATISTICS_CHANNELS];
    // With pixel_mean: the mean of each pixel, floats; and the deviation of each channel from it.
    struct image picture;
    double rest[STATISTICS_CHANNELS];
};

struct statistics_config {
    struct inputs_config inputs;
    const struct classes *classes; // as in prepare_config
    bool pixel_mean;               // all pictures must have one shape then, else STATUS_DATA
    int threads;
    void *context;
    int (*rejected)(void *context, const char *path, const char *reason, struct error *err);
    void (*progress)(void *context, uint64_t samples);
    bool (*stopped)(void);
};

// Damaged samples are counted, and the rest measured. The caller frees, in any case. Statuses of
// inputs_next and of `rejected`, STATUS_DATA and STATUS_STOPPED.
int statistics_run(const struct statistics_config *config, struct statistics *statistics,
                   struct error *err);
void statistics_free(struct statistics *statistics);

// The operations that make mean 0 and deviation 1 of each channel, ready for
// `input ops=` of a model: "scale 1/255; mean 0.1307; std 0.3081". With the name of the file that
// holds the mean of each pixel: "scale 1/255; mean file=mean.npy; std 0.2512". Freed with free();
// NULL when out of memory or without moments.
char *statistics_ops(const struct statistics *statistics, const char *picture);

#endif
