#include "model/table.h"

#include <stdio.h>
#include <string.h>

#include "core/columns.h"
#include "kernels/kernels.h"
#include "model/net.h"
#include "model/script.h"

static size_t product_or_most(size_t a, size_t b) {
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

static size_t sum_or_most(size_t a, size_t b) {
    size_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

struct model_cost model_cost(const struct model *model, int batch, int threads) {
    struct model_cost cost = {
        .weights = product_or_most(model->parameter_count, sizeof(float)),
        .context = net_bytes(model, net_part(model, kernels_best(), batch), NET_TRAIN),
        .update = product_or_most(model->parameter_count, sizeof(float)),
    };
    size_t thread = sum_or_most(cost.context, cost.update);
    cost.total = sum_or_most(cost.weights, product_or_most((size_t)threads, thread));
    return cost;
}

// Bytes of a layer's outputs for a mini-batch.
static size_t layer_activations(const struct layer *layer, int batch) {
    return product_or_most(product_or_most(shape_size(layer->out), (size_t)batch), sizeof(float));
}

static json_t *from_json(const struct model *model, const struct layer *layer) {
    json_t *from = json_array();
    for (int i = 0; i < layer->from_count; i++)
        json_append(&from, json_string(model->layers[layer->from[i]].name));
    return from;
}

static json_int_t json_size(size_t size) {
    return size > INT64_MAX ? INT64_MAX : (json_int_t)size;
}

static json_t *layer_json(const struct model *model, const struct layer *layer, int batch) {
    size_t parameters = layer_parameters(layer);
    return json_pack("{s:i, s:s, s:s, s:o, s:[i,i,i], s:I, s:I, s:I, s:I}", "line", layer->line,
                     "name", layer->name, "type", layer->type->name, "from",
                     from_json(model, layer), "output", layer->out.c, layer->out.h, layer->out.w,
                     "parameters", json_size(parameters), "connections",
                     json_size(layer->connections), "activation_bytes",
                     json_size(layer_activations(layer, batch)), "update_bytes",
                     json_size(product_or_most(parameters, sizeof(float))));
}

json_t *table_json(const struct model *model, int batch, int threads) {
    json_t *layers = json_array();
    for (int i = 0; i < model->layer_count; i++)
        json_append(&layers, layer_json(model, &model->layers[i], batch));
    struct model_cost cost = model_cost(model, batch, threads);
    return json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "model",
                     model->name, "classes", model_classes(model), "batch", batch, "threads",
                     threads, "parameters", json_size(model->parameter_count), "connections",
                     json_size(model->connections), "weight_bytes", json_size(cost.weights),
                     "context_bytes", json_size(cost.context), "update_bytes",
                     json_size(cost.update), "total_bytes", json_size(cost.total), "layers",
                     layers);
}

static const struct column columns[] = {
    {"line", true},        {"layer", false},      {"type", false},
    {"reads", false},      {"output", false},     {"parameters", true},
    {"connections", true}, {"activations", true}, {"update", true},
};

enum { CELL = 80 };

void table_bytes(char text[TABLE_BYTES], size_t bytes) {
    static const char units[] = "KMGTPE";
    double value = (double)bytes;
    int unit = -1;
    for (; value >= 1023.95; unit++)
        value /= 1024;
    if (unit < 0)
        snprintf(text, TABLE_BYTES, "%zu", bytes);
    else
        snprintf(text, TABLE_BYTES, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

// "c1,c2", or as much of it as a cell holds.
static void reads_text(char text[CELL], const struct model *model, const struct layer *layer) {
    size_t used = 0;
    snprintf(text, CELL, "-");
    for (int i = 0; i < layer->from_count && used < CELL; i++)
        used += (size_t)snprintf(text + used, CELL - used, "%s%s", i ? "," : "",
                                 model->layers[layer->from[i]].name);
    if (used >= CELL)
        memcpy(text + CELL - 4, "...", 4);
}

static void layer_row(struct columns *table, const struct model *model, const struct layer *layer,
                      int batch) {
    size_t parameters = layer_parameters(layer);
    char reads[CELL], shape[SHAPE_TEXT], activations[TABLE_BYTES], update[TABLE_BYTES];
    reads_text(reads, model, layer);
    shape_text(shape, layer->out);
    table_bytes(activations, layer_activations(layer, batch));
    table_bytes(update, product_or_most(parameters, sizeof(float)));
    columns_cell(table, "%d", layer->line);
    columns_cell(table, "%s", layer->name);
    columns_cell(table, "%s", layer->type->name);
    columns_cell(table, "%s", reads);
    columns_cell(table, "%s", shape);
    columns_cell(table, "%zu", parameters);
    columns_cell(table, "%ju", (uintmax_t)layer->connections);
    columns_cell(table, "%s", activations);
    columns_cell(table, "%s", update);
}

static void put_total_row(struct columns *table, const struct model *model, int batch) {
    size_t sum = 0;
    char activations[TABLE_BYTES], update[TABLE_BYTES];
    for (int i = 0; i < model->layer_count; i++)
        sum = sum_or_most(sum, layer_activations(&model->layers[i], batch));
    table_bytes(activations, sum);
    table_bytes(update, product_or_most(model->parameter_count, sizeof(float)));
    columns_cell(table, "%s", "");
    columns_cell(table, "total");
    for (int empty = 0; empty < 3; empty++)
        columns_cell(table, "%s", "");
    columns_cell(table, "%zu", model->parameter_count);
    columns_cell(table, "%ju", (uintmax_t)model->connections);
    columns_cell(table, "%s", activations);
    columns_cell(table, "%s", update);
}

static void write_cost(struct grow *to, const struct model *model, int batch, int threads) {
    struct model_cost cost = model_cost(model, batch, threads);
    char weights[TABLE_BYTES], context[TABLE_BYTES], update[TABLE_BYTES], total[TABLE_BYTES];
    table_bytes(weights, cost.weights);
    table_bytes(context, cost.context);
    table_bytes(update, cost.update);
    table_bytes(total, cost.total);
    grow_format(
        to, "memory in training: weights %s + %d thread%s x (%s at batch %d + update %s) = %s\n",
        weights, threads, threads == 1 ? "" : "s", context, batch, update, total);
}

char *table_text(const struct model *model, int batch, int threads) {
    struct grow to = {0};
    struct columns table = {.column = columns, .count = sizeof columns / sizeof *columns};
    for (int i = 0; i < model->layer_count; i++)
        layer_row(&table, model, &model->layers[i], batch);
    put_total_row(&table, model, batch);
    columns_put(&table, &to);
    write_cost(&to, model, batch, threads);
    return grow_take(&to);
}
