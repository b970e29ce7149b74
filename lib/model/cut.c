#include "model/cut.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/cut_inside.h"
#include "model/layout.h"

// Layers read layers above them in the file.
static void mark_wanted(struct cut *cut) {
    for (int i = 0; i < cut->model->layer_count; i++) {
        const struct layer *layer = &cut->model->layers[i];
        cut->wanted[i] = layer_learns(layer);
        for (int j = 0; j < layer->from_count; j++)
            cut->wanted[i] |= cut->wanted[layer->from[j]];
    }
}

static void mark_blocked(struct cut *cut) {
    for (int i = 0; i < cut->model->layer_count; i++)
        cut->blocked[i] = layout_blocked(&cut->model->layers[i], cut->blocked);
}

// The first partition has the samples.
static struct share share_of_input(const struct layer *input, int partition) {
    const struct region all = partition == 0 ? region_all(&input->out) : (struct region){0};
    return (struct share){.way = CUT_NONE, .own = all, .makes = all, .layer = *input};
}

void cut_make_share(const struct cut *cut, int layer, int partition, const struct region *makes) {
    const struct layer *of = &cut->model->layers[layer];
    const struct region *from = &share_at(cut, of->from[0], partition)->own;
    share_make(share_at(cut, layer, partition), cut->model, of,
               &(struct share_place){.way = cut->ways[layer],
                                     .at = partition,
                                     .count = cut->partitions,
                                     .from = from,
                                     .makes = makes});
}

static void make_shares(struct cut *cut) {
    for (int i = 0; i < cut->model->layer_count; i++)
        for (int p = 0; p < cut->partitions; p++)
            if (i == 0)
                *share_at(cut, i, p) = share_of_input(&cut->model->layers[i], p);
            else
                cut_make_share(cut, i, p, NULL);
}

static int make(struct cut *cut, struct error *err) {
    size_t layers = (size_t)cut->model->layer_count, partitions = (size_t)cut->partitions;
    cut->wanted = mem_zeroed(layers, sizeof *cut->wanted);
    cut->blocked = mem_zeroed(layers, sizeof *cut->blocked);
    cut->ways = mem_zeroed(layers, sizeof *cut->ways);
    cut->shares = mem_zeroed(layers * partitions, sizeof *cut->shares);
    cut->parts = mem_zeroed(partitions, sizeof *cut->parts);
    if (!cut->wanted || !cut->blocked || !cut->ways || !cut->shares || !cut->parts)
        return error_nomem(err);
    mark_wanted(cut);
    mark_blocked(cut);
    int status = cut_choose(cut, err);
    if (status)
        return status;
    make_shares(cut);
    status = cut_overlap(cut, err);
    if (!status)
        status = cut_make_exchanges(cut, err);
    return status ? status : cut_make_models(cut, err);
}

int cut_open(struct cut **out, const struct model *model, int partitions, int batch,
             struct error *err) {
    struct cut *cut = mem_zeroed(1, sizeof *cut);
    *out = NULL;
    if (!cut)
        return error_nomem(err);
    cut->model = model;
    cut->partitions = partitions;
    cut->batch = batch;
    int status = make(cut, err);
    if (status)
        cut_close(cut);
    else
        *out = cut;
    return status;
}

void cut_close(struct cut *cut) {
    if (!cut)
        return;
    for (int p = 0; cut->parts && p < cut->partitions; p++) {
        free(cut->parts[p].model.layers);
        free(cut->parts[p].placed);
        free(cut->parts[p].sums);
    }
    free(cut->wanted), free(cut->blocked), free(cut->ways), free(cut->shares), free(cut->parts);
    free(cut->exchanges), free(cut->regions), free(cut->reads);
    free(cut);
}

int cut_partitions(const struct cut *cut) {
    return cut->partitions;
}

const struct model *cut_model(const struct cut *cut, int partition) {
    return &cut->parts[partition].model;
}

int cut_exchanges(const struct cut *cut) {
    return cut->exchange_count;
}

bool cut_adds_up(const struct cut *cut, int layer) {
    size_t all = layer_parameters(&cut->model->layers[layer]);
    bool same = cut->partitions > 1 && cut->ways[layer] == CUT_ROWS && all > 0;
    for (int p = 0; same && p < cut->partitions; p++) {
        const struct share *share = share_at(cut, layer, p);
        same = region_empty(&share->own) || layer_parameters(&share->layer) == all;
    }
    return same;
}

// --- parameters -------------------------------------------------------------------------

// Floats of one step of dimension d of a tensor.
static size_t stride_of(const int *sizes, int rank, int d) {
    size_t stride = 1;
    for (int i = d + 1; i < rank; i++)
        stride *= (size_t)sizes[i];
    return stride;
}

// The dimension whose range is one run: those behind it are whole.
static int run_dimension(const struct box *box) {
    int d = box->rank - 1;
    while (d > 0 && box->low[d] == 0 && box->high[d] == box->dims[d])
        d--;
    return d;
}

// The next index of the dimensions before d. False: there is none.
static bool next_index(const struct box *box, int *index, int d) {
    for (int i = d - 1; i >= 0; i--) {
        if (++index[i] < box->high[i])
            return true;
        index[i] = box->low[i];
    }
    return false;
}

static void visit_tensor(const struct placed *placed, cut_visit *visit, void *self) {
    const struct box *box = &placed->box;
    int d = run_dimension(box), index[6];
    size_t own = placed->own;
    size_t count = (size_t)(box->high[d] - box->low[d]) * stride_of(box->dims, box->rank, d);
    for (int i = 0; i < box->rank; i++)
        index[i] = box->low[i];
    do {
        size_t whole = placed->whole;
        for (int i = 0; i <= d; i++)
            whole += (size_t)index[i] * stride_of(box->dims, box->rank, i);
        visit(self, &(struct cut_run){whole, own, count});
        own += count;
    } while (next_index(box, index, d));
}

void cut_given_runs(const struct cut *cut, int partition, cut_visit *visit, void *self) {
    const struct partition *part = &cut->parts[partition];
    for (int i = 0; i < part->placed_count; i++)
        if (part->placed[i].first)
            visit_tensor(&part->placed[i], visit, self);
}

void cut_runs(const struct cut *cut, int partition, cut_visit *visit, void *self) {
    const struct partition *part = &cut->parts[partition];
    for (int i = 0; i < part->placed_count; i++)
        visit_tensor(&part->placed[i], visit, self);
}

struct copy {
    float *to;
    const float *from;
};

static void take_run(void *self, const struct cut_run *run) {
    struct copy *copy = self;
    memcpy(copy->to + run->own, copy->from + run->whole, run->count * sizeof *copy->to);
}

static void give_run(void *self, const struct cut_run *run) {
    struct copy *copy = self;
    memcpy(copy->to + run->whole, copy->from + run->own, run->count * sizeof *copy->to);
}

void cut_take(const struct cut *cut, int partition, float *own, const float *whole) {
    cut_runs(cut, partition, take_run, &(struct copy){own, whole});
}

void cut_give(const struct cut *cut, int partition, float *whole, const float *own) {
    cut_given_runs(cut, partition, give_run, &(struct copy){whole, own});
}

size_t cut_sum_floats(const struct cut *cut) {
    return partition_sum_floats(&cut->parts[0]);
}

const struct cut_sum *cut_sums(const struct cut *cut, int partition, int *count) {
    *count = cut->parts[partition].sum_count;
    return cut->parts[partition].sums;
}

// --- what it costs ----------------------------------------------------------------------

static size_t piece_floats(const struct exchange *exchange, enum net_pass pass, int from, int to) {
    const struct region piece = exchange_piece(exchange, pass, from, to);
    return pass == NET_FORWARD || exchange->errors ? region_size(&piece, exchange->w) : 0;
}

size_t cut_piece(const struct cut *cut, int exchange, bool back, int from, int to) {
    return piece_floats(&cut->exchanges[exchange].exchange, back ? NET_BACKWARD : NET_FORWARD, from,
                        to);
}

size_t cut_sent(const struct cut *cut, bool back, int from, int to) {
    size_t floats = 0;
    for (int e = 0; e < cut->exchange_count; e++)
        floats += cut_piece(cut, e, back, from, to);
    return floats;
}

// What comes for a layer, forward: what it lacks; back: error gradients of what others took.
static size_t received_of(const struct cut *cut, int layer, enum net_pass pass, int partition) {
    size_t floats = 0;
    for (int e = 0; e < cut->exchange_count; e++)
        for (int p = 0; cut->exchanges[e].layer == layer && p < cut->partitions; p++)
            floats += piece_floats(&cut->exchanges[e].exchange, pass, p, partition);
    return floats;
}

struct cut_layer cut_layer(const struct cut *cut, const struct layer *layer, int partition) {
    const struct share *share = share_at(cut, layer->index, partition);
    size_t biases = share->way == CUT_INPUTS ? (size_t)(share->own.c1 - share->own.c0) : 0;
    return (struct cut_layer){
        .way = share->way,
        .own = share->own,
        .parameters = layer_parameters(&share->layer) + biases,
        .connections = share->layer.connections,
        .received = {received_of(cut, layer->index, NET_FORWARD, partition),
                     received_of(cut, layer->index, NET_BACKWARD, partition)},
    };
}

// Multiplications of a partition for a sample, forward and back, and of bytes that come to it.
static double work_of(const struct cut *cut, int partition) {
    double work = 0;
    for (int i = 0; i < cut->model->layer_count; i++)
        work += layer_work(&share_at(cut, i, partition)->layer);
    for (int p = 0; p < cut->partitions; p++)
        for (int back = 0; back < 2; back++)
            work +=
                (double)cut_sent(cut, back, p, partition) * sizeof(float) * CUT_MULTIPLIES_A_BYTE;
    return work;
}

double cut_speed_up(const struct cut *cut) {
    double all = 0, most = 0;
    for (int i = 0; i < cut->model->layer_count; i++)
        all += layer_work(&cut->model->layers[i]);
    for (int p = 0; p < cut->partitions; p++) {
        double work = work_of(cut, p);
        most = work > most ? work : most;
    }
    return most > 0 ? all / most : 1;
}
