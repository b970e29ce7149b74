#include "model/net_team.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/gate.h"
#include "core/invariant.h"
#include "kernels/window.h"
#include "model/net_inside.h"

// How often a thread looks before it sleeps: parts of a layer end within some ten microseconds of
// each other, and to be woken takes longer.
enum { LOOKS = 1000000 };

// Parts of a layer for each thread, where it may be cut finer: what is left when others are done.
enum { FINER = 4 };

// A net that writes into the buffers of the leader's, but for its own brief scratch.
struct mate {
    struct net_team *team;
    int number; // in the team
    pthread_t thread;
    struct net net;
    float *brief;
};

struct net_team {
    struct net *net; // the leader's, who is thread 0
    int threads;
    struct pass_team shared; // as passes know it
    struct mate *mates;      // threads - 1
    int started;
    struct gate begin; // opened for each pass, and at the end
    struct barrier barrier;
    _Atomic int *taken; // of each layer, parts beyond the threads' first
    _Atomic bool ends;
    const float *parameters; // of the pass in hand
};

// --- parts --------------------------------------------------------------------------

struct part {
    int first, last;
};

// Of so many, in multiples of `unit`.
static struct part part_of(int all, int unit, int index, int count) {
    int units = (all + unit - 1) / unit;
    int first = units * index / count * unit, last = units * (index + 1) / count * unit;
    return (struct part){first < all ? first : all, last < all ? last : all};
}

// The rows [first, last) of the outputs, and what they come from.
static void cut_rows(struct pass *pass, struct part rows) {
    struct window *v = &pass->window;
    size_t row = (size_t)v->out_w * (size_t)pass->layer->out.c * (size_t)pass->lanes;
    bool own = v->kernel_h == 0; // each pixel is made of those at its place
    int top = own ? rows.first : window_span(v, rows.first, 0).y0;
    int bottom = own ? rows.last : window_span(v, rows.last - 1, 0).y1;
    for (int j = 0; j < pass->layer->from_count; j++)
        pass->x[j] += (size_t)top * (size_t)v->w * (size_t)pass->in[j].c * (size_t)pass->lanes;
    v->pad_h += top - rows.first * v->stride_h;
    v->h = bottom - top;
    v->out_h = rows.last - rows.first;
    pass->row = rows.first;
    pass->y += (size_t)rows.first * row;
}

// Brings the pass to part number `index` of `count`. False: it is empty.
static bool cut_pass(struct pass *pass, struct team_cut cut, int index, int count) {
    if (cut.maps > 0) {
        struct part maps = part_of(pass->layer->out.c, cut.maps, index, count);
        pass->first = maps.first, pass->end = maps.last;
        return maps.first < maps.last;
    }
    struct part rows = part_of(pass->layer->out.h, cut.rows, index, count);
    if (rows.first < rows.last)
        cut_rows(pass, rows);
    return rows.first < rows.last;
}

static struct team_cut cut_of(const struct pass *pass) {
    const struct layer_type *type = pass->layer->type;
    struct team_cut cut = type->team_cut ? type->team_cut(pass) : (struct team_cut){0};
    return cut.maps == 0 && pass->lanes == 0 ? (struct team_cut){0} : cut;
}

// --- passes -------------------------------------------------------------------------

static void meet(void *self) {
    struct net_team *team = self;
    if (barrier_arrive(&team->barrier))
        barrier_end(&team->barrier);
}

// Each has the part of its number, then whichever is left; where they meet in the pass, only one.
static void forward_parts(struct net_team *team, struct pass *pass, struct team_cut cut) {
    const struct pass whole = *pass;
    _Atomic int *taken = &team->taken[pass->layer->index];
    int threads = team->threads, count = threads * (cut.finer ? FINER : 1);
    for (int part = pass->number; part < count; part = threads + atomic_fetch_add(taken, 1)) {
        *pass = whole;
        if (cut_pass(pass, cut, part, count) || cut.together)
            pass->layer->type->forward(pass);
        if (cut.together)
            return;
    }
}

static void forward_node(struct net_team *team, struct net *net, struct node *node, int number) {
    struct pass *pass = &node->pass;
    const struct block_range all = {0, net->blocks};
    net_view(net, node, all);
    if (net_turns_inputs(net, node)) {
        if (number == 0)
            net_turn_inputs(net, node, all);
        meet(team);
    }
    net_set_parameters(pass, team->parameters, NULL);
    struct team_cut cut = cut_of(pass);
    if (cut.maps > 0 || cut.rows > 0) {
        pass->team = &team->shared;
        pass->number = number;
        forward_parts(team, pass, cut);
    } else if (number == 0) {
        pass->layer->type->forward(pass);
    }
    meet(team);
}

// Behind the last meeting, that of the output layer, a mate's net is the leader's to prepare.
static void forward_share(struct net_team *team, struct net *net, int number) {
    int count = net->model->layer_count;
    for (int i = 0; i < count; i++) {
        struct node *node = &net->nodes[i];
        if (!node->fused.within && node->pass.layer->type->forward)
            forward_node(team, net, node, number);
    }
}

// The leader's net as it is laid out for the pass in hand. Of the leader, before the pass begins.
static void prepare_mate(struct mate *mate) {
    const struct net *from = mate->team->net;
    struct node *nodes = mate->net.nodes;
    memcpy(nodes, from->nodes, (size_t)from->model->layer_count * sizeof *nodes);
    mate->net = *from;
    mate->net.nodes = nodes;
    for (int i = 0; i < from->model->layer_count; i++)
        nodes[i].pass.brief = mate->brief;
}

static void *work(void *argument) {
    struct mate *mate = argument;
    struct net_team *team = mate->team;
    uint32_t seen = 0;
    for (;;) {
        while (gate_look(&team->begin) == seen)
            gate_wait(&team->begin, seen, -1);
        seen++;
        if (atomic_load(&team->ends))
            return NULL;
        forward_share(team, &mate->net, mate->number);
    }
}

void net_team_forward(struct net_team *team, const float *parameters, const float *input, int n) {
    struct net *net = team->net;
    net_lay_out(net, n);
    if (net->blocks > 1 || (net->lanes == 0 && n > 1)) {
        net_forward(net, parameters, input, n, NULL, 0);
        return;
    }
    net->input = input;
    net->draw = NULL;
    team->parameters = parameters;
    for (int i = 0; i < team->threads - 1; i++)
        prepare_mate(&team->mates[i]);
    for (int i = 0; i < net->model->layer_count; i++)
        atomic_store(&team->taken[i], 0);
    gate_open(&team->begin);
    forward_share(team, net, 0);
}

// --- the team -----------------------------------------------------------------------

static int start_mate(struct net_team *team, int i, struct error *err) {
    struct mate *mate = &team->mates[i];
    size_t brief = team->net->brief;
    mate->team = team;
    mate->number = i + 1;
    mate->net.nodes = mem_array((size_t)team->net->model->layer_count, sizeof *mate->net.nodes);
    mate->brief = mem_untouched_floats(brief);
    if (!mate->net.nodes || (!mate->brief && brief > 0))
        return error_nomem(err);
    if (pthread_create(&mate->thread, NULL, work, mate))
        return error_set(err, STATUS_IO, "cannot start a thread");
    team->started++;
    return STATUS_OK;
}

int net_team_open(struct net_team **out, struct net *net, int threads, struct error *err) {
    struct net_team *team = mem_zeroed(1, sizeof *team);
    int status = STATUS_OK;
    INVARIANT(threads > 1 && net->mode != NET_TRAIN);
    if (!team)
        return error_nomem(err);
    team->net = net;
    team->threads = team->barrier.threads = threads;
    team->shared = (struct pass_team){threads, net->nodes[0].pass.brief, meet, team};
    team->barrier.gate.looks = LOOKS;
    team->mates = mem_zeroed((size_t)threads - 1, sizeof *team->mates);
    team->taken = mem_zeroed((size_t)net->model->layer_count, sizeof *team->taken);
    if (!team->mates || !team->taken)
        status = error_nomem(err);
    for (int i = 0; !status && i < threads - 1; i++)
        status = start_mate(team, i, err);
    if (status)
        net_team_close(team);
    else
        *out = team;
    return status;
}

void net_team_close(struct net_team *team) {
    if (!team)
        return;
    atomic_store(&team->ends, true);
    gate_open(&team->begin);
    for (int i = 0; i < team->started; i++)
        pthread_join(team->mates[i].thread, NULL);
    for (int i = 0; team->mates && i < team->threads - 1; i++) {
        free(team->mates[i].net.nodes);
        free(team->mates[i].brief);
    }
    free(team->mates);
    free(team->taken);
    free(team);
}
