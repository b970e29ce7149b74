// Layers in the making, and what nodes give of them.
#include <inttypes.h>
#include <onnx.pb-c.h>

#include "core/error.h"
#include "onnx/import_internal.h"

enum { VALUES_MOST = 1 << 30 };

int import_shape(struct shape *out, int64_t c, int64_t h, int64_t w, struct error *err) {
    int64_t values;
    if (c < 1 || h < 1 || w < 1 || __builtin_mul_overflow(c, h, &values) ||
        __builtin_mul_overflow(values, w, &values) || values > VALUES_MOST)
        return error_set(err, STATUS_DATA,
                         "%" PRId64 "x%" PRId64 "x%" PRId64 " is no shape of 1 to %d values", c, h,
                         w, VALUES_MOST);
    *out = (struct shape){(int)c, (int)h, (int)w};
    return STATUS_OK;
}

int import_draft(struct importing *im, const Onnx__NodeProto *node, const char *type,
                 const struct value *from, struct draft **draft, struct error *err) {
    *draft = NULL;
    if (im->draft_count > IMPORT_LAYERS)
        return error_set(err, STATUS_DATA, "more than %d layers", IMPORT_LAYERS);
    int index = im->draft_count++;
    *draft = &im->drafts[index];
    **draft = (struct draft){.type = type, .node = node, .keys = "", .stands_in = index};
    if (from) {
        (*draft)->from[(*draft)->from_count++] = from->layer;
        (*draft)->out = import_out(im, from);
    }
    return STATUS_OK;
}

void import_gives_layer(struct importing *im, const Onnx__NodeProto *node,
                        const struct draft *draft, bool flat) {
    struct value *value = import_result(im, node);
    value->kind = VALUE_LAYER;
    value->layer = (int)(draft - im->drafts);
    value->flat = flat;
    value->maker = node;
}

void import_gives_same(struct importing *im, const Onnx__NodeProto *node,
                       const struct value *value) {
    struct value *result = import_result(im, node), same = *value;
    same.name = result->name;
    same.readers = result->readers;
    same.shared = value->shared || value->readers > 1;
    *result = same;
}

struct shape import_out(const struct importing *im, const struct value *value) {
    return im->drafts[value->layer].out;
}
