// Rows that several partitions compute, because that takes less than to exchange them.
//
// Where windows overlap, a partition needs some rows more of the layer below than it has. It gets
// these by an exchange, which also copies the rows that it has, and behind which no layers go band
// by band (net_bands.c); or it computes them itself, and then needs more rows of the next layer
// below. In a chain of layers, each of which is all that the next one reads, exchanges stand where
// all of it costs least.
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/cut_inside.h"
#include "model/fuse.h"

struct chain {
    struct cut *cut;
    const int *readers;
    int *layers; // from the top down
    int count;
    double *best; // of the first so many, with the exchange behind them
    int *top;     // of these, where the last stretch without an exchange begins
};

// --- one stretch --------------------------------------------------------------------------

// A stretch begins with what partitions own of its first layer; of each next one they compute what
// the one above needs.
static void make_stretch(const struct chain *chain, int first, int end) {
    for (int m = first; m < end; m++)
        for (int p = 0; p < chain->cut->partitions; p++) {
            const struct region *needs =
                m > first ? &share_at(chain->cut, chain->layers[m - 1], p)->needs[0] : NULL;
            const struct region makes = needs ? *needs : (struct region){0};
            cut_make_share(chain->cut, chain->layers[m], p, needs ? &makes : NULL);
        }
}

static bool holds(const struct region *outer, const struct region *inner) {
    const struct region both = region_meet(outer, inner);
    return !region_empty(inner) && region_same(&both, inner);
}

// Whether each partition that has some of the layer may compute more of it: what it has then is
// right, and its parameters are the same.
static bool may_extend(const struct chain *chain, int m) {
    const struct layer *layer = &chain->cut->model->layers[chain->layers[m]];
    for (int p = 0; p < chain->cut->partitions; p++) {
        const struct share *share = share_at(chain->cut, chain->layers[m], p);
        const struct region *needs = &share_at(chain->cut, chain->layers[m - 1], p)->needs[0];
        if (!share->exact || !holds(needs, &share->own) ||
            layer_parameters(&share->layer) != layer_parameters(layer))
            return false;
    }
    return true;
}

// Multiplications of rows that partitions do not own.
static double twice(const struct chain *chain, int m) {
    const struct layer *layer = &chain->cut->model->layers[chain->layers[m]];
    double sum = 0;
    for (int p = 0; p < chain->cut->partitions; p++)
        sum += layer_work(&share_at(chain->cut, chain->layers[m], p)->layer);
    return sum - layer_work(layer);
}

// Of what lies below the layer: the bytes that cross borders, and, where some do, those that are
// copied beside them.
static double exchanged(const struct chain *chain, int m) {
    const struct layer *layer = &chain->cut->model->layers[chain->layers[m]];
    const struct layer *below = &chain->cut->model->layers[layer->from[0]];
    double crossing = 0, copied = 0;
    for (int p = 0; p < chain->cut->partitions; p++) {
        const struct share *source = share_at(chain->cut, below->index, p);
        const struct region *needs = &share_at(chain->cut, layer->index, p)->needs[0];
        const struct region own = region_meet(needs, &source->own);
        size_t has = region_size(&own, below->out.w);
        crossing += (double)(region_size(needs, below->out.w) - has);
        copied += (double)has;
    }
    double passes = chain->cut->wanted[below->index] ? 2 : 1;
    return crossing > 0 ? CUT_MULTIPLIES_A_BYTE * sizeof(float) * (passes * crossing + copied) : 0;
}

// Of the stretch from the first layer up to, but not including, `end`; infinite: it cannot be one.
static double stretch_cost(const struct chain *chain, int first, int end) {
    double cost = 0;
    make_stretch(chain, first, first + 1);
    for (int m = first + 1; m < end; m++) {
        make_stretch(chain, m, m + 1);
        if (!may_extend(chain, m))
            return HUGE_VAL;
        make_stretch(chain, first, m + 1);
        cost += twice(chain, m);
    }
    return cost + exchanged(chain, end - 1);
}

// --- chains -------------------------------------------------------------------------------

static bool is_row_cut(const struct cut *cut, int layer) {
    return cut->ways[layer] == CUT_ROWS && cut->model->layers[layer].from_count == 1;
}

static void follow_down(struct chain *chain, int layer) {
    const struct model *model = chain->cut->model;
    chain->count = 0;
    do {
        chain->layers[chain->count++] = layer;
        layer = model->layers[layer].from[0];
    } while (is_row_cut(chain->cut, layer) && chain->readers[layer] == 1);
}

static void weigh(struct chain *chain) {
    chain->best[0] = 0;
    for (int end = 1; end <= chain->count; end++) {
        chain->best[end] = HUGE_VAL;
        for (int first = end - 1; first >= 0; first--) {
            double cost = chain->best[first] + stretch_cost(chain, first, end);
            if (cost < chain->best[end])
                chain->best[end] = cost, chain->top[end] = first;
        }
    }
}

static void settle(const struct chain *chain) {
    for (int end = chain->count; end > 0; end = chain->top[end])
        make_stretch(chain, chain->top[end], end);
}

// Whether the layer is the first of a chain: what reads it is not one of its layers.
static bool is_top(const struct chain *chain, int layer) {
    const struct model *model = chain->cut->model;
    for (int r = layer + 1; chain->readers[layer] == 1 && r < model->layer_count; r++)
        if (is_row_cut(chain->cut, r) && model->layers[r].from[0] == layer)
            return false;
    return is_row_cut(chain->cut, layer);
}

int cut_overlap(struct cut *cut, struct error *err) {
    size_t layers = (size_t)cut->model->layer_count;
    int *readers = fuse_readers(cut->model);
    struct chain chain = {.cut = cut,
                          .readers = readers,
                          .layers = mem_array(layers, sizeof *chain.layers),
                          .best = mem_array(layers + 1, sizeof *chain.best),
                          .top = mem_array(layers + 1, sizeof *chain.top)};
    bool room = readers && chain.layers && chain.best && chain.top;
    for (int i = cut->model->layer_count - 1; room && i > 0; i--)
        if (is_top(&chain, i)) {
            follow_down(&chain, i);
            weigh(&chain);
            settle(&chain);
        }
    free(readers), free(chain.layers), free(chain.best), free(chain.top);
    return room ? STATUS_OK : error_nomem(err);
}
