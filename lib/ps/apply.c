// The arithmetic: "applying all updates in a batch to a block of parameters before moving
// to next block in the shard" (Adam 3.3.1).
//
// A shard's weights are passed over in tiles, all updates of a batch on one tile before the
// next. Where the batch has only updates as long as the weights, tiles are runs of them, and
// updates that follow each other in the batch and have all of a tile are taken together.
//
// Factors of a layer are multiplied for all whole rows of its matrix that the shard has at
// once: "we have tiled the computation to efficiently use the processor cache avoiding the
// memory bandwidth bottleneck" (Adam 4.3.2). Alone, they take their step by the dense
// layers' own kernel (kernels/dense.h: step), and the product is never stored. In a mean it
// is added up in tiles: rectangles as wide as lets the activations that belong to them stay
// in the L2 cache, and as high as the shard.
#include <string.h>

#include "core/hogwild.h"
#include "core/least.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "ps/ps_internal.h"

enum { TILE_COLUMNS = 256 };

// rows x width parameters, the rows `stride` apart, from place `at` of the parameter space.
struct tile {
    size_t at, rows, width, stride;
};

// Steps of a tile's parameters, which the kernels take one after the other in one pass over
// the weights. The rows of gradients are gradient_row apart.
struct steps {
    struct tile tile;
    size_t gradient_row;
    const float *gradients[UPDATES_MOST];
    struct update updates[UPDATES_MOST];
    int count;
    uint64_t step; // of the last one
};

// One pass over a block of parameters.
struct sweep {
    const struct applier *applier;
    const struct optimizer *optimizer;
    const struct tensor *tensor;
    const struct subrequest *batch, *end; // from the one, before the other
    struct steps *steps;                  // that wait
    bool mean;
    float rate;     // of a mean
    uint64_t step;  // of it
    uint64_t since; // the version from which updates are counted
};

// --- the pieces of a subrequest ---------------------------------------------------------

typedef void piece_work(const struct sweep *sweep, const struct subrequest *sub,
                        const struct tile *whole, struct tile tile, const float *floats);

// Calls for the rectangles of the tile that the subrequest has: the whole tile where one piece
// covers it, else row by row. `floats` is where they begin in a payload as long as the
// weights.
static void over_pieces(const struct sweep *sweep, const struct subrequest *sub,
                        const struct tile *tile, piece_work *work) {
    const struct request *request = sub->request;
    size_t tile_end = tile->at + (tile->rows - 1) * tile->stride + tile->width;
    for (uint32_t i = sub->first; i < sub->first + sub->count; i++) {
        const struct proto_piece *piece = &request->pieces[i];
        const float *floats = request->floats + request->places[i];
        size_t begin = shard_begin(piece->shard) + piece->offset, end = begin + piece->count;
        if (begin <= tile->at && tile_end <= end) {
            work(sweep, sub, tile, *tile, floats + (tile->at - begin));
            return;
        }
        for (size_t r = 0; r < tile->rows; r++) {
            size_t row = tile->at + r * tile->stride;
            size_t from = row > begin ? row : begin, to = least_size(row + tile->width, end);
            if (from < to)
                work(sweep, sub, tile, (struct tile){from, 1, to - from, to - from},
                     floats + (from - begin));
        }
    }
}

// Whether one piece of the subrequest has all of [begin, end).
static bool has_range(const struct subrequest *sub, size_t begin, size_t end) {
    for (uint32_t i = sub->first; i < sub->first + sub->count; i++) {
        const struct proto_piece *piece = &sub->request->pieces[i];
        size_t first = shard_begin(piece->shard) + piece->offset;
        if (first <= begin && end <= first + piece->count)
            return true;
    }
    return false;
}

static bool has_factors(const struct sweep *sweep, const struct subrequest *sub) {
    return sub->request->kind == REQUEST_FACTORS &&
           sub->request->factors.layer == sweep->tensor->layer && sub->request->samples;
}

// --- products ---------------------------------------------------------------------------

// sum = beta sum + alpha (product of the factors) for a part of their layer's weights.
static void multiply_weights(const struct sweep *sweep, const struct request *request,
                             const struct tile *tile, float alpha, float beta, float *sum,
                             size_t sum_row) {
    const struct factors *factors = &request->factors;
    size_t place = tile->at - sweep->tensor->begin;
    sweep->applier->ps->kernels->dense->gemm(
        true, false, (int)tile->rows, (int)tile->width, (int)request->samples, alpha,
        factors->errors + place / factors->columns, (int)factors->rows,
        factors->inputs + place % factors->columns, (int)factors->columns, beta, sum, (int)sum_row);
}

// The same for biases: the gradient is the sum of the error gradients.
static void sum_errors(const struct sweep *sweep, const struct request *request,
                       const struct tile *tile, float alpha, float beta, float *sum) {
    const struct factors *factors = &request->factors;
    const float *errors = factors->errors + (tile->at - sweep->tensor->begin);
    for (size_t i = 0; beta == 0 && i < tile->width; i++)
        sum[i] = 0;
    for (size_t k = 0; k < request->samples; k++)
        sweep->applier->ps->kernels->axpy(sum, errors + k * factors->rows, tile->width, alpha);
}

static void multiply_factors(const struct sweep *sweep, const struct request *request,
                             const struct tile *tile, float alpha, float beta, float *sum,
                             size_t sum_row) {
    if (sweep->tensor->kind == TENSOR_BIASES)
        sum_errors(sweep, request, tile, alpha, beta, sum);
    else
        multiply_weights(sweep, request, tile, alpha, beta, sum, sum_row);
}

// --- steps ------------------------------------------------------------------------------

// What the rule has of the parameters from a place on; NULL: nothing.
static float *state_at(const struct sweep *sweep, size_t at) {
    const struct ps *ps = sweep->applier->ps;
    return optimizer_states(sweep->optimizer->rule) ? ps->state + at : NULL;
}

// Parameters from a place on have had the update of this step.
static void move_average(const struct sweep *sweep, size_t at, size_t n, uint64_t step) {
    const struct ps *ps = sweep->applier->ps;
    struct optimizer optimizer = *sweep->optimizer;
    optimizer.step = step - sweep->since;
    optimizer_average(&optimizer, ps->kernels, ps->weights, ps->state, at, n, 1);
}

// Takes the steps that wait.
static void take_steps(const struct sweep *sweep) {
    const struct ps *ps = sweep->applier->ps;
    struct steps *steps = sweep->steps;
    const struct tile *tile = &steps->tile;
    for (size_t r = 0; r < tile->rows && steps->count > 0; r++) {
        size_t at = tile->at + r * tile->stride;
        const float *gradients[UPDATES_MOST];
        for (int k = 0; k < steps->count; k++)
            gradients[k] = steps->gradients[k] + r * steps->gradient_row;
        ps->kernels->updates(ps->weights + at, state_at(sweep, at), gradients, steps->updates,
                             steps->count, tile->width);
        move_average(sweep, at, tile->width, steps->step);
    }
    steps->count = 0;
}

// Whether a step of this tile may wait with those that do. An average moves with each of them.
static bool fits_steps(const struct sweep *sweep, const struct tile *tile, size_t gradient_row) {
    const struct steps *steps = sweep->steps;
    int most = sweep->optimizer->ema > 0 ? 1 : UPDATES_MOST;
    return steps->count < most && !memcmp(tile, &steps->tile, sizeof *tile) &&
           gradient_row == steps->gradient_row;
}

// A step of this number, behind those that wait: with them where it is of the same
// parameters.
static void put_step(const struct sweep *sweep, const struct tile *tile, const float *gradient,
                     size_t gradient_row, const struct update *update, uint64_t step) {
    struct steps *steps = sweep->steps;
    if (!fits_steps(sweep, tile, gradient_row))
        take_steps(sweep);
    steps->tile = *tile;
    steps->gradient_row = gradient_row;
    steps->step = step;
    steps->gradients[steps->count] = gradient;
    steps->updates[steps->count++] = *update;
}

// The update of this step.
static struct update update_at(const struct sweep *sweep, float rate, uint64_t step) {
    const struct tensor *tensor = sweep->tensor;
    struct optimizer optimizer = *sweep->optimizer;
    optimizer.step = step - sweep->since;
    switch (tensor->kind) {
    case TENSOR_STATISTICS:
        return optimizer_statistics_update(&optimizer, tensor->layer);
    case TENSOR_BIASES:
        return optimizer_biases_update(&optimizer, tensor->layer, rate);
    default:
        return optimizer_weights_update(&optimizer, tensor->layer, rate);
    }
}

static void step_alone(const struct sweep *sweep, const struct subrequest *sub,
                       const struct tile *whole, struct tile tile, const float *floats) {
    static const struct update add = {.rule = RULE_SGD, .rate = -1};
    struct update update = update_at(sweep, (float)sub->rate, sub->step);
    (void)whole;
    switch (sub->request->kind) {
    case REQUEST_DELTA:
        put_step(sweep, &tile, floats, tile.stride, &add, sub->step);
        break;
    case REQUEST_FACTORS:
        multiply_factors(sweep, sub->request, &tile, 1, 0, sweep->applier->tile, tile.width);
        put_step(sweep, &tile, sweep->applier->tile, tile.width, &update, sub->step);
        take_steps(sweep); // the next product comes to the same place
        break;
    default:
        put_step(sweep, &tile, floats, tile.stride, &update, sub->step);
    }
}

// Adds the subrequest's share of the mean to the tile's gradient.
static void add_share(const struct sweep *sweep, const struct subrequest *sub,
                      const struct tile *whole, struct tile tile, const float *floats) {
    size_t place = tile.at - whole->at;
    size_t row = place / whole->stride, column = place % whole->stride;
    float *sum = sweep->applier->tile + row * whole->width + column;
    float weight = (float)sub->weight;
    if (sub->request->kind == REQUEST_FACTORS) {
        multiply_factors(sweep, sub->request, &tile, weight, 1, sum, whole->width);
        return;
    }
    for (size_t r = 0; r < tile.rows; r++)
        sweep->applier->ps->kernels->axpy(sum + r * whole->width, floats + r * tile.stride,
                                          tile.width, weight);
}

static void apply_tile(const struct sweep *sweep, struct tile tile) {
    float *sum = sweep->applier->tile;
    for (size_t i = 0; sweep->mean && i < tile.rows * tile.width; i++)
        sum[i] = 0;
    for (const struct subrequest *sub = sweep->batch; sub != sweep->end; sub = sub->next)
        if (sub->request->samples &&
            (sub->request->kind != REQUEST_FACTORS || has_factors(sweep, sub)))
            over_pieces(sweep, sub, &tile, sweep->mean ? add_share : step_alone);
    if (sweep->mean) {
        struct update update = update_at(sweep, sweep->rate, sweep->step);
        put_step(sweep, &tile, sum, tile.width, &update, sweep->step);
    }
    take_steps(sweep);
}

// --- tiles ------------------------------------------------------------------------------

static void over_run(const struct sweep *sweep, size_t begin, size_t end, size_t most) {
    for (size_t n; begin < end; begin += n) {
        n = least_size(end - begin, most);
        apply_tile(sweep, (struct tile){begin, 1, n, n});
    }
}

static void over_rows(const struct sweep *sweep, size_t at, size_t rows, size_t columns) {
    size_t width = least_size(columns, TILE_COLUMNS), high = TILE_FLOATS / width;
    for (size_t r = 0; r < rows; r += high)
        for (size_t c = 0; c < columns; c += width)
            apply_tile(sweep, (struct tile){at + r * columns + c, least_size(rows - r, high),
                                            least_size(columns - c, width), columns});
}

// The error gradients of some rows near each other, sample by sample.
static struct buffer *gather_errors(const struct sweep *sweep, const struct request *request,
                                    size_t row, size_t rows) {
    const struct factors *factors = &request->factors;
    struct buffer *errors =
        pool_take(&sweep->applier->ps->records, request->samples * rows * sizeof(float));
    for (size_t k = 0; errors && k < request->samples; k++)
        memcpy((float *)errors->data + k * rows, factors->errors + k * factors->rows + row,
               rows * sizeof(float));
    return errors;
}

// The step of whole rows by a subrequest's factors, in one pass over the weights. False when the
// subrequest does not have all of them, or there is no memory.
static bool step_rows(const struct sweep *sweep, const struct subrequest *sub, size_t at,
                      size_t rows, size_t columns) {
    const struct ps *ps = sweep->applier->ps;
    if (!has_factors(sweep, sub) || !has_range(sub, at, at + rows * columns))
        return false;
    struct buffer *errors =
        gather_errors(sweep, sub->request, (at - sweep->tensor->begin) / columns, rows);
    if (!errors)
        return false;
    struct update update = update_at(sweep, (float)sub->rate, sub->step);
    struct dense_errors dense = {
        .dy = errors->data,
        .x = sub->request->factors.inputs,
        .n = (int)sub->request->samples,
        .units = (int)rows,
        .inputs = (int)columns,
    };
    ps->kernels->dense->step(ps->weights + at, state_at(sweep, at), &dense, &update);
    move_average(sweep, at, rows * columns, sub->step);
    buffer_drop(errors);
    return true;
}

static void over_whole_rows(const struct sweep *sweep, size_t at, size_t rows, size_t columns) {
    if (sweep->mean) {
        over_rows(sweep, at, rows, columns);
        return;
    }
    struct sweep alone = *sweep;
    for (const struct subrequest *sub = sweep->batch; sub != sweep->end; sub = sub->next) {
        alone.batch = sub;
        alone.end = sub->next;
        if (!step_rows(sweep, sub, at, rows, columns))
            over_rows(&alone, at, rows, columns);
    }
}

// Whole rows as rectangles, and what is left of rows that reach into other shards.
static void over_matrix(const struct sweep *sweep, size_t begin, size_t end, size_t columns) {
    size_t first = sweep->tensor->begin;
    size_t whole = first + (begin - first + columns - 1) / columns * columns;
    size_t rest = first + (end - first) / columns * columns;
    if (whole > rest) {
        over_run(sweep, begin, end, TILE_FLOATS);
        return;
    }
    over_run(sweep, begin, whole, TILE_FLOATS);
    if (rest > whole)
        over_whole_rows(sweep, whole, (rest - whole) / columns, columns);
    over_run(sweep, rest, end, TILE_FLOATS);
}

static void over_tensor(const struct sweep *sweep, size_t begin, size_t end) {
    bool matrix = false;
    for (const struct subrequest *sub = sweep->batch;
         sub != sweep->end && sweep->tensor->kind == TENSOR_WEIGHTS; sub = sub->next)
        matrix = matrix || has_factors(sweep, sub);
    if (matrix)
        over_matrix(sweep, begin, end, (size_t)sweep->tensor->layer->weights.dims[1]);
    else
        over_run(sweep, begin, end, FLAT_FLOATS);
}

// The first block that ends behind this place.
static size_t find_tensor(const struct ps *ps, size_t place) {
    size_t low = 0, high = ps->tensor_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ps->tensors[middle].end <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void over_shard(struct sweep *sweep, uint32_t shard) {
    const struct ps *ps = sweep->applier->ps;
    size_t begin = shard_begin(shard), end = begin + shard_floats(ps, shard);
    for (size_t i = find_tensor(ps, begin); i < ps->tensor_count && ps->tensors[i].begin < end;
         i++) {
        sweep->tensor = &ps->tensors[i];
        over_tensor(sweep, sweep->tensor->begin > begin ? sweep->tensor->begin : begin,
                    least_size(sweep->tensor->end, end));
    }
}

static uint64_t counted_from(const struct ps *ps, uint32_t shard) {
    return ps->since + ps->shards[shard].empty;
}

void apply_each(const struct applier *applier, uint32_t shard, const struct optimizer *optimizer,
                const struct subrequest *batch) {
    struct steps steps = {.count = 0};
    struct sweep sweep = {.applier = applier,
                          .optimizer = optimizer,
                          .batch = batch,
                          .steps = &steps,
                          .since = counted_from(applier->ps, shard)};
    over_shard(&sweep, shard);
}

void apply_mean(const struct applier *applier, uint32_t shard, const struct optimizer *optimizer,
                const struct subrequest *batch, double rate) {
    struct steps steps = {.count = 0};
    struct sweep sweep = {.applier = applier,
                          .optimizer = optimizer,
                          .batch = batch,
                          .steps = &steps,
                          .mean = true,
                          .rate = (float)rate,
                          .step = batch->step,
                          .since = counted_from(applier->ps, shard)};
    over_shard(&sweep, shard);
}

HOGWILD static void copy_floats(float *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

void apply_snapshot(const struct ps *ps, const struct ps_snapshot *snapshot) {
    size_t begin = shard_begin(snapshot->shard), packed = 0;
    uint64_t blocks = snapshot->blocks & blocks_of(snapshot->floats);
    while (blocks) {
        struct blocks_run run = blocks_next(&blocks, snapshot->floats);
        size_t n = run.end - run.begin;
        copy_floats(ps->weights + begin + run.begin, snapshot->weights + packed, n);
        for (int i = 0; i < ps->states; i++)
            copy_floats(ps_state(ps, i) + begin + run.begin, snapshot->states[i] + packed, n);
        packed += n;
    }
}

void apply_store(const struct subrequest *sub) {
    const struct request *request = sub->request;
    float *to = request_floats(request);
    for (uint32_t i = sub->first; i < sub->first + sub->count; i++) {
        const struct proto_piece *piece = &request->pieces[i];
        copy_floats(to + shard_begin(piece->shard) + piece->offset,
                    request->floats + request->places[i], piece->count);
    }
}
