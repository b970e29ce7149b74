// exchange: what a partition's layers read of others' outputs, beside its own.
#include <string.h>

#include "model/exchange.h"
#include "model/pass.h"

struct region exchange_piece(const struct exchange *exchange, enum net_pass pass, int from,
                             int to) {
    const struct region *give = &exchange->give[pass == NET_FORWARD ? from : to];
    const struct region *take = &exchange->take[pass == NET_FORWARD ? to : from];
    return from == to ? (struct region){0} : region_meet(give, take);
}

static size_t piece_size(const struct layer *layer, enum net_pass pass, int from, int to) {
    const struct region piece = exchange_piece(layer->exchange, pass, from, to);
    return region_size(&piece, layer->exchange->w);
}

// Values of a sample that go to the partitions below `end`.
static size_t sent_before(const struct layer *layer, enum net_pass pass, int end) {
    size_t sum = 0;
    for (int to = 0; to < end; to++)
        sum += piece_size(layer, pass, layer->partition, to);
    return sum;
}

// Kept: what is sent forward, then what is sent back.
static void scratch_exchange(const struct layer *layer, int n, bool train, size_t *kept,
                             size_t *brief) {
    int count = layer->exchange->partitions;
    size_t values = sent_before(layer, NET_FORWARD, count);
    (void)brief;
    if (train && layer->exchange->errors)
        values += sent_before(layer, NET_BACKWARD, count);
    *kept = (size_t)n * values;
}

// --- where values lie -------------------------------------------------------------------

static struct region_layout layout_of(const struct pass *pass, struct region region) {
    return (struct region_layout){region, pass->layer->exchange->w, pass->n, pass->lanes};
}

// Of what the partition computes, and of what it takes.
static struct region_layout source_of(const struct pass *pass) {
    return layout_of(pass, pass->layer->region);
}

static struct region_layout taken_of(const struct pass *pass) {
    return layout_of(pass, pass->layer->exchange->take[pass->layer->partition]);
}

// Places without a sample hold numbers.
static void clear_last_block(const struct pass *pass, float *to, size_t size) {
    size_t block = size * (size_t)pass->lanes;
    if (pass->places > pass->n)
        memset(to + (size_t)(pass->blocks - 1) * block, 0, block * sizeof *to);
}

static size_t source_size(const struct pass *pass) {
    return region_size(&pass->layer->region, pass->layer->exchange->w);
}

static struct region own_piece(const struct layer *layer) {
    const struct exchange *exchange = layer->exchange;
    return region_meet(&exchange->give[layer->partition], &exchange->take[layer->partition]);
}

// --- passes -----------------------------------------------------------------------------

static void begin_forward(const struct pass *pass) {
    const struct region own = own_piece(pass->layer);
    const struct region_layout to = taken_of(pass), from = source_of(pass);
    size_t size = shape_size(pass->layer->out);
    if (pass->layer->exchange->sums && region_empty(&own))
        memset(pass->y, 0, (size_t)pass->places * size * sizeof *pass->y);
    else
        clear_last_block(pass, pass->y, size);
    if (!region_empty(&own))
        region_move(pass->y, &to, pass->x[0], &from, &own, false);
}

static void begin_backward(const struct pass *pass) {
    const struct region own = own_piece(pass->layer);
    const struct region_layout to = source_of(pass), from = taken_of(pass);
    if (!pass->dx[0])
        return;
    memset(pass->dx[0], 0, (size_t)pass->places * source_size(pass) * sizeof(float));
    if (!region_empty(&own))
        region_move(pass->dx[0], &to, pass->dy, &from, &own, false);
}

void exchange_begin(const struct pass *pass, enum net_pass direction) {
    (direction == NET_FORWARD ? begin_forward : begin_backward)(pass);
}

size_t exchange_sends(const struct pass *pass, enum net_pass direction, int to) {
    return (size_t)pass->n * piece_size(pass->layer, direction, pass->layer->partition, to);
}

const float *exchange_pack(const struct pass *pass, enum net_pass direction, int to) {
    const struct layer *layer = pass->layer;
    bool forward = direction == NET_FORWARD;
    const struct region piece = exchange_piece(layer->exchange, direction, layer->partition, to);
    const struct region_layout from = forward ? source_of(pass) : taken_of(pass);
    size_t before = forward ? 0 : sent_before(layer, NET_FORWARD, layer->exchange->partitions);
    float *floats = pass->kept + (size_t)pass->n * (before + sent_before(layer, direction, to));
    region_pack(floats, forward ? pass->x[0] : pass->dy, &from, &piece);
    return floats;
}

size_t exchange_receives(const struct pass *pass, enum net_pass direction, int from) {
    return (size_t)pass->n * piece_size(pass->layer, direction, from, pass->layer->partition);
}

void exchange_put(const struct pass *pass, enum net_pass direction, const float *floats, int from) {
    const struct exchange *exchange = pass->layer->exchange;
    bool forward = direction == NET_FORWARD;
    const struct region piece = exchange_piece(exchange, direction, from, pass->layer->partition);
    const struct region_layout to = forward ? taken_of(pass) : source_of(pass);
    if (forward)
        region_put(pass->y, floats, &to, &piece, exchange->sums);
    else if (pass->dx[0])
        region_put(pass->dx[0], floats, &to, &piece, true);
}

// The net passes it by what is above.
static void pass_nothing(const struct pass *pass) {
    (void)pass;
}

const struct layer_type layer_exchange = {
    .name = "exchange",
    .what = "outputs of a layer that other partitions have",
    .layout = LAYOUT_FOLLOW,
    .inputs_most = 1,
    .scratch = scratch_exchange,
    .forward = pass_nothing,
    .backward = pass_nothing,
};
