// How a cut is made (cut.c): ways are chosen (cut_choose.c), from these come shares of layers
// (share.h), some of which partitions compute twice (cut_overlap.c), from shares exchanges
// (cut_exchanges.c), and from both the partitions' models (cut_models.c). Inside lib/model only.
#ifndef ADAM_MODEL_CUT_INSIDE_H
#define ADAM_MODEL_CUT_INSIDE_H

#include "model/cut.h"
#include "model/exchange.h"
#include "model/share.h"

enum exchange_kind { EXCHANGE_OUTPUTS, EXCHANGE_SUMS, EXCHANGE_EXTREMES };

// A tensor of a partition's parameters.
struct placed {
    struct box box;    // of the whole model's tensor,
    size_t whole, own; // which begins there; and where this one does
    bool first;        // no partition before this one has it
};

struct partition {
    struct model model;
    struct placed *placed;
    int placed_count;
    struct cut_sum *sums; // of each layer of the whole model that has any
    int sum_count;
};

// Floats of its sums so far.
static inline size_t partition_sum_floats(const struct partition *part) {
    if (part->sum_count == 0)
        return 0;
    const struct cut_sum *last = &part->sums[part->sum_count - 1];
    return last->at + last->n;
}

// An exchange of what a layer gives.
struct cut_exchange {
    struct exchange exchange;
    enum exchange_kind kind;
    int layer;
};

struct cut {
    const struct model *model;
    int partitions, batch;
    bool *wanted;         // of each layer, whether error gradients of its outputs are
    bool *blocked;        // and whether they lie in blocks (layout.h)
    enum cut_way *ways;   // of each layer
    struct share *shares; // of each layer, of each partition
    struct cut_exchange *exchanges;
    int exchange_count, exchange_room;
    struct region *regions; // of the exchanges
    int *reads; // of each layer, of each that it reads: the exchange that it reads; -1: the layer
    struct partition *parts;
};

static inline struct share *share_at(const struct cut *cut, int layer, int partition) {
    return &cut->shares[(size_t)layer * (size_t)cut->partitions + (size_t)partition];
}

static inline int *reads_at(const struct cut *cut, int layer, int j) {
    return &cut->reads[(size_t)layer * LAYER_INPUTS_MAX + (size_t)j];
}

// Multiplications of all passes of a layer for a sample: by activations, and, where it learns, of
// the error gradients of its inputs and of its weights.
static inline double layer_work(const struct layer *layer) {
    return (double)layer->useful * (layer_learns(layer) ? 3 : 1);
}

// What a partition has of a layer's outputs for those who read it: its own and, where it computes
// more, that too.
static inline const struct region *share_gives(const struct share *share) {
    return share->way == CUT_INPUTS ? &share->own : &share->makes;
}

// Makes what a partition has of a layer, by its way; `makes` as share_place has it.
void cut_make_share(const struct cut *cut, int layer, int partition, const struct region *makes);
// Whether every partition that has any of the layer has all its parameters.
bool cut_adds_up(const struct cut *cut, int layer);

// The steps, in this order. STATUS_IO: out of memory.
int cut_choose(struct cut *cut, struct error *err);
int cut_overlap(struct cut *cut, struct error *err);
int cut_make_exchanges(struct cut *cut, struct error *err);
int cut_make_models(struct cut *cut, struct error *err);

#endif
