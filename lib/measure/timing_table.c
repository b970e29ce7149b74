// What was timed, for people and for programs.
#include <stdlib.h>
#include <string.h>

#include "core/columns.h"
#include "kernels/kernels.h"
#include "measure/timing.h"
#include "model/layer.h"
#include "model/script.h"

static double layer_seconds(const struct layer_timing *layer) {
    double sum = 0;
    for (int part = 0; part < TIMING_PARTS; part++)
        sum += layer->seconds[part];
    return sum;
}

static double flops_of(const struct layer_timing *layer) {
    return layer->flops[TIMING_FORWARD] + layer->flops[TIMING_BACKWARD];
}

static struct layer_timing timing_totals(const struct timing *timing) {
    struct layer_timing sum = {0};
    for (int i = 0; i < timing->model->layer_count; i++) {
        const struct layer_timing *layer = &timing->layers[i];
        for (int part = 0; part < TIMING_PARTS; part++)
            sum.seconds[part] += layer->seconds[part];
        sum.flops[TIMING_FORWARD] += layer->flops[TIMING_FORWARD];
        sum.flops[TIMING_BACKWARD] += layer->flops[TIMING_BACKWARD];
        sum.bytes += layer->bytes;
    }
    return sum;
}

static double ratio_or_zero(double a, double b) {
    return b > 0 ? a / b : 0;
}

// Shares of the machine's limits at which the layer ran.
static double peak_share(const struct timing *timing, const struct layer_timing *layer) {
    return ratio_or_zero(flops_of(layer), timing->limits.flops * layer_seconds(layer));
}

static double memory_share(const struct timing *timing, const struct layer_timing *layer) {
    return ratio_or_zero(layer->bytes, timing->limits.bytes * layer_seconds(layer));
}

// The share of the time that goes into layers without multiplications.
static double other_share(const struct timing *timing) {
    struct layer_timing sum = timing_totals(timing);
    double others = 0;
    for (int i = 0; i < timing->model->layer_count; i++)
        if (flops_of(&timing->layers[i]) <= 0)
            others += layer_seconds(&timing->layers[i]);
    return ratio_or_zero(others, layer_seconds(&sum));
}

static double samples_per_second(const struct timing *timing) {
    struct layer_timing sum = timing_totals(timing);
    return ratio_or_zero(timing->batch, layer_seconds(&sum));
}

// --- text -----------------------------------------------------------------------------

static const struct column train_columns[] = {
    {"layer", false},    {"type", false},   {"output", false}, {"layout", false},
    {"kernels", false},  {"forward", true}, {"GFLOP/s", true}, {"backward", true},
    {"GFLOP/s", true},   {"update", true},  {"share", true},   {"of peak", true},
    {"of memory", true},
};
static const struct column predict_columns[] = {
    {"layer", false},  {"type", false},   {"output", false}, {"layout", false}, {"kernels", false},
    {"forward", true}, {"GFLOP/s", true}, {"share", true},   {"of peak", true}, {"of memory", true},
};

static void cell_rate(struct columns *table, double flops, double seconds) {
    if (flops > 0 && seconds > 0)
        columns_cell(table, "%.1f", 1e-9 * flops / seconds);
    else
        columns_cell(table, "-");
}

static void cell_share(struct columns *table, double share) {
    if (share > 0)
        columns_cell(table, "%.1f%%", 100 * share);
    else
        columns_cell(table, "-");
}

static void cells_of_times(struct columns *table, const struct timing *timing,
                           const struct layer_timing *layer, double all) {
    bool train = timing->mode == NET_TRAIN;
    for (int part = 0; part <= (train ? TIMING_BACKWARD : TIMING_FORWARD); part++) {
        columns_cell(table, "%.3f", 1e3 * layer->seconds[part]);
        cell_rate(table, layer->flops[part], layer->seconds[part]);
    }
    if (train)
        columns_cell(table, "%.3f", 1e3 * layer->seconds[TIMING_UPDATE]);
    columns_cell(table, "%.1f%%", 100 * ratio_or_zero(layer_seconds(layer), all));
    cell_share(table, peak_share(timing, layer));
    cell_share(table, memory_share(timing, layer));
}

// "direct", or where they differ "direct/columns/direct", by conv_pass.
static void cell_ways(struct columns *table, const struct layer_timing *layer) {
    struct grow text = {0};
    const char *first = layer->ways[0];
    bool differ = false;
    for (int p = 1; p < 3; p++)
        differ |= first && layer->ways[p] && strcmp(first, layer->ways[p]) != 0;
    for (int p = 0; p < (differ ? 3 : 1); p++)
        grow_format(&text, "%s%s", p ? "/" : "", layer->ways[p] ? layer->ways[p] : "-");
    columns_cell(table, "%s", text.text ? text.text : "");
    table->cells.failed |= text.failed;
    free(grow_take(&text));
}

static void put_layer_row(struct columns *table, const struct timing *timing, int i, double all) {
    const struct layer *layer = &timing->model->layers[i];
    const struct layer_timing *times = &timing->layers[i];
    char shape[SHAPE_TEXT];
    shape_text(shape, layer->out);
    columns_cell(table, "%s", layer->name);
    columns_cell(table, "%s", layer->type->name);
    columns_cell(table, "%s", shape);
    if (times->lanes)
        columns_cell(table, "blocks of %d", times->lanes);
    else
        columns_cell(table, "plain");
    cell_ways(table, times);
    cells_of_times(table, timing, times, all);
}

static void put_total_row(struct columns *table, const struct timing *timing) {
    struct layer_timing sum = timing_totals(timing);
    columns_cell(table, "total");
    for (int empty = 0; empty < 4; empty++)
        columns_cell(table, "%s", "");
    cells_of_times(table, timing, &sum, layer_seconds(&sum));
}

static void put_summary(struct grow *to, const struct timing *timing) {
    struct layer_timing sum = timing_totals(timing);
    double seconds = layer_seconds(&sum);
    grow_format(to, "%s, mini-batch %d, one thread: %.1f samples/s, %.1f useful GFLOP/s\n",
                timing->mode == NET_TRAIN ? "training" : "prediction", timing->batch,
                samples_per_second(timing), 1e-9 * ratio_or_zero(flops_of(&sum), seconds));
    grow_format(to, "limits of one core (%s): %.1f GFLOP/s, weights read at %.1f GB/s\n",
                timing->kernels->name, 1e-9 * timing->limits.flops, 1e-9 * timing->limits.bytes);
    grow_format(to, "layers without multiplications: %.1f%% of the time\n",
                100 * other_share(timing));
}

char *timing_text(const struct timing *timing) {
    struct grow to = {0};
    struct columns table = {
        .column = train_columns,
        .count = sizeof train_columns / sizeof *train_columns,
    };
    if (timing->mode == NET_PREDICT)
        table = (struct columns){
            .column = predict_columns,
            .count = sizeof predict_columns / sizeof *predict_columns,
        };
    struct layer_timing sum = timing_totals(timing);
    for (int i = 0; i < timing->model->layer_count; i++)
        put_layer_row(&table, timing, i, layer_seconds(&sum));
    put_total_row(&table, timing);
    columns_put(&table, &to);
    put_summary(&to, timing);
    return grow_take(&to);
}

// --- JSON -----------------------------------------------------------------------------

static json_t *way_json(const char *way) {
    return way ? json_string(way) : json_null();
}

static json_t *timing_layer_json(const struct timing *timing, int i) {
    const struct layer *layer = &timing->model->layers[i];
    const struct layer_timing *times = &timing->layers[i];
    return json_pack(
        "{s:s, s:s, s:[i,i,i], s:i, s:[o,o,o], s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "name",
        layer->name, "type", layer->type->name, "output", layer->out.c, layer->out.h, layer->out.w,
        "lanes", times->lanes, "ways", way_json(times->ways[0]), way_json(times->ways[1]),
        way_json(times->ways[2]), "forward_s", times->seconds[TIMING_FORWARD], "backward_s",
        times->seconds[TIMING_BACKWARD], "update_s", times->seconds[TIMING_UPDATE], "forward_flops",
        times->flops[TIMING_FORWARD], "backward_flops", times->flops[TIMING_BACKWARD],
        "weight_bytes", times->bytes, "peak_share", peak_share(timing, times), "memory_share",
        memory_share(timing, times));
}

json_t *timing_json(const struct timing *timing) {
    struct layer_timing sum = timing_totals(timing);
    json_t *layers = json_array();
    for (int i = 0; i < timing->model->layer_count; i++)
        json_append(&layers, timing_layer_json(timing, i));
    return json_pack(
        "{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "model",
        timing->model->name, "mode", timing->mode == NET_TRAIN ? "train" : "predict", "kernels",
        timing->kernels->name, "batch", timing->batch, "passes", timing->passes, "seconds",
        layer_seconds(&sum), "samples_per_s", samples_per_second(timing), "flops", flops_of(&sum),
        "peak_flops", timing->limits.flops, "read_bytes_per_s", timing->limits.bytes, "peak_share",
        peak_share(timing, &sum), "other_share", other_share(timing), "layers", layers);
}
