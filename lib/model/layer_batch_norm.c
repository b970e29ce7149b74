// batchnorm. In training its samples are normalised in groups of GROUP, each by its own statistics,
// however the mini-batch is divided into passes (model_together) and these into parts. In
// prediction, and where it is frozen, they are normalised by the running statistics; and where a
// group has but one value of a map, which has no deviation.
#include <math.h>
#include <string.h>

#include "core/hogwild.h"
#include "core/least.h"
#include "kernels/batch_norm.h"
#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

enum { GROUP = 32 }; // a multiple of all blocks

static const struct layer_key batch_keys[] = {
    {"momentum", KEY_REAL, MEMBER(momentum), 1e-6, 1, "0.1", NULL,
     "how far each mini-batch moves the running mean and variance to its own"},
    {"epsilon", KEY_REAL, MEMBER(alpha), 1e-12, 1, "1e-05", NULL, "added to the variance"},
    KEY_ACT,
    KEY_SLOPE,
};

static bool shape_batch(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    *misfit = (struct misfit){0};
    layer->out = in[0];
    layer->weights = (struct parameter){
        .count = (size_t)in[0].c, .dims = {in[0].c}, .rank = 1, .fan_in = 1, .fan_out = 1};
    layer->biases = layer->weights;
    for (int i = 0; i < LAYER_STATISTICS; i++)
        layer->statistics[i] = layer->weights;
    return true;
}

// By rows where no mean is taken of them.
static int grain_batch(const struct layer *layer, enum cut_way way) {
    return way == CUT_MAPS || (way == CUT_ROWS && !layer_learns(layer));
}

static void share_batch(struct share *share, const struct model *model) {
    (void)model;
    for (int i = 0; i < LAYER_TENSORS; i++)
        share_first(share, i, share->makes.c0, share->makes.c1);
}

static int groups_of(int n) {
    return (n + GROUP - 1) / GROUP;
}

// Floats of each map for what is made anew for every part.
enum { BRIEF = 3 };

// Kept: what the activation keeps. Brief: the kernels' scratch, and those.
static void scratch_batch(const struct layer *layer, int n, bool train, size_t *kept,
                          size_t *brief) {
    *kept = pass_kept_size(layer, n, train);
    *brief = batch_norm_scratch(layer->in.c, KERNELS_LANES_MOST) + BRIEF * (size_t)layer->in.c;
}

// Of each group and map: mean, variance, the sums of error gradients, and what is made of them once
// they are complete.
enum { COMMON = 9 };

static size_t common_batch(const struct layer *layer, int n) {
    return (size_t)groups_of(n) * COMMON * (size_t)layer->in.c;
}

// --- groups -----------------------------------------------------------------------------

// Samples of one group that lie in the part at hand, and the arrays of maps that they are
// normalised by.
struct group {
    const struct batch_norm_kernels *kernels;
    struct batch_norm norm;
    size_t at;          // of its first value
    int n, before, all; // samples of the piece, of the group in parts before, and of all of it
    bool own;           // it has statistics of its own
    float *mean, *variance, *plain, *along; // those of the group; sums of error gradients
    float *factor, *term;                   // forward
    float *back_factor, *back_slope, *back_term;
    float *first, *second; // of a piece that is not the first
    float *scratch;
};

// Blocks without an empty lane are one block of all their pixels; and plain samples of one pixel
// are blocks of one sample.
static void set_layout(struct group *g, const struct pass *pass, int n) {
    const struct kernels *k = pass->kernels;
    int pixels = pass->layer->in.h * pass->layer->in.w;
    bool flat = !pass->lanes && pixels == 1 && k->batch_norm_blocks;
    int lanes = flat ? 1 : pass->lanes;
    bool full = lanes && n % lanes == 0;
    g->kernels = lanes ? k->batch_norm_blocks : k->batch_norm;
    g->norm = (struct batch_norm){.n = full ? lanes : n,
                                  .c = pass->layer->in.c,
                                  .pixels = full ? n / lanes * pixels : pixels,
                                  .lanes = lanes};
}

static void set_common(struct group *g, const struct pass *pass, int group) {
    size_t c = (size_t)pass->layer->in.c;
    g->own = g->all * pass->layer->in.h * pass->layer->in.w > 1;
    g->mean = pass->common + (size_t)group * COMMON * c;
    g->variance = g->mean + c, g->plain = g->variance + c, g->along = g->plain + c;
    g->factor = g->along + c, g->term = g->factor + c;
    g->back_factor = g->term + c, g->back_slope = g->back_factor + c;
    g->back_term = g->back_slope + c;
}

// Without statistics of the group; none has both passes.
static void set_brief(struct group *g, const struct pass *pass, float *brief) {
    size_t c = (size_t)pass->layer->in.c;
    g->factor = g->back_factor = brief;
    g->term = g->back_slope = brief + c;
    g->back_term = brief + 2 * c;
}

// The group's statistics are measured, and what they give is made once.
static bool is_measured(const struct pass *pass) {
    return pass->trains && layer_learns(pass->layer);
}

// The next piece of the part behind its first `done` samples; false: there is none.
static bool next_piece(struct group *g, const struct pass *pass, int *done) {
    const struct layer *layer = pass->layer;
    int first = pass->at + *done, group = first / GROUP, begin = group * GROUP;
    size_t c = (size_t)layer->in.c;
    if (*done >= pass->n)
        return false;
    int n = least_int(pass->n - *done, begin + GROUP - first);
    *g = (struct group){.at = (size_t)*done * shape_size(layer->in),
                        .n = n,
                        .before = first - begin,
                        .all = least_int(pass->all - begin, GROUP),
                        .scratch = pass->brief};
    set_layout(g, pass, n);
    float *brief = pass->brief + batch_norm_scratch(layer->in.c, KERNELS_LANES_MOST);
    g->first = brief, g->second = brief + c;
    if (is_measured(pass))
        set_common(g, pass, group);
    else
        set_brief(g, pass, brief);
    *done += n;
    return true;
}

// Of the piece, and of the group.
static int values_of_map(const struct group *g) {
    return g->norm.n * g->norm.pixels;
}

static int values_of_all(const struct pass *pass, const struct group *g) {
    return g->all * pass->layer->in.h * pass->layer->in.w;
}

static bool is_last_piece(const struct group *g) {
    return g->before + g->n == g->all;
}

// What values are normalised by: the statistics of the group, or those that last. What is added to
// running variances may have made them negative: those of others' steps.
static struct batch_maps maps_of(const struct pass *pass, const struct group *g) {
    return (struct batch_maps){.mean = g->own ? g->mean : pass->statistics[0],
                               .variance = g->own ? g->variance : pass->statistics[1],
                               .scale = pass->weights,
                               .shift = pass->biases,
                               .epsilon = (double)pass->layer->alpha,
                               .c = g->norm.c};
}

// --- forward ----------------------------------------------------------------------------

static void make_factors(const struct pass *pass, const struct group *g) {
    const struct batch_maps maps = maps_of(pass, g);
    pass->kernels->batch_maps->factors(g->factor, g->term, &maps);
}

// The statistics of `before` values and of `count` more are those of all (Chan, Golub and LeVeque
// 1979).
static void join_statistics(float *mean, float *variance, double before, double more_mean,
                            double more_variance, double count) {
    double all = before + count, away = more_mean - (double)*mean;
    double squares = before * (double)*variance + count * more_variance;
    *variance = (float)((squares + away * away * before * count / all) / all);
    *mean = (float)((double)*mean + away * count / all);
}

// Whether the piece is all of the part, in blocks without an empty lane: then sums of that are its.
static bool is_summed(const struct pass *pass, const struct group *g) {
    return pass->lanes && g->n == pass->n && g->n % pass->lanes == 0;
}

static void measure_piece(const struct pass *pass, const struct group *g,
                          const struct conv_sums *sums) {
    int pixels = pass->layer->in.h * pass->layer->in.w;
    bool first = g->before == 0;
    float *mean = first ? g->mean : g->first, *variance = first ? g->variance : g->second;
    if (sums && is_summed(pass, g))
        g->kernels->measure_summed(mean, variance, sums, &g->norm);
    else
        g->kernels->measure(mean, variance, pass->x[0] + g->at, &g->norm, g->scratch);
    for (int m = 0; !first && m < g->norm.c; m++)
        join_statistics(&g->mean[m], &g->variance[m], (double)g->before * pixels, (double)mean[m],
                        (double)variance[m], values_of_map(g));
}

static void measure_batch(const struct pass *pass) {
    const struct conv_sums *sums = pass_take_sums(pass, NET_FORWARD);
    int done = 0;
    for (struct group g; next_piece(&g, pass, &done);) {
        if (g.own)
            measure_piece(pass, &g, sums);
        if (is_last_piece(&g))
            make_factors(pass, &g);
    }
}

static void scale_batch(const struct pass *pass, float *y, const float *more, float most) {
    int done = 0;
    for (struct group g; next_piece(&g, pass, &done);) {
        if (!is_measured(pass))
            make_factors(pass, &g);
        g.kernels->scale(y + g.at, pass->x[0] + g.at, more ? more + g.at : NULL, g.factor, g.term,
                         most, &g.norm, g.scratch);
    }
}

static void forward_sum_batch(const struct pass *pass, float *sum, const float *more, bool relu) {
    scale_batch(pass, sum, more, relu ? INFINITY : 0);
}

static void forward_batch(const struct pass *pass) {
    float most = act_relu_bound(pass->act);
    scale_batch(pass, pass->y, NULL, most);
    if (most <= 0)
        pass_activate(pass, pass->kept);
}

// --- backward ---------------------------------------------------------------------------

// How far the running statistics are from those of the group, by its share of the mini-batch. The
// variance that lasts is the unbiased one, as PyTorch has it.
static void add_distances(const struct pass *pass, const struct group *g) {
    const struct batch_maps maps = maps_of(pass, g);
    double count = values_of_all(pass, g);
    pass->kernels->batch_maps->distances(pass->dstatistics[0], pass->dstatistics[1],
                                         pass->statistics[0], pass->statistics[1],
                                         pass->scale * (float)g->all, count / (count - 1), &maps);
}

// Adds the gradients of scales and shifts, too.
static void make_error_factors(const struct pass *pass, const struct group *g) {
    const struct batch_maps maps = maps_of(pass, g);
    pass->kernels->batch_maps->error_factors(g->back_factor, g->back_slope, g->back_term,
                                             pass->dweights, pass->dbiases, g->plain, g->along,
                                             g->own ? 1.0 / values_of_all(pass, g) : 0, &maps);
}

// By given statistics error gradients are not those of statistics, too.
static void make_given_factors(const struct pass *pass, const struct group *g) {
    make_factors(pass, g);
    memset(g->back_slope, 0, 2 * (size_t)g->norm.c * sizeof *g->back_slope);
}

static void clear_gradients(const struct pass *pass) {
    size_t bytes = (size_t)pass->layer->in.c * sizeof(float);
    memset(pass->dweights, 0, bytes);
    memset(pass->dbiases, 0, bytes);
    for (int i = 0; i < LAYER_STATISTICS; i++)
        memset(pass->dstatistics[i], 0, bytes);
}

static void add_sums(float *sums, const float *more, int count) {
    for (int m = 0; m < count; m++)
        sums[m] += more[m];
}

// Running means may change meanwhile, and are copied; a group without its own is one piece.
HOGWILD static const float *means_of(const struct pass *pass, const struct group *g) {
    if (g->own)
        return g->mean;
    for (int m = 0; m < g->norm.c; m++)
        g->second[m] = pass->statistics[0][m];
    return g->second;
}

// Sums of error gradients from those that who wrote them has taken. False: they do not tell.
static bool errors_summed(const struct pass *pass, const struct group *g, float *plain,
                          float *along, const struct conv_sums *sums) {
    bool with_x = sums && sums->other;
    const struct batch_sums by = {.sums = sums,
                                  .factor = with_x ? NULL : g->factor,
                                  .term = with_x ? NULL : g->term,
                                  .mean = g->mean,
                                  .variance = g->variance};
    return sums && g->own && is_summed(pass, g) &&
           g->kernels->errors_summed(plain, along, &by, &g->norm);
}

static void measure_errors(const struct pass *pass, const struct group *g,
                           const struct conv_sums *sums) {
    bool through = act_relu_bound(pass->act) > 0 && !pass->undone;
    float *dy = pass->dy + g->at;
    const float *outputs = through ? pass->y + g->at : NULL, *x = pass->x[0] + g->at;
    bool first = g->before == 0;
    float *plain = first ? g->plain : g->first, *along = first ? g->along : g->second;
    if (!errors_summed(pass, g, plain, along, sums))
        g->kernels->errors(plain, along, dy, outputs, act_relu_bound(pass->act), x,
                           means_of(pass, g), &g->norm, g->scratch);
    if (!first) {
        add_sums(g->plain, plain, g->norm.c);
        add_sums(g->along, along, g->norm.c);
    }
    if (!is_last_piece(g))
        return;
    make_error_factors(pass, g);
    if (g->own)
        add_distances(pass, g);
}

static void measure_back_batch(const struct pass *pass) {
    const struct conv_sums *sums = pass_take_sums(pass, NET_BACKWARD);
    int done = 0;
    if (act_relu_bound(pass->act) <= 0)
        pass_activate_back(pass, pass->kept);
    clear_gradients(pass);
    for (struct group g; next_piece(&g, pass, &done);)
        measure_errors(pass, &g, sums);
}

static void backward_batch(const struct pass *pass) {
    int done = 0;
    if (!layer_learns(pass->layer))
        pass_activate_back(pass, pass->kept);
    for (struct group g; pass->dx[0] && next_piece(&g, pass, &done);) {
        if (!is_measured(pass))
            make_given_factors(pass, &g);
        g.kernels->back(pass->dx[0] + g.at, pass->dy + g.at, pass->x[0] + g.at, g.back_factor,
                        g.back_slope, g.back_term, &g.norm, g.scratch);
    }
}

const struct layer_type layer_batchnorm = {
    .name = "batchnorm",
    .what = "batch normalisation: each map less its mean over the mini-batch, by its deviation",
    .keys = batch_keys,
    .key_count = KEY_COUNT_OF(batch_keys),
    .trains = true,
    .scales = true,
    .normalises = true,
    .together = GROUP,
    .layout = LAYOUT_FOLLOW,
    .inputs_most = 1,
    .acts = ACTS_ALL,
    .back_reads_x = true,
    .back_keeps_dy = true,
    .back_over_x = true,
    .remakes = true,
    .shape = shape_batch,
    .grain = grain_batch,
    .share = share_batch,
    .scratch = scratch_batch,
    .forward = forward_batch,
    .forward_sum = forward_sum_batch,
    .backward = backward_batch,
    .measure = measure_batch,
    .measure_back = measure_back_batch,
    .common = common_batch,
};
