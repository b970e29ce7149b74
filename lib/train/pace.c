#include <math.h>

#include "train/loop.h"

uint64_t pace_per_epoch(const struct pace *pace) {
    return (pace->samples + pace->batch - 1) / pace->batch;
}

double pace_epoch(const struct pace *pace, uint64_t number) {
    if (pace->samples == 0)
        return 0;
    uint64_t per_epoch = pace_per_epoch(pace);
    uint64_t done = number % per_epoch * pace->batch;
    return (double)(number / per_epoch) + (double)done / (double)pace->samples;
}

uint64_t pace_number(const struct pace *pace, double epoch) {
    double whole = floor(epoch);
    double rest = round((epoch - whole) * (double)pace->samples) / (double)pace->batch;
    return (uint64_t)whole * pace_per_epoch(pace) + (uint64_t)ceil(rest);
}
