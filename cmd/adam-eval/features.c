#include "adam-eval/features.h"

#include <stdlib.h>
#include <unistd.h>

#include "adam-eval/evaluation.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "model/truncate.h"
#include "sample/sink.h"

struct features {
    struct evaluation run; // first: evaluation_skip takes it
    struct model *truncated;
    float *parameters;
    struct shape shape; // of a sample
    struct sink *sink;
    struct image image;
};

// --- the layer --------------------------------------------------------------------------

static int refuse_name(const struct model *model, const char *name, struct error *err) {
    const char **names = mem_array((size_t)model->layer_count, sizeof *names);
    if (!names)
        return error_nomem(err);
    for (int i = 0; i < model->layer_count; i++)
        names[i] = model->layers[i].name;
    const char *near = text_nearest(name, strlen(name), names, (size_t)model->layer_count);
    free(names);
    return error_set(err, STATUS_USAGE, "--features: the model has no layer '%.100s'%s", name,
                     text_hint(near).text);
}

static int find_layer(const struct model *model, const char *name, const struct layer **layer,
                      struct error *err) {
    *layer = NULL;
    for (int i = 0; i < model->layer_count && !*layer; i++)
        if (!strcmp(model->layers[i].name, name))
            *layer = &model->layers[i];
    if (!*layer)
        return refuse_name(model, name, err);
    if (*layer == model_output(model))
        return error_set(err, STATUS_USAGE,
                         "--features: '%s' is the output layer: --per-sample prints its scores",
                         name);
    if ((*layer)->out.c > IMAGE_MAX_CHANNELS)
        return error_set(err, STATUS_USAGE,
                         "--features: '%s' gives %d values to a pixel; samples have %d at most",
                         name, (*layer)->out.c, IMAGE_MAX_CHANNELS);
    return STATUS_OK;
}

static int open_model(struct features *f, struct error *err) {
    const struct options *o = f->run.o;
    const struct checkpoint *c = &f->run.trained.checkpoint;
    const struct layer *layer;
    int status = trained_open(&f->run.trained, o->model, o->sets.items, o->sets.count, err);
    if (!status)
        status = find_layer(c->model, o->features, &layer, err);
    if (!status)
        status = model_truncate(&f->truncated, &f->parameters, c->model, c->parameters, layer, err);
    if (status)
        return status;
    f->shape = layer->out;
    f->run.model = f->truncated;
    f->run.parameters = f->parameters;
    return STATUS_OK;
}

// --- samples ----------------------------------------------------------------------------

// Of pixels by channels, channels by pixels.
static void fill_image(struct image *image, struct shape shape, const float *values) {
    size_t channels = (size_t)shape.c, pixels = (size_t)shape.h * (size_t)shape.w;
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < pixels; i++)
            image->f32[i * channels + c] = values[c * pixels + i];
}

static int put_sample(void *self, const struct sample *sample, const float *values,
                      struct error *err) {
    struct features *f = self;
    struct progress *progress = &f->run.progress;
    int status = image_shape(&f->image, f->shape.w, f->shape.h, f->shape.c, PIXEL_F32, err);
    if (status)
        return status;
    fill_image(&f->image, f->shape, values);
    const struct sample features = {
        .key = sample->key,
        .original = sample->original,
        .path = sample->path,
        .label = sample->label,
        .image = f->image,
    };
    f->run.told++;
    if (progress_due(progress))
        progress_line(progress, "%llu samples, %.0f/s", (unsigned long long)f->run.told,
                      (double)f->run.told / (clock_seconds() - progress->started));
    return sink_put(f->sink, &features, err);
}

static int pass_samples(struct features *f, struct error *err) {
    const struct options *o = f->run.o;
    bool from_pipe = option_is(o->data, "-") || option_is(o->files_from, "-");
    struct predict_config config = {
        .scoring = evaluation_scoring(&f->run),
        .source = f->run.source,
        .classes = &f->run.classes,
        .known = CLASSES_MAX,
        .descriptor = from_pipe ? STDIN_FILENO : -1,
        .below = true,
        .threads = (int)o->threads,
        .each = put_sample,
        .skip = option_is(o->on_error, "skip") ? evaluation_skip : NULL,
        .self = f,
    };
    config.scoring.batch = o->batch ? (int)o->batch : SCORING_BATCH;
    config.scoring.exact = true;
    progress_start(&f->run.progress, o->quiet);
    int status = predict(&config, err);
    progress_clear(&f->run.progress);
    if (!status && f->run.told == 0 && !f->run.left_out)
        status = error_set(err, STATUS_DATA, "the input holds no samples");
    return status;
}

// --- life -------------------------------------------------------------------------------

static int open_all(struct features *f, struct error *err) {
    const struct options *o = f->run.o;
    const struct sink_options options = {.force = o->force};
    int status = open_model(f, err);
    if (!status)
        status = evaluation_open_ops(&f->run, err);
    if (!status)
        status = evaluation_open_source(&f->run, err);
    if (!status && o->reject)
        status = options_check_reject(o, err);
    if (!status && o->reject)
        status = reject_open(&f->run.reject, o->reject, err);
    return status ? status : sink_open(&f->sink, o->out, &options, &f->run.classes, err);
}

static int finish(struct features *f, struct error *err) {
    struct reject *reject = f->run.reject;
    int status = sink_close(f->sink, err);
    f->sink = NULL;
    f->run.reject = NULL;
    if (reject && !status)
        status = reject_close(reject, err);
    else
        reject_close(reject, NULL);
    return status;
}

static void say_result(const struct features *f) {
    const struct options *o = f->run.o;
    if (o->quiet)
        return;
    talk_note(PROGRAM, "%llu samples of %dx%dx%d, the outputs of %s, are in %s",
              (unsigned long long)f->run.told, f->shape.c, f->shape.h, f->shape.w, o->features,
              option_is(o->out, "-") ? "standard output" : o->out);
    if (f->run.skipped > 0)
        talk_note(PROGRAM, "skipped %llu of %llu samples", (unsigned long long)f->run.skipped,
                  (unsigned long long)(f->run.skipped + f->run.told));
}

int features_write(const struct options *o, struct error *err) {
    struct features f = {.run = {.o = o, .list = -1}};
    int status = open_all(&f, err);
    if (!status)
        status = pass_samples(&f, err);
    if (!status)
        status = finish(&f, err);
    if (!status)
        say_result(&f);
    if (f.sink)
        sink_abort(f.sink);
    image_free(&f.image);
    free(f.parameters);
    model_free(f.truncated);
    evaluation_close(&f.run);
    return status ? status : f.run.left_out ? STATUS_SKIPPED : STATUS_OK;
}
