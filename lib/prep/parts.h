// No part of a split may be empty.
#ifndef ADAM_PREP_PARTS_H
#define ADAM_PREP_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/split.h"

struct error;

// `counts` is the samples of each part. STATUS_DATA when one has none; what is said helps.
int parts_check(const struct split *split, const uint64_t *counts, bool stratify,
                struct error *err);

#endif
