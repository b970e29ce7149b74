// Ownership: a net belongs to one thread; nothing here is shared but the model,
// the kernels and, as core/hogwild.h says, the parameters.
#include <math.h>
#include <string.h>

#include "core/error.h"
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
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].pass.prepared = prepared_kept(prepared, &net->model->layers[i]);
}

void net_watched(struct net *net, net_watch *watch, void *self) {
    net->watch = watch;
    net->watcher = self;
}

void net_offered(struct net *net, net_offer *offer, void *self) {
    net->offer = offer;
    net->taker = self;
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

// `gradient` is that of the layer, or NULL.
static void set_parameters(struct pass *pass, const float *parameters, float *gradient) {
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

// The passes of a stack: one for each block; else one of all samples.
static int part_count(const struct net *net, const struct node *node) {
    return node->last > node->first + 1 ? net->blocks : 1;
}

static struct block_range range_of(const struct net *net, const struct node *node, int i) {
    return part_count(net, node) > 1 ? (struct block_range){i, 1} : whole_pass(net);
}

static void forward_layer(struct net *net, struct node *node, const float *parameters,
                          struct block_range range) {
    struct pass *pass = &node->pass;
    net_view(net, node, range);
    if (!node->fused.within) {
        net_turn_inputs(net, node, range);
        set_parameters(pass, parameters, NULL);
        if (pass->layer->type->forward)
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
    set_parameters(&node->pass, parameters, NULL);
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

void net_forward(struct net *net, const float *parameters, const float *input, int n,
                 const uint64_t *draw, uint64_t seed) {
    net_lay_out(net, n);
    net->input = input;
    net->draw = draw;
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].pass.seed = seed;
    for (int i = 0; i < net->model->layer_count; i = net->nodes[i].last)
        for (int p = 0; p < part_count(net, &net->nodes[i]); p++)
            for (int l = i; l < net->nodes[i].last; l++)
                forward_node(net, &net->nodes[l], parameters, range_of(net, &net->nodes[l], p));
}

static const struct node *output_node(const struct net *net) {
    return &net->nodes[net->model->layer_count - 1];
}

const float *net_scores(const struct net *net) {
    return output_node(net)->pass.y;
}

// No probability is believed to be less than the smallest float.
static double log_loss(float probability) {
    return -log(probability > 1.17549435e-38f ? (double)probability : 1.17549435e-38);
}

static bool one_vs_all(const struct net *net) {
    return model_output(net->model)->type == &layer_logistic;
}

// What the scores of a sample are to be: those of its label 1, the others 0; or, in training, as
// the output layer smooths them.
struct targets {
    float label, others;
};

static struct targets targets_of(const struct net *net) {
    float share = net->mode == NET_TRAIN ? model_output(net->model)->smoothing : 0;
    float others = share / (one_vs_all(net) ? 2 : (float)model_classes(net->model));
    return (struct targets){1 - share + others, others};
}

// Where its target is 0 a score costs nothing, but for a one-vs-all output.
static double score_loss(const struct net *net, float score, float target) {
    double loss = target > 0 ? (double)target * log_loss(score) : 0;
    return one_vs_all(net) && target < 1 ? loss + (double)(1 - target) * log_loss(1 - score) : loss;
}

// How much each class counts, in training; NULL: all alike.
static const float *class_weights(const struct net *net) {
    return net->mode == NET_TRAIN ? model_output(net->model)->class_weights.at : NULL;
}

// What class c of a sample of this label counts: with softmax as that class, "each class's part of
// the loss", as in PyTorch; one against all, as the label.
static float weight_of(const struct net *net, const float *weights, int c, int label) {
    return weights ? weights[one_vs_all(net) ? label : c] : 1;
}

static double sample_loss(const struct net *net, const float *scores, int label,
                          struct targets targets) {
    const float *weights = class_weights(net);
    int classes = model_classes(net->model);
    double loss = (double)weight_of(net, weights, label, label) *
                  score_loss(net, scores[label], targets.label);
    for (int c = 0; (one_vs_all(net) || targets.others > 0) && c < classes; c++)
        if (c != label)
            loss += (double)weight_of(net, weights, c, label) *
                    score_loss(net, scores[c], targets.others);
    return loss;
}

double net_loss(const struct net *net, const int32_t *labels) {
    const float *scores = net_scores(net);
    const struct targets targets = targets_of(net);
    int classes = model_classes(net->model);
    double loss = 0;
    for (int i = 0; i < net->n; i++, scores += classes)
        if (labels[i] >= 0 && labels[i] < classes)
            loss += sample_loss(net, scores, labels[i], targets);
    return loss;
}

// What the targets of a sample count together: 1 where all classes count alike.
static float weight_of_all(const struct net *net, const float *weights, int label,
                           struct targets targets) {
    float sum = 0;
    if (!weights || one_vs_all(net))
        return weight_of(net, weights, label, label);
    for (int c = 0; targets.others > 0 && c < model_classes(net->model); c++)
        sum += c == label ? 0 : weights[c];
    return targets.label * weights[label] + targets.others * sum;
}

// The error of the output's sums: scale * (score - target), "(t - a) * F'(a)" of
// Adam 2.2 with the cross-entropy's slope, in which F' cancels; each target as much as its class
// counts, and the score as much as all of them.
static void output_error(struct net *net, const int32_t *labels, float scale) {
    const struct pass *pass = &output_node(net)->pass;
    const struct targets targets = targets_of(net);
    const float *weights = class_weights(net);
    int classes = model_classes(net->model);
    for (int i = 0; i < net->n; i++) {
        const float *score = pass->y + (size_t)i * (size_t)classes;
        float *error = pass->dy + (size_t)i * (size_t)classes;
        int label = labels[i];
        bool counts = label >= 0 && label < classes;
        float all = counts ? weight_of_all(net, weights, label, targets) : 0;
        for (int c = 0; c < classes; c++) {
            float target = c == label ? targets.label : targets.others;
            error[c] =
                counts ? scale * (all * score[c] - weight_of(net, weights, c, label) * target) : 0;
        }
    }
}

// Adds up what the readers of a layer, two at least, have written for it.
static void gather_errors(const struct net *net, const struct node *node) {
    const struct pass *pass = &node->pass;
    size_t size = (size_t)pass->places * shape_size(pass->layer->out);
    size_t at = (size_t)(pass->dy - node->dy);
    const float *first = NULL;
    int seen = 0;
    for (int i = pass->layer->index + 1; i < net->model->layer_count; i++) {
        const struct node *reader = &net->nodes[i];
        for (int j = 0; j < reader->pass.layer->from_count; j++) {
            if (reader->pass.layer->from[j] != pass->layer->index)
                continue;
            const float *errors = reader->errors[j] + at;
            if (++seen == 1)
                first = errors;
            else if (seen == 2)
                pass->kernels->add(pass->dy, first, errors, size);
            else
                pass->kernels->axpy(pass->dy, errors, size, 1);
        }
    }
}

static bool adds_up(const struct node *node, bool first) {
    return !first && layer_learns(node->pass.layer);
}

// Whether this gradient is the first of its layer, and no other is there.
static bool is_first_gradient(const struct net *net, struct block_range range, int row) {
    return !net->adds && range.first == 0 && row == 0;
}

// Parameters for a part of the samples or rows; the gradient of any but the first goes
// beside, to be added.
static void set_gradient(const struct net *net, struct node *node, const float *parameters,
                         float *gradient, bool first) {
    float *to =
        adds_up(node, first) ? net->block_gradient : gradient + node->pass.layer->weights.offset;
    set_parameters(&node->pass, parameters, to);
}

static void add_gradient(const struct net *net, const struct node *node, float *gradient,
                         bool first) {
    const struct layer *layer = node->pass.layer;
    if (!adds_up(node, first))
        return;
    net->kernels->axpy(gradient + layer->weights.offset, net->block_gradient,
                       layer_parameters(layer), 1);
}

static void backward_layer(struct net *net, struct node *node, const float *parameters,
                           float *gradient, struct block_range range) {
    struct pass *pass = &node->pass;
    net_view(net, node, range);
    if (node->readers > 1)
        gather_errors(net, node);
    if (!node->fused.within) {
        set_gradient(net, node, parameters, gradient, is_first_gradient(net, range, 0));
        node->taken = false;
        pass->offer = net->offer;
        pass->taker = net->taker;
        pass->taken = &node->taken;
        pass->layer->type->backward(pass);
        net_turn_errors(net, node, range);
        add_gradient(net, node, gradient, is_first_gradient(net, range, 0));
    }
    tell_watcher(net, pass->layer, NET_BACKWARD);
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
    if (pool->readers > 1)
        gather_errors(net, pool);
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

void net_backward(struct net *net, const float *parameters, const int32_t *labels, float scale,
                  float *gradient, net_ready *ready, void *self) {
    output_error(net, labels, scale);
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].pass.scale = scale;
    for (int end = net->model->layer_count, first; end > 1; end = first) {
        const struct node *node = &net->nodes[end - 1];
        first = node->first;
        for (int p = 0; p < part_count(net, node); p++)
            for (int l = end - 1; l >= first; l--)
                if (net->nodes[l].wanted)
                    backward_node(net, &net->nodes[l], parameters, gradient,
                                  range_of(net, node, p));
        for (int l = end - 1; l >= first; l--) {
            const struct layer *layer = &net->model->layers[l];
            if (ready && layer_learns(layer) && !net->nodes[l].taken)
                ready(self, layer, gradient + layer->weights.offset);
        }
    }
}
