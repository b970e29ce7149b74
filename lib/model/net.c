// Ownership: a net belongs to one thread; nothing here is shared but the model,
// the kernels and, as core/hogwild.h says, the parameters.
#include <string.h>

#include "core/error.h"
#include "core/invariant.h"
#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "model/net_inside.h"
#include "model/prepared.h"

void net_set_thread(struct net *net, int thread, int threads) {
    for (int i = 0; i < net->model->layer_count; i++) {
        net->nodes[i].pass.thread = thread;
        net->nodes[i].pass.threads = threads;
    }
}

void net_shared(struct net *net, net_share *share, void *self) {
    for (int i = 0; i < net->model->layer_count; i++) {
        net->nodes[i].pass.share = share;
        net->nodes[i].pass.sharer = self;
    }
}

void net_prepared(struct net *net, const struct prepared *prepared) {
    bool changed = false;
    for (int i = 0; i < net->model->layer_count; i++) {
        const float *kept = prepared_kept(prepared, &net->model->layers[i]);
        changed |= net->nodes[i].pass.prepared != kept;
        net->nodes[i].pass.prepared = kept;
    }
    if (changed)
        net->n = 0; // is laid out anew
}

void net_watched(struct net *net, net_watch *watch, void *self) {
    net->watch = watch;
    net->watcher = self;
}

void net_offered(struct net *net, net_offer *offer, void *self) {
    net->offer = offer;
    net->taker = self;
}

void net_wired(struct net *net, const struct net_wire *wire) {
    net->wire = *wire;
}

void net_adds(struct net *net, bool adds) {
    net->adds = adds;
}

int net_most(const struct net *net) {
    return net->most;
}

size_t net_sample(const struct net *net) {
    return shape_size(model_input(net->model)->out);
}

static void tell_watcher(const struct net *net, const struct layer *layer, enum net_pass pass) {
    if (net->watch)
        net->watch(net->watcher, layer, pass);
}

uint64_t net_multiplies(const struct net *net, const struct layer *layer, enum net_pass pass) {
    bool errors = false;
    for (int j = 0; j < layer->from_count; j++)
        errors |= net->nodes[layer->from[j]].wanted;
    return pass == NET_FORWARD ? layer->useful : layer->useful * (errors ? 2 : 1);
}

int net_lanes(const struct net *net, const struct layer *layer) {
    return net->nodes[layer->index].pass.lanes;
}

const char *net_way(const struct net *net, const struct layer *layer, enum conv_pass pass) {
    return layer->type->way ? layer->type->way(&net->nodes[layer->index].pass, pass) : NULL;
}

void net_set_parameters(struct pass *pass, const float *parameters, float *gradient) {
    const struct layer *layer = pass->layer;
    size_t first = layer->weights.offset, biases = layer->biases.offset - first;
    pass->weights = parameters + first;
    pass->biases = parameters + layer->biases.offset;
    pass->dweights = gradient;
    pass->dbiases = gradient ? gradient + biases : NULL;
    for (int i = 0; i < LAYER_STATISTICS; i++) {
        size_t at = layer->statistics[i].offset;
        pass->statistics[i] = parameters + at;
        pass->dstatistics[i] = gradient ? gradient + (at - first) : NULL;
    }
}

static struct block_range whole_pass(const struct net *net) {
    return (struct block_range){0, net->blocks};
}

// The passes of a stack: one for each part of the blocks; else one of all samples.
static int part_count(const struct net *net, const struct node *node) {
    return node->step < net->blocks ? (net->blocks + node->step - 1) / node->step : 1;
}

static struct block_range range_of(const struct net *net, const struct node *node, int i) {
    int first = i * node->step, left = net->blocks - first;
    return part_count(net, node) > 1
               ? (struct block_range){first, left < node->step ? left : node->step}
               : whole_pass(net);
}

// A sum of two, one of which has been brought to the same part.
static void forward_sum(const struct net *net, const struct node *node) {
    int j = node->sums - 1;
    const struct node *from = net_from(net, node->pass.layer, j);
    from->pass.layer->type->forward_sum(&from->pass, node->pass.y, node->pass.x[1 - j],
                                        node->pass.act == ACT_RELU);
}

static void forward_layer(struct net *net, struct node *node, const float *parameters,
                          struct block_range range) {
    struct pass *pass = &node->pass;
    net_view(net, node, range);
    if (!node->fused.within) {
        net_turn_inputs(net, node, range);
        net_set_parameters(pass, parameters, NULL);
        if (node->sums)
            forward_sum(net, node);
        else if (pass->layer->type->forward && !node->summed)
            pass->layer->type->forward(pass);
    }
    tell_watcher(net, pass->layer, NET_FORWARD);
}

// Who takes each band from this layer.
static struct node *next_of(const struct net *net, const struct node *node) {
    return node->next ? &net->nodes[node->next] : NULL;
}

static void forward_bands(struct net *net, struct node *node, const float *parameters,
                          struct block_range range) {
    net_view(net, node, range);
    net_turn_inputs(net, node, range);
    net_set_parameters(&node->pass, parameters, NULL);
    for (int row = 0; row < node->rows; row += node->band)
        for (struct node *each = node; each; each = next_of(net, each)) {
            net_view_band(net, each, range, row, NET_FORWARD);
            each->pass.layer->type->forward(&each->pass);
            tell_watcher(net, each->pass.layer, NET_FORWARD);
        }
}

static void forward_node(struct net *net, struct node *node, const float *parameters,
                         struct block_range range) {
    if (node->prev)
        return;
    if (node->next)
        forward_bands(net, node, parameters, range);
    else
        forward_layer(net, node, parameters, range);
}

static void measure(struct net *net, struct node *node, struct block_range range) {
    net_view(net, node, range);
    net_turn_inputs(net, node, range);
    net_set_parameters(&node->pass, net->progress.parameters, NULL);
    node->pass.layer->type->measure(&node->pass);
    tell_watcher(net, node->pass.layer, NET_FORWARD);
}

// The layer that begins the next stack, if this one shows it each part; else NULL.
static struct node *shown_to(const struct net *net, const struct node *node) {
    struct node *next = node->last < net->model->layer_count ? &net->nodes[node->last] : NULL;
    return next && next->early ? next : NULL;
}

// Whether the layer, which begins its stack, sees all samples together, but not early.
static bool sees_late(const struct net *net, const struct node *node) {
    return net_sees_together(net, node->pass.layer) && !node->early;
}

static void forward_stack(struct net *net, struct node *node) {
    struct node *next = shown_to(net, node);
    if (sees_late(net, node))
        measure(net, node, whole_pass(net));
    for (int p = 0; p < part_count(net, node); p++) {
        for (int l = node->first; l < node->last; l++)
            forward_node(net, &net->nodes[l], net->progress.parameters,
                         range_of(net, &net->nodes[l], p));
        if (next)
            measure(net, next, range_of(net, node, p));
    }
}

// False: it waits.
static bool go_forward(struct net *net) {
    int *at = &net->progress.at;
    while (*at < net->model->layer_count) {
        struct node *node = &net->nodes[*at];
        if (!node->pass.layer->exchange)
            forward_stack(net, node);
        else if (!net_exchange(net, node))
            return false;
        *at = node->last;
    }
    return true;
}

void net_begin_forward(struct net *net, const float *parameters, const float *input, int n,
                       const uint64_t *draw, uint64_t seed) {
    net_lay_out(net, n);
    net->input = input;
    net->draw = draw;
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].pass.seed = seed;
    net->progress = (struct progress){.pass = NET_FORWARD, .parameters = parameters};
}

void net_forward(struct net *net, const float *parameters, const float *input, int n,
                 const uint64_t *draw, uint64_t seed) {
    net_begin_forward(net, parameters, input, n, draw, seed);
    bool done = net_go(net);
    INVARIANT(done);
}

const float *net_scores(const struct net *net) {
    return net_output_node(net)->pass.y;
}

void net_last_outputs(const struct net *net, float *to) {
    const struct node *node = net_output_node(net);
    const struct shape *shape = &node->pass.layer->out;
    if (node->blocked && net->lanes)
        net->kernels->blocks->unblock(to, node->y, net->n, shape->c, shape->h * shape->w,
                                      net->lanes);
    else
        memcpy(to, node->y, (size_t)net->n * shape_size(*shape) * sizeof *to);
}

static bool adds_up(const struct node *node, bool first) {
    return !first && layer_learns(node->pass.layer);
}

// Whether this gradient is the first of its layer, and no other is there.
static bool is_first_gradient(const struct net *net, struct block_range range, int row) {
    return !net->adds && range.first == 0 && row == 0;
}

// Whether the pass is of all samples.
static bool is_whole(const struct net *net, const struct node *node, struct block_range range) {
    return !node->blocked || range.count == net->blocks;
}

// Parameters for a part of the samples or rows; the gradient of any but the first goes
// beside, to be added.
static void set_gradient(const struct net *net, struct node *node, const float *parameters,
                         float *gradient, bool first) {
    float *to =
        adds_up(node, first) ? net->block_gradient : gradient + node->pass.layer->weights.offset;
    net_set_parameters(&node->pass, parameters, to);
}

static void add_gradient(const struct net *net, const struct node *node, float *gradient,
                         bool first) {
    const struct layer *layer = node->pass.layer;
    if (!adds_up(node, first))
        return;
    net->kernels->axpy(gradient + layer->weights.offset, net->block_gradient,
                       layer_parameters(layer), 1);
}

// The outputs of the part as they were in the forward pass.
static void remake(struct net *net, struct node *node, struct block_range range) {
    net_view(net, node, range);
    net_set_parameters(&node->pass, net->progress.parameters, NULL);
    node->pass.layer->type->forward(&node->pass);
    tell_watcher(net, node->pass.layer, NET_BACKWARD);
}

// Error gradients to those of the parameters, and of the inputs unless these wait for all.
static void backward_layer(struct net *net, struct node *node, const float *parameters,
                           float *gradient, struct block_range range) {
    struct pass *pass = &node->pass;
    bool together = net_sees_together(net, pass->layer);
    net_view(net, node, range);
    if (node->writers > 1 && !node->joined)
        net_gather_errors(net, node);
    if (!node->fused.within) {
        set_gradient(net, node, parameters, gradient, is_first_gradient(net, range, 0));
        node->taken = false;
        pass->offer = is_whole(net, node, range) ? net->offer : NULL;
        pass->taker = net->taker;
        pass->taken = &node->taken;
        (together ? pass->layer->type->measure_back : pass->layer->type->backward)(pass);
        if (!together)
            net_turn_errors(net, node, range);
        add_gradient(net, node, gradient, is_first_gradient(net, range, 0));
    }
    tell_watcher(net, pass->layer, NET_BACKWARD);
}

// Of a layer that has seen all error gradients.
static void backward_seen(struct net *net, struct node *node, struct block_range range) {
    net_view(net, node, range);
    net_set_parameters(&node->pass, net->progress.parameters, NULL);
    node->pass.layer->type->backward(&node->pass);
    net_turn_errors(net, node, range);
    tell_watcher(net, node->pass.layer, NET_BACKWARD);
}

// Of the layer and, before, of those that take the band from it.
static void backward_band(struct net *net, struct node *node, const float *parameters,
                          float *gradient, struct block_range range, int row) {
    bool first = is_first_gradient(net, range, row);
    if (node->next)
        backward_band(net, next_of(net, node), parameters, gradient, range, row);
    net_view_band(net, node, range, row, NET_BACKWARD);
    set_gradient(net, node, parameters, gradient, first);
    node->pass.layer->type->backward(&node->pass);
    add_gradient(net, node, gradient, first);
    tell_watcher(net, node->pass.layer, NET_BACKWARD);
}

static void backward_bands(struct net *net, struct node *node, const float *parameters,
                           float *gradient, struct block_range range) {
    struct node *pool = node;
    while (pool->next)
        pool = next_of(net, pool);
    net_view(net, pool, range);
    if (pool->writers > 1 && !pool->joined)
        net_gather_errors(net, pool);
    for (int row = 0; row < node->rows; row += node->band)
        backward_band(net, node, parameters, gradient, range, row);
}

static void backward_node(struct net *net, struct node *node, const float *parameters,
                          float *gradient, struct block_range range) {
    if (node->prev)
        return;
    if (node->next)
        backward_bands(net, node, parameters, gradient, range);
    else
        backward_layer(net, node, parameters, gradient, range);
}

static void tell_ready(const struct net *net, const struct layer *layer) {
    const struct progress *p = &net->progress;
    if (p->ready && layer_learns(layer) && !net->nodes[layer->index].taken)
        p->ready(p->self, layer, p->gradient + layer->weights.offset);
}

// Whoever hears that a gradient is there may change the parameters: nobody reads them any more.
static void backward_stack(struct net *net, struct node *node) {
    const struct progress *p = &net->progress;
    struct node *next = shown_to(net, node), *first = &net->nodes[node->first];
    for (int i = first->remade_first; i > 0; i = net->nodes[i].remade_next)
        remake(net, &net->nodes[i], whole_pass(net));
    for (int part = 0; part < part_count(net, node); part++) {
        if (next)
            backward_seen(net, next, range_of(net, node, part));
        if (first->remade)
            remake(net, first, range_of(net, first, part));
        for (int l = node->last - 1; l >= node->first; l--)
            if (net->nodes[l].wanted)
                backward_node(net, &net->nodes[l], p->parameters, p->gradient,
                              range_of(net, node, part));
    }
    if (sees_late(net, first))
        backward_seen(net, first, whole_pass(net));
    if (next)
        tell_ready(net, next->pass.layer);
    for (int l = node->last - 1; l >= node->first; l--)
        if (!net->nodes[l].early)
            tell_ready(net, &net->model->layers[l]);
}

// False: it waits.
static bool go_backward(struct net *net) {
    int *end = &net->progress.at;
    while (*end > 1) {
        struct node *node = &net->nodes[*end - 1];
        if (!node->pass.layer->exchange)
            backward_stack(net, node);
        else if (node->wanted && !net_exchange(net, node))
            return false;
        *end = node->first;
    }
    return true;
}

void net_begin_backward(struct net *net, const float *parameters, const int32_t *labels,
                        float scale, float *gradient, net_ready *ready, void *self) {
    const struct node *last = net_output_node(net);
    if (last->wanted && last->pass.layer->type->output)
        net_output_error(net, labels, scale);
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].pass.scale = scale;
    net->progress = (struct progress){.pass = NET_BACKWARD,
                                      .at = net->model->layer_count,
                                      .parameters = parameters,
                                      .gradient = gradient,
                                      .ready = ready,
                                      .self = self};
}

void net_backward(struct net *net, const float *parameters, const int32_t *labels, float scale,
                  float *gradient, net_ready *ready, void *self) {
    net_begin_backward(net, parameters, labels, scale, gradient, ready, self);
    bool done = net_go(net);
    INVARIANT(done);
}

bool net_go(struct net *net) {
    return (net->progress.pass == NET_FORWARD ? go_forward : go_backward)(net);
}
