// Pools of blocks and their adjoints: the results are those of plain samples.
#include "../helper/blocks.h"
#include "kernels/blocks.h"
#include "kernels/pools.h"
#include "kernels/shapes.h"

#define TOLERANCE 1e-6f // sums of a window, in the same order but perhaps fused

// Outputs along one side; rounded up, a last window is clipped, but never empty.
static int pool_length(int length, int kernel, int stride, int pad, bool up) {
    int out = (length + 2 * pad - kernel + (up ? stride - 1 : 0)) / stride + 1;
    return (out - 1) * stride - pad < length ? out : out - 1;
}

static struct window pool_window(int c, const int shape[5], bool up) {
    int h = shape[0], w = shape[1], kernel = shape[2], stride = shape[3], pad = shape[4];
    return (struct window){.c = c,
                           .h = h,
                           .w = w,
                           .out_h = pool_length(h, kernel, stride, pad, up),
                           .out_w = pool_length(w, kernel, stride, pad, up),
                           .kernel_h = kernel,
                           .kernel_w = kernel,
                           .stride_h = stride,
                           .stride_w = stride,
                           .pad_h = pad,
                           .pad_w = pad};
}

// The numbers are few, so that maxima are equal often and zeros fill some windows; in two
// of three maps they are less, so that in some windows, small or large, all are below 0.
static float *coarse_noise(struct family *f, size_t n, int pixels) {
    float *x = noise(f, n);
    for (size_t i = 0; i < n; i++)
        x[i] = roundf(x[i]) - (float)(2 * (i / (size_t)pixels % 3));
    return x;
}

struct pool_case {
    const struct window *v;
    int n, lanes, blocks, in, out; // in, out: pixels
    float *x, *y, *dy, *dx;        // plain samples
    float *bx, *bdy;               // the same in blocks
};

static void check_max(struct family *f, struct pool_case *p, bool relu) {
    const struct window *v = p->v;
    float *y = blocks_of(f, NULL, p->n, v->c, p->out, p->lanes);
    float *dx = blocks_of(f, NULL, p->n, v->c, p->in, p->lanes);
    int32_t *wanted = mem_array((size_t)(p->n * v->c * p->out), sizeof *wanted);
    int32_t *winner = mem_array(block_size(p->n, v->c, p->out, p->lanes), sizeof *winner);
    f->ref->pools->maxpool(p->y, wanted, p->x, p->n, v, relu);
    f->k->blocks->maxpool(y, winner, p->bx, p->blocks, p->lanes, v, relu);
    check_blocks(f, "maxpool_block", y, p->y, p->n, v->c, p->out, p->lanes, 0);
    f->ref->pools->maxpool_back(p->dx, p->dy, wanted, p->n, v);
    f->k->blocks->maxpool_back(dx, p->bdy, winner, p->blocks, p->lanes, v);
    check_blocks(f, "maxpool_block_back", dx, p->dx, p->n, v->c, p->in, p->lanes, 0);
    free(wanted), free(winner);
}

static void check_mean(struct family *f, struct pool_case *p) {
    const struct window *v = p->v;
    float *y = blocks_of(f, NULL, p->n, v->c, p->out, p->lanes);
    float *dx = blocks_of(f, NULL, p->n, v->c, p->in, p->lanes);
    f->ref->pools->avgpool(p->y, p->x, p->n, v);
    f->k->blocks->avgpool(y, p->bx, p->blocks, p->lanes, v);
    check_blocks(f, "avgpool_block", y, p->y, p->n, v->c, p->out, p->lanes, TOLERANCE);
    f->ref->pools->avgpool_back(p->dx, p->dy, p->n, v);
    f->k->blocks->avgpool_back(dx, p->bdy, NULL, p->blocks, p->lanes, v);
    check_blocks(f, "avgpool_block_back", dx, p->dx, p->n, v->c, p->in, p->lanes, TOLERANCE);
    f->ref->acts[ACT_RELU].back(p->dx, p->x, (size_t)(p->n * v->c * p->in), 0);
    dx = blocks_of(f, p->x, p->n, v->c, p->in, p->lanes);
    f->k->blocks->avgpool_back(dx, p->bdy, dx, p->blocks, p->lanes, v);
    check_blocks(f, "avgpool_block_back through a relu, in place", dx, p->dx, p->n, v->c, p->in,
                 p->lanes, TOLERANCE);
}

static void check_l2(struct family *f, struct pool_case *p) {
    const struct window *v = p->v;
    float *y = blocks_of(f, NULL, p->n, v->c, p->out, p->lanes);
    float *dx = blocks_of(f, NULL, p->n, v->c, p->in, p->lanes);
    f->ref->pools->l2pool(p->y, p->x, p->n, v);
    f->k->blocks->l2pool(y, p->bx, p->blocks, p->lanes, v);
    f->ref->pools->l2pool_back(p->dx, p->dy, p->y, p->x, p->n, v);
    f->k->blocks->l2pool_back(dx, p->bdy, y, p->bx, p->blocks, p->lanes, v);
    check_blocks(f, "l2pool_block", y, p->y, p->n, v->c, p->out, p->lanes, TOLERANCE);
    check_blocks(f, "l2pool_block_back", dx, p->dx, p->n, v->c, p->in, p->lanes, TOLERANCE);
}

static void check_pools(struct family *f, const struct window *v, int n, int lanes) {
    struct pool_case p = {.v = v, .n = n, .lanes = lanes, .blocks = block_count(n, lanes)};
    p.in = v->h * v->w, p.out = v->out_h * v->out_w;
    size_t in = (size_t)(n * v->c * p.in), out = (size_t)(n * v->c * p.out);
    p.x = coarse_noise(f, in, p.in), p.dy = noise(f, out);
    p.y = mem_floats(out), p.dx = mem_floats(in);
    p.bx = blocks_of(f, p.x, n, v->c, p.in, lanes);
    p.bdy = blocks_of(f, p.dy, n, v->c, p.out, lanes);
    check_max(f, &p, false);
    check_max(f, &p, true);
    check_mean(f, &p);
    check_l2(f, &p);
    free(p.x), free(p.dy), free(p.y), free(p.dx), free(p.bx), free(p.bdy);
}

static void test_pools(struct family *f, int lanes) {
    static const int maps[] = {1, 3, 10, 16, 20, 33};
    static const int shapes[][5] = {
        // h, w, kernel, stride, pad
        {1, 1, 1, 1, 0},    {28, 14, 2, 2, 0},  {9, 12, 3, 2, 0}, {7, 7, 3, 1, 1},  {8, 8, 3, 2, 1},
        {11, 6, 5, 3, 2},   {6, 7, 2, 3, 0},    {5, 4, 4, 1, 3},  {7, 10, 3, 3, 0}, {9, 7, 2, 2, 0},
        {19, 17, 15, 2, 3}, {20, 18, 17, 3, 8}, // winners in bytes no more from 16 x 16
    };
    for (size_t c = 0; c < sizeof maps / sizeof *maps; c++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int up = 0; up < 2; up++) {
                struct window v = pool_window(maps[c], shapes[s], up);
                check_pools(f, &v, lanes + 3, lanes);
            }
}

// Windows that tile the picture, of more pixels than a vector is written to at once. The other
// tests have the noise that they had without this one.
static void test_large_tiles(struct family *f, int lanes) {
    static const int shapes[][5] = {{9, 11, 4, 4, 0}, {8, 8, 8, 8, 0}};
    const struct random before = f->random;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct window v = pool_window(20, shapes[s], false);
        check_pools(f, &v, lanes + 3, lanes);
    }
    f->random = before;
}

// What comes first wins even if it is no number; what comes after a number does not.
static void test_no_number(struct family *f, int lanes) {
    struct window v = pool_window(1, (const int[]){3, 6, 3, 3, 0}, false);
    size_t in = (size_t)(18 * lanes), out = (size_t)(2 * lanes);
    float *x = mem_floats(in), *y = mem_floats(out), *dx = mem_floats(in), *dy = noise(f, out);
    int32_t *winner = mem_array(out, sizeof *winner);
    for (int l = 0; l < lanes; l++)
        x[l] = NAN, x[4 * lanes + l] = NAN, x[9 * lanes + l] = 2;
    for (int relu = 0; relu < 2; relu++) {
        f->k->blocks->maxpool(y, winner, x, 1, lanes, &v, relu);
        f->k->blocks->maxpool_back(dx, dy, winner, 1, lanes, &v);
        for (int l = 0; l < lanes; l++) {
            CHECK(f->tap, isnan(y[l]) && (relu ? dx[l] == 0 : dx[l] == dy[l]));
            CHECK(f->tap, y[lanes + l] == 2 && dx[9 * lanes + l] == dy[lanes + l]);
        }
    }
    free(x), free(y), free(dx), free(dy), free(winner);
}

static void test_all(struct family *f, int lanes) {
    test_pools(f, lanes);
    test_large_tiles(f, lanes);
    test_no_number(f, lanes);
}

int main(void) {
    return test_families("pools of blocks are those of samples", test_all);
}
