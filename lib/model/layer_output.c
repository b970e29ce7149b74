// softmax, logistic and linear: a dense layer that ends the model, and its scores. The
// error of its sums is score - target for the first two, with the cross-entropy that
// belongs to each, and the slope of its loss for the third; net_backward puts it there,
// so backward is that of a dense layer without activation.
#include <stdio.h>

#include "kernels/kernels.h"
#include "model/affine.h"
#include "model/keys.h"

static const struct layer_key keys[] = {
    {"units", KEY_INT, MEMBER(units), 1, 1e9, NULL, NULL, "classes"},
    {"smoothing", KEY_REAL, MEMBER(smoothing), 0, 1, "0", NULL,
     "share of a target that goes to all classes alike in training"},
    {"class-weights", KEY_REALS, MEMBER(class_weights), 0, 1e6, "", NULL,
     "how much each class counts in the loss of training"},
};

static const char *const loss_names[] = {"squared", "huber", NULL};

static const struct layer_key linear_keys[] = {
    {"units", KEY_INT, MEMBER(units), 1, 1e9, NULL, NULL, "numbers that a sample has as targets"},
    {"loss", KEY_CHOICE, MEMBER(loss), 0, 0, "squared", loss_names,
     "mean of the squares of the errors, or of what Huber makes of them"},
    {"delta", KEY_REAL, MEMBER(delta), 1e-6, 1e6, "1", NULL,
     "of huber: the error from which on the loss grows linearly"},
};

static bool shape_output(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    int count = layer->class_weights.count;
    if (!affine_shape(layer, in, misfit))
        return false;
    if (count == 0 || count == layer->units)
        return true;
    *misfit = (struct misfit){.key = "class-weights", .input = -1};
    snprintf(misfit->need, sizeof misfit->need, "a number for each of the %d classes, not %d",
             layer->units, count);
    return false;
}

// The sums of all units. False: another thread makes scores of them.
static bool add_up(const struct pass *pass) {
    bool shared = pass->team && affine_team_cut(pass).together;
    affine_forward(pass);
    if (shared)
        pass_meet(pass);
    return !shared || pass->number == 0;
}

static void forward_softmax(const struct pass *pass) {
    if (add_up(pass))
        pass->kernels->softmax(pass->y, pass->n, pass->layer->units);
}

static void scratch_logistic(const struct layer *layer, int n, bool train, size_t *kept,
                             size_t *brief) {
    affine_scratch(layer, n, train, kept, brief);
    *kept = (size_t)n * (size_t)layer->units;
}

static void forward_logistic(const struct pass *pass) {
    if (add_up(pass))
        pass_score(pass, pass->kept);
}

static void forward_linear(const struct pass *pass) {
    add_up(pass);
}

const struct layer_type layer_softmax = {
    .name = "softmax",
    .what = "output: one class of several, probabilities that sum to 1",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .trains = true,
    .output = true,
    .inputs_most = 1,
    .back_reads_x = true,
    .shape = shape_output,
    .grain = affine_grain,
    .share = affine_share,
    .scratch = affine_scratch,
    .forward = forward_softmax,
    .backward = affine_backward,
    .team_cut = affine_team_cut,
    .kept_size = affine_kept_size,
    .keep = affine_keep,
    .way = affine_way,
};

const struct layer_type layer_logistic = {
    .name = "logistic",
    .what = "output: one against all, a probability for each class on its own",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .trains = true,
    .output = true,
    .goal = GOAL_CLASSES,
    .inputs_most = 1,
    .back_reads_x = true,
    .shape = shape_output,
    .grain = affine_grain,
    .share = affine_share,
    .scratch = scratch_logistic,
    .forward = forward_logistic,
    .backward = affine_backward,
    .team_cut = affine_team_cut,
    .kept_size = affine_kept_size,
    .keep = affine_keep,
    .way = affine_way,
};

const struct layer_type layer_linear_output = {
    .name = "linear",
    .what = "output: numbers, as they are",
    .keys = linear_keys,
    .key_count = KEY_COUNT_OF(linear_keys),
    .trains = true,
    .output = true,
    .goal = GOAL_NUMBERS,
    .inputs_most = 1,
    .back_reads_x = true,
    .shape = affine_shape,
    .grain = affine_grain,
    .share = affine_share,
    .scratch = affine_scratch,
    .forward = forward_linear,
    .backward = affine_backward,
    .team_cut = affine_team_cut,
    .kept_size = affine_kept_size,
    .keep = affine_keep,
    .way = affine_way,
};
