#include <stdlib.h>

#include "core/error.h"
#include "core/least.h"
#include "kernels/blocks.h"
#include "model/exchange.h"
#include "model/layout.h"
#include "model/net_inside.h"

enum { REMAKE_LEAST = 1 << 21 }; // floats of outputs

// Whether error gradients of a layer are wanted.
static bool is_wanted(const struct layer *layer, const struct node *nodes) {
    bool wanted = layer->exchange ? layer->exchange->errors : layer_learns(layer);
    for (int j = 0; !layer->exchange && j < layer->from_count; j++)
        wanted |= nodes[layer->from[j]].wanted;
    return wanted && !layer->type->stops;
}

// Whether the error gradients of several readers come through the layer's relu as they are added
// up.
static bool gathers_relu(const struct layer *layer, const struct node *node) {
    return node->writers > 1 && node->fused.act == ACT_RELU && layer->dropout == 0 &&
           !layer->type->maximum;
}

// Whether anything at or below each layer learns, who reads it, whether it may be laid
// out in blocks, and what it does for its neighbours.
static bool mark_nodes(const struct model *model, enum net_mode mode, struct node *nodes) {
    size_t count = (size_t)model->layer_count;
    bool *blocked = mem_zeroed(count, sizeof *blocked);
    int *readers = fuse_readers(model);
    struct fused *fused = mem_zeroed(count, sizeof *fused);
    bool whole = blocked && readers && fused;
    for (int i = 0; whole && i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        nodes[i].blocked = blocked[i] = layout_blocked(layer, blocked);
        nodes[i].wanted = is_wanted(layer, nodes);
        for (int j = 0; nodes[i].wanted && j < layer->from_count; j++)
            nodes[layer->from[j]].writers += nodes[layer->from[j]].wanted;
    }
    if (whole)
        fuse(model, readers, mode == NET_FOLDED, fused);
    for (int i = 0; whole && i < model->layer_count; i++) {
        nodes[i].readers = readers[i];
        nodes[i].fused = fused[i];
        nodes[i].undoes = gathers_relu(&model->layers[i], &nodes[i]);
    }
    free(blocked), free(readers), free(fused);
    return whole;
}

// Takes the copies of inputs in another layout; returns the floats that their
// error gradients take.
static size_t take_turned(struct net *net, struct node *node, const struct layer *layer) {
    size_t sum = 0;
    for (int j = 0; j < layer->from_count; j++) {
        if (net_from(net, layer, j)->blocked == node->blocked)
            continue;
        size_t size = net_input_size(net, node, layer, j);
        node->turned[j] = arena_take(&net->arena, size, sizeof(float));
        sum += net_from(net, layer, j)->wanted ? size : 0;
    }
    return sum;
}

static void take_outputs(struct net *net, struct node *node, const struct layer *layer) {
    int i = layer->index;
    if (layer->type->forward && !node->fused.within && !net_remakes(net, i))
        node->y = arena_take(&net->arena, net_output_size(net, i), sizeof(float));
}

// Of the layer that has most maps, where norms may want them.
static void take_sums(struct net *net) {
    int maps = 0;
    bool wanted = false;
    for (int i = 0; i < net->model->layer_count; i++) {
        const struct layer *layer = &net->model->layers[i];
        wanted |= net_sees_together(net, layer);
        maps = layer->out.c > maps ? layer->out.c : maps;
    }
    size_t floats = wanted ? (size_t)maps * KERNELS_LANES_MOST : 0;
    net->sums.sums.from = arena_take(&net->arena, floats, sizeof(float));
    net->sums.sums.sum = arena_take(&net->arena, floats, sizeof(float));
    net->sums.sums.product = arena_take(&net->arena, floats, sizeof(float));
}

// Takes every buffer from the arena: once measuring, once for real. False: out of memory.
static bool take_buffers(struct net *net) {
    bool train = net->mode == NET_TRAIN, in_parts = net_in_parts(net->model);
    size_t brief_most = 0, turned_most = 0, gradient_most = 0;
    for (int i = 0; i < net->model->layer_count; i++) {
        const struct layer *layer = &net->model->layers[i];
        struct node *node = &net->nodes[i];
        int places = node->blocked ? layout_places_most(net->most) : net->most;
        size_t kept = 0, brief = 0;
        turned_most = most_size(turned_most, take_turned(net, node, layer));
        if (layer->type->scratch && !node->fused.within)
            layer->type->scratch(layer, places, train, &kept, &brief);
        brief_most = most_size(brief_most, brief);
        take_outputs(net, node, layer);
        node->kept = arena_take(&net->arena, kept, sizeof(float));
        if (net_sees_together(net, layer))
            node->common =
                arena_take(&net->arena, layer->type->common(layer, places), sizeof(float));
        if (in_parts || (node->blocked && net_by_block(layer, KERNELS_LANES_MOST)))
            gradient_most = most_size(gradient_most, layer_parameters(layer));
    }
    net->turned_errors = arena_take(&net->arena, train ? turned_most : 0, sizeof(float));
    net->block_gradient = arena_take(&net->arena, train ? gradient_most : 0, sizeof(float));
    take_sums(net);
    net->brief = brief_most;
    float *brief = arena_take(&net->arena, brief_most, sizeof(float));
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].pass.brief = brief;
    return !train || net_take_places(net);
}

// What stays the same from pass to pass.
static void connect_passes(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        struct pass *pass = &node->pass;
        pass->layer = &net->model->layers[i];
        if (node->fused.within) {
            node->y = net->nodes[node->fused.source].y;
            node->dy = net->nodes[node->fused.source].dy;
        }
        pass->kernels = net->kernels;
        pass->trains = net->mode == NET_TRAIN;
        pass->act = node->fused.act;
        pass->slope = node->fused.slope;
        pass->undone = node->fused.undone || node->undoes;
        pass->undoes = node->fused.undoes;
        pass->threads = 1;
        pass->common = node->common;
        pass->sums = &net->sums;
        for (int j = 0; j < pass->layer->from_count; j++) {
            const struct node *from = net_from(net, pass->layer, j);
            pass->in[j] = net->model->layers[pass->layer->from[j]].out;
            if (node->wanted && from->writers == 1)
                node->errors[j] = from->wanted ? from->dy : NULL;
        }
    }
}

// What is on its way to another partition must stay as it is (net_wire).
static bool may_take_turns(const struct model *model) {
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].exchange)
            return false;
    return true;
}

// Outputs that do not stay in the caches from the forward to the backward pass had better be made
// again from what is read there anyway.
static bool remakes_pay(const struct net *net) {
    size_t outputs = 0;
    for (int i = 1; i < net->model->layer_count; i++)
        outputs += shape_size(net->model->layers[i].out);
    return net->mode == NET_TRAIN && net->turns && outputs * (size_t)net->most >= REMAKE_LEAST;
}

static bool measure_arena(struct net *net, const struct model *model, int most,
                          enum net_mode mode) {
    *net = (struct net){.model = model, .most = most, .mode = mode};
    net->nodes = mem_zeroed((size_t)model->layer_count, sizeof *net->nodes);
    if (!net->nodes || !mark_nodes(model, mode, net->nodes))
        return false;
    net->turns = may_take_turns(model);
    net->remakes = remakes_pay(net);
    if (mode == NET_TRAIN)
        net_lend(net);
    return take_buffers(net);
}

size_t net_bytes(const struct model *model, int most, enum net_mode mode) {
    struct net net;
    bool measured = measure_arena(&net, model, most, mode);
    free(net.nodes);
    if (!measured)
        return SIZE_MAX;
    return net.arena.overflow ? SIZE_MAX : net.arena.used;
}

int net_open(struct net **out, const struct model *model, const struct kernels *kernels, int most,
             enum net_mode mode, struct error *err) {
    struct net *net = mem_zeroed(1, sizeof *net);
    if (!net)
        return error_nomem(err);
    if (!measure_arena(net, model, most, mode) || !arena_open(&net->arena) || !take_buffers(net)) {
        size_t bytes = net->arena.overflow ? SIZE_MAX : net->arena.used;
        net_close(net);
        return error_set(err, STATUS_IO,
                         "out of memory: a context for %d samples of %s needs %zu bytes", most,
                         model->name, bytes);
    }
    net_connect_lent(net);
    net->kernels = kernels;
    connect_passes(net);
    *out = net;
    return STATUS_OK;
}

void net_close(struct net *net) {
    if (!net)
        return;
    arena_close(&net->arena);
    free(net->nodes);
    free(net);
}
