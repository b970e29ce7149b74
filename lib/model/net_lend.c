// The error gradients of a sum are those of what it adds up: inputs of an add read them where the
// add has them, and nothing is copied. Not so where one of several would change them for another.
#include "model/net_inside.h"

// Whether another layer has its outputs and error gradients in the same place (model/fuse.h).
static bool works_for_reader(const struct net *net, int i) {
    for (int r = i + 1; r < net->model->layer_count; r++)
        for (int j = 0; net->nodes[r].fused.within && j < net->model->layers[r].from_count; j++)
            if (net->model->layers[r].from[j] == i)
                return true;
    return false;
}

static bool is_by_itself(const struct net *net, int i) {
    return !net->model->layers[i].exchange && !net->nodes[i].fused.within &&
           !works_for_reader(net, i);
}

// Those of a layer with several readers are added up elsewhere before it changes them.
static bool keeps_errors(const struct node *node, const struct layer *layer) {
    return node->writers > 1 ||
           (layer->type->back_keeps_dy && layer->dropout == 0 && node->fused.act == ACT_LINEAR);
}

static bool may_borrow(const struct net *net, const struct node *node, int i) {
    const struct node *from = &net->nodes[i];
    return i > 0 && from->wanted && from->blocked == node->blocked && is_by_itself(net, i);
}

_Static_assert(LAYER_INPUTS_MAX <= 32, "node.lends has a bit for each input");

static void lend_to(struct net *net, struct node *node, const struct layer *layer, int j) {
    struct node *from = &net->nodes[layer->from[j]];
    node->lends |= 1u << j;
    from->lent = true;
    if (from->writers == 1)
        from->borrows = layer->index;
}

static void lend_errors(struct net *net, const struct layer *layer) {
    struct node *node = &net->nodes[layer->index];
    for (int j = 0; j < layer->from_count; j++) {
        int i = layer->from[j];
        if (may_borrow(net, node, i) && keeps_errors(&net->nodes[i], &net->model->layers[i]))
            lend_to(net, node, layer, j);
    }
}

void net_lend(struct net *net) {
    for (int i = 1; i < net->model->layer_count; i++) {
        const struct layer *layer = &net->model->layers[i];
        if (layer->type->sum && net->nodes[i].wanted && is_by_itself(net, i))
            lend_errors(net, layer);
    }
}

// From the last layer, since who borrows may lend.
void net_connect_lent(struct net *net) {
    for (int i = net->model->layer_count - 1; i > 0; i--) {
        struct node *node = &net->nodes[i];
        if (node->borrows)
            node->dy = net->nodes[node->borrows].dy;
        for (int j = 0; j < net->model->layers[i].from_count; j++)
            if (node->lends >> j & 1)
                node->errors[j] = node->dy;
    }
}
