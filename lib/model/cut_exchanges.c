// Who lacks what: the exchanges of a cut. A layer whose partitions have of what it reads just what
// they need reads it as it is; else it reads an exchange, which layers with the same needs share.
#include <stdlib.h>

#include "core/error.h"
#include "core/invariant.h"
#include "core/mem.h"
#include "model/cut_inside.h"

static struct exchange *add_exchange(struct cut *cut, int layer, enum exchange_kind kind) {
    INVARIANT(cut->exchange_count < cut->exchange_room);
    struct cut_exchange *added = &cut->exchanges[cut->exchange_count];
    size_t at = 2 * (size_t)cut->exchange_count * (size_t)cut->partitions;
    *added = (struct cut_exchange){
        .kind = kind,
        .layer = layer,
        .exchange = {.number = cut->exchange_count,
                     .partitions = cut->partitions,
                     .sums = kind == EXCHANGE_SUMS,
                     .blocked = kind == EXCHANGE_OUTPUTS && cut->blocked[layer],
                     .errors = kind != EXCHANGE_EXTREMES && cut->wanted[layer],
                     .give = cut->regions + at,
                     .take = cut->regions + at + cut->partitions,
                     .w = kind == EXCHANGE_EXTREMES ? 1 : cut->model->layers[layer].out.w}};
    cut->exchange_count++;
    return &added->exchange;
}

static void add_sums(struct cut *cut, int layer) {
    struct exchange *exchange = add_exchange(cut, layer, EXCHANGE_SUMS);
    for (int p = 0; p < cut->partitions; p++) {
        exchange->give[p] = share_at(cut, layer, p)->makes;
        exchange->take[p] = share_at(cut, layer, p)->own;
    }
}

// Two numbers of each that has classes, which all of these need.
static void add_extremes(struct cut *cut, int layer) {
    struct exchange *exchange = add_exchange(cut, layer, EXCHANGE_EXTREMES);
    int have = 0;
    for (int p = 0; p < cut->partitions; p++)
        if (!region_empty(&share_at(cut, layer, p)->own)) {
            exchange->give[p] = (struct region){2 * have, 2 * have + 2, 0, 1};
            have++;
        }
    for (int p = 0; p < cut->partitions; p++)
        if (!region_empty(&exchange->give[p]))
            exchange->take[p] = (struct region){0, 2 * have, 0, 1};
}

// --- who reads what ---------------------------------------------------------------------

static bool reads_as_it_is(const struct cut *cut, int layer, int j) {
    int from = cut->model->layers[layer].from[j];
    for (int p = 0; p < cut->partitions; p++) {
        const struct region *needs = &share_at(cut, layer, p)->needs[j];
        const struct share *source = share_at(cut, from, p);
        if (!region_same(needs, share_gives(source)) ||
            !(source->exact || region_same(needs, &source->own)))
            return false;
    }
    return true;
}

static bool has_needs(const struct cut *cut, const struct exchange *exchange, int layer, int j) {
    for (int p = 0; p < cut->partitions; p++)
        if (!region_same(&exchange->take[p], &share_at(cut, layer, p)->needs[j]))
            return false;
    return true;
}

// The exchange, from number `first` on, of what the slot needs.
static int find_exchange(const struct cut *cut, int first, int layer, int j) {
    for (int e = first; e < cut->exchange_count; e++)
        if (cut->exchanges[e].kind == EXCHANGE_OUTPUTS &&
            has_needs(cut, &cut->exchanges[e].exchange, layer, j))
            return e;
    return -1;
}

static int add_outputs(struct cut *cut, int from, int layer, int j) {
    struct exchange *exchange = add_exchange(cut, from, EXCHANGE_OUTPUTS);
    for (int p = 0; p < cut->partitions; p++) {
        exchange->give[p] = share_at(cut, from, p)->own;
        exchange->take[p] = share_at(cut, layer, p)->needs[j];
    }
    return exchange->number;
}

static void connect(struct cut *cut, int first, int layer, int j) {
    int found = find_exchange(cut, first, layer, j), from = cut->model->layers[layer].from[j];
    if (!reads_as_it_is(cut, layer, j))
        *reads_at(cut, layer, j) = found >= 0 ? found : add_outputs(cut, from, layer, j);
    else
        *reads_at(cut, layer, j) = -1;
}

static void add_readers(struct cut *cut, int from) {
    int first = cut->exchange_count;
    for (int r = from + 1; r < cut->model->layer_count; r++)
        for (int j = 0; j < cut->model->layers[r].from_count; j++)
            if (cut->model->layers[r].from[j] == from)
                connect(cut, first, r, j);
}

// One for each slot, and two for each layer, at most.
static size_t count_room(const struct model *model) {
    size_t room = 0;
    for (int i = 0; i < model->layer_count; i++)
        room += 2 + (size_t)model->layers[i].from_count;
    return room;
}

int cut_make_exchanges(struct cut *cut, struct error *err) {
    const struct model *model = cut->model;
    size_t room = count_room(model);
    cut->exchange_room = (int)room;
    cut->exchanges = mem_zeroed(room, sizeof *cut->exchanges);
    cut->regions = mem_zeroed(2 * room * (size_t)cut->partitions, sizeof *cut->regions);
    cut->reads = mem_zeroed((size_t)model->layer_count * LAYER_INPUTS_MAX, sizeof *cut->reads);
    if (!cut->exchanges || !cut->regions || !cut->reads)
        return error_nomem(err);
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer_type *type = model->layers[i].type;
        if (cut->ways[i] == CUT_INPUTS)
            add_sums(cut, i);
        if (type->output && type->goal == GOAL_CLASS && cut->ways[i] != CUT_NONE)
            add_extremes(cut, i);
        add_readers(cut, i);
    }
    return STATUS_OK;
}
