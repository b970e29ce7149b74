// How a net passes an exchange layer, step by step: it begins, sends each other partition what that
// takes, and puts what each has sent in its place, always in the order of their numbers, so that
// sums do not depend on who was first.
#include "core/invariant.h"
#include "kernels/kernels.h"
#include "model/exchange.h"
#include "model/net_inside.h"

// The next reader's, from reader *i and its input *j on; NULL: there is none.
static const float *next_errors(const struct net *net, const struct pass *pass, int *i, int *j) {
    for (; *i < net->model->layer_count; ++*i, *j = 0)
        for (; net->nodes[*i].wanted && *j < net->nodes[*i].pass.layer->from_count; ++*j)
            if (net->nodes[*i].pass.layer->from[*j] == pass->layer->index)
                return net->nodes[*i].errors[(*j)++];
    return NULL;
}

void net_gather_errors(const struct net *net, const struct node *node) {
    const struct pass *pass = &node->pass;
    size_t size = (size_t)pass->places * shape_size(pass->layer->out);
    size_t at = (size_t)(pass->dy - node->dy);
    int i = pass->layer->index + 1, j = 0;
    const float *first = next_errors(net, pass, &i, &j), *second = next_errors(net, pass, &i, &j);
    const float *more = next_errors(net, pass, &i, &j);
    INVARIANT(first && second);
    if (node->undoes && !more) {
        pass->kernels->add_above(pass->dy, first + at, second + at, pass->y, size);
        return;
    }
    pass->kernels->add(pass->dy, first + at, second + at, size);
    for (; more; more = next_errors(net, pass, &i, &j))
        pass->kernels->axpy(pass->dy, more + at, size, 1);
    if (node->undoes)
        pass->kernels->acts[ACT_RELU].back(pass->dy, pass->y, size, 0);
}

static struct block_range all_blocks(const struct net *net) {
    return (struct block_range){0, net->blocks};
}

static void begin(struct net *net, struct node *node) {
    enum net_pass pass = net->progress.pass;
    net_view(net, node, all_blocks(net));
    if (pass == NET_FORWARD)
        net_turn_inputs(net, node, all_blocks(net));
    else if (node->writers > 1)
        net_gather_errors(net, node);
    exchange_begin(&node->pass, pass);
}

static bool send_piece(const struct net *net, const struct node *node, int to) {
    enum net_pass pass = net->progress.pass;
    const struct net_wire *wire = &net->wire;
    int number = node->pass.layer->exchange->number;
    size_t count = exchange_sends(&node->pass, pass, to);
    if (count == 0)
        return true;
    if (!wire->gone(wire->self, number, pass, to))
        return false;
    wire->send(wire->self, number, pass, to, exchange_pack(&node->pass, pass, to), count);
    return true;
}

static bool put_piece(const struct net *net, const struct node *node, int from) {
    enum net_pass pass = net->progress.pass;
    const struct net_wire *wire = &net->wire;
    int number = node->pass.layer->exchange->number;
    size_t count = exchange_receives(&node->pass, pass, from);
    if (count == 0)
        return true;
    const float *floats = wire->receive(wire->self, number, pass, from, count);
    if (!floats)
        return false;
    exchange_put(&node->pass, pass, floats, from);
    wire->read(wire->self, number, pass, from);
    return true;
}

bool net_exchange(struct net *net, struct node *node) {
    int *step = &net->progress.step, partitions = node->pass.layer->exchange->partitions;
    if (*step == 0) {
        begin(net, node);
        ++*step;
    }
    for (; *step <= partitions; ++*step)
        if (!send_piece(net, node, *step - 1))
            return false;
    for (; *step <= 2 * partitions; ++*step)
        if (!put_piece(net, node, *step - 1 - partitions))
            return false;
    *step = 0;
    if (net->progress.pass == NET_BACKWARD)
        net_turn_errors(net, node, all_blocks(net));
    return true;
}
