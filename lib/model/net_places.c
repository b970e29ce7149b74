// Where outputs and error gradients lie. Those that nobody wants at the same time lie in one place
// by turns, so that a step finds what it writes in the caches, and a context takes less memory. Of
// outputs these are the ones that the backward pass can make again from what is kept (layer_type
// .remakes); others have places of their own.
#include <stdlib.h>

#include "model/net_inside.h"

enum { LINE = MEM_ALIGN / sizeof(float) };

// Stages, of the forward pass and then of the backward pass, from `first` to `last`.
struct life {
    int first, last;
};

// A buffer, and when somebody writes or reads it: once or twice.
struct room {
    size_t floats, at;
    struct life lives[2];
    int count;
    float **place; // to be told where it is
};

// A stage is a stack as long as it can be for any number of samples, so that what lives in
// different stages does so however these are passed.
struct places {
    struct net *net;
    int *stage, *until; // of each layer; and where its error gradients are read last
    struct room *rooms;
    size_t count, floats; // of rooms; of all of them
};

// --- stages -----------------------------------------------------------------------------

static bool may_ever_stack(const struct net *net, int i) {
    return net->nodes[i].blocked && !net->model->layers[i].exchange;
}

static bool begins_stage(const struct net *net, int i) {
    return !may_ever_stack(net, i) || !may_ever_stack(net, i - 1) ||
           net_sees_together(net, &net->model->layers[i]);
}

static int source_of(const struct net *net, int i) {
    return net->nodes[i].fused.source;
}

// What looks at all error gradients together goes back in the stage below. And a sum's are those
// of its inputs, where it lends them.
static void find_stages(struct places *places) {
    const struct net *net = places->net;
    for (int i = 0; i < net->model->layer_count; i++) {
        const struct layer *layer = &net->model->layers[i];
        places->stage[i] = i > 0 ? places->stage[i - 1] + begins_stage(net, i) : 0;
        places->until[i] = places->stage[i] - net_sees_together(net, layer);
        for (int j = 0; j < layer->from_count; j++)
            if (net->nodes[i].lends >> j & 1 && places->until[layer->from[j]] < places->until[i])
                places->until[i] = places->until[layer->from[j]];
    }
}

// The last of the stages in which somebody reads outputs of layer i, or writes error gradients of
// it; its own: the loss does.
static int last_reading(const struct places *places, int i, bool writes) {
    int reader = net_last_reader(places->net, i, writes);
    return places->stage[reader > 0 ? reader : i];
}

// The life of what is written in stage `from` of the backward pass and read down to stage `to`.
static struct life backwards(const struct places *places, int from, int to) {
    int end = 2 * places->stage[places->net->model->layer_count - 1] + 1;
    return (struct life){end - from, end - to};
}

// --- rooms ------------------------------------------------------------------------------

static size_t whole_lines(size_t floats) {
    return (floats + LINE - 1) / LINE * LINE;
}

static struct room *want_room(struct places *places, size_t floats, float **place,
                              struct life life) {
    struct room *room = &places->rooms[places->count++];
    *room =
        (struct room){.floats = whole_lines(floats), .lives = {life}, .count = 1, .place = place};
    return room;
}

// The error gradients that a layer writes for its inputs go straight to where the input layer reads
// them, unless several layers write there: then each has a buffer of its own, and the input layer
// adds them up.
static void want_branches(struct places *places, struct node *node, const struct layer *layer) {
    const struct net *net = places->net;
    for (int j = 0; j < layer->from_count; j++) {
        const struct node *from = net_from(net, layer, j);
        int until = places->until[source_of(net, layer->from[j])];
        if (from->wanted && from->writers > 1 && !(node->lends >> j & 1))
            want_room(places, net_input_size(net, from, layer, j), &node->errors[j],
                      backwards(places, places->stage[layer->index], until));
    }
}

// Made once for the forward pass, and once for the backward pass.
static void want_outputs(struct places *places, int i) {
    int stage = places->stage[i], last = last_reading(places, i, false);
    struct room *room = want_room(places, net_output_size(places->net, i), &places->net->nodes[i].y,
                                  (struct life){stage, last});
    room->lives[room->count++] = backwards(places, last, stage);
}

static void want_rooms(struct places *places) {
    struct net *net = places->net;
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        if (source_of(net, i) == i && net_remakes(net, i))
            want_outputs(places, i);
        if (source_of(net, i) == i && node->wanted && !node->borrows && !node->fused.over)
            want_room(places, net_output_size(net, i), &node->dy,
                      backwards(places, last_reading(places, i, true), places->until[i]));
        if (node->wanted)
            want_branches(places, node, &net->model->layers[i]);
    }
}

static bool meet(const struct net *net, const struct room *a, const struct room *b) {
    bool found = !net->turns;
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++)
            found |= a->lives[i].first <= b->lives[j].last && b->lives[j].first <= a->lives[i].last;
    return found;
}

// Of the rooms [0, count) the one that reaches furthest into those floats and is wanted at the same
// time; NULL: they are free.
static const struct room *who_is_at(const struct places *places, size_t count,
                                    const struct room *room) {
    const struct room *found = NULL;
    for (const struct room *other = places->rooms; other < places->rooms + count; other++)
        if (meet(places->net, room, other) && other->at < room->at + room->floats &&
            room->at < other->at + other->floats &&
            (!found || found->at + found->floats < other->at + other->floats))
            found = other;
    return found;
}

static void swap_rooms(struct room *a, struct room *b) {
    struct room kept = *a;
    *a = *b;
    *b = kept;
}

// Whether the rooms have a place one behind the other; then they have any.
static bool rooms_fit(const struct places *places) {
    size_t sum = 0;
    for (size_t i = 0; i < places->count; i++)
        if (__builtin_add_overflow(sum, places->rooms[i].floats, &sum))
            return false;
    return true;
}

// The largest first, each as low as it can lie.
static void place_rooms(struct places *places) {
    for (size_t i = 0; i < places->count; i++) {
        struct room *room = &places->rooms[i];
        for (size_t r = i + 1; r < places->count; r++)
            if (places->rooms[r].floats > room->floats)
                swap_rooms(&places->rooms[r], room);
        for (const struct room *other; (other = who_is_at(places, i, room));)
            room->at = other->at + other->floats;
        if (room->at + room->floats > places->floats)
            places->floats = room->at + room->floats;
    }
}

// --- all of it --------------------------------------------------------------------------

static void tell_places(const struct places *places) {
    struct net *net = places->net;
    float *base = arena_take(&net->arena, places->floats, sizeof *base);
    for (size_t i = 0; i < places->count; i++)
        *places->rooms[i].place = base ? base + places->rooms[i].at : NULL;
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        if (node->wanted && !node->borrows && node->fused.over)
            node->dy = node->y;
    }
}

bool net_take_places(struct net *net) {
    size_t layers = (size_t)net->model->layer_count, rooms = 2 * layers;
    for (size_t i = 0; i < layers; i++)
        rooms += (size_t)net->model->layers[i].from_count;
    struct places places = {
        .net = net,
        .stage = mem_zeroed(layers, sizeof *places.stage),
        .until = mem_zeroed(layers, sizeof *places.until),
        .rooms = mem_zeroed(rooms, sizeof *places.rooms),
    };
    bool whole = places.stage && places.until && places.rooms;
    if (whole) {
        find_stages(&places);
        want_rooms(&places);
        if (rooms_fit(&places))
            place_rooms(&places);
        else
            net->arena.overflow = true;
        tell_places(&places);
    }
    free(places.stage), free(places.until), free(places.rooms);
    return whole;
}
