// The models of a cut's partitions: of each layer of the whole model what the partition has of it,
// and the exchanges where they are read.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "model/cut_inside.h"

enum { LAYERS_EACH = 5 }; // that a layer may become, without the exchanges of its outputs

struct builder {
    const struct cut *cut;
    int number;
    struct partition *part;
    int layer_room, placed_room;
    int *layer_at;    // of each layer of the whole model, the one that gives its outputs; -1: none
    int *exchange_at; // of each exchange
};

// --- layers -----------------------------------------------------------------------------

static void add_source(struct layer *layer, int from) {
    if (from >= 0)
        layer->from[layer->from_count++] = from;
}

// Returns its index. What it reads is not yet said.
static int add_layer(struct builder *b, const struct layer *layer) {
    struct model *model = &b->part->model;
    INVARIANT(model->layer_count < b->layer_room);
    struct layer *added = &model->layers[model->layer_count];
    *added = *layer;
    added->index = model->layer_count;
    added->from_count = 0;
    model->connections += layer->connections;
    return model->layer_count++;
}

static struct layer *layer_at(const struct builder *b, int index) {
    return &b->part->model.layers[index];
}

// Whether a partition before this one has the layer, all of whose parameters each has.
static bool is_had_before(const struct builder *b, int layer) {
    for (int p = 0; cut_adds_up(b->cut, layer) && p < b->number; p++)
        if (!region_empty(&share_at(b->cut, layer, p)->own))
            return true;
    return false;
}

static void place_tensor(struct builder *b, struct parameter *own, const struct box *box,
                         const struct parameter *whole, int layer) {
    struct model *model = &b->part->model;
    own->offset = model->parameter_count;
    model->parameter_count += own->count;
    if (own->count == 0)
        return;
    INVARIANT(b->part->placed_count < b->placed_room);
    b->part->placed[b->part->placed_count++] = (struct placed){
        .box = *box, .whole = whole->offset, .own = own->offset, .first = !is_had_before(b, layer)};
}

static void place_tensors(struct builder *b, int index, const struct share *share, int layer) {
    struct layer whole = b->cut->model->layers[layer];
    for (int i = 0; i < LAYER_TENSORS; i++)
        place_tensor(b, layer_tensor(layer_at(b, index), i), &share->boxes[i],
                     layer_tensor(&whole, i), layer);
}

static void leave_tensors(struct layer *layer) {
    for (int i = 0; i < LAYER_TENSORS; i++)
        *layer_tensor(layer, i) = (struct parameter){0};
    layer->connections = layer->useful = 0;
}

// --- exchanges --------------------------------------------------------------------------

// One that reads layer `from` of this partition's, and nothing where that is below 0. It is nowhere
// where it neither gives nor takes.
static int add_exchange(struct builder *b, const struct cut_exchange *of, int from,
                        const struct region *source) {
    const struct exchange *exchange = &of->exchange;
    const struct region *take = &exchange->take[b->number];
    struct layer layer = b->cut->model->layers[of->layer];
    if (from < 0 && region_empty(take))
        return -1;
    leave_tensors(&layer);
    layer.type = &layer_exchange;
    layer.exchange = exchange;
    layer.partition = b->number;
    layer.act = ACT_LINEAR;
    layer.dropout = 0;
    layer.in = region_shape(source, exchange->w);
    layer.out = region_shape(take, exchange->w);
    layer.region = *source;
    int index = add_layer(b, &layer);
    add_source(layer_at(b, index), from);
    return index;
}

static const struct cut_exchange *exchange_of(const struct builder *b, int layer,
                                              enum exchange_kind kind) {
    for (int e = 0; e < b->cut->exchange_count; e++)
        if (b->cut->exchanges[e].layer == layer && b->cut->exchanges[e].kind == kind)
            return &b->cut->exchanges[e];
    return NULL;
}

// Those by which others, and this one, read the layer.
static void add_readers(struct builder *b, int layer) {
    for (int e = 0; e < b->cut->exchange_count; e++) {
        const struct cut_exchange *exchange = &b->cut->exchanges[e];
        if (exchange->layer == layer && exchange->kind == EXCHANGE_OUTPUTS)
            b->exchange_at[e] = add_exchange(b, exchange, b->layer_at[layer],
                                             share_gives(share_at(b->cut, layer, b->number)));
    }
}

// --- what a layer becomes ---------------------------------------------------------------

// Where the layer reads slot j; -1: it needs nothing of it.
static int source_of(const struct builder *b, int layer, int j) {
    const struct layer *of = &b->cut->model->layers[layer];
    int exchange = *reads_at(b->cut, layer, j);
    if (region_empty(&share_at(b->cut, layer, b->number)->needs[j]))
        return -1;
    return exchange >= 0 ? b->exchange_at[exchange] : b->layer_at[of->from[j]];
}

// The layer itself, smaller; of an output, or of sums, without activation.
static int add_share(struct builder *b, int layer, bool plain) {
    const struct share *share = share_at(b->cut, layer, b->number);
    struct layer own = share->layer;
    if (region_empty(&share->makes))
        return -1;
    if (plain) {
        own.type = &layer_dense;
        own.act = ACT_LINEAR;
        own.dropout = 0;
    }
    int index = add_layer(b, &own);
    for (int j = 0; j < own.from_count; j++)
        add_source(layer_at(b, index), source_of(b, layer, j));
    place_tensors(b, index, share, layer);
    return index;
}

// Biases, and activation, of the partition's own sums.
static int add_biases(struct builder *b, int layer, int from) {
    const struct layer *of = &b->cut->model->layers[layer];
    const struct region *own = &share_at(b->cut, layer, b->number)->own;
    const struct box box = {.rank = 1, .dims = {of->out.c}, .low = {own->c0}, .high = {own->c1}};
    struct layer biases = *of;
    if (region_empty(own))
        return -1;
    leave_tensors(&biases);
    biases.type = &layer_biases;
    biases.in = biases.out = region_shape(own, 1);
    biases.region = *own;
    biases.biases =
        (struct parameter){.count = (size_t)biases.out.c, .dims = {biases.out.c}, .rank = 1};
    int index = add_layer(b, &biases);
    add_source(layer_at(b, index), from);
    for (int i = 0; i < LAYER_TENSORS; i++)
        place_tensor(b, layer_tensor(layer_at(b, index), i), &box, &of->biases, layer);
    return index;
}

static int add_sums(struct builder *b, int layer) {
    int partial = add_share(b, layer, true);
    int sums = add_exchange(b, exchange_of(b, layer, EXCHANGE_SUMS), partial,
                            &share_at(b->cut, layer, b->number)->makes);
    return add_biases(b, layer, sums);
}

// Which of those with classes it is.
static int place_among(const struct builder *b, int layer) {
    int before = 0;
    for (int p = 0; p < b->number; p++)
        before += !region_empty(&share_at(b->cut, layer, p)->own);
    return before;
}

// The probabilities of the partition's classes, or its numbers, from their sums.
static int add_output(struct builder *b, int layer, int sums) {
    const struct layer *of = &b->cut->model->layers[layer];
    const struct cut_exchange *exchange = exchange_of(b, layer, EXCHANGE_EXTREMES);
    int place = place_among(b, layer), extremes = -1;
    struct layer output = *of;
    if (sums < 0)
        return -1;
    leave_tensors(&output);
    output.in = output.out = layer_at(b, sums)->out;
    output.region = share_at(b->cut, layer, b->number)->own;
    if (exchange) {
        struct layer pair = output;
        pair.type = &layer_extremes;
        pair.out = (struct shape){2, 1, 1};
        pair.region = (struct region){2 * place, 2 * place + 2, 0, 1};
        int at = add_layer(b, &pair);
        add_source(layer_at(b, at), sums);
        extremes = add_exchange(b, exchange, at, &pair.region);
    }
    output.type = layer_joined(of->type->goal);
    output.partition = place;
    int index = add_layer(b, &output);
    add_source(layer_at(b, index), sums);
    add_source(layer_at(b, index), extremes);
    return index;
}

static int add_parts(struct builder *b, int layer) {
    const struct layer *of = &b->cut->model->layers[layer];
    bool joins = of->type->output && b->cut->ways[layer] != CUT_NONE;
    int index = b->cut->ways[layer] == CUT_INPUTS ? add_sums(b, layer) : add_share(b, layer, joins);
    return joins ? add_output(b, layer, index) : index;
}

// Where the gradients that are added up lie.
static void add_sum(struct builder *b, int layer) {
    struct partition *part = b->part;
    size_t at = partition_sum_floats(part);
    if (!cut_adds_up(b->cut, layer) || !layer_learns(&b->cut->model->layers[layer]))
        return;
    part->sums[part->sum_count++] =
        (struct cut_sum){.at = at,
                         .n = layer_parameters(&b->cut->model->layers[layer]),
                         .layer = b->layer_at[layer]};
}

static void build(struct builder *b) {
    for (int i = 0; i < b->cut->model->layer_count; i++) {
        b->layer_at[i] = i == 0 ? add_layer(b, model_input(b->cut->model)) : add_parts(b, i);
        add_sum(b, i);
        add_readers(b, i);
    }
}

static int build_model(struct builder *b, struct error *err) {
    const struct cut *cut = b->cut;
    size_t layers = (size_t)cut->model->layer_count;
    size_t room = layers * LAYERS_EACH + (size_t)cut->exchange_count;
    b->layer_room = (int)room;
    b->placed_room = (int)layers * LAYER_TENSORS;
    b->part->model.name = cut->model->name;
    b->part->model.uncut = cut->model;
    b->part->model.layers = mem_zeroed(room, sizeof *b->part->model.layers);
    b->part->placed = mem_zeroed((size_t)b->placed_room, sizeof *b->part->placed);
    b->part->sums = mem_zeroed(layers, sizeof *b->part->sums);
    b->layer_at = mem_zeroed(layers, sizeof *b->layer_at);
    b->exchange_at = mem_zeroed((size_t)cut->exchange_count + 1, sizeof *b->exchange_at);
    bool room_for_all =
        b->part->model.layers && b->part->placed && b->part->sums && b->layer_at && b->exchange_at;
    if (room_for_all)
        build(b);
    free(b->layer_at), free(b->exchange_at);
    return room_for_all ? STATUS_OK : error_nomem(err);
}

int cut_make_models(struct cut *cut, struct error *err) {
    int status = STATUS_OK;
    for (int p = 0; !status && p < cut->partitions; p++) {
        struct builder b = {.cut = cut, .number = p, .part = &cut->parts[p]};
        status = build_model(&b, err);
    }
    return status;
}
