// Layers that follow one another, up to a max pool, go band by band, a few rows at a time: a
// convolution or a norm, norms across maps, and the pool take outputs as soon as they are there,
// and in the backward pass their error gradients as soon as the pool has written them. So the first
// outputs of a net, which are its largest, and their error gradients come from the L2 cache; and
// those of a convolution that only the pool reads are never in memory whole. Figures:
// tests/bench/results/pools-norms.txt.
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
static int only_reader(const struct net *net, int i) {
    for (int r = i + 1; net->nodes[i].readers == 1 && r < net->model->layer_count; r++)
        for (int j = 0; j < net->model->layers[r].from_count; j++)
            if (net->model->layers[r].from[j] == i)
                return r;
    return 0;
}

// The one that reads what it and layers that it does the work of give.
static int reader_behind_fused(const struct net *net, int i) {
    int r = only_reader(net, i);
    while (r && net->nodes[r].fused.within)
        r = only_reader(net, r);
    return r;
}

static bool one_block(const struct net *net, const struct node *node) {
    return net->blocks == 1 || node->last > node->first + 1;
}

// The pool needs no activation of its inputs; relu is done, and undone, where outputs and
// error gradients are written.
static bool can_pass(const struct node *node) {
    const struct layer *layer = node->pass.layer;
    return node->pass.lanes && layer->type->bands && !layer->type->maximum && layer->dropout == 0 &&
           (node->fused.act == ACT_LINEAR || node->fused.undone);
}

// Errors of neighbouring bands overlap, unless each pixel has its own: else nobody wants them.
static bool can_begin(const struct net *net, const struct node *node) {
    return !node->prev && one_block(net, node) && can_pass(node) &&
           (node->pass.layer->type->pixelwise || !node->errors[0]);
}

static bool same_stack(const struct node *node, const struct node *other) {
    return other->first == node->first || node->last == node->first + 1;
}

static bool can_follow(const struct node *node, const struct node *next) {
    return next->pass.layer->type->pixelwise && can_pass(next) && same_stack(node, next);
}

static bool can_end(const struct node *node, const struct node *pool) {
    const struct layer *layer = pool->pass.layer;
    return pool->pass.lanes && layer->type->bands && layer->type->maximum &&
           layer->kernel.h >= layer->stride.h && same_stack(node, pool);
}

// The pool that layers from i on end with; 0: none.
static int pool_behind(const struct net *net, int i) {
    const struct node *node = &net->nodes[i];
    int r = reader_behind_fused(net, i);
    while (r && can_follow(node, &net->nodes[r]))
        r = reader_behind_fused(net, r);
    return r && can_end(node, &net->nodes[r]) ? r : 0;
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

static bool band_pays(const struct net *net, const struct layer *layer, int rows, int band) {
    size_t outputs = (size_t)band * outputs_row(net, layer);
    return band < rows && layer->weights.count * BAND_WEIGHTS <= outputs;
}

// All rows where error gradients are wanted of all.
static int rows_wanted(const struct net *net, const struct node *node, int pool) {
    return node->errors[0] ? node->pass.layer->out.h : rows_read(&net->model->layers[pool]);
}

static void lay_bands(struct net *net, int i) {
    const struct node *node = &net->nodes[i];
    int pool = can_begin(net, node) ? pool_behind(net, i) : 0;
    if (!pool)
        return;
    int rows = rows_wanted(net, node, pool), band = band_rows(net, &net->model->layers[i]);
    if (!band_pays(net, &net->model->layers[i], rows, band))
        return;
    for (int l = i, prev = 0, next; l; prev = l, l = next) {
        struct node *each = &net->nodes[l];
        next = l == pool ? 0 : reader_behind_fused(net, l);
        each->band = band, each->rows = rows, each->prev = prev, each->next = next;
    }
}

void net_lay_bands(struct net *net) {
    for (int i = 0; i < net->model->layer_count; i++) {
        struct node *node = &net->nodes[i];
        node->band = node->next = node->prev = 0;
    }
    for (int i = 1; i < net->model->layer_count; i++)
        lay_bands(net, i);
}

// --- bands --------------------------------------------------------------------------

static struct seen windows_on_row(const struct window *v, int row) {
    return windows_seeing(row, v->kernel_h, v->stride_h, v->pad_h, v->out_h);
}

// Windows that see nothing from this row of the input on.
static int windows_above_row(const struct window *v, int row) {
    return row < v->h ? windows_on_row(v, row).first : v->out_h;
}

// What is left of a window with the outputs [first, last) and inputs [top, bottom).
static void cut_window(struct pass *pass, int first, int last, int top, int bottom) {
    struct window *v = &pass->window;
    v->pad_h += top - first * v->stride_h;
    v->h = bottom - top;
    v->out_h = last - first;
    pass->row = first;
}

// To the outputs [first, last), and what they come from.
static void cut_to_outputs(struct pass *pass, int first, int last) {
    const struct window v = pass->window;
    bool own = pass->layer->type->pixelwise;
    int top = own ? first : window_span(&v, first, 0).y0;
    int bottom = own ? last : window_span(&v, last - 1, 0).y1;
    size_t at = (size_t)top * row_size(v.w, v.c, pass->lanes);
    cut_window(pass, first, last, top, bottom);
    pass->x[0] += at;
    if (pass->dx[0])
        pass->dx[0] += at;
}

// The first row that the pool reads when the rows above `end` have been computed.
static int kept_from(const struct window *pool, int end) {
    return window_span(pool, windows_above_row(pool, end), 0).y0;
}

static bool before_pool(const struct net *net, const struct node *node) {
    return node->next && !net->nodes[node->next].next;
}

// Whether only the pool reads these outputs, now: then a band of them is all there is.
static bool is_band_enough(const struct net *net, const struct node *node) {
    return node->fused.spent && before_pool(net, node);
}

// What the band before has left and the pool reads once more goes to the beginning, what
// is written now behind that.
static void move_band(struct pass *pass, const struct window *pool, size_t row, int first,
                      int before) {
    int top = kept_from(pool, first);
    memmove(pass->y, pass->y + (size_t)(top - kept_from(pool, before)) * row,
            (size_t)(first - top) * row * sizeof *pass->y);
    pass->y += (size_t)(first - top) * row;
}

static void forward_band(const struct net *net, struct node *node, int first, int last,
                         int before) {
    struct pass *pass = &node->pass;
    size_t row = outputs_row(net, pass->layer);
    cut_to_outputs(pass, first, last);
    if (is_band_enough(net, node)) {
        struct window pool = layer_window(&net->model->layers[node->next]);
        move_band(pass, &pool, row, first, before);
    } else {
        pass->y += (size_t)first * row;
    }
}

static void forward_pool(const struct net *net, struct node *node, int first, int last) {
    struct pass *pass = &node->pass;
    const struct window v = pass->window;
    int top = kept_from(&v, first), from = windows_above_row(&v, first);
    if (!is_band_enough(net, &net->nodes[node->prev]))
        pass->x[0] += (size_t)top * row_size(v.w, v.c, pass->lanes);
    cut_window(pass, from, windows_above_row(&v, last), top, last);
    pass->y += (size_t)from * outputs_row(net, pass->layer);
}

// The error gradients that the pool writes are a band of them.
static void backward_band(const struct net *net, struct node *node, int first, int last) {
    struct pass *pass = &node->pass;
    size_t at = (size_t)first * outputs_row(net, pass->layer);
    cut_to_outputs(pass, first, last);
    pass->y += at;
    if (!before_pool(net, node))
        pass->dy += at;
}

static void backward_pool(const struct net *net, struct node *node, int first, int last) {
    struct pass *pass = &node->pass;
    const struct window v = pass->window;
    int from = windows_above_row(&v, first);
    cut_window(pass, from, windows_on_row(&v, last - 1).last, first, last);
    pass->dy += (size_t)from * outputs_row(net, pass->layer);
}

void net_view_band(struct net *net, struct node *node, struct block_range range, int row,
                   enum net_pass pass) {
    int before = row > 0 ? row - node->band : 0, end = row + node->band;
    int last = end < node->rows ? end : node->rows;
    net_view(net, node, range);
    if (pass == NET_FORWARD && node->next)
        forward_band(net, node, row, last, before);
    else if (pass == NET_FORWARD)
        forward_pool(net, node, row, last);
    else if (node->next)
        backward_band(net, node, row, last);
    else
        backward_pool(net, node, row, last);
}
