// A model's passes timed layer by layer, on one thread and random samples (trial.h): the
// step is the one that trains.
#ifndef ADAM_MEASURE_TIMING_H
#define ADAM_MEASURE_TIMING_H

#include "core/json.h"
#include "measure/limits.h"
#include "model/net.h"

struct error;

enum timing_part { TIMING_FORWARD, TIMING_BACKWARD, TIMING_UPDATE, TIMING_PARTS };

struct layer_timing {
    // Processor time of one pass, that of its fastest tenth: what the layer takes
    // when the machine is left alone. The output layer's error gradients and the loss count
    // as its backward pass, the check of a gradient as its update. A dense layer
    // that steps by the product (net_offer) has no update: it is in the backward pass.
    double seconds[TIMING_PARTS];
    double flops[TIMING_UPDATE]; // of one pass, useful ones (net_multiplies): forward, backward
    // Bytes that the processor must at least read and write: each weight, or what is kept of it for
    // prediction, is read in the forward pass, read again for the error gradients where they are
    // wanted, and written.
    double bytes;
    int lanes;           // net_lanes
    const char *ways[3]; // net_way, by conv_pass; NULL too for what is not done
};

struct timing {
    const struct model *model;
    const struct kernels *kernels;
    enum net_mode mode;
    int batch, passes; // samples of one pass; passes timed
    struct limits limits;
    struct layer_timing *layers; // layer_count
};

// For about so many seconds, but at least a few passes. The model and the kernels
// must outlive the timing. Free with timing_free. STATUS_DATA when the loss of random
// samples is not finite, which no step survives.
int timing_run(struct timing *timing, const struct model *model, const struct kernels *kernels,
               int batch, enum net_mode mode, double seconds, struct error *err);
void timing_free(struct timing *timing);

// As aligned columns for people, to be freed with free(), and as one object; its
// keys are in adam-ctl(1). NULL when out of memory.
char *timing_text(const struct timing *timing);
json_t *timing_json(const struct timing *timing);

#endif
