#include "onnx/import.h"

#include <inttypes.h>
#include <onnx.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "onnx/import_internal.h"
#include "run/model_ops.h"
#include "store/map.h"

enum { DIAGONAL_MOST = 4096 }; // scores of a graph that does not end with a dense layer

// --- the graph ----------------------------------------------------------------------------

static int check_opset(struct importing *im, const Onnx__ModelProto *model, struct error *err) {
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *domain = model->opset_import[i]->domain;
        if (!domain || !*domain || !strcmp(domain, "ai.onnx"))
            im->opset = model->opset_import[i]->version;
    }
    if (im->opset >= IMPORT_OPSET_LEAST && im->opset <= IMPORT_OPSET_MOST)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "operator set %" PRId64 " is not supported: those from %d to %d are",
                     im->opset, IMPORT_OPSET_LEAST, IMPORT_OPSET_MOST);
}

static int check_graph(struct importing *im, struct error *err) {
    const Onnx__GraphProto *graph = im->graph;
    if (graph->n_output != 1)
        return error_set(err, STATUS_DATA, "the graph gives %zu outputs; one is expected",
                         graph->n_output);
    if (graph->n_sparse_initializer > 0)
        return error_set(err, STATUS_DATA, "sparse constants are not supported");
    im->end = graph->output[0]->name ? graph->output[0]->name : "";
    return STATUS_OK;
}

static int walk(struct importing *im, const Onnx__ModelProto *model, struct error *err) {
    int status = check_opset(im, model, err);
    if (!status)
        status = check_graph(im, err);
    if (!status)
        status = import_collect_values(im, err);
    if (!status)
        status = import_find_lcns(im, err);
    if (!status)
        status = import_input(im, err);
    for (size_t i = 0; !status && i < im->graph->n_node; i++)
        status = import_node(im, im->graph->node[i], err);
    return status;
}

// --- its end ------------------------------------------------------------------------------

// So adam-ctl export writes an output layer that gives numbers.
static bool was_linear(const struct importing *im) {
    for (size_t i = 0; im->ours && i < im->graph->n_node; i++) {
        const Onnx__NodeProto *node = im->graph->node[i];
        if (!strcmp(node->output[0], im->end))
            return !strcmp(node->op_type, "Identity");
    }
    return false;
}

static int check_scores(struct importing *im, const char **type, struct error *err) {
    const char *wished = im->wish->scores;
    bool linear = was_linear(im);
    *type = im->scores ? im->scores : wished ? wished : linear ? "linear" : "softmax";
    im->guessed_scores = im->scores || wished || linear ? NULL : *type;
    if (wished && strcmp(wished, *type) != 0)
        return error_set(err, STATUS_DATA, "--scores %s: the graph ends with the scores of %s",
                         wished, *type);
    return STATUS_OK;
}

// An output layer that passes on what it reads.
static int add_output(struct importing *im, const struct value *value, const char *type,
                      struct error *err) {
    struct draft *draft;
    size_t units = shape_size(import_out(im, value));
    if (units > DIAGONAL_MOST)
        return error_set(err, STATUS_DATA,
                         "the graph gives %zu values of no dense layer; at most %d are supported",
                         units, DIAGONAL_MOST);
    int status = import_draft(im, NULL, type, value, &draft, err);
    if (status)
        return status;
    draft->weights = (struct source){.diagonal = true};
    draft->keys = keep_format(&im->keep, " units=%zu", units);
    return STATUS_OK;
}

// The last dense layer and the scores are one here.
static int end_graph(struct importing *im, struct error *err) {
    struct value *value = import_find_value(im, im->end);
    const char *type;
    if (!value || value->kind != VALUE_LAYER)
        return error_set(err, STATUS_DATA, "no node gives the graph's output '%.100s'", im->end);
    if (value->rows)
        return error_set(err, STATUS_DATA, "the graph's output '%.100s' is split into %d rows",
                         im->end, value->rows);
    if (!im->scores && import_drops_sigmoid(im, value))
        im->scores = "logistic";
    int status = check_scores(im, &type, err);
    if (!status)
        status = import_settle(im, value, err);
    if (status)
        return status;
    struct draft *last = &im->drafts[value->layer];
    bool dense = !strcmp(last->type, "dense");
    for (int i = value->layer + 1; i < im->draft_count; i++)
        for (int j = 0; j < im->drafts[i].from_count; j++)
            dense = dense && im->drafts[i].from[j] != value->layer;
    if (!dense)
        return add_output(im, value, type, err);
    last->type = type;
    im->draft_count = value->layer + 1;
    return STATUS_OK;
}

// --- the checkpoint -----------------------------------------------------------------------

static int number_classes(struct classes *classes, int count, struct error *err) {
    int label;
    return classes_number(classes, count - 1, &label, err);
}

static const char *find_note(const Onnx__ModelProto *model, const char *key) {
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *note = model->metadata_props[i];
        if (note->key && note->value && !strcmp(note->key, key))
            return note->value;
    }
    return NULL;
}

// Those that adam-ctl export writes.
static int noted_classes(struct classes *classes, const char *text, struct error *err) {
    json_t *names;
    int status = json_read(&names, text, strlen(text), err), label;
    if (status)
        return error_context(err, "the names of its classes");
    for (size_t i = 0; !status && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        status = name ? classes_label(classes, name, &label, err)
                      : error_set(err, STATUS_DATA, "the names of its classes are no texts");
    }
    json_decref(names);
    return status;
}

static int name_classes(const struct importing *im, struct checkpoint *checkpoint,
                        const Onnx__ModelProto *model, struct error *err) {
    const struct import_wish *wish = im->wish;
    int count = model_classes(checkpoint->model);
    const char *noted = im->ours ? find_note(model, "classes") : NULL;
    int status = wish->classes ? classes_copy(&checkpoint->classes, wish->classes, err)
                 : noted       ? noted_classes(&checkpoint->classes, noted, err)
                               : number_classes(&checkpoint->classes, count, err);
    if (!status && checkpoint->classes.count != count)
        return error_set(err, STATUS_DATA, "it gives %d scores, and there are %d names of classes",
                         count, checkpoint->classes.count);
    return status;
}

static int check_ops(const struct model *model, struct error *err) {
    struct ops *ops = NULL;
    int status = model_input(model)->ops ? model_ops_open(&ops, model, err) : STATUS_OK;
    ops_free(ops);
    return status;
}

static int make_checkpoint(struct importing *im, const Onnx__ModelProto *model,
                           struct checkpoint *checkpoint, const char *text, struct error *err) {
    int status = model_parse(&checkpoint->model, im->path, text, NULL, 0, err);
    if (!status)
        status = check_ops(checkpoint->model, err);
    if (!status)
        status = name_classes(im, checkpoint, model, err);
    checkpoint->optimizer = (struct optimizer){.rule = RULE_SGD};
    checkpoint->run = json_object();
    if (!status && !checkpoint->run)
        status = error_nomem(err);
    if (!status)
        status = checkpoint_make_room(checkpoint, false, err);
    return status ? status : import_weights(im, checkpoint->model, checkpoint->parameters, err);
}

static int import_model(struct importing *im, const Onnx__ModelProto *model,
                        struct checkpoint *checkpoint, struct import_guess *guess,
                        struct error *err) {
    const char *ops = "";
    char *text = NULL;
    bool guessed = false;
    int status = walk(im, model, err);
    if (!status)
        status = end_graph(im, err);
    if (!status)
        status = import_ops(im, &ops, &guessed, err);
    if (!status)
        status = import_text(im, ops, &text, err);
    if (!status)
        status = make_checkpoint(im, model, checkpoint, text, err);
    free(text);
    if (!status && guessed && !(guess->ops = mem_string(ops)))
        return error_nomem(err);
    guess->scores = im->guessed_scores;
    return status;
}

int onnx_import_bytes(struct checkpoint *checkpoint, const char *name, const void *bytes,
                      size_t size, const struct import_wish *wish, struct import_guess *guess,
                      struct error *err) {
    Onnx__ModelProto *model;
    struct importing im = {.path = name, .wish = wish};
    *checkpoint = (struct checkpoint){.model = NULL};
    *guess = (struct import_guess){.ops = NULL};
    int status = import_unpack(&model, name, bytes, size, err);
    if (status)
        return status;
    im.graph = model->graph;
    im.ours = model->producer_name && !strcmp(model->producer_name, "adam");
    im.drafts = mem_zeroed(IMPORT_LAYERS + 2, sizeof *im.drafts);
    status = im.drafts ? import_model(&im, model, checkpoint, guess, err) : error_nomem(err);
    free(im.drafts);
    keep_free(&im.keep);
    onnx__model_proto__free_unpacked(model, NULL);
    return status == STATUS_DATA ? error_context(err, "%s", name) : status;
}

int onnx_import(struct checkpoint *checkpoint, const char *path, const struct import_wish *wish,
                struct import_guess *guess, struct error *err) {
    struct map map;
    *checkpoint = (struct checkpoint){.model = NULL};
    *guess = (struct import_guess){.ops = NULL};
    int status = map_open(&map, path, err);
    if (status)
        return status;
    status = onnx_import_bytes(checkpoint, path, map.data, map.size, wish, guess, err);
    map_close(&map);
    return status;
}
