// input: the shape of a sample, and the operations that every picture passes.
#include "model/keys.h"

// The first is the one that may be written without its key.
static const struct layer_key keys[] = {
    {"shape", KEY_SHAPE, MEMBER(out), 1, 1 << 30, NULL, NULL,
     "channels x height x width, as in 1x28x28, or one number"},
    {"ops", KEY_TEXT, MEMBER(ops), 0, 0, "", NULL,
     "deterministic operations on each picture (adam-ops(7))"},
};

// `out` is set by the parser, from the positional CxHxW.
static bool shape_input(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    (void)in;
    *misfit = (struct misfit){0};
    layer->in = layer->out;
    return true;
}

const struct layer_type layer_input = {
    .name = "input",
    .what = "a sample: channels x height x width",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .inputs_most = 0,
    .shape = shape_input,
};
