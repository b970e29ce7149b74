#include "kernels/blocks.h"
#include "kernels/conv.h"
#include "kernels/kernels.h"
#include "kernels/shapes.h"
#include "model/keys.h"
#include "model/layout.h"
#include "model/net_inside.h"

size_t net_input_size(const struct net *net, const struct node *reader, const struct layer *layer,
                      int j) {
    int places = reader->blocked ? layout_places_most(net->most) : net->most;
    return (size_t)places * shape_size(net->model->layers[layer->from[j]].out);
}

size_t net_output_size(const struct net *net, int i) {
    int places = net->nodes[i].blocked ? layout_places_most(net->most) : net->most;
    return (size_t)places * shape_size(net->model->layers[i].out);
}

int net_last_reader(const struct net *net, int i, bool writes) {
    for (int r = net->model->layer_count - 1; r > i; r--)
        for (int j = 0; j < net->model->layers[r].from_count; j++)
            if (net_from(net, &net->model->layers[r], j)->fused.source == i &&
                (!writes || net->nodes[r].wanted))
                return r;
    return 0;
}

// --- stacks -------------------------------------------------------------------------

// A block of more outputs than BLOCK_FLOATS has left the cache when the next layer reads it. Then
// weights of more than a BLOCK_WEIGHTS-th of it pass all blocks at once, so that they are prepared
// once.
enum { BLOCK_FLOATS = 1 << 19, BLOCK_WEIGHTS = 8, PART_FLOATS = 1 << 17 };

bool net_by_block(const struct layer *layer, int lanes) {
    size_t outputs = shape_size(layer->out), weights = layer->weights.count / (size_t)lanes;
    return weights <= (outputs * (size_t)lanes > BLOCK_FLOATS ? outputs / BLOCK_WEIGHTS : outputs);
}

bool net_sees_together(const struct net *net, const struct layer *layer) {
    return net->mode == NET_TRAIN && layer_learns(layer) && layer->type->together > 0;
}

static bool begins_after(const struct net *net, int i) {
    return i < net->model->layer_count && net_sees_together(net, &net->model->layers[i]);
}

static bool may_stack(const struct net *net, int i) {
    const struct layer *layer = &net->model->layers[i];
    return net->blocks > 1 && net->nodes[i].blocked && !layer->exchange &&
           net_by_block(layer, net->lanes);
}

// The end of the stack that begins at layer i.
static int stack_end(const struct net *net, int i) {
    int end = i + 1;
    if (may_stack(net, i))
        while (end < net->model->layer_count && may_stack(net, end) && !begins_after(net, end))
            end++;
    return end;
}

// Whether the outputs of layer i can be made again, from what is kept, rather than be kept
// themselves.
static bool can_remake(const struct net *net, int i) {
    const struct node *node = &net->nodes[i];
    return node->wanted && !node->fused.over && node->fused.source == i &&
           net->model->layers[i].type->remakes && net_sees_together(net, &net->model->layers[i]);
}

bool net_remakes(const struct net *net, int i) {
    return net->remakes && can_remake(net, i);
}

// Whether all who read layer i, and somebody does, are within its stack, in which its source is,
// too; what is true of y and dy of a layer that its source works for is true of the source's, which
// are the same.
static void mark_brief(struct net *net, int i) {
    struct node *node = &net->nodes[i];
    bool within = node->last > node->first + 1 && node->readers > 0 &&
                  net->nodes[node->fused.source].first == node->first;
    node->y_brief = within && (net->mode != NET_TRAIN || node->fused.spent ||
                               can_remake(net, node->fused.source));
    node->dy_brief = within && !node->lends && !node->lent &&
                     (node->fused.spent || !node->fused.over) && // for y is not
                     !begins_after(net, node->fused.source);     // which reads it again
    for (int r = i + 1; r < net->model->layer_count; r++)
        for (int j = 0; j < net->model->layers[r].from_count; j++) {
            const struct node *reader = &net->nodes[r];
            if (net->model->layers[r].from[j] != i)
                continue;
            node->y_brief &= r < node->last && (!reader->fused.within || reader->y_brief);
            node->dy_brief &= r < node->last && (!reader->fused.within || reader->dy_brief);
        }
}

static void stack_layers(struct net *net) {
    for (int i = 0, end; i < net->model->layer_count; i = end) {
        end = stack_end(net, i);
        for (int l = i; l < end; l++)
            net->nodes[l].first = i, net->nodes[l].last = end;
    }
    for (int i = net->model->layer_count - 1; i >= 0; i--)
        mark_brief(net, i);
}

// Blocks of a part: a power of two, as what looks at samples together wants it, whose outputs are
// no more than PART_FLOATS.
static int part_blocks(const struct net *net, int first, int end) {
    size_t most = 1;
    for (int i = first; i < end; i++) {
        size_t floats = shape_size(net->model->layers[i].out) * (size_t)net->lanes;
        most = floats > most ? floats : most;
        if (net->nodes[i].next || net->nodes[i].prev) // bands are of one block
            return 1;
    }
    int blocks = 1;
    while (blocks < net->blocks && 2 * (size_t)blocks * most <= PART_FLOATS)
        blocks *= 2;
    return blocks;
}

// One layer alone goes in parts where another is to see each.
static bool goes_in_parts(const struct net *net, int first, int end) {
    return may_stack(net, first) && (end > first + 1 || begins_after(net, end));
}

// The input alone is no stack that goes back.
static bool is_early(const struct net *net, int i) {
    const struct node *below = i > 1 ? &net->nodes[i - 1] : NULL;
    return below && begins_after(net, i) && !below->pass.layer->exchange &&
           (net->nodes[i].blocked || below->step >= net->blocks);
}

// Whether one part writes where that before it did, what the backward pass will read.
static bool remakes(const struct net *net, int i) {
    const struct node *node = &net->nodes[i];
    return node->y_brief && !node->fused.spent && node->step < net->blocks && can_remake(net, i);
}

static void part_stacks(struct net *net) {
    for (int i = 0, end; i < net->model->layer_count; i = end) {
        end = net->nodes[i].last;
        int step = goes_in_parts(net, i, end) ? part_blocks(net, i, end) : net->blocks;
        for (int l = i; l < end; l++)
            net->nodes[l].step = step;
        net->nodes[i].early = is_early(net, i);
        net->nodes[i].remade = remakes(net, i);
    }
}

// Before the stack that is the first to go back of those that read it.
static void remake_for_readers(struct net *net, int i) {
    int reader = net_last_reader(net, i, false);
    if (reader == 0)
        return;
    struct node *first = &net->nodes[net->nodes[reader].first];
    net->nodes[i].remade_next = first->remade_first;
    first->remade_first = i;
}

static void lay_remakes(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].remade_first = 0;
    for (int i = 0; i < net->model->layer_count; i++)
        if (net_remakes(net, i) && !net->nodes[i].remade)
            remake_for_readers(net, i);
}

static void size_kept(const struct net *net, struct node *node) {
    const struct layer *layer = node->pass.layer;
    size_t kept = 0, brief = 0;
    if (layer->type->scratch)
        layer->type->scratch(layer, 1, net->mode == NET_TRAIN, &kept, &brief);
    node->kept_sample = kept;
}

// Whether a fast algorithm by what is kept of weights, which is one of single samples, does most of
// the work of convolutions.
static bool mostly_kept(const struct net *net) {
    uint64_t all = 0, kept = 0;
    for (int i = 0; i < net->model->layer_count; i++) {
        const struct layer *layer = &net->model->layers[i];
        if (!layout_gains(layer))
            continue;
        struct convolution conv = layer_convolution(layer);
        bool fast = net->nodes[i].pass.prepared && net->kernels->winograd_kept->size(&conv) > 0;
        all += layer->useful;
        kept += fast ? layer->useful : 0;
    }
    return kept > all / 2;
}

// Fewer samples than fill vectors go one by one where that is faster.
static int choose_lanes(const struct net *net, int n) {
    return n < net->kernels->lanes && mostly_kept(net) ? 1
                                                       : layout_lanes(net->model, net->kernels, n);
}

void net_lay_out(struct net *net, int n) {
    if (n == net->n)
        return;
    net->n = n;
    net->lanes = choose_lanes(net, n);
    net->blocks = net->lanes ? (n + net->lanes - 1) / net->lanes : 0;
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        node->pass.lanes = node->blocked ? net->lanes : 0;
        size_kept(net, node);
    }
    stack_layers(net);
    net_lay_bands(net);
    part_stacks(net);
    lay_remakes(net);
    net_lay_sums(net);
}

// --- parts --------------------------------------------------------------------------

static bool needs_turn(const struct net *net, const struct node *node, int j) {
    return net->lanes && net_from(net, node->pass.layer, j)->blocked != node->blocked;
}

static size_t first_sample(const struct node *node, struct block_range range) {
    return (size_t)(range.first * node->pass.lanes);
}

// Where a layer reads its inputs and writes their error gradients.
static void view_inputs(struct net *net, struct node *node, struct block_range range) {
    struct pass *pass = &node->pass;
    float *errors = net->turned_errors;
    pass->more = NULL;
    for (int j = 0; j < pass->layer->from_count; j++) {
        const struct node *from = net_from(net, pass->layer, j);
        bool turned = needs_turn(net, node, j);
        size_t at = first_sample(node, range) * shape_size(pass->in[j]);
        pass->x[j] = turned                      ? node->turned[j] + at
                     : pass->layer->from[j] == 0 ? net->input
                                                 : from->y + (from->y_brief ? 0 : at);
        pass->dx[j] = !node->errors[j] ? NULL
                      : turned         ? errors
                                       : node->errors[j] + (from->dy_brief ? 0 : at);
        if (turned && node->errors[j])
            errors += net_input_size(net, node, pass->layer, j);
        if (node->joins) {
            size_t there = from->dy_brief ? 0 : at;
            pass->dx[j] = from->dy + there;
            pass->more = net->nodes[node->joins].errors[node->joins_input] + there;
        }
    }
}

// Where the outputs of that layer begin that belong to samples from `at` on.
static const float *beside(const struct net *net, const struct node *node, int at) {
    const struct node *other = &net->nodes[node->beside];
    return other->y + (size_t)at * shape_size(other->pass.layer->out);
}

void net_view(struct net *net, struct node *node, struct block_range range) {
    struct pass *pass = &node->pass;
    int at = (int)first_sample(node, range), left = net->n - at;
    size_t outputs = (size_t)at * shape_size(pass->layer->out);
    pass->at = at;
    pass->all = net->n;
    pass->blocks = pass->lanes ? range.count : 0;
    pass->places = pass->lanes ? pass->lanes * range.count : net->n;
    pass->n = left < pass->places ? left : pass->places;
    pass->draw = net->draw ? net->draw + at : NULL;
    pass->window = layer_window(pass->layer);
    pass->row = 0;
    pass->team = NULL;
    pass->first = 0;
    pass->end = pass->layer->out.c;
    pass->y = node->y ? node->y + (node->y_brief ? 0 : outputs) : NULL;
    pass->dy = node->dy ? node->dy + (node->dy_brief ? 0 : outputs) : NULL;
    pass->kept = node->kept + (size_t)at * node->kept_sample;
    pass->beside = node->beside ? beside(net, node, at) : NULL;
    view_inputs(net, node, range);
}

static void turn_layout(const struct net *net, const struct node *node, bool to_blocks, float *to,
                        const float *from, const struct shape *shape) {
    const struct kernels *k = net->kernels;
    (to_blocks ? k->blocks->block : k->blocks->unblock)(to, from, node->pass.n, shape->c,
                                                        shape->h * shape->w, net->lanes);
}

bool net_turns_inputs(const struct net *net, const struct node *node) {
    for (int j = 0; j < node->pass.layer->from_count; j++)
        if (needs_turn(net, node, j))
            return true;
    return false;
}

void net_turn_inputs(const struct net *net, const struct node *node, struct block_range range) {
    const struct layer *layer = node->pass.layer;
    for (int j = 0; j < layer->from_count; j++) {
        size_t at = first_sample(node, range) * shape_size(node->pass.in[j]);
        const float *input = layer->from[j] == 0 ? net->input : net_from(net, layer, j)->y;
        if (needs_turn(net, node, j))
            turn_layout(net, node, node->blocked, node->turned[j] + at, input + at,
                        &node->pass.in[j]);
    }
}

void net_turn_errors(const struct net *net, const struct node *node, struct block_range range) {
    for (int j = 0; j < node->pass.layer->from_count; j++) {
        size_t at = first_sample(node, range) * shape_size(node->pass.in[j]);
        if (needs_turn(net, node, j) && node->errors[j])
            turn_layout(net, node, !node->blocked, node->errors[j] + at, node->pass.dx[j],
                        &node->pass.in[j]);
    }
}
