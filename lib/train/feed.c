#include "train/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "data/holdout.h"
#include "model/layer.h"
#include "model/prepared.h"
#include "run/model_ops.h"
#include "sample/sink.h"
#include "train/goal.h"

enum {
    AHEAD_SAMPLES = 256,    // made ahead of demand: mini-batches of 1 are handed over in bulk
    AHEAD_BYTES = 16 << 20, // unless they are large
    AHEAD_MOST = 64,
    TEST_BATCH = 64, // samples that one thread tests at once, unless more are faster
};

// --- operations -----------------------------------------------------------------------

static int parse_operations(struct ops **out, const char *text, struct error *err) {
    size_t offset, length;
    int status = ops_parse(out, text, 0, &offset, &length, err);
    if (status == STATUS_USAGE)
        error_context(err, "'%s': at '%.*s'", text, (int)length, text + offset);
    return status;
}

static int open_ops(struct feed *feed, const struct settings *settings, const struct model *model,
                    struct error *err) {
    if (settings->ops && parse_operations(&feed->augment, settings->ops, err))
        return error_context(err, "--ops");
    return model_ops_open(&feed->input, model, err);
}

// --- checks ---------------------------------------------------------------------------

static int check_sample_shape(const struct model *model, const char *path,
                              const struct image *image, struct error *err) {
    const struct layer *input = model_input(model);
    if (image->channels == input->out.c && image->height == input->out.h &&
        image->width == input->out.w)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%s gives pictures of %dx%dx%d (channels x height x width, after all "
                     "operations), but the input of %s (line %d) is %dx%dx%d",
                     path, image->channels, image->height, image->width, model->name, input->line,
                     input->out.c, input->out.h, input->out.w);
}

static int first_picture(const struct dataset *dataset, const struct ops *augment,
                         const struct ops *input, struct image *image, struct error *err) {
    struct ops_scratch *scratch = ops_scratch_new();
    struct decode_options decode = {0};
    int status = scratch ? dataset_image(dataset, 0, &decode, image, err) : error_nomem(err);
    if (!status && augment)
        status = ops_apply(augment, scratch, image, (struct ops_draw){0}, err);
    if (!status && input)
        status = ops_apply(input, scratch, image, (struct ops_draw){0}, err);
    ops_scratch_free(scratch);
    return status;
}

// By the first picture: that one fits says that the user's intent does. Each of
// the others is checked when it is loaded.
static int check_set(const struct feed *feed, const struct dataset *dataset, const char *path,
                     bool augmented, const struct model *model, struct error *err) {
    const struct layer *output = model_output(model);
    int classes = dataset_classes(dataset)->count;
    struct image image = {0};
    if (dataset_count(dataset) == 0)
        return error_set(err, STATUS_DATA, "%s has no samples", path);
    if (goal_check(model, path, dataset_target_count(dataset), err))
        return err->status;
    if (classes > model_classes(model))
        return error_set(err, STATUS_DATA,
                         "%s has %d classes, but the last layer of %s (line %d) has %d units", path,
                         classes, model->name, output->line, model_classes(model));
    int status = first_picture(dataset, augmented ? feed->augment : NULL, feed->input, &image, err);
    if (!status)
        status = check_sample_shape(model, path, &image, err);
    image_free(&image);
    return status;
}

// --- opening --------------------------------------------------------------------------

static int copy_class_names(struct classes *to, const struct classes *from, struct error *err) {
    int status = STATUS_OK, label;
    for (int i = 0; !status && i < from->count; i++)
        status = classes_label(to, from->names[i], &label, err);
    return status;
}

static int copy_samples(struct source *source, struct sink *sink, struct error *err) {
    struct sample sample = {0};
    bool more = true;
    int status = STATUS_OK;
    while (!status && (status = source_next(source, &sample, &more, err)) == STATUS_OK && more)
        status = sink_put(sink, &sample, err);
    sample_free(&sample);
    return status == STATUS_SKIPPED ? STATUS_DATA : status;
}

static int spool_to_records(struct source *source, const struct classes *classes, const char *path,
                            bool force, struct error *err) {
    struct sink_options options = {.to = "arec", .force = force};
    struct sink *sink = NULL;
    int status = sink_open(&sink, path, &options, classes, err);
    if (status)
        return status;
    status = copy_samples(source, sink, err);
    if (!status)
        return sink_close(sink, err);
    sink_abort(sink);
    return status;
}

int feed_spool(struct settings *settings, bool force, const struct source_hooks *hooks,
               struct error *err) {
    struct source_options options = {
        .from = settings->from, .labels = settings->labels, .hooks = *hooks};
    struct classes classes = {0};
    struct source *source = NULL;
    int status = source_open(&source, "-", &options, &classes, err);
    if (!status)
        status = spool_to_records(source, &classes, settings->spool, force, err);
    source_close(source);
    classes_free(&classes);
    settings->data = settings->spool;
    settings->spool = settings->from = settings->labels = NULL;
    return status;
}

static int open_training_stream(struct feed *feed, const struct settings *settings,
                                const struct model *model, const struct classes *classes,
                                struct error *err) {
    struct source_options options = {
        .from = settings->from, .labels = settings->labels, .targets = settings->targets};
    int status = copy_class_names(&feed->classes, classes, err);
    if (!status)
        status = source_open(&feed->source, "-", &options, &feed->classes, err);
    return status ? status : goal_check(model, "standard input", source_targets(feed->source), err);
}

static int open_set(struct dataset **out, const char *path, const struct source_options *options,
                    const struct classes *names, struct error *err) {
    return dataset_open(out, path, options, true, names && names->count ? names : NULL, err);
}

static struct source_options train_options(const struct settings *settings,
                                           const struct source_hooks *hooks) {
    return (struct source_options){.from = settings->from,
                                   .labels = settings->labels,
                                   .targets = settings->targets,
                                   .hooks = *hooks};
}

// One table may have the targets of both sets.
static struct source_options test_options(const struct settings *settings,
                                          const struct source_hooks *hooks) {
    const char *own = settings->test_targets;
    return (struct source_options){
        .labels = settings->test_labels, .targets = own ? own : settings->targets, .hooks = *hooks};
}

static int open_train(struct feed *feed, const struct settings *settings, const struct model *model,
                      const struct classes *classes, const struct source_hooks *hooks,
                      struct error *err) {
    const struct source_options options = train_options(settings, hooks);
    int status = open_set(&feed->train, settings->data, &options, classes, err);
    return status ? status : check_set(feed, feed->train, settings->data, true, model, err);
}

// One set, of which a part is held out for tests.
static int open_halves(struct feed *feed, const struct settings *settings,
                       const struct model *model, const struct classes *classes,
                       const struct source_hooks *hooks, double share, struct error *err) {
    const struct source_options options = train_options(settings, hooks);
    int status = holdout_open(&feed->train, &feed->test, settings->data, &options, share,
                              classes && classes->count ? classes : NULL, err);
    if (!status)
        status = check_set(feed, feed->train, settings->data, true, model, err);
    return status ? status : check_set(feed, feed->test, settings->data, false, model, err);
}

static int open_test_set(struct feed *feed, const struct settings *settings,
                         const struct model *model, const struct classes *classes,
                         const struct source_hooks *hooks, struct error *err) {
    if (!settings->test)
        return STATUS_OK;
    const struct source_options options = test_options(settings, hooks);
    int status = open_set(&feed->test, settings->test, &options, classes, err);
    return status ? status : check_set(feed, feed->test, settings->test, false, model, err);
}

// Labels are numbered as in the earlier run, else as in the training set, else,
// for a stream, which tells its names as it goes, as in the test set.
static int open_data_sets(struct feed *feed, const struct settings *settings,
                          const struct model *model, const struct classes *classes,
                          const struct source_hooks *hooks, struct error *err) {
    double share;
    int status = settings_holdout(settings, &share, err);
    if (status)
        return status;
    if (share > 0 && (!settings->data || !strcmp(settings->data, "-")))
        return error_set(err, STATUS_USAGE,
                         "--test %s holds out a part of a training set that can be read again: "
                         "--data FILE, or --spool",
                         settings->test);
    if (!settings->data)
        return open_test_set(feed, settings, model, classes, hooks, err);
    if (share > 0)
        return open_halves(feed, settings, model, classes, hooks, share, err);
    if (strcmp(settings->data, "-") != 0) {
        status = open_train(feed, settings, model, classes, hooks, err);
        return status
                   ? status
                   : open_test_set(feed, settings, model, dataset_classes(feed->train), hooks, err);
    }
    status = open_test_set(feed, settings, model, classes, hooks, err);
    if (!status)
        status = open_training_stream(feed, settings, model,
                                      feed->test ? dataset_classes(feed->test) : classes, err);
    return status;
}

int feed_open(struct feed **out, const struct settings *settings, const struct model *model,
              const struct classes *classes, const struct source_hooks *hooks, struct error *err) {
    struct feed *feed = mem_zeroed(1, sizeof *feed);
    if (!feed)
        return error_nomem(err);
    int status = open_ops(feed, settings, model, err);
    if (!status)
        status = open_data_sets(feed, settings, model, classes, hooks, err);
    if (status)
        feed_close(feed);
    else
        *out = feed;
    return status;
}

void feed_close(struct feed *feed) {
    if (!feed)
        return;
    dataset_close(feed->train);
    dataset_close(feed->test);
    source_close(feed->source);
    classes_free(&feed->classes);
    ops_free(feed->augment);
    ops_free(feed->input);
    free(feed);
}

json_t *feed_describe(const char *path, const struct dataset *dataset) {
    char digest[16];
    if (!dataset)
        return json_pack("{s:s, s:n, s:n}", "path", path, "samples", "digest");
    snprintf(digest, sizeof digest, "%08x", (unsigned)dataset_digest(dataset));
    return json_pack("{s:s, s:I, s:s}", "path", path, "samples", (json_int_t)dataset_count(dataset),
                     "digest", digest);
}

bool feed_differs(char text[FEED_TEXT], const json_t *before, const json_t *now,
                  const char *words) {
    const char *was = json_string_value(json_object_get(before, "digest"));
    const char *is = json_string_value(json_object_get(now, "digest"));
    bool other = was && is && strcmp(was, is) != 0;
    if (other)
        snprintf(text, FEED_TEXT, "%s is not the %s set of before (digest %s, was %s)",
                 json_string_value(json_object_get(now, "path")), words, is, was);
    return other;
}

// --- loaders --------------------------------------------------------------------------

static int batches_ahead(struct shape shape, int batch, int threads) {
    size_t fitting = AHEAD_BYTES / (shape_size(shape) * sizeof(float));
    int samples = fitting < AHEAD_SAMPLES ? (int)fitting : AHEAD_SAMPLES;
    int most = samples / batch;
    int batches = most > AHEAD_MOST ? AHEAD_MOST : most;
    return batches > threads + 2 ? batches : threads + 2;
}

// Of whichever sets there are, all alike.
static bool feed_has_targets(const struct feed *feed) {
    return feed->train    ? dataset_target_count(feed->train) > 0
           : feed->source ? source_targets(feed->source) > 0
                          : feed->test && dataset_target_count(feed->test) > 0;
}

static struct loader_config config_of(const struct feed *feed, const struct settings *settings,
                                      const struct model *model, int batch, int threads) {
    const struct shape shape = model_input(model)->out;
    return (struct loader_config){
        .input = {.input = feed->input,
                  .channels = shape.c,
                  .height = shape.h,
                  .width = shape.w,
                  .classes = model_classes(model),
                  .targets = feed_has_targets(feed) ? model_classes(model) : 0,
                  .hot = model_goal(model) == GOAL_CLASSES,
                  .seed = (uint64_t)settings->seed},
        .batch = batch,
        .threads = (int)settings->loaders,
        .ahead = batches_ahead(shape, batch, threads),
    };
}

int feed_train(const struct feed *feed, const struct settings *settings, const struct model *model,
               uint64_t epochs, uint64_t first, int threads, struct loader **out,
               struct error *err) {
    struct loader_config config = config_of(feed, settings, model, (int)settings->batch, threads);
    config.dataset = feed->train;
    config.source = feed->source;
    config.names = &feed->classes;
    config.input.before = feed->augment;
    config.known = feed->known;
    config.known_self = feed->known_self;
    config.epochs = epochs;
    config.first_number = first;
    config.shuffle = true;
    return loader_start(out, &config, err);
}

int feed_look(const struct feed *feed, const struct settings *settings, const struct model *model,
              int batch, struct loader **out, struct error *err) {
    struct loader_config config = config_of(feed, settings, model, batch, 1);
    config.dataset = feed->train ? feed->train : feed->test;
    config.epochs = 1;
    config.shuffle = true;
    config.ahead = 2;
    return config.dataset ? loader_start(out, &config, err)
                          : error_set(err, STATUS_NOINPUT, "no samples that can be read again");
}

static int start_test(const struct feed *feed, const struct settings *settings,
                      const struct model *model, int batch, struct loader **out,
                      struct error *err) {
    struct loader_config config = config_of(feed, settings, model, batch, (int)settings->loaders);
    config.dataset = feed->test;
    config.epochs = 1;
    return loader_start(out, &config, err);
}

int feed_test(const struct feed *feed, const struct settings *settings,
              const struct evaluate_config *config, struct tally *tally, struct error *err) {
    struct loader *loader;
    int batch = prepared_batch(config->model, config->kernels, TEST_BATCH);
    int status = start_test(feed, settings, config->model, batch, &loader, err);
    if (status)
        return status;
    status = evaluate(tally, config, loader, batch, err);
    struct error load = {0};
    if (loader_stop(loader, &load) && !status) {
        *err = load;
        return error_context(err, "%s", settings->test);
    }
    return status;
}
