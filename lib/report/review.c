#include "report/review.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "image/resize.h"
#include "kernels/kernels.h"
#include "run/model_ops.h"
#include "train/predict.h"
#include "train/trained.h"

enum {
    SHOTS = 24,
    CLASSES_SHOWN = 2000, // a confusion matrix of more than these is of no use to eyes
    LONGEST_SIDE = 128,
};

// A right answer that leads by less is a doubtful one.
#define DOUBT 0.9

// What the prediction tells us into.
struct reviewer {
    struct review *review;
    bool *seen; // classes in `typical`
    struct image small;
    struct error first; // why the first unusable sample was so
};

static void shot_free(struct shot *shot) {
    free(shot->key);
    free(shot->png);
}

static int gallery_init(struct gallery *gallery, int most, struct error *err) {
    *gallery =
        (struct gallery){.shots = mem_zeroed((size_t)most, sizeof *gallery->shots), .most = most};
    return gallery->shots ? STATUS_OK : error_nomem(err);
}

static void gallery_free(struct gallery *gallery) {
    for (int i = 0; i < gallery->count; i++)
        shot_free(&gallery->shots[i]);
    free(gallery->shots);
    *gallery = (struct gallery){0};
}

static bool gallery_wants(const struct gallery *gallery, double rank) {
    return gallery->count < gallery->most || rank > gallery->shots[gallery->count - 1].rank;
}

// Takes the shot over; the last one may fall out.
static void gallery_put(struct gallery *gallery, struct shot shot) {
    if (gallery->count == gallery->most)
        shot_free(&gallery->shots[--gallery->count]);
    int place = gallery->count++;
    for (; place > 0 && gallery->shots[place - 1].rank < shot.rank; place--)
        gallery->shots[place] = gallery->shots[place - 1];
    gallery->shots[place] = shot;
}

// The picture as a PNG, shrunk when it is large.
static int shot_picture(struct shot *shot, const struct image *image, struct image *small,
                        struct error *err) {
    bool picture = image->type == PIXEL_U8 && (image->channels == 1 || image->channels == 3);
    int width = image->width, height = image->height;
    double scale = (double)LONGEST_SIDE / (width > height ? width : height);
    if (!picture)
        return STATUS_OK;
    if (scale < 1) {
        width = width * scale < 1 ? 1 : (int)(width * scale);
        height = height * scale < 1 ? 1 : (int)(height * scale);
        int status =
            image_resize(small, image, FILTER_AREA, width, height, 0, 0, width, height, err);
        if (status != STATUS_OK)
            return status;
        image = small;
    }
    shot->width = width, shot->height = height;
    return image_encode(&shot->png, &shot->png_size, image, CODEC_PNG, 0, err);
}

static int take_shot(struct reviewer *r, struct gallery *gallery, const struct sample *sample,
                     const float *scores, int predicted, double rank, struct error *err) {
    struct shot shot = {
        .key = mem_string(sample->key ? sample->key : ""),
        .label = sample->label,
        .predicted = predicted,
        .score = scores[predicted],
        .truth = scores[sample->label],
        .rank = rank,
    };
    int status = shot.key ? shot_picture(&shot, &sample->image, &r->small, err) : error_nomem(err);
    if (status == STATUS_OK)
        gallery_put(gallery, shot);
    else
        shot_free(&shot);
    return status;
}

static int review_sample(void *self, const struct sample *sample, const float *scores,
                         struct error *err) {
    struct reviewer *r = self;
    struct review *review = r->review;
    int top[2], classes = review->tally.classes, status = STATUS_OK;
    int k = classes > 1 ? 2 : 1;
    scores_top(scores, classes, top, k);
    bool right = top[0] == sample->label;
    double certainty = (double)scores[top[0]], margin = certainty - (double)scores[top[k - 1]];
    struct gallery *gallery = right ? &review->doubtful : &review->wrong;
    double rank = right ? -margin : certainty;
    if ((!right || margin < DOUBT) && gallery_wants(gallery, rank))
        status = take_shot(r, gallery, sample, scores, top[0], rank, err);
    if (status == STATUS_OK && !r->seen[sample->label] &&
        review->typical.count < review->typical.most) {
        r->seen[sample->label] = true;
        status = take_shot(r, &review->typical, sample, scores, top[0], -sample->label, err);
    }
    return status;
}

static int review_skipped(void *self, const struct sample *sample, const struct error *why,
                          struct error *err) {
    struct reviewer *r = self;
    (void)sample, (void)err;
    if (r->review->skipped++ == 0)
        r->first = *why;
    return STATUS_OK;
}

static int predict_all(struct reviewer *r, const struct checkpoint *checkpoint,
                       struct source *source, const struct classes *classes,
                       const struct decode_options *decode, int threads, struct error *err) {
    struct ops *input;
    int status = model_ops_open(&input, checkpoint->model, err);
    struct predict_config config = {
        .scoring = {.model = checkpoint->model,
                    .kernels = kernels_best(),
                    .parameters = checkpoint->parameters,
                    .input = input,
                    .decode = *decode},
        .source = source,
        .classes = classes,
        .known = checkpoint->classes.count,
        .descriptor = -1,
        .threads = threads,
        .tally = &r->review->tally,
        .labelled = true,
        .each = review_sample,
        .skip = review_skipped,
        .self = r,
    };
    if (status == STATUS_OK)
        status = predict(&config, err);
    ops_free(input);
    return status;
}

static int open_tally(struct review *review, const struct checkpoint *checkpoint,
                      struct error *err) {
    int classes = model_classes(checkpoint->model);
    int status = trained_names(&review->names, &checkpoint->classes, classes, err);
    if (status == STATUS_OK)
        status = tally_init(&review->tally, classes, err);
    if (status == STATUS_OK && classes <= CLASSES_SHOWN)
        status = tally_confusion(&review->tally, err);
    if (status == STATUS_OK)
        status = gallery_init(&review->wrong, SHOTS, err);
    if (status == STATUS_OK)
        status = gallery_init(&review->doubtful, SHOTS, err);
    if (status == STATUS_OK)
        status = gallery_init(&review->typical, classes < SHOTS ? classes : SHOTS, err);
    return status;
}

static int review_samples(struct review *review, const struct checkpoint *checkpoint,
                          const char *data, const struct source_options *options, int threads,
                          struct error *err) {
    struct classes classes = {0};
    struct source *source = NULL;
    struct reviewer r = {.review = review};
    r.seen = mem_zeroed((size_t)review->tally.classes, sizeof *r.seen);
    int status = r.seen ? trained_names(&classes, &checkpoint->classes, review->tally.classes, err)
                        : error_nomem(err);
    if (status == STATUS_OK)
        status = source_open(&source, data, options, &classes, err);
    if (status == STATUS_OK)
        status = predict_all(&r, checkpoint, source, &classes, &options->decode, threads, err);
    if (status == STATUS_OK && review->tally.samples == 0)
        status = error_set(err, STATUS_DATA, "%s: no usable sample%s%s", data,
                           r.first.status ? "; the first: " : "", r.first.text);
    source_close(source);
    classes_free(&classes);
    image_free(&r.small);
    free(r.seen);
    return status;
}

int review_run(struct review *review, const struct checkpoint *checkpoint, const char *data,
               const struct source_options *options, int threads, struct error *err) {
    *review = (struct review){0};
    if (options->targets || model_goal(checkpoint->model) == GOAL_NUMBERS)
        return error_set(err, STATUS_DATA, "only pictures that have one label each are shown here");
    int status = open_tally(review, checkpoint, err);
    if (status == STATUS_OK)
        status = review_samples(review, checkpoint, data, options, threads, err);
    if (status != STATUS_OK)
        review_free(review);
    return status;
}

void review_free(struct review *review) {
    gallery_free(&review->wrong);
    gallery_free(&review->doubtful);
    gallery_free(&review->typical);
    tally_free(&review->tally);
    classes_free(&review->names);
    *review = (struct review){0};
}
