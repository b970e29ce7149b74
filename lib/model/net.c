// Ownership: a net belongs to one thread; nothing here is shared but the model,
// the kernels and, as core/hogwild.h says, the parameters.
#include "model/net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "model/layout.h"
#include "model/pass.h"

// What a layer has in this context: its part of the pass, and whether its errors
// are wanted (some layer at or below it has parameters). Where its layout differs
// from that of an input (model/layout.h), it reads a turned copy of that input and
// writes errors that are turned back.
struct node {
    struct pass pass;
    bool wanted, blocked;
    int readers;                     // layers that read its output
    float *turned[LAYER_INPUTS_MAX]; // copies of inputs
    float *errors[LAYER_INPUTS_MAX]; // where the errors of inputs go; NULL: nowhere
};

struct net {
    const struct model *model;
    struct node *nodes;
    const struct kernels *kernels;
    struct arena arena;
    float *turned_errors; // of the inputs of one layer
    int most, n, lanes;
    net_watch *watch;
    void *watcher;
    net_offer *offer;
    void *taker;
};

// Whether anything at or below each layer trains, who reads it, and whether it may
// be laid out in blocks.
static bool mark(const struct model *model, struct node *nodes) {
    bool *blocked = mem_zeroed((size_t)model->layer_count, sizeof *blocked);
    if (!blocked)
        return false;
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        nodes[i].blocked = blocked[i] = layout_blocked(layer, blocked);
        nodes[i].wanted = layer->type->trains;
        for (int j = 0; j < layer->from_count; j++) {
            nodes[i].wanted |= nodes[layer->from[j]].wanted;
            nodes[layer->from[j]].readers++;
        }
    }
    free(blocked);
    return true;
}

static struct node *from_node(const struct net *net, const struct layer *layer, int j) {
    return &net->nodes[layer->from[j]];
}

// Floats that input j of a layer takes, in the layout of `reader`.
static size_t input_size(const struct net *net, const struct node *reader,
                         const struct layer *layer, int j) {
    int places = reader->blocked ? layout_places_most(net->most) : net->most;
    return (size_t)places * shape_size(net->model->layers[layer->from[j]].out);
}

// The errors that a layer writes for its inputs go straight to where the input
// layer reads them, unless several layers write there: then each has a buffer of
// its own, and the input layer adds them up.
static void take_branch_errors(struct net *net, struct node *node, const struct layer *layer) {
    for (int j = 0; j < layer->from_count; j++) {
        const struct node *from = from_node(net, layer, j);
        if (from->wanted && from->readers > 1)
            node->errors[j] =
                arena_take(&net->arena, input_size(net, from, layer, j), sizeof(float));
    }
}

// Takes the copies of inputs in another layout; returns the floats that their
// errors take.
static size_t take_turned(struct net *net, struct node *node, const struct layer *layer) {
    size_t sum = 0;
    for (int j = 0; j < layer->from_count; j++) {
        if (from_node(net, layer, j)->blocked == node->blocked)
            continue;
        size_t size = input_size(net, node, layer, j);
        node->turned[j] = arena_take(&net->arena, size, sizeof(float));
        sum += from_node(net, layer, j)->wanted ? size : 0;
    }
    return sum;
}

// Takes every buffer from the arena: once measuring, once for real.
static void take(struct net *net, enum net_mode mode) {
    bool train = mode == NET_TRAIN;
    size_t brief_most = 0, turned_most = 0;
    for (int i = 0; i < net->model->layer_count; i++) {
        const struct layer *layer = &net->model->layers[i];
        struct node *node = &net->nodes[i];
        int places = node->blocked ? layout_places_most(net->most) : net->most;
        size_t kept = 0, brief = 0, outputs = (size_t)places * shape_size(layer->out);
        size_t turned = take_turned(net, node, layer);
        if (layer->type->scratch)
            layer->type->scratch(layer, places, train, &kept, &brief);
        turned_most = turned > turned_most ? turned : turned_most;
        brief_most = brief > brief_most ? brief : brief_most;
        if (layer->type->forward)
            node->pass.y = arena_take(&net->arena, outputs, sizeof(float));
        node->pass.kept = arena_take(&net->arena, kept, sizeof(float));
        if (!train || !node->wanted)
            continue;
        node->pass.dy = arena_take(&net->arena, outputs, sizeof(float));
        take_branch_errors(net, node, layer);
    }
    net->turned_errors = arena_take(&net->arena, train ? turned_most : 0, sizeof(float));
    float *brief = arena_take(&net->arena, brief_most, sizeof(float));
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].pass.brief = brief;
}

// What stays the same from pass to pass.
static void connect(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        struct pass *pass = &node->pass;
        pass->layer = &net->model->layers[i];
        pass->kernels = net->kernels;
        pass->seats = 1;
        for (int j = 0; j < pass->layer->from_count; j++) {
            const struct node *from = from_node(net, pass->layer, j);
            pass->in[j] = net->model->layers[pass->layer->from[j]].out;
            if (from->readers == 1)
                node->errors[j] = from->wanted ? from->pass.dy : NULL;
        }
    }
}

static bool turns(const struct net *net, const struct node *node, int j) {
    return net->lanes && from_node(net, node->pass.layer, j)->blocked != node->blocked;
}

// Where a layer reads its inputs and writes their errors, in the layout of this pass.
static void connect_inputs(struct net *net, struct node *node, const float *input) {
    struct pass *pass = &node->pass;
    float *errors = net->turned_errors;
    for (int j = 0; j < pass->layer->from_count; j++) {
        bool turned = turns(net, node, j);
        const struct node *from = from_node(net, pass->layer, j);
        pass->x[j] = turned ? node->turned[j] : pass->layer->from[j] == 0 ? input : from->pass.y;
        pass->dx[j] = turned && node->errors[j] ? errors : node->errors[j];
        if (turned && node->errors[j])
            errors += input_size(net, node, pass->layer, j);
    }
}

// The layout of a pass of n samples.
static void lay_out(struct net *net, int n) {
    if (n != net->n)
        net->lanes = layout_lanes(net->model, net->kernels, n);
    net->n = n;
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        struct pass *pass = &node->pass;
        pass->n = n;
        pass->lanes = node->blocked ? net->lanes : 0;
        pass->blocks = pass->lanes ? (n + pass->lanes - 1) / pass->lanes : 0;
        pass->places = pass->lanes ? pass->blocks * pass->lanes : n;
    }
}

static void turn(const struct net *net, bool to_blocks, float *to, const float *from,
                 const struct shape *shape) {
    const struct kernels *k = net->kernels;
    (to_blocks ? k->block : k->unblock)(to, from, net->n, shape->c, shape->h * shape->w,
                                        net->lanes);
}

static void turn_inputs(const struct net *net, const struct node *node, const float *input) {
    const struct layer *layer = node->pass.layer;
    for (int j = 0; j < layer->from_count; j++)
        if (turns(net, node, j))
            turn(net, node->blocked, node->turned[j],
                 layer->from[j] == 0 ? input : from_node(net, layer, j)->pass.y, &node->pass.in[j]);
}

static void turn_errors(const struct net *net, const struct node *node) {
    for (int j = 0; j < node->pass.layer->from_count; j++)
        if (turns(net, node, j) && node->errors[j])
            turn(net, !node->blocked, node->errors[j], node->pass.dx[j], &node->pass.in[j]);
}

static bool measure(struct net *net, const struct model *model, int most, enum net_mode mode) {
    *net = (struct net){.model = model, .most = most};
    net->nodes = mem_zeroed((size_t)model->layer_count, sizeof *net->nodes);
    if (!net->nodes)
        return false;
    if (!mark(model, net->nodes))
        return false;
    take(net, mode);
    return true;
}

size_t net_bytes(const struct model *model, int most, enum net_mode mode) {
    struct net net;
    bool measured = measure(&net, model, most, mode);
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
    if (!measure(net, model, most, mode) || !arena_open(&net->arena)) {
        size_t bytes = net->arena.overflow ? SIZE_MAX : net->arena.used;
        net_close(net);
        return error_set(err, STATUS_IO,
                         "out of memory: a context for %d samples of %s needs %zu bytes", most,
                         model->name, bytes);
    }
    take(net, mode);
    net->kernels = kernels;
    connect(net);
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

void net_seated(struct net *net, int seat, int seats) {
    for (int i = 0; i < net->model->layer_count; i++) {
        net->nodes[i].pass.seat = seat;
        net->nodes[i].pass.seats = seats;
    }
}

void net_watched(struct net *net, net_watch *watch, void *self) {
    net->watch = watch;
    net->watcher = self;
}

void net_offered(struct net *net, net_offer *offer, void *self) {
    net->offer = offer;
    net->taker = self;
}

static void tell(const struct net *net, const struct layer *layer, enum net_pass pass) {
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

static void set_parameters(struct pass *pass, const float *parameters, float *gradient) {
    const struct layer *layer = pass->layer;
    pass->weights = parameters + layer->weights.offset;
    pass->biases = parameters + layer->biases.offset;
    pass->dweights = gradient ? gradient + layer->weights.offset : NULL;
    pass->dbiases = gradient ? gradient + layer->biases.offset : NULL;
}

void net_forward(struct net *net, const float *parameters, const float *input, int n,
                 const uint64_t *draw, uint64_t seed) {
    lay_out(net, n);
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        struct pass *pass = &node->pass;
        pass->draw = draw;
        pass->seed = seed;
        connect_inputs(net, node, input);
        turn_inputs(net, node, input);
        set_parameters(pass, parameters, NULL);
        if (pass->layer->type->forward)
            pass->layer->type->forward(pass);
        tell(net, pass->layer, NET_FORWARD);
    }
}

static const struct node *output_node(const struct net *net) {
    return &net->nodes[net->model->layer_count - 1];
}

const float *net_scores(const struct net *net) {
    return output_node(net)->pass.y;
}

// No probability is believed to be less than the smallest float.
static double surprise(float probability) {
    return -log(probability > 1.17549435e-38f ? (double)probability : 1.17549435e-38);
}

static bool one_vs_all(const struct net *net) {
    return model_output(net->model)->type == &layer_logistic;
}

double net_loss(const struct net *net, const int32_t *labels) {
    const float *scores = net_scores(net);
    int classes = model_classes(net->model);
    double loss = 0;
    for (int i = 0; i < net->n; i++, scores += classes) {
        if (labels[i] < 0 || labels[i] >= classes)
            continue;
        loss += surprise(scores[labels[i]]);
        for (int c = 0; one_vs_all(net) && c < classes; c++)
            if (c != labels[i])
                loss += surprise(1.0f - scores[c]);
    }
    return loss;
}

// The error of the output's sums: scale * (score - target), "(t - a) * F'(a)" of
// Adam 2.2 with the cross-entropy's slope, in which F' cancels.
static void output_error(struct net *net, const int32_t *labels, float scale) {
    const struct pass *pass = &output_node(net)->pass;
    int classes = model_classes(net->model);
    for (int i = 0; i < net->n; i++) {
        const float *score = pass->y + (size_t)i * (size_t)classes;
        float *error = pass->dy + (size_t)i * (size_t)classes;
        bool counts = labels[i] >= 0 && labels[i] < classes;
        for (int c = 0; c < classes; c++)
            error[c] = counts ? scale * (score[c] - (c == labels[i] ? 1.0f : 0.0f)) : 0.0f;
    }
}

// Adds up what the readers of layer `index` have written for it.
static void gather_errors(struct net *net, int index) {
    struct pass *pass = &net->nodes[index].pass;
    size_t size = (size_t)pass->places * shape_size(pass->layer->out);
    memset(pass->dy, 0, size * sizeof *pass->dy);
    for (int i = index + 1; i < net->model->layer_count; i++) {
        const struct node *reader = &net->nodes[i];
        for (int j = 0; j < reader->pass.layer->from_count; j++)
            if (reader->pass.layer->from[j] == index)
                pass->kernels->axpy(pass->dy, reader->errors[j], size, 1);
    }
}

void net_backward(struct net *net, const float *parameters, const int32_t *labels, float scale,
                  float *gradient, net_ready *ready, void *self) {
    output_error(net, labels, scale);
    for (int i = net->model->layer_count - 1; i > 0; i--) {
        struct node *node = &net->nodes[i];
        struct pass *pass = &node->pass;
        if (!node->wanted)
            continue;
        if (node->readers > 1)
            gather_errors(net, i);
        set_parameters(pass, parameters, gradient);
        bool taken = false;
        pass->offer = net->offer;
        pass->taker = net->taker;
        pass->taken = &taken;
        pass->layer->type->backward(pass);
        turn_errors(net, node);
        tell(net, pass->layer, NET_BACKWARD);
        if (ready && pass->layer->type->trains && !taken)
            ready(self, pass->layer, gradient + pass->layer->weights.offset);
    }
}
