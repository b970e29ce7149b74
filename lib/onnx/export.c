#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "onnx/export_internal.h"
#include "store/output.h"

static int export_layers(struct exporting *ex, struct error *err) {
    const struct layer *input = model_input(ex->model);
    const int64_t taken[] = {input->out.c, input->out.h, input->out.w};
    const int64_t given = model_classes(ex->model);
    int status = export_input(ex, err);
    for (int i = 1; !status && i < ex->model->layer_count; i++)
        status = export_layer(ex, &ex->model->layers[i], err);
    if (status)
        return status;
    graph_takes(ex->graph, "pictures", taken, 3);
    graph_gives(ex->graph, "scores", &given, 1);
    return STATUS_OK;
}

static int note_classes(struct graph *graph, const struct classes *classes, struct error *err) {
    char *names = checkpoint_class_names(classes);
    if (!names)
        return error_nomem(err);
    graph_note(graph, "classes", names);
    free(names);
    return STATUS_OK;
}

static int export_graph(struct exporting *ex, const struct checkpoint *checkpoint, const char *path,
                        bool force, struct error *err) {
    uint8_t *bytes;
    size_t size;
    int status = export_layers(ex, err);
    if (!status)
        status = note_classes(ex->graph, &checkpoint->classes, err);
    if (status)
        return status;
    graph_note(ex->graph, "model", checkpoint->model->text);
    status = graph_pack(ex->graph, checkpoint->model->name, &bytes, &size, err);
    if (status)
        return status;
    status = output_whole(path, force, bytes, size, err);
    free(bytes);
    return status;
}

int onnx_export(const struct checkpoint *checkpoint, const char *path, bool force,
                struct error *err) {
    const struct model *model = checkpoint->model;
    struct exporting ex = {.graph = graph_open(),
                           .model = model,
                           .parameters = checkpoint->parameters,
                           .values = mem_zeroed((size_t)model->layer_count, sizeof *ex.values)};
    int status =
        ex.graph && ex.values ? export_graph(&ex, checkpoint, path, force, err) : error_nomem(err);
    graph_close(ex.graph);
    free(ex.values);
    return status;
}
