#include "model/share.h"

#include <string.h>

#include "kernels/shapes.h"
#include "model/cut.h"
#include "model/keys.h"

struct parameter *layer_tensor(struct layer *layer, int i) {
    return i == 0 ? &layer->weights : i == 1 ? &layer->biases : &layer->statistics[i - 2];
}

const char *cut_way_name(const struct layer *layer, enum cut_way way) {
    bool flat = layer->out.h == 1 && layer->out.w == 1;
    return cut_names[way == CUT_MAPS && flat ? CUT_UNITS : way];
}

// How many rows, maps or units of the layer stay together; 0: it is not cut so.
static int grain_of(const struct layer *layer, enum cut_way way) {
    if (way == CUT_ROWS && layer->out.h < 2)
        return 0;
    return layer->type->grain ? layer->type->grain(layer, way) : 0;
}

bool share_may(const struct layer *layer, enum cut_way way) {
    if (way == CUT_INPUTS && layer->from[0] == 0) // the first partition has all of them
        return false;
    return way == CUT_NONE || grain_of(layer, way) > 0;
}

struct span {
    int first, last;
};

static struct span span_of(int all, int grain, int at, int count) {
    int64_t grains = grain > 0 ? all / grain : 0;
    return (struct span){(int)(grains * at / count) * grain,
                         (int)(grains * (at + 1) / count) * grain};
}

static struct region own_region(const struct layer *layer, enum cut_way way, int at, int count) {
    struct region own = region_all(&layer->out);
    if (way == CUT_NONE)
        return at == 0 ? own : (struct region){0};
    int grain = grain_of(layer, way);
    struct span span = span_of(way == CUT_ROWS ? own.r1 : own.c1, grain, at, count);
    if (way == CUT_ROWS)
        own.r0 = span.first, own.r1 = span.last;
    else
        own.c0 = span.first, own.c1 = span.last;
    return own;
}

// --- parameters -------------------------------------------------------------------------

static struct box whole_box(const struct parameter *parameter) {
    struct box box = {.rank = parameter->rank};
    memcpy(box.dims, parameter->dims, sizeof box.dims);
    memcpy(box.high, parameter->dims, sizeof box.high);
    return box;
}

void share_first(struct share *share, int i, int low, int high) {
    share->boxes[i].low[0] = low;
    share->boxes[i].high[0] = high;
    layer_tensor(&share->layer, i)->dims[0] = high - low;
}

static void count_parameters(struct layer *layer) {
    for (int i = 0; i < LAYER_TENSORS; i++) {
        struct parameter *tensor = layer_tensor(layer, i);
        tensor->count = tensor->rank > 0;
        for (int d = 0; d < tensor->rank; d++)
            tensor->count *= (size_t)tensor->dims[d];
    }
}

static void leave_parameters(struct share *share) {
    for (int i = 0; i < LAYER_TENSORS; i++) {
        share->boxes[i] = (struct box){0};
        *layer_tensor(&share->layer, i) = (struct parameter){0};
    }
}

// --- shares -----------------------------------------------------------------------------

int share_any(const struct layer *layer, enum cut_way way) {
    (void)layer;
    return way == CUT_ROWS || way == CUT_MAPS;
}

void share_window(struct share *share) {
    struct layer *layer = &share->layer;
    const struct region *own = &share->makes;
    int reach = layer_reach(layer).h, stride = layer->stride.h;
    int top = own->r0 * stride - layer->pad.h,
        bottom = (own->r1 - 1) * stride - layer->pad.h + reach;
    struct region *needs = &share->needs[0];
    if (top < 0)
        top = 0;
    if (bottom > layer->in.h || own->r1 == layer->out.h) // also rows that no window sees
        bottom = layer->in.h;
    *needs = (struct region){0, layer->in.c, top, bottom};
    layer->pad.h += top - own->r0 * stride;
}

static void need_all(struct share *share, const struct model *model, const struct layer *layer) {
    for (int j = 0; j < layer->from_count; j++)
        share->needs[j] = region_all(&model->layers[layer->from[j]].out);
}

// Shapes, and how many multiplications they take.
static void settle(struct share *share, const struct layer *layer) {
    struct layer *own = &share->layer;
    bool inputs = share->way == CUT_INPUTS;
    own->in = region_shape(&share->needs[0], layer->in.w);
    own->out = region_shape(&share->makes, layer->out.w);
    own->region = share->makes;
    count_parameters(own);
    size_t has = shape_size(inputs ? own->in : own->out),
           all = shape_size(inputs ? layer->in : layer->out);
    own->connections = (uint64_t)((double)layer->connections * (double)has / (double)all);
    own->useful = (uint64_t)((double)layer->useful * (double)has / (double)all);
}

void share_make(struct share *share, const struct model *model, const struct layer *layer,
                const struct share_place *place) {
    enum cut_way way = place->way;
    *share = (struct share){.way = way,
                            .own = own_region(layer, way, place->at, place->count),
                            .layer = *layer,
                            .exact = true};
    bool inputs = way == CUT_INPUTS, some = !region_empty(inputs ? place->from : &share->own);
    for (int i = 0; i < LAYER_TENSORS; i++)
        share->boxes[i] = whole_box(layer_tensor(&share->layer, i));
    if (some && inputs)
        share->makes = region_all(&layer->out), share->needs[0] = *place->from;
    else if (some)
        share->makes = place->makes ? *place->makes : share->own;
    for (int j = 0; some && !inputs && j < layer->from_count; j++)
        share->needs[j] = share->makes;
    if (some && way == CUT_NONE)
        need_all(share, model, layer);
    else if (some && layer->type->share)
        layer->type->share(share, model);
    else if (!some)
        leave_parameters(share);
    settle(share, layer);
}
