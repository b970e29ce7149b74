// Puts a picture into its place of a batch, in the layout that the net reads. Training,
// testing and predicting all do it here.
#ifndef ADAM_DATA_INPUT_H
#define ADAM_DATA_INPUT_H

#include "data/supply.h"
#include "ops/ops.h"

struct error;

// What the net reads. The caller keeps what it points to.
struct input_config {
    const struct ops *before; // operations before those of the model; may be NULL
    const struct ops *input;  // the model's input operations; may be NULL
    int channels, height, width;
    int classes;   // above 0: a label outside 0..classes-1 is STATUS_DATA
    int targets;   // numbers of a sample of which batch->target has those; with `classes` 0 it must
    bool hot;      // each is 0 or 1; else finite
    bool label;    // there must be a label, and no targets
    uint64_t seed; // of operations and dropout
    bool advise;   // the error about a wrong shape names operations that would make it fit
};

// The smallest size at which a picture may be decoded: that of the first operations.
void input_decode_hint(const struct input_config *config, struct decode_options *decode);
// Floats of a sample in a batch.
size_t input_values(const struct input_config *config);

// What one thread needs to do it. {0} is not open, and can be closed.
struct input {
    const struct input_config *config;
    struct image image; // the picture that operations change
    struct ops_scratch *scratch;
};

// The caller keeps `config` until input_close. STATUS_IO: out of memory.
int input_open(struct input *input, const struct input_config *config, struct error *err);
void input_close(struct input *input);
// Gives back what large pictures took: each piece of memory of more than `most` bytes, which the
// next such picture takes anew.
void input_trim(struct input *input, size_t most);

// Applies the operations to `picture` (rows of interleaved channels, u8 or f32) and writes it
// to place i of batch->input as channels x height x width floats. Also writes batch->draw[i],
// unless batch->draw is NULL. batch->label[i], batch->target unless it is NULL, and batch->epoch
// must be set; `key` is the hash of the sample's key. `picture` is unchanged unless it is
// &input->image, which saves a copy.
// STATUS_DATA: the label or a target is out of range, or the picture has another shape than the net
// reads; else what the operations return.
int input_put(struct input *input, const struct image *picture, uint64_t key, struct batch *batch,
              int i, struct error *err);
// Of a sample whose picture is not wanted: batch->draw[i] alone.
void input_draw(const struct input *input, uint64_t key, struct batch *batch, int i);

#endif
