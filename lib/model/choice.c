#include "model/choice.h"

#include <stdio.h>

#include "core/columns.h"
#include "kernels/dense.h"
#include "kernels/kernels.h"
#include "model/keys.h"
#include "model/layout.h"
#include "model/pass.h"
#include "model/script.h"

enum { CANDIDATES = 6 }; // plain samples, and blocks of 1, 2, 4, 8 and 16

static int candidate_lanes(int candidate) {
    return candidate == 0 ? 0 : 1 << (candidate - 1);
}

// Whether a pass of n samples may take these blocks at all.
static bool lanes_fit(const struct kernels *kernels, int n, int lanes) {
    return lanes <= layout_lanes_most(kernels, n);
}

static bool has_products(const struct layer *layer) {
    return layer->useful > 0;
}

// What each layout is expected to cost, for one sample; below 0: it is not possible,
// or makes no difference to this layer.
static void layer_costs(const struct layer *layer, const struct kernels *kernels, int batch,
                        double costs[CANDIDATES]) {
    for (int i = 0; i < CANDIDATES; i++) {
        costs[i] = -1;
        if (!layout_gains(layer) || !lanes_fit(kernels, batch, candidate_lanes(i)))
            continue;
        struct convolution conv = layer_convolution(layer);
        costs[i] = conv_cost(kernels, &conv, batch, candidate_lanes(i)) / batch;
    }
}

enum { WAY_PREDICTED = CONV_BACK_WEIGHTS + 1, WAYS };

// The names of the ways of the three passes, and of the forward pass of prediction after some
// time (prepared.h).
static void layer_ways(const struct layer *layer, const struct kernels *kernels, int batch,
                       int lanes, const char *names[WAYS]) {
    struct pass pass = {
        .layer = layer, .kernels = kernels, .n = batch, .lanes = layout_gains(layer) ? lanes : 0};
    for (int p = CONV_FORWARD; p <= CONV_BACK_WEIGHTS; p++)
        names[p] = layer->type->way ? layer->type->way(&pass, (enum conv_pass)p) : "-";
    static const float kept;
    if (layer->type->kept_size && layer->type->kept_size(layer, kernels, batch) > 0)
        pass.prepared = &kept;
    names[WAY_PREDICTED] = layer->type->way ? layer->type->way(&pass, CONV_FORWARD) : "-";
}

// --- text -----------------------------------------------------------------------------

static const struct column columns[] = {
    {"layer", false},   {"type", false},      {"output", false},  {"plain", true},
    {"1", true},        {"2", true},          {"4", true},        {"8", true},
    {"16", true},       {"layout", false},    {"forward", false}, {"errors", false},
    {"weights", false}, {"predicted", false},
};

static void cost_cells(struct columns *table, const double costs[CANDIDATES]) {
    for (int i = 0; i < CANDIDATES; i++)
        if (costs[i] < 0)
            columns_cell(table, "-");
        else
            columns_cell(table, "%.1f", costs[i] / 1000);
}

static void layout_cell(struct columns *table, int lanes) {
    if (lanes)
        columns_cell(table, "blocks of %d", lanes);
    else
        columns_cell(table, "plain");
}

static void put_row(struct columns *table, const struct layer *layer, const struct kernels *kernels,
                    int batch, int lanes) {
    double costs[CANDIDATES];
    char shape[SHAPE_TEXT];
    const char *names[WAYS];
    layer_costs(layer, kernels, batch, costs);
    layer_ways(layer, kernels, batch, lanes, names);
    shape_text(shape, layer->out);
    columns_cell(table, "%s", layer->name);
    columns_cell(table, "%s", layer->type->name);
    columns_cell(table, "%s", shape);
    cost_cells(table, costs);
    layout_cell(table, layout_gains(layer) ? lanes : 0);
    for (int p = 0; p < WAYS; p++)
        columns_cell(table, "%s", names[p]);
}

static void sum_costs(const struct model *model, const struct kernels *kernels, int batch,
                      double sums[CANDIDATES]) {
    for (int i = 0; i < CANDIDATES; i++)
        sums[i] = lanes_fit(kernels, batch, candidate_lanes(i)) ? 0 : -1;
    for (int i = 0; i < model->layer_count; i++) {
        double costs[CANDIDATES];
        layer_costs(&model->layers[i], kernels, batch, costs);
        for (int c = 0; c < CANDIDATES; c++)
            sums[c] += costs[c] > 0 ? costs[c] : 0;
    }
}

static void put_total_row(struct columns *table, const struct model *model,
                          const struct kernels *kernels, int batch, int lanes) {
    double sums[CANDIDATES];
    sum_costs(model, kernels, batch, sums);
    columns_cell(table, "total");
    columns_cell(table, "%s", "");
    columns_cell(table, "%s", "");
    cost_cells(table, sums);
    layout_cell(table, lanes);
    for (int p = 0; p < WAYS; p++)
        columns_cell(table, "%s", "");
}

char *choice_text(const struct model *model, const struct kernels *kernels, int batch) {
    struct grow to = {0};
    struct columns table = {.column = columns, .count = sizeof columns / sizeof *columns};
    int lanes = layout_lanes(model, kernels, batch);
    grow_format(
        &to,
        "expected cost of the convolutions at mini-batch %d, as plain samples and in blocks "
        "of 1 to 16,\nin thousand vector multiply-adds a sample; the net takes the layout "
        "whose total is least\n",
        batch);
    for (int i = 0; i < model->layer_count; i++)
        if (has_products(&model->layers[i]))
            put_row(&table, &model->layers[i], kernels, batch, lanes);
    put_total_row(&table, model, kernels, batch, lanes);
    columns_put(&table, &to);
    return grow_take(&to);
}

// --- JSON -----------------------------------------------------------------------------

static json_t *costs_json(const double costs[CANDIDATES]) {
    json_t *object = json_object();
    for (int i = 0; i < CANDIDATES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", candidate_lanes(i));
        if (costs[i] >= 0)
            json_put(&object, name, json_real(costs[i]));
    }
    return object;
}

static json_t *layer_json(const struct layer *layer, const struct kernels *kernels, int batch,
                          int lanes) {
    double costs[CANDIDATES];
    const char *names[WAYS];
    layer_costs(layer, kernels, batch, costs);
    layer_ways(layer, kernels, batch, lanes, names);
    return json_pack("{s:s, s:s, s:i, s:[s,s,s], s:s, s:o}", "name", layer->name, "type",
                     layer->type->name, "lanes", layout_gains(layer) ? lanes : 0, "ways", names[0],
                     names[1], names[2], "predicted", names[WAY_PREDICTED], "costs",
                     costs_json(costs));
}

json_t *choice_json(const struct model *model, const struct kernels *kernels, int batch) {
    json_t *layers = json_array();
    int lanes = layout_lanes(model, kernels, batch);
    double sums[CANDIDATES];
    sum_costs(model, kernels, batch, sums);
    for (int i = 0; i < model->layer_count; i++)
        if (has_products(&model->layers[i]))
            json_append(&layers, layer_json(&model->layers[i], kernels, batch, lanes));
    return json_pack("{s:s, s:i, s:i, s:o, s:o}", "model", model->name, "batch", batch, "lanes",
                     lanes, "costs", costs_json(sums), "layers", layers);
}
