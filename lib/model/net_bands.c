// A convolution whose outputs only a max pool reads goes band by band, a few rows at a time:
// the pool takes outputs as soon as they are there, and the gradient takes their errors as
// soon as the pool has written them. So the first outputs of a net, which are its largest,
// and their errors are never in memory whole, but a band of them in the L2 cache.
//
// Of one block of 16 samples, by turns with the tree before, on a host whose other cores were
// busy, milliseconds of one process and of each of two, medians: cifar10_full's convolution
// (2 MB of outputs) and its pool back 0.494 -> 0.404, 0.550 -> 0.419, forward the same;
// AlexNet's (19 MB) there and back 39.4 -> 37.5, 40.2 -> 40.3 (the best 38.4 -> 36.6, 38.9 ->
// 37.5); MNIST's (0.5 MB) the same alone, 0.371 -> 0.349.
#include <string.h>

#include "kernels/window.h"
#include "model/keys.h"
#include "model/net_inside.h"

enum {
    BAND_FLOATS = 1 << 16, // outputs at a time, to stay in the L2 cache beside the rest
    BAND_ROWS = 4,         // or so many rows: those of a tile of Winograd's
    BAND_WEIGHTS = 4,      // outputs for each weight, which is prepared for every band
};

// --- who goes in bands --------------------------------------------------------------

// The layer that alone reads layer i; 0: there is none.
static int reader(const struct net *net, int i) {
    for (int r = i + 1; net->nodes[i].readers == 1 && r < net->model->layer_count; r++)
        for (int j = 0; j < net->model->layers[r].from_count; j++)
            if (net->model->layers[r].from[j] == i)
                return r;
    return 0;
}

// The one that reads what it and layers that it does the work of give.
static int reader_of_all(const struct net *net, int i) {
    int r = reader(net, i);
    while (r && net->nodes[r].fused.within)
        r = reader(net, r);
    return r;
}

static bool one_block(const struct net *net, const struct node *node) {
    return net->blocks == 1 || node->last > node->first + 1;
}

// Nobody wants errors of a layer that goes in bands: those of neighbouring bands overlap.
static bool can_begin(const struct net *net, const struct node *node) {
    return node->pass.lanes && one_block(net, node) && node->pass.layer->type->bands &&
           !node->pass.layer->type->maximum && node->fused.act == ACT_LINEAR && node->fused.spent &&
           !node->errors[0];
}

static bool can_end(const struct node *node, const struct node *pool) {
    const struct layer *layer = pool->pass.layer;
    return pool->pass.lanes && layer->type->bands && layer->type->maximum &&
           layer->kernel.h >= layer->stride.h &&
           (pool->first == node->first || node->last == node->first + 1);
}

// Rows that some window reads.
static int rows_read(const struct layer *pool) {
    struct window window = layer_window(pool);
    return window_span(&window, window.out_h - 1, 0).y1;
}

static size_t row_size(int w, int c, int lanes) {
    return (size_t)w * (size_t)c * (size_t)lanes;
}

static size_t outputs_row(const struct net *net, const struct layer *layer) {
    return row_size(layer->out.w, layer->out.c, net->lanes);
}

static int band_rows(const struct net *net, const struct layer *layer) {
    size_t units = BAND_FLOATS / outputs_row(net, layer) / BAND_ROWS;
    return (units > 0 ? (int)units : 1) * BAND_ROWS;
}

static bool pays(const struct net *net, const struct layer *layer, int rows, int band) {
    size_t outputs = (size_t)band * outputs_row(net, layer);
    return band < rows && layer->weights.count * BAND_WEIGHTS <= outputs;
}

static void lay_band(struct net *net, int i) {
    struct node *node = &net->nodes[i];
    int pool = can_begin(net, node) ? reader_of_all(net, i) : 0;
    if (!pool || !can_end(node, &net->nodes[pool]))
        return;
    int rows = rows_read(&net->model->layers[pool]), band = band_rows(net, &net->model->layers[i]);
    if (!pays(net, &net->model->layers[i], rows, band))
        return;
    node->pool = pool, node->rows = rows, node->band = band;
    net->nodes[pool].pooled = true;
}

void net_lay_bands(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        node->band = 0, node->pooled = false;
    }
    for (int i = 1; i < net->model->layer_count; i++)
        lay_band(net, i);
}

// --- bands --------------------------------------------------------------------------

static struct seen seeing(const struct window *v, int row) {
    return windows_seeing(row, v->kernel_h, v->stride_h, v->pad_h, v->out_h);
}

// Windows that see nothing from this row of the input on.
static int ended(const struct window *v, int row) {
    return row < v->h ? seeing(v, row).first : v->out_h;
}

// What is left of a window with the outputs [first, last) and inputs [top, bottom).
static void cut_window(struct pass *pass, int first, int last, int top, int bottom) {
    struct window *v = &pass->window;
    v->pad_h += top - first * v->stride_h;
    v->h = bottom - top;
    v->out_h = last - first;
    pass->row = first;
}

static void cut_convolution(struct pass *pass, int first, int last) {
    const struct window v = pass->window;
    int top = window_span(&v, first, 0).y0, bottom = window_span(&v, last - 1, 0).y1;
    cut_window(pass, first, last, top, bottom);
    pass->x[0] += (size_t)top * row_size(v.w, v.c, pass->lanes);
}

// The first row that the pool reads when the rows above `end` have been computed.
static int kept_from(const struct window *pool, int end) {
    return window_span(pool, ended(pool, end), 0).y0;
}

// What the band before has left and the pool reads once more goes to the beginning, what
// the convolution writes behind that.
static void forward_band(struct pass *pass, struct pass *pool, int first, int last, int before) {
    const struct window v = pool->window;
    size_t row = row_size(v.w, v.c, pass->lanes);
    int top = kept_from(&v, first), from = ended(&v, first);
    memmove(pass->y, pass->y + (size_t)(top - kept_from(&v, before)) * row,
            (size_t)(first - top) * row * sizeof *pass->y);
    cut_convolution(pass, first, last);
    pool->x[0] = pass->y;
    pass->y += (size_t)(first - top) * row;
    cut_window(pool, from, ended(&v, last), top, last);
    pool->y += (size_t)from * row_size(v.out_w, v.c, pool->lanes);
}

static void backward_band(struct pass *pass, struct pass *pool, int first, int last) {
    const struct window v = pool->window;
    int from = ended(&v, first);
    cut_convolution(pass, first, last);
    pool->dx[0] = pass->dy;
    cut_window(pool, from, seeing(&v, last - 1).last, first, last);
    pool->dy += (size_t)from * row_size(v.out_w, v.c, pool->lanes);
}

void net_view_band(struct net *net, struct node *node, struct part part, int row,
                   enum net_pass pass) {
    struct node *pool = &net->nodes[node->pool];
    int before = row > 0 ? row - node->band : 0, end = row + node->band;
    int last = end < node->rows ? end : node->rows;
    net_view(net, node, part);
    net_view(net, pool, part);
    if (pass == NET_FORWARD)
        forward_band(&node->pass, &pool->pass, row, last, before);
    else
        backward_band(&node->pass, &pool->pass, row, last);
}
