#include "api/adam.h"

#include <assert.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "train/predictor.h"
#include "train/trained.h"

static_assert((int)ADAM_DATA == STATUS_DATA && (int)ADAM_NOINPUT == STATUS_NOINPUT &&
                  (int)ADAM_IO == STATUS_IO,
              "statuses are those of the programs");
static_assert(ADAM_MESSAGE == ERROR_TEXT, "a message holds any error");

struct adam_model {
    locale_t plain; // in which a number has a point, as in our files; of no use to the caller
    struct trained trained;
    struct predictor *predictor;
};

static int tell(struct adam_error *to, const struct error *from) {
    if (to) {
        to->status = from->status;
        memcpy(to->message, from->text, sizeof to->message);
    }
    return from->status;
}

// What the thread that calls has chosen, and is to have again.
struct caller {
    locale_t locale;     // in that of the program the point of a number may be a comma
    unsigned arithmetic; // and small numbers may be many times as slow
};

static struct caller enter(const struct adam_model *model) {
    return (struct caller){uselocale(model->plain), cpu_enter_arithmetic()};
}

static void leave(const struct caller *caller) {
    cpu_leave_arithmetic(caller->arithmetic);
    uselocale(caller->locale);
}

static int open_trained(struct adam_model *model, const char *path, struct error *err) {
    struct trained *trained = &model->trained;
    int status = trained_open(trained, path, NULL, 0, err);
    const struct scoring_config config = {
        .model = trained->checkpoint.model,
        .kernels = kernels_best(),
        .parameters = trained->checkpoint.parameters,
        .input = trained->input,
    };
    return status ? status : predictor_open(&model->predictor, &config, 1, err);
}

static int open_model(struct adam_model *model, const char *path, struct error *err) {
    model->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!model->plain)
        return error_nomem(err);
    struct caller caller = enter(model);
    int status = open_trained(model, path, err);
    leave(&caller);
    return status;
}

int adam_open(struct adam_model **out, const char *path, struct adam_error *error) {
    struct adam_model *model = mem_zeroed(1, sizeof *model);
    struct error err = {0};
    int status = model ? open_model(model, path, &err) : error_nomem(&err);
    if (status) {
        adam_close(model);
        model = NULL;
    }
    *out = model;
    return tell(error, &err);
}

void adam_close(struct adam_model *model) {
    if (!model)
        return;
    predictor_close(model->predictor);
    trained_close(&model->trained);
    if (model->plain)
        freelocale(model->plain);
    free(model);
}

void adam_input(const struct adam_model *model, int *channels, int *height, int *width) {
    const struct shape in = model_input(model->trained.checkpoint.model)->out;
    *channels = in.c;
    *height = in.h;
    *width = in.w;
}

int adam_classes(const struct adam_model *model) {
    return model->trained.names.count;
}

const char *adam_class(const struct adam_model *model, int index) {
    return model->trained.names.names[index];
}

static int predict_one(struct adam_model *model, struct predictor_sample *sample,
                       struct adam_error *error) {
    struct error err = {0};
    struct caller caller = enter(model);
    int status = predictor_score(model->predictor, &sample, 1, &err);
    leave(&caller);
    return tell(error, !status && sample->status ? &sample->why : &err);
}

int adam_predict(struct adam_model *model, const void *bytes, size_t size, float *scores,
                 struct adam_error *error) {
    struct predictor_sample sample = {.bytes = bytes, .size = size, .scores = scores};
    return predict_one(model, &sample, error);
}

// Room for a mini-batch of ready samples.
struct ready {
    struct predictor_sample *samples;
    struct predictor_sample **each;
};

static int ready_open(struct ready *ready, int batch, struct error *err) {
    ready->samples = mem_zeroed((size_t)batch, sizeof *ready->samples);
    ready->each = mem_array((size_t)batch, sizeof *ready->each);
    if (!ready->samples || !ready->each)
        return error_nomem(err);
    for (int i = 0; i < batch; i++)
        ready->each[i] = &ready->samples[i];
    return STATUS_OK;
}

// `count` at most a batch.
static int predict_ready(struct adam_model *model, struct ready *ready, const float *values,
                         int count, float *scores, struct error *err) {
    size_t classes = (size_t)adam_classes(model), size = predictor_values(model->predictor);
    for (int i = 0; i < count; i++) {
        ready->samples[i].floats = values + (size_t)i * size;
        ready->samples[i].scores = scores + (size_t)i * classes;
    }
    return predictor_score(model->predictor, ready->each, count, err);
}

int adam_predict_floats(struct adam_model *model, const float *values, int count, float *scores,
                        struct adam_error *error) {
    struct error err = {0};
    struct ready ready = {0};
    size_t classes = (size_t)adam_classes(model), size = predictor_values(model->predictor);
    struct caller caller = enter(model);
    int batch = predictor_batch(model->predictor), status = ready_open(&ready, batch, &err);
    for (int i = 0; i < count && !status; i += batch)
        status = predict_ready(model, &ready, values + (size_t)i * size,
                               count - i < batch ? count - i : batch, scores + (size_t)i * classes,
                               &err);
    free(ready.samples);
    free(ready.each);
    leave(&caller);
    return tell(error, &err);
}
