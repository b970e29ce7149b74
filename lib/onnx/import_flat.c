// Flattening. A dense layer takes the values of any shape in the order of ONNX, so that to flatten
// is nothing; but a graph may reckon its shape from that of a value, node by node.
#include <inttypes.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"

enum { NUMBERS_MOST = 64 };

static void give_split(struct importing *im, const Onnx__NodeProto *node, const struct value *x,
                       bool flat, int rows) {
    import_gives_same(im, node, x);
    import_result(im, node)->flat = flat;
    import_result(im, node)->rows = rows;
}

static void give_flat(struct importing *im, const Onnx__NodeProto *node, const struct value *x,
                      bool flat) {
    give_split(im, node, x, flat, 0);
}

int import_flatten(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    int64_t axis = 1;
    int status = import_layer_operand(im, node, 0, &x, err);
    if (!status)
        status = import_int(node, "axis", &axis, err);
    if (status)
        return status;
    if (!import_is_first(x, axis))
        return error_set(err, STATUS_DATA, "axis %" PRId64 " is not supported: 1 is", axis);
    give_flat(im, node, x, true);
    return STATUS_OK;
}

// --- Reshape ------------------------------------------------------------------------------

// A dimension that is to be one of the value's: 0 keeps it, and -1 may stand once for any.
static bool fits(int64_t given, int64_t own, int64_t kept, int *open) {
    *open += given == -1;
    return given == own || given == -1 || (given == 0 && kept == own);
}

// The samples, of which any number but -1 is as good as another.
static bool fits_batch(int64_t given, int *open) {
    *open += given == -1;
    return given == NUMBER_BATCH || given >= -1;
}

enum { DIMS_MOST = 3 }; // behind the samples

// The dimensions that the value has; -1: it has no such.
static void own_dims(const struct value *x, struct shape shape, int64_t own[DIMS_MOST]) {
    int64_t values = (int64_t)shape_size(shape);
    own[0] = x->flat ? values : x->rows ? x->rows : shape.c;
    own[1] = x->flat ? -1 : x->rows ? values / x->rows : shape.h;
    own[2] = x->flat || x->rows ? -1 : shape.w;
}

static bool makes(const int64_t *given, size_t count, const int64_t own[DIMS_MOST],
                  const int64_t *wanted, size_t rank) {
    int open = 0;
    bool all = count == rank + 1 && fits_batch(given[0], &open);
    for (size_t i = 0; all && i < rank; i++)
        all = fits(given[i + 1], wanted[i], own[i], &open);
    return all && open <= 1;
}

static int reshape(struct importing *im, const Onnx__NodeProto *node, const struct value *x,
                   const int64_t *dims, size_t count, struct error *err) {
    struct shape shape = import_out(im, x);
    int64_t values = (int64_t)shape_size(shape), rows = count == 3 ? dims[1] : 0;
    const int64_t picture[] = {shape.c, shape.h, shape.w},
                  split[] = {rows, values / (rows + !rows)};
    int64_t own[DIMS_MOST];
    own_dims(x, shape, own);
    if (makes(dims, count, own, &values, 1))
        give_flat(im, node, x, true);
    else if (makes(dims, count, own, picture, 3))
        give_flat(im, node, x, false);
    else if (rows > 0 && shape.c % rows == 0 && makes(dims, count, own, split, 2))
        give_split(im, node, x, false, (int)rows);
    else
        return error_set(err, STATUS_DATA,
                         "it makes another shape of %dx%dx%d; to flatten, and to split maps for "
                         "InstanceNormalization, is supported",
                         shape.c, shape.h, shape.w);
    return STATUS_OK;
}

int import_reshape(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const int64_t *dims;
    size_t count;
    int64_t zero = 0;
    int status = import_rows_operand(im, node, 0, &x, err);
    if (!status)
        status = import_numbers_operand(im, node, 1, &dims, &count, err);
    if (!status)
        status = import_int(node, "allowzero", &zero, err);
    if (!status && zero)
        status = error_set(err, STATUS_DATA, "allowzero=1 is not supported");
    return status ? status : reshape(im, node, x, dims, count, err);
}

static int read_axes(struct importing *im, const Onnx__NodeProto *node, const int64_t **axes,
                     size_t *count, struct error *err) {
    return node->n_input > 1 ? import_numbers_operand(im, node, 1, axes, count, err)
                             : import_ints(node, "axes", 0, axes, count, err);
}

static int give_numbers(struct importing *im, const Onnx__NodeProto *node, const int64_t *numbers,
                        size_t count) {
    struct value *result = import_result(im, node);
    result->kind = VALUE_NUMBERS;
    result->numbers = numbers;
    result->number_count = count;
    return STATUS_OK;
}

// Of a value of 1x1 pixels, height and width go or come.
static int resize_single(struct importing *im, const Onnx__NodeProto *node, bool squeeze,
                         struct error *err) {
    struct value *x;
    const int64_t *axes;
    size_t count;
    int status = import_layer_operand(im, node, 0, &x, err);
    if (!status)
        status = read_axes(im, node, &axes, &count, err);
    if (status)
        return status;
    struct shape shape = import_out(im, x);
    if (!import_are_sides(axes, count) || shape.h != 1 || shape.w != 1 || x->flat == squeeze)
        return error_set(err, STATUS_DATA, "it is supported for height and width of 1x1 only");
    give_flat(im, node, x, squeeze);
    return STATUS_OK;
}

static bool gives_numbers(struct importing *im, const Onnx__NodeProto *node) {
    const struct value *value = import_find_value(im, node->input[0]);
    return value && (value->kind == VALUE_NUMBERS || value->kind == VALUE_TENSOR);
}

static int same_numbers(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const int64_t *numbers;
    size_t count;
    int status = import_numbers_operand(im, node, 0, &numbers, &count, err);
    return status ? status : give_numbers(im, node, numbers, count);
}

int import_squeeze(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    return gives_numbers(im, node) ? same_numbers(im, node, err)
                                   : resize_single(im, node, true, err);
}

int import_unsqueeze(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    return gives_numbers(im, node) ? same_numbers(im, node, err)
                                   : resize_single(im, node, false, err);
}

int import_cast(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    int64_t to = 0;
    int status = import_int(node, "to", &to, err);
    if (status)
        return status;
    if (gives_numbers(im, node) && to == ONNX__TENSOR_PROTO__DATA_TYPE__INT64)
        return same_numbers(im, node, err);
    return to == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
               ? import_same(im, node, err)
               : error_set(err, STATUS_DATA, "to other types than FLOAT it is not supported");
}

// --- what shapes are reckoned by -----------------------------------------------------------

int import_shape_of(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    int status = import_layer_operand(im, node, 0, &x, err);
    int64_t *numbers = status ? NULL : keep_room(&im->keep, 4, sizeof *numbers);
    if (!numbers)
        return status ? status : error_nomem(err);
    struct shape shape = import_out(im, x);
    numbers[0] = NUMBER_BATCH;
    numbers[1] = x->flat ? (int64_t)shape_size(shape) : shape.c;
    numbers[2] = shape.h;
    numbers[3] = shape.w;
    return give_numbers(im, node, numbers, x->flat ? 2 : 4);
}

int import_gather(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const int64_t *numbers, *at;
    size_t count, chosen;
    int64_t axis = 0;
    int status = import_numbers_operand(im, node, 0, &numbers, &count, err);
    if (!status)
        status = import_numbers_operand(im, node, 1, &at, &chosen, err);
    if (!status)
        status = import_int(node, "axis", &axis, err);
    int64_t *found = status ? NULL : keep_room(&im->keep, chosen + 1, sizeof *found);
    if (!found)
        return status ? status : error_nomem(err);
    for (size_t i = 0; i < chosen; i++) {
        int64_t place = at[i] < 0 ? at[i] + (int64_t)count : at[i];
        if (axis != 0 || place < 0 || (size_t)place >= count)
            return error_set(err, STATUS_DATA, "it looks for number %" PRId64 " of %zu", at[i],
                             count);
        found[i] = numbers[place];
    }
    return give_numbers(im, node, found, chosen);
}

static int concat_numbers(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    int64_t *all = keep_room(&im->keep, NUMBERS_MOST, sizeof *all);
    size_t used = 0;
    for (size_t i = 0; all && i < node->n_input; i++) {
        const int64_t *numbers;
        size_t count;
        int status = import_numbers_operand(im, node, i, &numbers, &count, err);
        if (!status && count > NUMBERS_MOST - used)
            status = error_set(err, STATUS_DATA, "more than %d numbers", NUMBERS_MOST);
        if (status)
            return status;
        if (count > 0)
            memcpy(all + used, numbers, count * sizeof *all);
        used += count;
    }
    return all ? give_numbers(im, node, all, used) : error_nomem(err);
}

// --- Concat -------------------------------------------------------------------------------

static int concat_layers(struct importing *im, const Onnx__NodeProto *node,
                         struct value *const *values, struct error *err) {
    struct draft *draft;
    int status = import_draft(im, node, "concat", values[0], &draft, err);
    for (size_t i = 1; !status && i < node->n_input; i++) {
        struct shape a = draft->out, b = import_out(im, values[i]);
        if (a.h != b.h || a.w != b.w || values[i]->flat != values[0]->flat)
            return error_set(err, STATUS_DATA, "maps of %dx%d and %dx%d do not fit", a.h, a.w, b.h,
                             b.w);
        status = import_shape(&draft->out, (int64_t)a.c + b.c, a.h, a.w, err);
        draft->from[draft->from_count++] = values[i]->layer;
    }
    if (!status)
        import_gives_layer(im, node, draft, values[0]->flat);
    return status;
}

int import_concat(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *values[LAYER_INPUTS_MAX];
    int64_t axis = 1;
    if (gives_numbers(im, node))
        return concat_numbers(im, node, err);
    int status = import_layer_operands(im, node, values, err);
    if (!status)
        status = import_int(node, "axis", &axis, err);
    if (status)
        return status;
    return import_is_first(values[0], axis)
               ? concat_layers(im, node, values, err)
               : error_set(err, STATUS_DATA, "axis %" PRId64 " is not supported: 1 is", axis);
}
