// What adam-prep does to one picture: decode, change, encode. Immutable and
// shared by threads; each thread has a scratch of its own.
#ifndef ADAM_PREP_TRANSFORM_H
#define ADAM_PREP_TRANSFORM_H

#include "ops/ops.h"
#include "sample/sample.h"

struct error;

struct transform {
    struct decode_options decode;
    enum codec codec; // of the results; CODEC_NONE: pixels
    int quality;
    // Whether a picture encoded as JPEG, PNG, PNM stays so when nothing is to be
    // done to it; it is still decoded, to see that it is whole.
    bool keeps[CODEC_PNM + 1];
    uint64_t seed;
};

struct transform_scratch {
    struct ops_scratch *ops;
    struct image image;
};

int transform_scratch_init(struct transform_scratch *scratch, struct error *err);
void transform_scratch_free(struct transform_scratch *scratch);

// Makes an input ready for the copies: decodes it, or finds that it can stay as
// it is. `chain` is what will be applied to it; NULL: nothing. STATUS_DATA when
// the picture is damaged or too large (the error does not name the path).
int transform_input(const struct transform *transform, struct transform_scratch *scratch,
                    const struct ops *chain, struct sample *in, struct error *err);

// Copy 0, 1, 2... of an input that is ready, into `out` (its picture only, not key
// and path). With `last`, `in` may be used up. STATUS_DATA when the chain cannot
// be applied; *fatal when the result cannot be stored at all.
int transform_copy(const struct transform *transform, struct transform_scratch *scratch,
                   const struct ops *chain, struct sample *in, uint64_t copy, bool last,
                   struct sample *out, bool *fatal, struct error *err);

#endif
