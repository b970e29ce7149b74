// What the parts of the export share. Inside lib/onnx only.
//
//   export.c        the whole, and the file
//   export_input.c  the operations of the input
//   export_layer.c  layers
#ifndef ADAM_ONNX_EXPORT_INTERNAL_H
#define ADAM_ONNX_EXPORT_INTERNAL_H

#include "onnx/export.h"
#include "onnx/graph.h"

struct exporting {
    struct graph *graph;
    const struct model *model;
    const float *parameters;
    const char **values; // by layer: the name of what it gives
};

// What the input layer gives, of "pictures". STATUS_DATA: its operations look at more than single
// values.
int export_input(struct exporting *ex, struct error *err);
// What any other layer gives. STATUS_DATA: ONNX has no such layer.
int export_layer(struct exporting *ex, const struct layer *layer, struct error *err);

#endif
