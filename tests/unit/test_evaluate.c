// Counting, evaluation on threads, prediction as a stream and of an open model, each against the
// same computed directly.
#include <pthread.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "../helper/tempfile.h"
#include "core/error.h"
#include "core/random.h"
#include "kernels/kernels.h"
#include "train/evaluate.h"
#include "train/predict.h"
#include "train/predictor.h"
#include "train/trained.h"

enum { COUNT = 103, HEIGHT = 6, WIDTH = 5, PIXELS = HEIGHT * WIDTH, CLASSES = 7, BATCH = 8 };

static const char model_text[] = "input 1x6x5 ops='scale 1/255'\nsoftmax out units=7\n";

// A data set in two IDX files, a model, and what the model says of each sample.
struct fixture {
    char images[TEMPFILE_PATH], labels[TEMPFILE_PATH];
    uint8_t pixels[COUNT][PIXELS], label[COUNT];
    struct model *model;
    float *parameters;
    struct ops *input;
    double scores[COUNT][CLASSES];
};

// An IDX file: its head, then its bytes.
static void write_idx(char path[TEMPFILE_PATH], const uint8_t *head, size_t head_size,
                      const uint8_t *data, size_t size) {
    uint8_t file[16 + COUNT * PIXELS];
    memcpy(file, head, head_size);
    memcpy(file + head_size, data, size);
    tempfile_write(path, file, head_size + size);
}

// softmax(W x + b) in double, written down anew.
static void direct_scores(struct fixture *f, int i) {
    const struct layer *out = model_output(f->model);
    const float *w = f->parameters + out->weights.offset, *b = f->parameters + out->biases.offset;
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        double a = (double)b[c];
        for (int p = 0; p < PIXELS; p++)
            a += (double)w[c * PIXELS + p] * f->pixels[i][p] / 255.0;
        sum += f->scores[i][c] = exp(a);
    }
    for (int c = 0; c < CLASSES; c++)
        f->scores[i][c] /= sum;
}

static void setup(struct fixture *f) {
    static const uint8_t image_head[] = {0, 0, 8, 3,      0, 0, 0, COUNT,
                                         0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
    static const uint8_t label_head[] = {0, 0, 8, 1, 0, 0, 0, COUNT};
    struct error err = {0};
    struct random r = random_stream(7, 0, 0);
    size_t offset, length;
    for (int i = 0; i < COUNT; i++) {
        f->label[i] = (uint8_t)(i < CLASSES ? i : (int)random_below(&r, CLASSES));
        for (int p = 0; p < PIXELS; p++)
            f->pixels[i][p] = (uint8_t)random_below(&r, 256);
    }
    write_idx(f->images, image_head, sizeof image_head, f->pixels[0], sizeof f->pixels);
    write_idx(f->labels, label_head, sizeof label_head, f->label, sizeof f->label);
    if (model_parse(&f->model, "test.net", model_text, NULL, 0, &err) ||
        ops_parse(&f->input, model_input(f->model)->ops, 0, &offset, &length, &err)) {
        puts(err.text);
        exit(2);
    }
    f->parameters = calloc(f->model->parameter_count, sizeof *f->parameters);
    for (size_t i = 0; i < f->model->parameter_count; i++)
        f->parameters[i] = random_normal(&r);
    for (int i = 0; i < COUNT; i++)
        direct_scores(f, i);
}

static void cleanup(struct fixture *f) {
    unlink(f->images);
    unlink(f->labels);
    ops_free(f->input);
    model_free(f->model);
    free(f->parameters);
}

// Top-1, top-5, loss and confusion of the first `count` samples, by sorting nothing.
static void direct_tally(const struct fixture *f, int count, struct tally *tally) {
    for (int i = 0; i < count; i++) {
        int label = f->label[i], above = 0, best = 0;
        for (int c = 0; c < CLASSES; c++) {
            above += f->scores[i][c] > f->scores[i][label];
            best = f->scores[i][c] > f->scores[i][best] ? c : best;
        }
        tally->samples++;
        tally->top1 += above == 0;
        tally->top5 += above < 5;
        tally->loss -= log(f->scores[i][label]);
        tally->confusion[label * CLASSES + best]++;
    }
}

static void check_same(struct tap *tap, const struct tally *got, const struct tally *wanted) {
    CHECK_INT(tap, got->samples, wanted->samples);
    CHECK_INT(tap, got->top1, wanted->top1);
    CHECK_INT(tap, got->top5, wanted->top5);
    CHECK_NEAR(tap, got->loss, wanted->loss, 1e-4 * wanted->loss);
    for (int c = 0; c < CLASSES; c++) {
        uint64_t row = 0, column = 0;
        for (int d = 0; d < CLASSES; d++) {
            CHECK_INT(tap, got->confusion[c * CLASSES + d], wanted->confusion[c * CLASSES + d]);
            row += wanted->confusion[c * CLASSES + d];
            column += wanted->confusion[d * CLASSES + c];
        }
        CHECK_INT(tap, got->truth[c], row);
        CHECK_INT(tap, got->predicted[c], column);
        CHECK_INT(tap, got->correct[c], wanted->confusion[c * CLASSES + c]);
    }
}

static void test_tally(struct tap *tap) {
    struct tally tally;
    struct error err = {0};
    TEST(tap, "the best classes come in order, the lower label of equals first", {
        const float scores[] = {0.1f, 0.4f, 0.2f, 0.4f, 0.05f};
        int top[5];
        scores_top(scores, 5, top, 5);
        int wanted[] = {1, 3, 2, 0, 4};
        for (int i = 0; i < 5; i++)
            CHECK_INT(tap, top[i], wanted[i]);
        scores_top(scores, 5, top, 2);
        CHECK(tap, top[0] == 1 && top[1] == 3);
    });
    TEST(tap, "a tie is no hit for the later label, and what is no number never is", {
        CHECK_INT(tap, tally_init(&tally, 7, &err), STATUS_OK);
        const float same[7] = {0};
        tally_add(&tally, same, 0);
        CHECK_INT(tap, tally.top1, 1);
        tally_add(&tally, same, 4);
        tally_add(&tally, same, 5);
        CHECK_INT(tap, tally.top1, 1);
        CHECK_INT(tap, tally.top5, 2);
        const float bad[7] = {NAN, 0, 0, 0, 0, 0, 0};
        tally_add(&tally, bad, 0);
        CHECK_INT(tap, tally.top5, 2);
        CHECK_INT(tap, tally.predicted[1], 1);
        tally_add(&tally, same, -1);
        CHECK_INT(tap, tally.samples, 4);
        tally_free(&tally);
    });
}

struct listener {
    struct tap *tap;
    const struct fixture *fixture;
    uint32_t next, fail_at;
};

static int hear(void *self, const struct batch *batch, int i, const float *scores,
                struct error *err) {
    struct listener *l = self;
    CHECK_INT(l->tap, batch->index[i], l->next);
    for (int c = 0; c < CLASSES; c++)
        CHECK_NEAR(l->tap, (double)scores[c], l->fixture->scores[l->next][c], 1e-5);
    if (l->next++ == l->fail_at)
        return error_set(err, STATUS_IO, "enough");
    return STATUS_OK;
}

static int run_evaluate(const struct fixture *f, int threads, struct tally *tally,
                        struct listener *listener, struct error *err) {
    struct source_options options = {.labels = f->labels};
    struct dataset *dataset = NULL;
    struct loader *loader = NULL;
    int status = dataset_open(&dataset, f->images, &options, true, NULL, err);
    struct loader_config config = {
        .dataset = dataset,
        .input = {.input = f->input,
                  .channels = 1,
                  .height = HEIGHT,
                  .width = WIDTH,
                  .classes = CLASSES},
        .batch = BATCH,
        .epochs = 1,
        .threads = 2,
        .ahead = 4,
    };
    if (!status)
        status = loader_start(&loader, &config, err);
    const struct evaluate_config how = {
        .model = f->model,
        .kernels = kernels_best(),
        .parameters = f->parameters,
        .threads = threads,
        .each = hear,
        .self = listener,
    };
    if (!status)
        status = evaluate(tally, &how, loader, BATCH, err);
    int stopped = loader_stop(loader, status ? NULL : err);
    dataset_close(dataset);
    return status ? status : stopped;
}

static void open_tally(struct tally *tally) {
    struct error err = {0};
    if (tally_init(tally, CLASSES, &err) || tally_confusion(tally, &err))
        exit(2);
}

static void test_evaluate(struct tap *tap, const struct fixture *f) {
    struct tally wanted;
    open_tally(&wanted);
    direct_tally(f, COUNT, &wanted);
    double loss = 0;
    TEST(tap, "evaluation counts what is computed directly, the same bits on any threads", {
        for (int threads = 1; threads <= 5; threads += 2) {
            struct error err = {0};
            struct tally tally;
            struct listener l = {tap, f, 0, UINT32_MAX};
            open_tally(&tally);
            CHECK_INT(tap, run_evaluate(f, threads, &tally, &l, &err), STATUS_OK);
            CHECK_INT(tap, l.next, COUNT);
            check_same(tap, &tally, &wanted);
            CHECK(tap, threads == 1 || tally.loss == loss);
            loss = tally.loss;
            tally_free(&tally);
        }
    });
    TEST(tap, "who listens can end it, and is not told of more", {
        struct error err = {0};
        struct tally tally;
        struct listener l = {tap, f, 0, 50};
        open_tally(&tally);
        CHECK_INT(tap, run_evaluate(f, 3, &tally, &l, &err), STATUS_IO);
        CHECK_TEXT(tap, err.text, "enough");
        CHECK_INT(tap, l.next, 51);
        tally_free(&tally);
    });
    tally_free(&wanted);
}

// --- prediction ----------------------------------------------------------------

struct teller {
    struct tap *tap;
    const struct fixture *fixture;
    int told, skipped;
};

static int told(void *self, const struct sample *sample, const float *scores, struct error *err) {
    struct teller *t = self;
    int i = t->told + t->skipped;
    (void)err;
    CHECK_INT(t->tap, sample->image.u8[0], t->fixture->pixels[i][0]);
    for (int c = 0; c < CLASSES; c++)
        CHECK_NEAR(t->tap, (double)scores[c], t->fixture->scores[i][c], 1e-5);
    t->told++;
    return STATUS_OK;
}

static int skipped(void *self, const struct sample *sample, const struct error *why,
                   struct error *err) {
    struct teller *t = self;
    (void)sample, (void)err;
    CHECK(t->tap, strstr(why->text, "is not one of the model's") != NULL);
    t->skipped++;
    return STATUS_OK;
}

static struct scoring_config scoring_of(const struct fixture *f) {
    return (struct scoring_config){.model = f->model,
                                   .kernels = kernels_best(),
                                   .parameters = f->parameters,
                                   .input = f->input,
                                   .batch = BATCH};
}

// Predicts with what `config` has, beside model and source.
static int predict_file(const struct fixture *f, const char *images, const char *labels,
                        struct predict_config config, struct error *err) {
    struct source_options options = {.labels = labels};
    struct classes classes, given = {0};
    int status = trained_names(&classes, &given, CLASSES, err);
    if (!status)
        status = source_open(&config.source, images, &options, &classes, err);
    config.scoring = scoring_of(f);
    config.classes = &classes;
    config.descriptor = -1;
    if (!status)
        status = predict(&config, err);
    source_close(config.source);
    classes_free(&classes);
    return status;
}

static int run_predict(const struct fixture *f, const char *images, const char *labels,
                       struct tally *tally, int threads, predict_skip *skip, struct teller *teller,
                       struct error *err) {
    const struct predict_config config = {
        .threads = threads,
        .tally = tally,
        .labelled = labels != NULL,
        .each = told,
        .skip = skip,
        .self = teller,
    };
    return predict_file(f, images, labels, config, err);
}

static void test_predict(struct tap *tap, const struct fixture *f) {
    TEST(tap, "a stream is told in order and counted as computed directly", {
        struct tally wanted;
        open_tally(&wanted);
        direct_tally(f, COUNT, &wanted);
        for (int threads = 1; threads <= 4; threads += 3) {
            struct error err = {0};
            struct tally tally;
            struct teller t = {tap, f, 0, 0};
            open_tally(&tally);
            CHECK_INT(tap, run_predict(f, f->images, f->labels, &tally, threads, NULL, &t, &err),
                      STATUS_OK);
            CHECK_INT(tap, t.told, COUNT);
            check_same(tap, &tally, &wanted);
            tally_free(&tally);
        }
        tally_free(&wanted);
    });
    TEST(tap, "samples without labels are predicted and counted nowhere", {
        struct error err = {0};
        struct tally tally;
        struct teller t = {tap, f, 0, 0};
        open_tally(&tally);
        CHECK_INT(tap, run_predict(f, f->images, NULL, &tally, 2, NULL, &t, &err), STATUS_OK);
        CHECK_INT(tap, t.told, COUNT);
        CHECK_INT(tap, tally.samples, 0);
        CHECK_NEAR(tap, tally.loss, 0, 0);
        tally_free(&tally);
    });
}

// One label in the middle that the model does not know.
static void test_unknown_class(struct tap *tap, struct fixture *f) {
    char labels[TEMPFILE_PATH];
    uint8_t head[] = {0, 0, 8, 1, 0, 0, 0, COUNT}, label[COUNT];
    memcpy(label, f->label, sizeof label);
    label[60] = CLASSES + 1;
    write_idx(labels, head, sizeof head, label, sizeof label);
    struct tally tally;
    TEST(tap, "a class that the model lacks ends it behind the results before", {
        struct error err = {0};
        struct teller t = {tap, f, 0, 0};
        open_tally(&tally);
        CHECK_INT(tap, run_predict(f, f->images, labels, &tally, 2, NULL, &t, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "class '8' is not one of the model's 7") != NULL);
        CHECK_INT(tap, t.told, 60);
        tally_free(&tally);
    });
    TEST(tap, "or is skipped, and the others count", {
        struct error err = {0};
        struct teller t = {tap, f, 0, 0};
        open_tally(&tally);
        CHECK_INT(tap, run_predict(f, f->images, labels, &tally, 2, skipped, &t, &err), STATUS_OK);
        CHECK_INT(tap, t.told, COUNT - 1);
        CHECK_INT(tap, t.skipped, 1);
        CHECK_INT(tap, tally.samples, COUNT - 1);
        tally_free(&tally);
    });
    unlink(labels);
}

// --- a model that stays open ------------------------------------------------------

enum { ASKING = 4, TEAM = 3 };

// Sample i as a PGM picture, or as the floats that the operation makes of it; sample 5 is cut
// short.
static void ask_of(const struct fixture *f, int i, bool picture, uint8_t pgm[PIXELS + 16],
                   float floats[PIXELS], struct predictor_sample *sample) {
    int head = snprintf((char *)pgm, 16, "P5 %d %d 255\n", WIDTH, HEIGHT);
    memcpy(pgm + head, f->pixels[i], PIXELS);
    for (int p = 0; p < PIXELS; p++)
        floats[p] = (float)f->pixels[i][p] * (1.0f / 255.0f);
    sample->bytes = pgm;
    sample->size = (size_t)head + PIXELS - (i == 5);
    sample->floats = picture ? NULL : floats;
}

struct asker {
    const struct fixture *f;
    struct predictor *predictor;
    pthread_t thread;
    int wrong;
    float scores[COUNT][CLASSES]; // of pictures, the last time
};

// All samples, as pictures and as floats in turn.
static void *ask_all(void *argument) {
    struct asker *a = argument;
    static _Thread_local struct predictor_sample samples[COUNT];
    struct predictor_sample *each[COUNT];
    static _Thread_local uint8_t pgm[COUNT][PIXELS + 16];
    static _Thread_local float floats[COUNT][PIXELS];
    for (int round = 0; round < 6; round++) {
        struct error err = {0};
        bool pictures = round % 2;
        for (int i = 0; i < COUNT; i++) {
            ask_of(a->f, i, pictures, pgm[i], floats[i], &samples[i]);
            samples[i].scores = a->scores[i];
            each[i] = &samples[i];
        }
        // One by one, which threads may share, or all at once.
        int step = round < 3 ? 1 : COUNT;
        for (int i = 0; i < COUNT; i += step)
            a->wrong += predictor_score(a->predictor, each + i, step, &err) != STATUS_OK;
        for (int i = 0; i < COUNT; i++) {
            bool bad = pictures && i == 5;
            a->wrong += samples[i].status != (bad ? STATUS_DATA : STATUS_OK);
            for (int c = 0; !bad && c < CLASSES; c++)
                a->wrong += !(fabs((double)a->scores[i][c] - a->f->scores[i][c]) < 1e-5);
        }
    }
    return NULL;
}

// The same bits as a stream's, of all batches but the first, which had one sample less.
static int same_scores(void *self, const struct sample *sample, const float *scores,
                       struct error *err) {
    struct asker *a = self;
    long i = strtol(sample->key, NULL, 10);
    (void)err;
    a->wrong += i >= BATCH && memcmp(a->scores[i], scores, sizeof a->scores[i]) != 0;
    return STATUS_OK;
}

static void test_predictor(struct tap *tap, const struct fixture *f) {
    const struct scoring_config config = scoring_of(f);
    struct asker *askers = calloc(ASKING, sizeof *askers);
    struct predictor *predictor = NULL;
    struct error err = {0};
    TEST(tap, "an open model scores pictures and floats as computed directly, on any threads", {
        CHECK_INT(tap, predictor_open(&predictor, &config, TEAM, &err), STATUS_OK);
        CHECK_INT(tap, predictor_values(predictor), PIXELS);
        CHECK_INT(tap, predictor_batch(predictor), BATCH);
        for (int i = 0; i < ASKING; i++) {
            askers[i].f = f;
            askers[i].predictor = predictor;
            if (pthread_create(&askers[i].thread, NULL, ask_all, &askers[i]))
                exit(2);
        }
        for (int i = 0; i < ASKING; i++) {
            pthread_join(askers[i].thread, NULL);
            CHECK_INT(tap, askers[i].wrong, 0);
        }
    });
    TEST(tap, "and to the last bit as a stream of the same batches", {
        const struct predict_config stream = {.threads = 1, .each = same_scores, .self = askers};
        CHECK_INT(tap, predict_file(f, f->images, NULL, stream, &err), STATUS_OK);
        CHECK_INT(tap, askers->wrong, 0);
    });
    predictor_close(predictor);
    free(askers);
}

int main(void) {
    struct tap tap = {0};
    struct fixture *f = calloc(1, sizeof *f);
    setup(f);
    test_tally(&tap);
    test_evaluate(&tap, f);
    test_predict(&tap, f);
    test_unknown_class(&tap, f);
    test_predictor(&tap, f);
    cleanup(f);
    free(f);
    return tap_done(&tap);
}
