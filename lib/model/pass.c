#include "model/pass.h"

#include <string.h>

#include "core/random.h"
#include "kernels/blocks.h"
#include "kernels/kernels.h"

size_t pass_outputs(const struct pass *pass) {
    return (size_t)pass->places * (size_t)pass->layer->out.c * (size_t)pass->window.out_h *
           (size_t)pass->window.out_w;
}

float *pass_felt_biases(const struct pass *pass) {
    if (!pass->biases_lost)
        return pass->dbiases;
    memset(pass->dbiases, 0, pass->layer->biases.count * sizeof *pass->dbiases);
    return NULL;
}

bool pass_offer(const struct pass *pass, const struct dense_errors *errors) {
    *pass->taken = pass->offer && pass->offer(pass->taker, pass->layer, errors, pass->dbiases);
    return *pass->taken;
}

const struct conv_sums *pass_tell_sums(const struct pass *pass, int told, enum net_pass of) {
    struct pass_sums *sums = pass->sums;
    if (told == 0)
        return NULL;
    sums->told = told, sums->pass = of;
    sums->at = pass->at, sums->n = pass->n;
    sums->sums.other = of == NET_BACKWARD ? pass->beside : NULL;
    return &sums->sums;
}

const struct conv_sums *pass_take_sums(const struct pass *pass, enum net_pass of) {
    struct pass_sums *sums = pass->sums;
    if (sums->told != pass->layer->index || sums->pass != of || sums->at != pass->at ||
        sums->n != pass->n)
        return NULL;
    sums->told = 0;
    return &sums->sums;
}

size_t pass_mask_size(const struct layer *layer, int n, bool train) {
    return train && layer->dropout > 0 ? (size_t)n * shape_size(layer->out) : 0;
}

size_t pass_kept_size(const struct layer *layer, int n, bool train) {
    bool inputs = train && act_reads_inputs(layer->act);
    return pass_mask_size(layer, n, train) + (inputs ? (size_t)n * shape_size(layer->out) : 0);
}

enum { WORDS = 256 }; // random words made at once

// Inverted dropout: what stays is scaled up, so that evaluation changes nothing.
static void draw_sample(float *mask, size_t size, float keep, struct random random) {
    uint32_t words[WORDS];
    float factor = 1.0f / keep;
    for (size_t i = 0; i < size; i += WORDS) {
        size_t count = size - i < WORDS ? size - i : WORDS;
        random_words(&random, words, count);
        for (size_t j = 0; j < count; j++) // as random_unit makes numbers of words
            mask[i + j] = (float)(int32_t)(words[j] >> 8) * 0x1p-24f < keep ? factor : 0.0f;
    }
}

// Of a region the numbers that it has in the whole layer: of each map a run, or one of all.
static void draw_region(float *mask, const struct layer *layer, struct random random) {
    const struct region *region = &layer->region;
    size_t w = (size_t)layer->out.w, map = (size_t)layer->whole.h * w;
    bool all = layer->out.h == layer->whole.h;
    int maps = all ? 1 : layer->out.c;
    size_t size = shape_size(layer->out) / (size_t)maps;
    for (int c = 0; c < maps; c++, mask += size) {
        struct random there = random;
        random_skip(&there, (size_t)(region->c0 + c) * map + (size_t)region->r0 * w);
        draw_sample(mask, size, 1.0f - layer->dropout, there);
    }
}

// The numbers depend on the sample and the layer, not on the thread, the batch or the partition.
static void draw_samples(const struct pass *pass, float *mask) {
    const struct layer *layer = pass->layer;
    for (int i = 0; i < pass->n; i++, mask += shape_size(layer->out))
        draw_region(mask, layer,
                    random_stream(pass->seed, pass->draw[i], (uint64_t)layer->stream + 1));
}

static void draw_mask(const struct pass *pass, float *mask) {
    const struct shape *out = &pass->layer->out;
    if (!pass->lanes) {
        draw_samples(pass, mask);
        return;
    }
    draw_samples(pass, pass->brief);
    pass->kernels->blocks->block(mask, pass->brief, pass->n, out->c, out->h * out->w, pass->lanes);
}

static bool has_dropout(const struct pass *pass) {
    return pass->layer->dropout > 0 && pass->draw;
}

// Behind the mask of a layer that drops.
static float *activation_inputs(const struct pass *pass, float *kept) {
    return kept + pass_mask_size(pass->layer, pass->places, pass->trains);
}

// Some maps, or units, of each pixel of one block, or sample.
static void activate_maps(const struct pass *pass) {
    const struct activation *act = &pass->kernels->acts[pass->act];
    size_t each = (size_t)(pass->lanes ? pass->lanes : 1);
    size_t count = (size_t)(pass->end - pass->first) * each, all = pass_outputs(pass);
    if (act->forward)
        for (size_t at = (size_t)pass->first * each; at < all;
             at += (size_t)pass->layer->out.c * each)
            act->forward(pass->y + at, count, pass->slope);
}

void pass_activate(const struct pass *pass, float *kept) {
    const struct activation *act = &pass->kernels->acts[pass->act];
    size_t n = pass_outputs(pass);
    if (pass->end - pass->first < pass->layer->out.c) {
        activate_maps(pass);
        return;
    }
    if (pass->trains && act_reads_inputs(pass->act))
        memcpy(activation_inputs(pass, kept), pass->y, n * sizeof *pass->y);
    if (act->forward)
        act->forward(pass->y, n, pass->slope);
    pass_drop(pass, kept);
}

void pass_drop(const struct pass *pass, float *mask) {
    if (!has_dropout(pass))
        return;
    draw_mask(pass, mask);
    pass->kernels->multiply(pass->y, mask, pass_outputs(pass));
}

// Nobody reads y any more, so it may be turned back into what it was before the
// dropout; where it was dropped dy is 0 and any y will do.
static void undo_scale(const struct pass *pass, size_t n) {
    float keep = 1.0f - pass->layer->dropout;
    for (size_t i = 0; i < n; i++)
        pass->y[i] *= keep;
}

void pass_score(const struct pass *pass, float *kept) {
    size_t n = pass_outputs(pass);
    memcpy(kept, pass->y, n * sizeof *pass->y);
    pass->kernels->acts[ACT_SIGMOID].forward(pass->y, n, 0);
}

void pass_meet(const struct pass *pass) {
    pass->team->meet(pass->team->self);
}

struct team_cut pass_team_cut_rows(const struct pass *pass) {
    (void)pass;
    return (struct team_cut){.rows = 1};
}

size_t pass_above(const struct pass *pass) {
    return (size_t)pass->row * (size_t)pass->window.out_w * (size_t)pass->window.c *
           (size_t)pass->lanes;
}

struct conv_ends pass_ends(const struct pass *pass) {
    return (struct conv_ends){
        .more = pass->more,
        .relu = pass->undoes ? pass->x[0] : NULL,
        .most = act_relu_bound(pass->undoes),
        .sums = pass_tell_sums(pass, pass->tells_back, NET_BACKWARD),
    };
}

static void finish_blocks(const struct pass *pass) {
    const struct shape *in = &pass->in[0];
    struct conv_ends ends = pass_ends(pass);
    pass->kernels->conv_blocks->finish(pass->dx[0], &ends,
                                       (size_t)pass->blocks * (size_t)(in->h * in->w),
                                       (size_t)(in->c * pass->lanes));
}

void pass_finish_errors(const struct pass *pass) {
    const struct kernels *k = pass->kernels;
    size_t n = (size_t)pass->places * shape_size(pass->in[0]);
    if (pass->lanes) {
        finish_blocks(pass);
        return;
    }
    if (pass->more)
        k->axpy(pass->dx[0], pass->more, n, 1);
    if (pass->undoes)
        k->acts[pass->undoes].back(pass->dx[0], pass->x[0], n, 0);
}

void pass_activate_back(const struct pass *pass, float *kept) {
    const struct activation *act = &pass->kernels->acts[pass->act];
    size_t n = pass_outputs(pass);
    if (has_dropout(pass)) {
        pass->kernels->multiply(pass->dy, kept, n);
        undo_scale(pass, n);
    }
    if (act->back && !pass->undone)
        act->back(pass->dy, act_reads_inputs(pass->act) ? activation_inputs(pass, kept) : pass->y,
                  n, pass->slope);
}
