#include "model/fuse.h"

#include "model/fold.h"

int *fuse_readers(const struct model *model) {
    int *readers = mem_zeroed((size_t)model->layer_count, sizeof *readers);
    for (int i = 0; readers && i < model->layer_count; i++)
        for (int j = 0; j < model->layers[i].from_count; j++)
            readers[model->layers[i].from[j]]++;
    return readers;
}

static bool can_apply(const struct layer *layer, enum act act) {
    return layer->dropout == 0 && !act_reads_inputs(act) && (layer->type->acts >> act & 1);
}

// The layer whose outputs these are.
static int computing_layer(const struct model *model, const struct fused *fused, int i) {
    while (fused[i].within)
        i = model->layers[i].from[0];
    return i;
}

static void leave_norm_to_source(struct fused *fused, const struct layer *layer) {
    struct fused *below = &fused[layer->from[0]];
    below->act = layer->act;
    below->slope = layer->slope;
    fused[layer->index] = (struct fused){.within = true};
}

static void leave_to_source(const struct model *model, const int *readers, struct fused *fused,
                            const struct layer *layer) {
    int from = computing_layer(model, fused, layer->from[0]);
    if (!layer->type->activation || layer->dropout > 0 || readers[layer->from[0]] > 1 ||
        fused[from].act != ACT_LINEAR || !can_apply(&model->layers[from], layer->act))
        return;
    fused[from].act = layer->act;
    fused[from].slope = layer->slope;
    fused[layer->index] = (struct fused){.within = true};
}

static void take_relu(const struct model *model, const int *readers, struct fused *fused,
                      const struct layer *layer) {
    int from = computing_layer(model, fused, layer->from[0]);
    if (!layer->type->maximum || readers[layer->from[0]] > 1 || fused[from].act != ACT_RELU ||
        model->layers[from].dropout > 0)
        return;
    fused[from].act = ACT_LINEAR;
    fused[layer->index].act = ACT_RELU;
}

// Whether the layer can take error gradients back through these outputs of the one below.
static bool can_undo(const struct layer *layer, enum act act) {
    return layer->type->undoes_relu &&
           (act == ACT_RELU || (act == ACT_RELU6 && layer->type->undoes_bound));
}

static void take_errors_back(const struct model *model, const int *readers, struct fused *fused,
                             const struct layer *layer) {
    int from = computing_layer(model, fused, layer->from[0]);
    if (!can_undo(layer, fused[from].act) || readers[layer->from[0]] > 1 ||
        model->layers[from].type->maximum || model->layers[from].dropout > 0)
        return;
    fused[from].undone = true;
    fused[layer->index].undoes = fused[from].act;
}

// Whether the backward pass of a layer looks at its own outputs.
static bool reads_outputs(const struct layer *layer, const struct fused *fused) {
    bool masked = layer->type->maximum; // it knows its winners
    return layer->type->back_reads_y || layer->dropout > 0 ||
           (fused->act != ACT_LINEAR && !masked && !fused->undone);
}

static bool reads_input(const struct layer *layer, const struct fused *fused) {
    return layer->type->back_reads_x || fused->undoes;
}

// `over`: those who read what they write over do not count.
static bool is_spent(const struct model *model, const struct fused *fused, int i, bool over) {
    if (i == 0 || model->layers[i].type->output || reads_outputs(&model->layers[i], &fused[i]))
        return false;
    for (int r = i + 1; r < model->layer_count; r++)
        for (int j = 0; j < model->layers[r].from_count; j++)
            if (computing_layer(model, fused, model->layers[r].from[j]) == i && !fused[r].within &&
                reads_input(&model->layers[r], &fused[r]) &&
                !(over && model->layers[r].type->back_over_x))
                return false;
    return true;
}

void fuse(const struct model *model, const int *readers, bool folds, struct fused *fused) {
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        fused[i] = (struct fused){.act = layer->act, .slope = layer->slope};
        if (folds && fold_takes(model, readers, layer)) {
            leave_norm_to_source(fused, layer);
        } else if (layer->from_count == 1) {
            leave_to_source(model, readers, fused, layer);
            take_relu(model, readers, fused, layer);
        }
    }
    for (int i = 1; i < model->layer_count; i++)
        if (model->layers[i].from_count == 1 && !fused[i].within)
            take_errors_back(model, readers, fused, &model->layers[i]);
    for (int i = 0; i < model->layer_count; i++) {
        int from = fused[i].source = computing_layer(model, fused, i);
        fused[i].spent = is_spent(model, fused, from, false);
        fused[i].over = is_spent(model, fused, from, true);
    }
}
