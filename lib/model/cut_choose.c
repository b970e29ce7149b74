// Which way each layer is cut: the ways by which the costs of all layers and of all borders between
// them are least. In a chain of layers this is so; where a layer has several readers, its costs are
// divided among these, and then the way is taken that suits what they were given.
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "model/cut_inside.h"
#include "model/fuse.h"

enum { WAYS = CUT_NONE + 1, FLOAT_BYTES = 4 };
// Of weights that a partition has of one unit, where each lies by itself: servers are told of each
// run of them.
enum { RUN_LEAST = 64 };

// Costs are in floats of a sample that come over a border.
struct choice {
    const struct cut *cut;
    double *best; // of each layer by each way, with all that it reads; infinite: not so
    int *readers;
};

static double *best_at(const struct choice *c, int layer, enum cut_way way) {
    return &c->best[layer * WAYS + (int)way];
}

static struct share share_by(const struct choice *c, int layer, enum cut_way way, int partition) {
    const struct model *model = c->cut->model;
    const struct layer *of = &model->layers[layer];
    struct region all = region_all(&model->layers[of->from[0]].out);
    struct share share;
    share_make(&share, model, of,
               &(struct share_place){
                   .way = way, .at = partition, .count = c->cut->partitions, .from = &all});
    return share;
}

static double passes_of(const struct choice *c, int layer) {
    return c->cut->wanted[layer] ? 2 : 1;
}

// Multiplications beyond an equal part of them that the partition with the most does.
static double imbalance(const struct choice *c, int layer, enum cut_way way) {
    const struct layer *of = &c->cut->model->layers[layer];
    double most = 0, all = layer_work(of);
    for (int p = 0; p < c->cut->partitions; p++) {
        const struct share share = share_by(c, layer, way, p);
        double has = layer_work(&share.layer);
        most = has > most ? has : most;
    }
    if (way == CUT_INPUTS) // each has all of it here: the inputs are divided as the layer below is
        most = all / c->cut->partitions;
    return (most - all / c->cut->partitions) / (CUT_MULTIPLIES_A_BYTE * FLOAT_BYTES);
}

// Whether every partition has all its weights, whose gradients they are to add up.
static bool shares_weights(const struct choice *c, int layer, enum cut_way way) {
    const struct layer *of = &c->cut->model->layers[layer];
    const struct share share = share_by(c, layer, way, 0);
    return way == CUT_ROWS && layer_learns(of) &&
           layer_parameters(&share.layer) == layer_parameters(of);
}

// Sums that are exchanged, and gradients of weights that several have.
static double own_floats(const struct choice *c, int layer, enum cut_way way) {
    const struct layer *of = &c->cut->model->layers[layer];
    double others = c->cut->partitions - 1;
    if (way == CUT_INPUTS)
        return others * (double)shape_size(of->out) * passes_of(c, layer);
    if (shares_weights(c, layer, way))
        return 2 * others * (double)layer_parameters(of) / c->cut->batch;
    return 0;
}

// Whether the inputs of a layer that is cut by them are strips of rows of many maps, so that its
// weights lie in many short runs.
static bool scatters_weights(const struct choice *c, int layer, enum cut_way below) {
    const struct layer *of = &c->cut->model->layers[layer];
    const struct shape *from = &c->cut->model->layers[of->from[0]].out;
    int rows = (from->h + c->cut->partitions - 1) / c->cut->partitions;
    return of->cut != CUT_INPUTS && below == CUT_ROWS && from->c > 1 && rows * from->w < RUN_LEAST;
}

// What partitions lack of the layer that slot j reads, if that is cut by `below`.
static double border(const struct choice *c, int layer, int j, enum cut_way way,
                     enum cut_way below) {
    const struct layer *of = &c->cut->model->layers[layer];
    const struct layer *from = &c->cut->model->layers[of->from[j]];
    double floats = 0;
    if (way == CUT_INPUTS)
        return scatters_weights(c, layer, below) ? HUGE_VAL : 0;
    for (int p = 0; p < c->cut->partitions; p++) {
        struct share share = share_by(c, layer, way, p),
                     source = share_by(c, from->index, below, p);
        struct region both = region_meet(&share.needs[j], &source.own);
        floats +=
            (double)(region_size(&share.needs[j], from->out.w) - region_size(&both, from->out.w));
    }
    return floats * passes_of(c, from->index);
}

// The least cost of slot j's layer and the border to it.
static double least_below(const struct choice *c, int layer, int j, enum cut_way way) {
    int from = c->cut->model->layers[layer].from[j];
    double least = HUGE_VAL;
    for (enum cut_way below = CUT_ROWS; below <= CUT_NONE; below++) {
        double cost = *best_at(c, from, below);
        if (cost < HUGE_VAL)
            cost = cost / c->readers[from] + border(c, layer, j, way, below);
        least = cost < least ? cost : least;
    }
    return least;
}

static bool may(const struct layer *layer, enum cut_way way) {
    enum cut_way said = layer->cut == CUT_UNITS ? CUT_MAPS : layer->cut;
    return way != CUT_UNITS && (said == CUT_AUTO || said == way) && share_may(layer, way);
}

static void weigh_layer(const struct choice *c, int layer) {
    const struct layer *of = &c->cut->model->layers[layer];
    for (enum cut_way way = CUT_AUTO; way <= CUT_NONE; way++) {
        double *best = best_at(c, layer, way);
        *best = way != CUT_AUTO && may(of, way) ? 0 : HUGE_VAL;
        if (*best > 0)
            continue;
        *best = imbalance(c, layer, way) + own_floats(c, layer, way);
        for (int j = 0; j < of->from_count; j++)
            *best += least_below(c, layer, j, way);
    }
}

// With the ways of its readers, which come behind it.
static double cost_with_readers(const struct choice *c, int layer, enum cut_way way) {
    const struct model *model = c->cut->model;
    double cost = *best_at(c, layer, way);
    for (int r = layer + 1; cost < HUGE_VAL && r < model->layer_count; r++)
        for (int j = 0; j < model->layers[r].from_count; j++)
            if (model->layers[r].from[j] == layer)
                cost += border(c, r, j, c->cut->ways[r], way);
    return cost;
}

static enum cut_way best_way(const struct choice *c, int layer) {
    enum cut_way best = CUT_AUTO;
    double least = HUGE_VAL;
    for (enum cut_way way = CUT_ROWS; way <= CUT_NONE; way++) {
        double cost = cost_with_readers(c, layer, way);
        if (cost < least)
            best = way, least = cost;
    }
    return best;
}

static void choose(struct choice *c, struct cut *cut) {
    *best_at(c, 0, CUT_NONE) = 0;
    for (int i = 1; i < cut->model->layer_count; i++)
        weigh_layer(c, i);
    for (int i = cut->model->layer_count - 1; i > 0; i--) {
        cut->ways[i] = best_way(c, i);
        INVARIANT(cut->ways[i] != CUT_AUTO);
    }
}

int cut_choose(struct cut *cut, struct error *err) {
    size_t layers = (size_t)cut->model->layer_count;
    struct choice c = {.cut = cut,
                       .best = mem_array(layers * WAYS, sizeof *c.best),
                       .readers = fuse_readers(cut->model)};
    bool room = c.best && c.readers;
    for (size_t i = 0; room && i < WAYS; i++)
        c.best[i] = HUGE_VAL;
    if (room)
        choose(&c, cut);
    free(c.best), free(c.readers);
    return room ? STATUS_OK : error_nomem(err);
}
