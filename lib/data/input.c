#include "data/input.h"

#include <math.h>
#include <stdio.h>

#include "core/error.h"
#include "core/random.h"
#include "image/floats.h"
#include "sample/sample.h"

void input_decode_hint(const struct input_config *config, struct decode_options *decode) {
    const struct ops *first = config->before ? config->before : config->input;
    if (first)
        ops_decode_hint(first, decode);
}

size_t input_values(const struct input_config *config) {
    return (size_t)config->channels * (size_t)config->height * (size_t)config->width;
}

int input_open(struct input *input, const struct input_config *config, struct error *err) {
    *input = (struct input){.config = config, .scratch = ops_scratch_new()};
    return input->scratch ? STATUS_OK : error_nomem(err);
}

void input_close(struct input *input) {
    image_free(&input->image);
    ops_scratch_free(input->scratch);
    *input = (struct input){0};
}

void input_trim(struct input *input, size_t most) {
    if (input->image.capacity > most)
        image_free(&input->image);
    ops_scratch_trim(input->scratch, most);
}

static int check_input_label(int32_t label, int classes, struct error *err) {
    if (classes <= 0 || (label >= 0 && label < classes))
        return STATUS_OK;
    if (label == LABEL_NONE)
        return error_set(err, STATUS_DATA, "there is no label");
    return error_set(err, STATUS_DATA, "the label is %d where the model has %d classes, 0 to %d",
                     (int)label, classes, classes - 1);
}

static int check_input_targets(const float *targets, const struct input_config *config,
                               struct error *err) {
    for (int c = 0; c < config->targets; c++) {
        if (!isfinite(targets[c]))
            return error_set(err, STATUS_DATA, "target %d is not finite", c);
        if (config->hot && targets[c] != 0 && targets[c] != 1)
            return error_set(err, STATUS_DATA,
                             "target %d is %g, where a logistic output takes 0 or 1", c,
                             (double)targets[c]);
    }
    return STATUS_OK;
}

static int check_goal(const struct input_config *config, const struct batch *batch, int i,
                      struct error *err) {
    if (!batch->target && config->classes == 0 && config->targets > 0)
        return error_set(err, STATUS_DATA, "there are no targets, which the model learns");
    if (!batch->target)
        return check_input_label(batch->label[i], config->classes, err);
    if (config->label)
        return error_set(err, STATUS_DATA, "there are targets, where the model learns labels");
    if (batch->label[i] != LABEL_NONE)
        return error_set(err, STATUS_DATA, "there are a label and targets");
    return check_input_targets(batch->target + (size_t)i * (size_t)config->targets, config, err);
}

// Adds to the error which operations would give the picture the shape that the net reads.
static int suggest_preparation(const struct input_config *config, const struct image *image,
                               struct error *err) {
    bool size = image->width != config->width || image->height != config->height;
    bool gray = config->channels == 1 && image->channels == 3;
    if (image->channels != config->channels && !gray)
        return err->status;
    char resize[48] = "", shape[ERROR_TEXT];
    snprintf(shape, sizeof shape, "%s", err->text);
    if (size)
        snprintf(resize, sizeof resize, "resize %dx%d exact%s", config->width, config->height,
                 gray ? "; " : "");
    return error_set(err, STATUS_DATA, "%.1900s; these operations before would do: '%s%s'", shape,
                     resize, gray ? "gray" : "");
}

static int check_input_shape(const struct input_config *config, const struct image *image,
                             struct error *err) {
    if (image->channels == config->channels && image->height == config->height &&
        image->width == config->width)
        return STATUS_OK;
    int status = error_set(err, STATUS_DATA,
                           "the picture is %dx%dx%d (channels x height x width) where the model "
                           "reads %dx%dx%d",
                           image->channels, image->height, image->width, config->channels,
                           config->height, config->width);
    return config->advise && err ? suggest_preparation(config, image, err) : status;
}

// What the operations are certain to make of the picture, before its pixels are copied for them.
static int foresee_shape(const struct input_config *config, const struct image *picture,
                         struct error *err) {
    struct image to = *picture;
    to.width = image_true_width(picture), to.height = image_true_height(picture);
    bool certain =
        (!config->before || ops_shape(config->before, &to.width, &to.height, &to.channels)) &&
        (!config->input || ops_shape(config->input, &to.width, &to.height, &to.channels));
    return certain ? check_input_shape(config, &to, err) : STATUS_OK;
}

// The operations change a picture in place: the input's own, *image then.
static int apply_operations(struct input *input, const struct image **image, struct ops_draw draw,
                            struct error *err) {
    const struct input_config *config = input->config;
    if (!config->before && !config->input)
        return STATUS_OK;
    int status = foresee_shape(config, *image, err);
    if (!status && *image != &input->image)
        status = image_copy(&input->image, *image, err);
    *image = &input->image;
    if (!status && config->before)
        status = ops_apply(config->before, input->scratch, &input->image, draw, err);
    if (!status && config->input)
        status = ops_apply(config->input, input->scratch, &input->image, draw, err);
    return status;
}

// What randomness in the net (dropout) may depend on.
static uint64_t net_draw(struct ops_draw draw) {
    return hash_mix(hash_mix(draw.seed, draw.epoch), draw.key);
}

void input_draw(const struct input *input, uint64_t key, struct batch *batch, int i) {
    if (batch->draw)
        batch->draw[i] = net_draw((struct ops_draw){input->config->seed, batch->epoch, key});
}

int input_put(struct input *input, const struct image *picture, uint64_t key, struct batch *batch,
              int i, struct error *err) {
    const struct input_config *config = input->config;
    const struct ops_draw draw = {config->seed, batch->epoch, key};
    input_draw(input, key, batch, i);
    int status = check_goal(config, batch, i, err);
    if (!status)
        status = apply_operations(input, &picture, draw, err);
    if (!status)
        status = check_input_shape(config, picture, err);
    if (!status)
        image_planes(batch->input + (size_t)i * input_values(config), picture);
    return status;
}
