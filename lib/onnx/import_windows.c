// Convolutions, pools, and the windows through which they see a picture.
#include <inttypes.h>
#include <onnx.pb-c.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import_internal.h"

enum { SIZE_MOST = 10000, MAPS_MOST = 1000000 };

// --- windows ------------------------------------------------------------------------------

struct sides {
    int64_t h, w;
};

struct window_of_node {
    struct sides kernel, stride, dilation, before, behind, out;
    struct sides reach; // from the first tap to the last
    bool up;            // rounded
};

static int read_sides(const Onnx__NodeProto *node, const char *name, int64_t least,
                      struct sides *sides, struct error *err) {
    const int64_t *values;
    size_t found;
    int status = import_ints(node, name, 2, &values, &found, err);
    if (status || !values)
        return status;
    for (int i = 0; i < 2; i++)
        if (values[i] < least || values[i] > SIZE_MOST)
            return error_set(err, STATUS_DATA, "attribute '%s' has %" PRId64, name, values[i]);
    *sides = (struct sides){values[0], values[1]};
    return STATUS_OK;
}

static int read_pads(const Onnx__NodeProto *node, struct window_of_node *window,
                     struct error *err) {
    const int64_t *pads;
    size_t found;
    int status = import_ints(node, "pads", 4, &pads, &found, err);
    if (status || !pads)
        return status;
    for (int i = 0; i < 4; i++)
        if (pads[i] < 0 || pads[i] > SIZE_MOST)
            return error_set(err, STATUS_DATA, "attribute 'pads' has %" PRId64, pads[i]);
    window->before = (struct sides){pads[0], pads[1]};
    window->behind = (struct sides){pads[2], pads[3]};
    return STATUS_OK;
}

// As many windows as there are strides: what that takes around the picture.
static void pad_same(int64_t in, int64_t kernel, int64_t stride, bool upper, int64_t *before,
                     int64_t *behind) {
    int64_t all = ((in + stride - 1) / stride - 1) * stride + kernel - in;
    all = all > 0 ? all : 0;
    *before = upper ? all / 2 : all - all / 2;
    *behind = all - *before;
}

static int read_auto_pad(struct importing *im, const Onnx__NodeProto *node, struct shape in,
                         struct window_of_node *w, struct error *err) {
    const char *way = import_word(im, node, "auto_pad");
    bool upper = !strcmp(way, "SAME_UPPER");
    if (!*way || !strcmp(way, "NOTSET"))
        return read_pads(node, w, err);
    if (upper || !strcmp(way, "SAME_LOWER")) {
        pad_same(in.h, w->reach.h, w->stride.h, upper, &w->before.h, &w->behind.h);
        pad_same(in.w, w->reach.w, w->stride.w, upper, &w->before.w, &w->behind.w);
        return STATUS_OK;
    }
    return !strcmp(way, "VALID") ? STATUS_OK
                                 : error_set(err, STATUS_DATA, "attribute 'auto_pad' is '%s'", way);
}

static int64_t count_windows(int64_t in, int64_t kernel, int64_t stride, int64_t before,
                             int64_t behind, bool up) {
    int64_t room = in + before + behind - kernel;
    if (room < 0)
        return 0;
    int64_t out = (room + (up ? stride - 1 : 0)) / stride + 1;
    return up && (out - 1) * stride >= in + before ? out - 1 : out; // sees nothing
}

// Windows begin where the padding does: behind the picture only their number counts.
static bool holds(const struct window_of_node *w, struct shape in, bool up) {
    return count_windows(in.h, w->reach.h, w->stride.h, w->before.h, w->before.h, up) == w->out.h &&
           count_windows(in.w, w->reach.w, w->stride.w, w->before.w, w->before.w, up) == w->out.w;
}

static int check_window(struct window_of_node *w, struct shape in, bool ceil, struct error *err) {
    w->out.h = count_windows(in.h, w->reach.h, w->stride.h, w->before.h, w->behind.h, ceil);
    w->out.w = count_windows(in.w, w->reach.w, w->stride.w, w->before.w, w->behind.w, ceil);
    if (w->out.h < 1 || w->out.w < 1)
        return error_set(err, STATUS_DATA,
                         "its window of %" PRId64 "x%" PRId64 " is larger than what it reads, "
                         "%dx%d",
                         w->reach.h, w->reach.w, in.h, in.w);
    w->up = !holds(w, in, false);
    if (w->before.h < w->reach.h && w->before.w < w->reach.w && (!w->up || holds(w, in, true)))
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "padding of %" PRId64 ",%" PRId64 " before and %" PRId64 ",%" PRId64
                     " behind is not supported: as much behind as before is, smaller than the "
                     "window, or as much as rounding up takes",
                     w->before.h, w->before.w, w->behind.h, w->behind.w);
}

static int64_t reach_of(int64_t kernel, int64_t dilation) {
    return (kernel - 1) * dilation + 1;
}

// The kernel is what it is where the attribute is left out.
static int read_window(struct importing *im, const Onnx__NodeProto *node, struct shape in,
                       struct window_of_node *w, struct error *err) {
    int64_t ceil = 0;
    w->stride = w->dilation = (struct sides){1, 1};
    int status = read_sides(node, "kernel_shape", 1, &w->kernel, err);
    if (!status)
        status = read_sides(node, "strides", 1, &w->stride, err);
    if (!status)
        status = read_sides(node, "dilations", 1, &w->dilation, err);
    if (!status)
        status = import_int(node, "ceil_mode", &ceil, err);
    w->reach =
        (struct sides){reach_of(w->kernel.h, w->dilation.h), reach_of(w->kernel.w, w->dilation.w)};
    if (!status)
        status = read_auto_pad(im, node, in, w, err);
    return status ? status : check_window(w, in, ceil != 0, err);
}

static const char *sides_key(struct importing *im, const char *key, struct sides sides) {
    return sides.h == sides.w
               ? keep_format(&im->keep, " %s=%" PRId64, key, sides.h)
               : keep_format(&im->keep, " %s=%" PRId64 "x%" PRId64, key, sides.h, sides.w);
}

static const char *window_keys(struct importing *im, const char *key,
                               const struct window_of_node *w, bool pool) {
    bool usual = pool ? w->stride.h == w->kernel.h && w->stride.w == w->kernel.w
                      : w->stride.h == 1 && w->stride.w == 1;
    bool dense = w->dilation.h == 1 && w->dilation.w == 1;
    return keep_format(&im->keep, "%s%s%s%s%s", sides_key(im, key, w->kernel),
                       usual ? "" : sides_key(im, "stride", w->stride),
                       dense ? "" : sides_key(im, "dilation", w->dilation),
                       w->before.h || w->before.w ? sides_key(im, "pad", w->before) : "",
                       w->up ? " round=up" : "");
}

// --- convolutions -------------------------------------------------------------------------

static int check_groups(const Onnx__TensorProto *weights, struct shape in, int64_t groups,
                        struct error *err) {
    int64_t maps = weights->dims[0], read = weights->dims[1];
    if (groups >= 1 && groups <= maps && maps <= MAPS_MOST && maps % groups == 0 &&
        in.c % groups == 0 && in.c / groups == read)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%" PRId64 " groups of %" PRId64 " kernels for %" PRId64
                     " maps do not fit %d maps",
                     groups, maps, read, in.c);
}

int import_conv(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const Onnx__TensorProto *weights, *biases = NULL;
    struct window_of_node w = {.up = false};
    struct draft *draft;
    struct shape out;
    int64_t groups = 1;
    int status = import_picture_operand(im, node, &x, err);
    if (!status)
        status = import_tensor_operand(im, node, 1, 4, &weights, err);
    if (!status && !weights)
        status = error_set(err, STATUS_DATA, "it has no weights");
    if (!status)
        status = import_tensor_operand(im, node, 2, 1, &biases, err);
    if (!status)
        status = import_int(node, "group", &groups, err);
    if (!status)
        status = check_groups(weights, import_out(im, x), groups, err);
    if (!status)
        status = import_check_count(biases, weights->dims[0], err);
    if (status)
        return status;
    w.kernel = (struct sides){weights->dims[2], weights->dims[3]};
    status = read_window(im, node, import_out(im, x), &w, err);
    if (!status && (w.kernel.h != weights->dims[2] || w.kernel.w != weights->dims[3]))
        status = error_set(err, STATUS_DATA, "'kernel_shape' is not that of the weights");
    if (!status)
        status = import_shape(&out, weights->dims[0], w.out.h, w.out.w, err);
    if (!status)
        status = import_draft(im, node, "conv", x, &draft, err);
    if (status)
        return status;
    draft->out = out;
    draft->weight_name = weights->name;
    draft->weights = (struct source){.tensor = weights, .factor = 1};
    draft->biases = (struct source){.tensor = biases, .factor = 1};
    draft->keys =
        keep_format(&im->keep, " maps=%d%s%s", out.c, window_keys(im, "kernel", &w, false),
                    groups > 1 ? keep_format(&im->keep, " groups=%" PRId64, groups) : "");
    import_gives_layer(im, node, draft, false);
    return STATUS_OK;
}

// --- pools --------------------------------------------------------------------------------

static bool is_padded(const struct window_of_node *w) {
    return w->before.h || w->before.w || w->behind.h || w->behind.w;
}

// What the pools have beside their windows.
static int check_pool(const Onnx__NodeProto *node, const struct window_of_node *w,
                      struct error *err) {
    int64_t counts = 0, p = 2;
    int status = import_int(node, "count_include_pad", &counts, err);
    if (!status)
        status = import_int(node, "p", &p, err);
    if (status)
        return status;
    if (w->dilation.h != 1 || w->dilation.w != 1)
        return error_set(err, STATUS_DATA, "dilations other than 1 are not supported in pools");
    if (counts && is_padded(w))
        return error_set(err, STATUS_DATA,
                         "'count_include_pad' with padding is not supported: means are over the "
                         "pixels that exist");
    return p == 2 ? STATUS_OK
                  : error_set(err, STATUS_DATA, "p=%" PRId64 " is not supported: 2 is", p);
}

int import_pool(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    const char *type = *node->op_type == 'M'   ? "maxpool"
                       : *node->op_type == 'A' ? "avgpool"
                                               : "l2pool";
    struct value *x;
    struct window_of_node w = {.up = false};
    struct draft *draft;
    struct shape out;
    int status = import_picture_operand(im, node, &x, err);
    if (!status && !import_attribute(node, "kernel_shape"))
        status = error_set(err, STATUS_DATA, "it has no kernel_shape");
    if (!status)
        status = read_window(im, node, import_out(im, x), &w, err);
    if (!status)
        status = check_pool(node, &w, err);
    if (!status)
        status = import_shape(&out, import_out(im, x).c, w.out.h, w.out.w, err);
    if (status)
        return status;
    bool nothing = w.kernel.h == 1 && w.kernel.w == 1 && w.stride.h == 1 && w.stride.w == 1;
    if (nothing && *type != 'l')
        return import_gives_same(im, node, x), STATUS_OK;
    status = import_draft(im, node, type, x, &draft, err);
    if (status)
        return status;
    draft->out = out;
    draft->keys = window_keys(im, "size", &w, true);
    import_gives_layer(im, node, draft, false);
    return STATUS_OK;
}

static int add_global_pool(struct importing *im, const Onnx__NodeProto *node, const char *type,
                           const struct value *x, bool flat, struct error *err) {
    struct draft *draft;
    int status = import_draft(im, node, type, x, &draft, err);
    if (status)
        return status;
    draft->out.h = draft->out.w = 1;
    draft->keys = " size=all";
    import_gives_layer(im, node, draft, flat);
    return STATUS_OK;
}

int import_global_pool(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    int status = import_picture_operand(im, node, &x, err);
    const char *type = strstr(node->op_type, "Max") ? "maxpool" : "avgpool";
    return status ? status : add_global_pool(im, node, type, x, false, err);
}

// A mean over height and width.
int import_reduce_mean(struct importing *im, const Onnx__NodeProto *node, struct error *err) {
    struct value *x;
    const int64_t *axes;
    size_t count;
    int64_t keep = 1;
    int status = import_picture_operand(im, node, &x, err);
    if (!status)
        status = import_int(node, "keepdims", &keep, err);
    if (!status)
        status = node->n_input > 1 ? import_numbers_operand(im, node, 1, &axes, &count, err)
                                   : import_ints(node, "axes", 0, &axes, &count, err);
    if (status)
        return status;
    return import_are_sides(axes, count)
               ? add_global_pool(im, node, "avgpool", x, !keep, err)
               : error_set(err, STATUS_DATA, "axes other than 2,3 are not supported");
}
