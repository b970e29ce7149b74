// One factor and one summand for each map, which no layer but a convolution has: of one pixel of
// one map.
#include <onnx.pb-c.h>

#include "core/error.h"
#include "onnx/import_internal.h"

static int add_each_map(struct importing *im, const Onnx__NodeProto *node, const struct value *x,
                        struct draft **draft, struct error *err) {
    int status = import_draft(im, node, "conv", x, draft, err);
    if (status)
        return status;
    int maps = (*draft)->out.c;
    (*draft)->keys = keep_format(&im->keep, " maps=%d kernel=1 groups=%d", maps, maps);
    return STATUS_OK;
}

int import_each_map(struct importing *im, const Onnx__NodeProto *node, const struct value *value,
                    const Onnx__TensorProto *tensor, struct error *err) {
    struct value *x = import_find_value(im, value->name);
    struct draft *draft;
    int status = import_settle(im, x, err);
    if (!status)
        status = add_each_map(im, node, x, &draft, err);
    if (status)
        return status;
    bool times = *node->op_type == 'M';
    *(times ? &draft->weights : &draft->biases) = (struct source){.tensor = tensor, .factor = 1};
    draft->weights.ones = !times;
    draft->weight_name = times ? tensor->name : NULL;
    import_gives_layer(im, node, draft, x->flat);
    return STATUS_OK;
}

// The same number for each.
static int all_maps(struct importing *im, double number, int maps, struct source *source,
                    struct error *err) {
    Onnx__TensorProto *tensor =
        import_new_tensor(im, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 1, false);
    float *value = keep_room(&im->keep, 1, sizeof *value);
    if (!tensor || !value)
        return error_nomem(err);
    *value = (float)number;
    tensor->float_data = value;
    tensor->n_float_data = 1;
    *source = (struct source){.tensor = tensor, .factor = 1, .each = maps};
    return STATUS_OK;
}

int import_line(struct importing *im, struct value *value, double factor, double summand,
                struct error *err) {
    struct draft *draft;
    int status = add_each_map(im, value->maker, value, &draft, err);
    if (!status)
        status = all_maps(im, factor, draft->out.c, &draft->weights, err);
    if (!status)
        status = all_maps(im, summand, draft->out.c, &draft->biases, err);
    if (status)
        return status;
    value->layer = (int)(draft - im->drafts);
    value->curve = NULL;
    return STATUS_OK;
}
