#include "model/cut_table.h"

#include <stdio.h>

#include "core/columns.h"
#include "model/layer.h"
#include "model/net.h"
#include "model/script.h"
#include "model/table.h"

enum { FLOAT = sizeof(float), RANGE = 40 };

// "rows 0-27", "units 0-199", "all", "-"
static void range_text(char text[RANGE], const struct layer *layer, const struct cut_layer *part) {
    const struct region *own = &part->own, all = region_all(&layer->out);
    bool rows = part->way == CUT_ROWS, flat = layer->out.h == 1 && layer->out.w == 1;
    int first = rows ? own->r0 : own->c0, last = (rows ? own->r1 : own->c1) - 1;
    if (region_empty(own))
        snprintf(text, RANGE, "-");
    else if (region_same(own, &all))
        snprintf(text, RANGE, "all");
    else
        snprintf(text, RANGE, "%s %d-%d", rows ? "rows" : flat ? "units" : "maps", first, last);
}

// Bytes of its outputs for a mini-batch.
static size_t activations_of(const struct layer *layer, const struct cut_layer *part, int batch) {
    return region_size(&part->own, layer->out.w) * (size_t)batch * FLOAT;
}

// Of a thread: its context and its gradient, beside the weights.
static size_t memory_of(const struct cut *cut, int partition, int batch) {
    const struct model *model = cut_model(cut, partition);
    return 2 * model->parameter_count * FLOAT + net_bytes(model, batch, NET_TRAIN);
}

// Bytes of a sample that come to a partition.
static size_t received_by(const struct cut *cut, bool back, int partition) {
    size_t sum = 0;
    for (int p = 0; p < cut_partitions(cut); p++)
        sum += cut_sent(cut, back, p, partition) * FLOAT;
    return sum;
}

// --- JSON -------------------------------------------------------------------------------

static json_t *part_json(const struct cut *cut, const struct layer *layer, int partition,
                         int batch) {
    const struct cut_layer part = cut_layer(cut, layer, partition);
    const struct region *own = &part.own;
    return json_pack("{s:[i,i], s:[i,i], s:I, s:I, s:I, s:I, s:I}", "maps", own->c0, own->c1,
                     "rows", own->r0, own->r1, "parameters", (json_int_t)part.parameters,
                     "connections", (json_int_t)part.connections, "activation_bytes",
                     (json_int_t)activations_of(layer, &part, batch), "forward_bytes",
                     (json_int_t)(part.received[NET_FORWARD] * FLOAT), "back_bytes",
                     (json_int_t)(part.received[NET_BACKWARD] * FLOAT));
}

static json_t *layer_json(const struct cut *cut, const struct layer *layer, int batch) {
    json_t *parts = json_array();
    for (int p = 0; p < cut_partitions(cut); p++)
        json_append(&parts, part_json(cut, layer, p, batch));
    return json_pack("{s:i, s:s, s:s, s:s, s:[i,i,i], s:o}", "line", layer->line, "name",
                     layer->name, "type", layer->type->name, "cut",
                     cut_way_name(layer, cut_layer(cut, layer, 0).way), "output", layer->out.c,
                     layer->out.h, layer->out.w, "partitions", parts);
}

static json_t *partition_json(const struct cut *cut, int partition, int batch) {
    const struct model *model = cut_model(cut, partition);
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "parameters", (json_int_t)model->parameter_count,
                     "connections", (json_int_t)model->connections, "memory_bytes",
                     (json_int_t)memory_of(cut, partition, batch), "forward_bytes",
                     (json_int_t)received_by(cut, false, partition), "back_bytes",
                     (json_int_t)received_by(cut, true, partition));
}

static json_t *borders_json(const struct cut *cut) {
    json_t *borders = json_array();
    for (int from = 0; from < cut_partitions(cut); from++)
        for (int to = 0; to < cut_partitions(cut); to++) {
            size_t forward = cut_sent(cut, false, from, to) * FLOAT;
            size_t back = cut_sent(cut, true, from, to) * FLOAT;
            if (forward > 0 || back > 0)
                json_append(&borders, json_pack("{s:i, s:i, s:I, s:I}", "from", from, "to", to,
                                                "forward_bytes", (json_int_t)forward, "back_bytes",
                                                (json_int_t)back));
        }
    return borders;
}

json_t *cut_table_json(const struct cut *cut, const struct model *model, int batch) {
    json_t *layers = json_array(), *partitions = json_array();
    for (int i = 0; i < model->layer_count; i++)
        json_append(&layers, layer_json(cut, &model->layers[i], batch));
    for (int p = 0; p < cut_partitions(cut); p++)
        json_append(&partitions, partition_json(cut, p, batch));
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:I, s:f}", "model", model->name, "batch", batch,
                     "partitions", partitions, "layers", layers, "borders", borders_json(cut),
                     "shared_bytes", (json_int_t)(cut_sum_floats(cut) * FLOAT), "speed_up",
                     cut_speed_up(cut));
}

// --- text -------------------------------------------------------------------------------

static const struct column layer_columns[] = {
    {"line", true},        {"layer", false},  {"type", false},      {"cut", false},
    {"partition", true},   {"has", false},    {"parameters", true}, {"connections", true},
    {"activations", true}, {"forward", true}, {"back", true},
};

// The first row of a layer says what it is.
static void put_row(struct columns *table, const struct cut *cut, const struct layer *layer,
                    int partition, int batch) {
    const struct cut_layer part = cut_layer(cut, layer, partition);
    bool first = partition == 0;
    char range[RANGE], activations[TABLE_BYTES];
    range_text(range, layer, &part);
    table_bytes(activations, activations_of(layer, &part, batch));
    if (first)
        columns_cell(table, "%d", layer->line);
    else
        columns_cell(table, "%s", "");
    columns_cell(table, "%s", first ? layer->name : "");
    columns_cell(table, "%s", first ? layer->type->name : "");
    columns_cell(table, "%s", first ? cut_way_name(layer, part.way) : "");
    columns_cell(table, "%d", partition);
    columns_cell(table, "%s", range);
    columns_cell(table, "%zu", part.parameters);
    columns_cell(table, "%ju", (uintmax_t)part.connections);
    columns_cell(table, "%s", activations);
    for (int back = 0; back < 2; back++) {
        char bytes[TABLE_BYTES];
        table_bytes(bytes, part.received[back] * FLOAT);
        columns_cell(table, "%s", bytes);
    }
}

static const struct column partition_columns[] = {
    {"partition", true}, {"parameters", true}, {"connections", true},
    {"memory", true},    {"forward", true},    {"back", true},
};

static void put_partition(struct columns *table, const struct cut *cut, int partition, int batch) {
    const struct model *model = cut_model(cut, partition);
    const size_t bytes[] = {memory_of(cut, partition, batch), received_by(cut, false, partition),
                            received_by(cut, true, partition)};
    columns_cell(table, "%d", partition);
    columns_cell(table, "%zu", model->parameter_count);
    columns_cell(table, "%ju", (uintmax_t)model->connections);
    for (int i = 0; i < 3; i++) {
        char text[TABLE_BYTES];
        table_bytes(text, bytes[i]);
        columns_cell(table, "%s", text);
    }
}

static void put_borders(struct grow *to, const struct cut *cut) {
    for (int from = 0; from < cut_partitions(cut); from++)
        for (int other = 0; other < cut_partitions(cut); other++) {
            char forward[TABLE_BYTES], back[TABLE_BYTES];
            table_bytes(forward, cut_sent(cut, false, from, other) * FLOAT);
            table_bytes(back, cut_sent(cut, true, from, other) * FLOAT);
            if (cut_sent(cut, false, from, other) + cut_sent(cut, true, from, other) > 0)
                grow_format(to, "from %d to %d: %s forward, %s back\n", from, other, forward, back);
        }
}

static void put_sums(struct grow *to, const struct cut *cut) {
    size_t shared = cut_sum_floats(cut) * FLOAT;
    char bytes[TABLE_BYTES];
    table_bytes(bytes, shared);
    if (shared > 0)
        grow_format(to, "weights of several partitions, exchanged for each mini-batch: %s\n",
                    bytes);
    grow_format(to,
                "expected speed-up: %.2f of %d, a byte that crosses a border taken for %d "
                "multiplications\n",
                cut_speed_up(cut), cut_partitions(cut), CUT_MULTIPLIES_A_BYTE);
}

char *cut_table_text(const struct cut *cut, const struct model *model, int batch) {
    struct grow to = {0};
    struct columns layers = {layer_columns, sizeof layer_columns / sizeof *layer_columns, {0}};
    struct columns partitions = {
        partition_columns, sizeof partition_columns / sizeof *partition_columns, {0}};
    for (int i = 0; i < model->layer_count; i++)
        for (int p = 0; p < cut_partitions(cut); p++)
            put_row(&layers, cut, &model->layers[i], p, batch);
    columns_put(&layers, &to);
    grow_format(&to, "\n");
    for (int p = 0; p < cut_partitions(cut); p++)
        put_partition(&partitions, cut, p, batch);
    columns_put(&partitions, &to);
    grow_format(&to, "\nbytes of a sample that cross borders:\n");
    put_borders(&to, cut);
    put_sums(&to, cut);
    return grow_take(&to);
}
