// conv: shared weights.
#include <stdio.h>
#include <string.h>

#include "core/least.h"
#include "kernels/blocks.h"
#include "kernels/conv.h"
#include "kernels/conv_rows.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "model/affine.h"
#include "model/keys.h"
#include "model/pass.h"
#include "model/share.h"

enum {
    WEIGHTS_LARGE = 1 << 17, // that do not stay in the L2 cache
    WINOGRAD_ROWS = 4,       // of a tile
    FINER_WORK = 1 << 24,    // multiply-adds: of fewer, to begin a part takes its time
};

static const struct layer_key keys[] = {
    KEY_MAPS,
    KEY_KERNEL,
    KEY_STRIDE,
    KEY_PAD,
    KEY_DILATION,
    KEY_ROUND,
    {"groups", KEY_INT, MEMBER(groups), 1, 1e6, "1", NULL,
     "parts that the maps are cut into, each seeing only its own part of the input"},
    KEY_ACT,
    KEY_SLOPE,
    KEY_DROPOUT("0"),
};

static bool shape_conv(struct layer *layer, const struct shape *in, struct misfit *misfit) {
    (void)in;
    if (!window_shape(layer, "kernel", misfit))
        return false;
    int maps = layer->maps, groups = layer->groups;
    misfit->key = "groups";
    if (maps % groups || layer->in.c % groups) {
        snprintf(misfit->need, sizeof misfit->need, "to divide its %d maps and those of its input",
                 maps);
        return false;
    }
    layer->out.c = maps;
    size_t taps = (size_t)layer->kernel.h * (size_t)layer->kernel.w;
    size_t fan_in = (size_t)(layer->in.c / groups) * taps;
    layer->weights = (struct parameter){
        .count = (size_t)maps * fan_in,
        .dims = {maps, layer->in.c / groups, layer->kernel.h, layer->kernel.w},
        .rank = 4,
        .fan_in = fan_in,
        .fan_out = (size_t)(maps / groups) * taps,
    };
    layer->biases = (struct parameter){.count = (size_t)maps, .dims = {maps}, .rank = 1};
    layer->connections = (uint64_t)shape_size(layer->out) * fan_in;
    struct window window = layer_window(layer);
    layer->useful = (uint64_t)maps * (size_t)(layer->in.c / groups) * window_taps(&window);
    return true;
}

// Groups of maps stay together.
static int grain_conv(const struct layer *layer, enum cut_way way) {
    return way == CUT_ROWS   ? 1
           : way == CUT_MAPS ? layer->groups > 1 ? layer->maps / layer->groups : 1
                             : 0;
}

static void share_conv(struct share *share, const struct model *model) {
    struct layer *layer = &share->layer;
    int first = share->makes.c0, last = share->makes.c1, each = layer->maps / layer->groups;
    (void)model;
    share_window(share);
    if (share->way == CUT_MAPS && layer->groups > 1) {
        int inputs = layer->in.c / layer->groups;
        share->needs[0].c0 = first / each * inputs;
        share->needs[0].c1 = last / each * inputs;
        layer->groups = (last - first) / each;
    }
    layer->maps = last - first;
    share_first(share, 0, first, last);
    share_first(share, 1, first, last);
}

static void scratch_conv(const struct layer *layer, int n, bool train, size_t *kept,
                         size_t *brief) {
    struct convolution conv = layer_convolution(layer);
    size_t blocks = most_size(conv_block_scratch(&conv), conv_rows_scratch(&conv, n));
    *kept = pass_kept_size(layer, n, train);
    *brief = most_size(most_size(pass_mask_size(layer, n, train), conv_scratch(&conv)), blocks);
}

static struct convolution pass_convolution(const struct pass *pass) {
    return (struct convolution){pass->window, pass->layer->maps, pass->layer->groups};
}

static int blocks_of(const struct pass *pass) {
    return (pass->n + pass->lanes - 1) / pass->lanes;
}

// Some rows of a picture go the way of all.
static bool uses_winograd(const struct pass *pass, enum conv_pass part) {
    struct convolution conv = layer_convolution(pass->layer);
    return pass->lanes && pass->kernels->winograd->fits(part, &conv, blocks_of(pass), pass->lanes);
}

// --- as rows (kernels/conv_rows.h) --------------------------------------------------------

static bool uses_rows(const struct pass *pass) {
    struct convolution conv = layer_convolution(pass->layer);
    return pass->lanes && conv_rows_fit(&conv, blocks_of(pass), pass->lanes, pass->kernels->lanes);
}

// A pass as that of a dense layer: its matrices, of which x and dx, or y and dy, are the layer's
// own where these lie as rows do, and scratch. Outputs of one pixel are turned as samples of so
// many maps are.
struct rows {
    int count, inputs;
    bool lie, turned;
    float *x, *dx, *y, *scratch;
};

static struct rows rows_of(const struct pass *pass, const struct convolution *conv) {
    size_t count = conv_rows_count(conv, pass->blocks, pass->lanes);
    size_t inputs = conv_rows_inputs(conv), matrix = conv_rows_floats(count, inputs);
    float *y = pass->brief + 2 * matrix;
    return (struct rows){
        .count = (int)count,
        .inputs = (int)inputs,
        .lie = conv_rows_lie(conv, pass->lanes),
        .turned = pass->lanes > 1,
        .x = pass->brief,
        .dx = pass->brief + matrix,
        .y = y,
        .scratch = y + conv_rows_floats(count, (size_t)conv->maps),
    };
}

static const float *gathered(const struct rows *rows, const struct pass *pass,
                             const struct convolution *conv) {
    if (rows->lie)
        return pass->x[0];
    conv_rows_gather(rows->x, pass->x[0], 0, (size_t)rows->count, pass->lanes, conv);
    return rows->x;
}

// In a team each gathers its share of the rows for all.
static const float *gathered_together(const struct rows *rows, const struct pass *pass,
                                      const struct convolution *conv) {
    size_t all = (size_t)rows->count, threads = (size_t)pass->team->threads;
    size_t first = all * (size_t)pass->number / threads,
           last = all * (size_t)(pass->number + 1) / threads;
    if (rows->lie)
        return pass->x[0];
    conv_rows_gather(pass->team->common, pass->x[0], first, last, pass->lanes, conv);
    pass_meet(pass);
    return pass->team->common;
}

// Some maps of each pixel to their places.
static void place_maps(const struct pass *pass, const float *from, int count) {
    size_t maps = (size_t)(pass->end - pass->first), all = (size_t)pass->layer->maps;
    float *to = pass->y + pass->first;
    for (int i = 0; i < count; i++, from += maps, to += all)
        memcpy(to, from, maps * sizeof *to);
}

static void forward_rows(const struct pass *pass, const struct convolution *conv) {
    struct rows rows = rows_of(pass, conv);
    int first = pass->first, maps = pass->end - first;
    bool some = maps < conv->maps;
    const float *x =
        pass->team ? gathered_together(&rows, pass, conv) : gathered(&rows, pass, conv);
    if (maps == 0)
        return;
    pass->kernels->dense->forward(rows.turned || some ? rows.y : pass->y, x,
                                  pass->weights + (size_t)first * (size_t)rows.inputs,
                                  pass->biases + first, rows.count, maps, rows.inputs,
                                  affine_first(pass, maps), rows.scratch);
    if (some)
        place_maps(pass, rows.y, rows.count);
    else if (rows.turned)
        pass->kernels->blocks->block(pass->y, rows.y, rows.count, maps, 1, pass->lanes);
    pass_activate(pass, pass->kept);
}

static void backward_rows(const struct pass *pass, const struct convolution *conv) {
    struct rows rows = rows_of(pass, conv);
    if (rows.turned)
        pass->kernels->blocks->unblock(rows.y, pass->dy, rows.count, conv->maps, 1, pass->lanes);
    struct dense_errors errors = {
        .dy = rows.turned ? rows.y : pass->dy,
        .x = layer_learns(pass->layer) ? gathered(&rows, pass, conv) : NULL,
        .dx = rows.lie || !pass->dx[0] ? pass->dx[0] : rows.dx,
        .n = rows.count,
        .units = conv->maps,
        .inputs = rows.inputs,
        .scratch = rows.scratch,
    };
    affine_back(pass, &errors);
    if (pass->dx[0] && !rows.lie)
        conv_rows_scatter(pass->dx[0], rows.dx, pass->blocks, pass->lanes, conv);
    if (pass->dx[0])
        pass_finish_errors(pass);
}

// --- by what is kept of weights -----------------------------------------------------------

// The kernels by which it is faster; NULL: there are none.
static const struct conv_kept_kernels *kept_kernels(const struct layer *layer,
                                                    const struct kernels *kernels) {
    struct convolution conv = layer_convolution(layer);
    if (!kernels->lanes)
        return NULL;
    if (kernels->winograd_kept->size(&conv) > 0)
        return kernels->winograd_kept;
    return kernels->packed->size(&conv) > 0 ? kernels->packed : NULL;
}

static size_t kept_size_conv(const struct layer *layer, const struct kernels *kernels, int n) {
    const struct conv_kept_kernels *kept = kept_kernels(layer, kernels);
    struct convolution conv = layer_convolution(layer);
    return kept && n < kernels->lanes ? kept->size(&conv) : 0;
}

static bool keep_conv(float *to, const struct layer *layer, const struct kernels *kernels,
                      const float *weights) {
    struct convolution conv = layer_convolution(layer);
    kept_kernels(layer, kernels)->keep(to, weights, &conv);
    return true;
}

static bool uses_kept(const struct pass *pass) {
    return pass->prepared && pass->lanes == 1;
}

static void forward_kept(const struct pass *pass, const struct convolution *conv) {
    bool relu = pass->act == ACT_RELU;
    kept_kernels(pass->layer, pass->kernels)
        ->forward(pass->y, pass->x[0], pass->prepared, pass->biases, relu, pass->blocks,
                  pass->first, pass->end, conv, pass->brief);
    if (!relu)
        pass_activate(pass, pass->kept);
}

// --- in blocks, and of plain samples ------------------------------------------------------

static const struct conv_passes *passes_of(const struct pass *pass, enum conv_pass part) {
    const struct kernels *k = pass->kernels;
    return uses_winograd(pass, part) ? &k->winograd->passes : &k->conv_blocks->passes;
}

static void forward_blocks(const struct pass *pass, const struct convolution *conv) {
    bool relu = pass->act == ACT_RELU;
    passes_of(pass, CONV_FORWARD)
        ->forward(pass->y, pass->x[0], pass->weights, pass->biases, relu,
                  pass_tell_sums(pass, pass->tells, NET_FORWARD), pass->blocks, pass->lanes, conv,
                  pass->brief);
    (relu ? pass_drop : pass_activate)(pass, pass->kept);
}

static void forward_plain(const struct pass *pass, const struct convolution *conv) {
    const struct layer *layer = pass->layer;
    pass->kernels->conv->forward(pass->y, pass->x[0], pass->weights, pass->n, conv, pass->brief);
    pass->kernels->bias_add(pass->y, pass->biases, pass->n, layer->maps,
                            layer->out.h * layer->out.w);
    pass_activate(pass, pass->kept);
}

static void forward_conv(const struct pass *pass) {
    struct convolution conv = pass_convolution(pass);
    if (uses_kept(pass))
        forward_kept(pass, &conv);
    else if (uses_rows(pass))
        forward_rows(pass, &conv);
    else
        (pass->lanes ? forward_blocks : forward_plain)(pass, &conv);
}

static void back_weights_blocks(const struct pass *pass, const struct convolution *conv) {
    passes_of(pass, CONV_BACK_WEIGHTS)
        ->back_weights(pass->dweights, pass_felt_biases(pass), pass->dy, pass->x[0], pass->blocks,
                       pass->lanes, conv, pass->brief);
}

static void back_input_blocks(const struct pass *pass, const struct convolution *conv) {
    struct conv_ends ends = pass_ends(pass);
    passes_of(pass, CONV_BACK_INPUT)
        ->back_input(pass->dx[0], pass->dy, pass->weights, &ends, pass->blocks, pass->lanes, conv,
                     pass->brief);
}

static void back_weights_plain(const struct pass *pass, const struct convolution *conv) {
    const struct layer *layer = pass->layer;
    float *felt = pass_felt_biases(pass);
    if (felt)
        pass->kernels->bias_sum(felt, pass->dy, pass->n, layer->maps, layer->out.h * layer->out.w);
    pass->kernels->conv->back_weights(pass->dweights, pass->dy, pass->x[0], pass->n, conv,
                                      pass->brief);
}

static void back_input_plain(const struct pass *pass, const struct convolution *conv) {
    pass->kernels->conv->back_input(pass->dx[0], pass->dy, pass->weights, pass->n, conv,
                                    pass->brief);
    pass_finish_errors(pass);
}

static void backward_conv(const struct pass *pass) {
    struct convolution conv = pass_convolution(pass);
    pass_activate_back(pass, pass->kept);
    if (uses_rows(pass)) {
        backward_rows(pass, &conv);
        return;
    }
    if (layer_learns(pass->layer))
        (pass->lanes ? back_weights_blocks : back_weights_plain)(pass, &conv);
    if (pass->dx[0])
        (pass->lanes ? back_input_blocks : back_input_plain)(pass, &conv);
}

// Threads that share a pass read the weights of their own maps only, where these are many; else
// each reads all for its own rows, those of whole tiles where there are tiles.
static struct team_cut team_cut_kept(const struct pass *pass) {
    const struct conv_kept_kernels *kept = kept_kernels(pass->layer, pass->kernels);
    struct convolution conv = layer_convolution(pass->layer);
    int unit = kept->unit(&conv);
    bool fast = kept == pass->kernels->winograd_kept;
    bool finer = !fast && pass->layer->useful >= FINER_WORK;
    if (unit > 0 && pass->layer->weights.count > WEIGHTS_LARGE)
        return (struct team_cut){.maps = unit, .finer = finer};
    return (struct team_cut){.rows = fast ? WINOGRAD_ROWS : 1, .finer = finer};
}

static struct team_cut team_cut_conv(const struct pass *pass) {
    if (uses_kept(pass))
        return team_cut_kept(pass);
    if (uses_rows(pass))
        return (struct team_cut){.maps = pass->lanes == 1 ? pass->kernels->lanes : 0,
                                 .together = true};
    bool fast = uses_winograd(pass, CONV_FORWARD);
    return (struct team_cut){.rows = fast ? WINOGRAD_ROWS : 1,
                             .finer = !fast && pass->layer->useful >= FINER_WORK};
}

static const char *way_conv(const struct pass *pass, enum conv_pass part) {
    struct convolution conv = layer_convolution(pass->layer);
    if (uses_kept(pass) && part == CONV_FORWARD)
        return kept_kernels(pass->layer, pass->kernels)->way;
    if (uses_rows(pass))
        return "rows";
    return uses_winograd(pass, part) ? "winograd"
                                     : pass->kernels->conv->way(part, &conv, pass->lanes);
}

const struct layer_type layer_conv = {
    .name = "conv",
    .what = "convolution: each map has one kernel for all places",
    .keys = keys,
    .key_count = KEY_COUNT_OF(keys),
    .trains = true,
    .layout = LAYOUT_BLOCKS,
    .inputs_most = 1,
    .acts = ACTS_ALL,
    .back_reads_x = true,
    .back_keeps_dy = true,
    .tells_sums = true,
    .undoes_relu = true,
    .undoes_bound = true,
    .adds_errors = true,
    .bands = true,
    .shape = shape_conv,
    .grain = grain_conv,
    .share = share_conv,
    .scratch = scratch_conv,
    .forward = forward_conv,
    .backward = backward_conv,
    .team_cut = team_cut_conv,
    .kept_size = kept_size_conv,
    .keep = keep_conv,
    .way = way_conv,
};
