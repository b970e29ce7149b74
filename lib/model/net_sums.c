// Sums that are made where one of their terms is: outputs that are only added to others' are added
// by the layer that makes them; of the error gradients of two readers, which their input adds up
// elsewhere (net_gather_errors), the last who writes adds the other's to its own; and a norm that
// looks at all samples together is told sums by who writes what it is to look at.
#include "model/net_inside.h"

// --- error gradients of two readers ---------------------------------------------------

// From input *j of layer *i on, one that writes error gradients of layer `of`. False: there is
// none.
static bool next_writer(const struct net *net, int of, int *i, int *j) {
    for (; *i < net->model->layer_count; ++*i, *j = 0)
        for (; net->nodes[*i].wanted && *j < net->model->layers[*i].from_count; ++*j)
            if (net->model->layers[*i].from[*j] == of)
                return true;
    return false;
}

static bool can_join(const struct node *node, const struct node *from) {
    const struct layer *layer = node->pass.layer;
    return layer->type->adds_errors && layer->from_count == 1 && !node->next && !node->prev &&
           node->blocked == from->blocked && !from->pass.layer->exchange;
}

// The first of two readers goes back last: it may add up.
static void join_errors(struct net *net, int i) {
    struct node *from = &net->nodes[i];
    int r = i + 1, j = 0;
    from->joined = false;
    if (from->writers != 2 || net->mode != NET_TRAIN || !next_writer(net, i, &r, &j))
        return;
    struct node *last = &net->nodes[r];
    from->joined = can_join(last, from);
    if (!from->joined)
        return;
    last->joins = r + 1, last->joins_input = 0;
    next_writer(net, i, &last->joins, &last->joins_input);
    last->pass.undoes = from->undoes ? from->fused.act : ACT_LINEAR;
}

static void join_all_errors(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++) {
        net->nodes[i].joins = 0;
        net->nodes[i].pass.undoes = net->nodes[i].fused.undoes;
    }
    for (int i = 0; i < net->model->layer_count; i++)
        join_errors(net, i);
}

// --- outputs that are only added ------------------------------------------------------

// Whether two layers are at the same part of the samples when the later one is passed.
static bool same_part(const struct net *net, const struct node *a, const struct node *b) {
    return a->first == b->first || (a->step >= net->blocks && b->step >= net->blocks);
}

// Whether input j of a sum is made as it is added: nobody else reads it, now or later.
static bool can_sum(const struct net *net, const struct node *node, int j) {
    int i = node->pass.layer->from[j];
    const struct node *from = &net->nodes[i];
    return from->pass.layer->type->forward_sum && from->readers == 1 && !from->fused.within &&
           from->fused.act == ACT_LINEAR && from->fused.spent && from->fused.source == i &&
           from->blocked == node->blocked && same_part(net, from, node);
}

static void sum_inputs(struct net *net, struct node *node) {
    const struct layer *layer = node->pass.layer;
    bool plain = node->fused.act == ACT_LINEAR || node->fused.act == ACT_RELU;
    node->sums = 0;
    if (net->mode != NET_TRAIN || !layer->type->sum || layer->from_count != 2 ||
        layer->dropout > 0 || !plain || node->fused.within)
        return;
    for (int j = 0; j < 2 && !node->sums; j++)
        node->sums = can_sum(net, node, j) ? j + 1 : 0;
    if (node->sums)
        net_from(net, layer, node->sums - 1)->summed = true;
}

static void sum_all_inputs(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++)
        net->nodes[i].summed = false;
    for (int i = 0; i < net->model->layer_count; i++)
        sum_inputs(net, &net->nodes[i]);
}

// --- what norms look at ---------------------------------------------------------------

static bool can_tell(const struct node *node, const struct node *norm) {
    const struct layer *layer = node->pass.layer;
    return layer->type->tells_sums && layer->dropout == 0 && node->blocked && norm->blocked;
}

// Who is the last to write the error gradients of layer i, alone or adding up what another wrote,
// so that the layer itself changes nothing of them; 0: nobody is.
static int finishes_errors(const struct net *net, int i) {
    const struct node *node = &net->nodes[i];
    int r = i + 1, j = 0;
    bool whole = node->writers == 1 || node->joined;
    bool through =
        (node->fused.act == ACT_LINEAR || node->pass.undone) && net->model->layers[i].dropout == 0;
    return whole && through && next_writer(net, i, &r, &j) ? r : 0;
}

// The norm's error gradients are those of its outputs behind its relu, or of a sum of them and
// others'.
static void tell_norm_back(struct net *net, int norm) {
    const struct node *node = &net->nodes[norm];
    int r = node->fused.undone ? finishes_errors(net, norm)
            : node->borrows    ? finishes_errors(net, node->borrows)
                               : 0;
    if (!r || !can_tell(&net->nodes[r], node))
        return;
    net->nodes[r].pass.tells_back = norm;
    net->nodes[r].beside = node->fused.undone ? 0 : node->pass.layer->from[0];
}

// Whether what a bias adds to all pixels of a map goes with the mean that the norm takes away, and
// nobody else reads it. Of one pixel there may be one value, which has no mean.
static bool loses_biases(const struct node *node, const struct node *norm) {
    const struct layer *layer = node->pass.layer;
    const struct shape *maps = &norm->pass.layer->in;
    return node->readers == 1 && node->fused.act == ACT_LINEAR && layer->dropout == 0 &&
           layer->biases.count == (size_t)maps->c && maps->h * maps->w > 1;
}

// A norm is shown each part behind the layers that write it, and again before those that then read
// on.
static void tell_norm(struct net *net, int norm) {
    struct node *node = &net->nodes[norm], *below = net_from(net, node->pass.layer, 0);
    if (can_tell(below, node) && below->fused.act == ACT_LINEAR)
        below->pass.tells = norm;
    below->pass.biases_lost = loses_biases(below, node);
    tell_norm_back(net, norm);
}

static void tell_norms(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++) {
        net->nodes[i].pass.tells = net->nodes[i].pass.tells_back = 0;
        net->nodes[i].pass.biases_lost = false;
        net->nodes[i].beside = 0;
    }
    for (int i = 0; i < net->model->layer_count; i++)
        if (net_sees_together(net, &net->model->layers[i]))
            tell_norm(net, i);
}

void net_lay_sums(struct net *net) {
    join_all_errors(net);
    tell_norms(net);
    sum_all_inputs(net);
}

bool net_feels_biases(const struct net *net, const struct layer *layer) {
    return layer_learns(layer) && !net->nodes[layer->index].pass.biases_lost;
}
