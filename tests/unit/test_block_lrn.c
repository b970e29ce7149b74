// Local response normalisation of blocks and its adjoint.
#include "../helper/blocks.h"
#include "kernels/blocks.h"

#define TOLERANCE 1e-5f // roots and powers that are computed in other ways

struct lrn_case {
    int c, pixels, size;
    float beta;
};

static void check_lrn(struct family *f, const struct lrn_case *p, int n, int lanes) {
    int c = p->c, pixels = p->pixels, blocks = block_count(n, lanes);
    size_t size = (size_t)(n * c * pixels);
    float *x = noise(f, size), *dy = noise(f, size);
    float *y = mem_floats(size), *scale = mem_floats(size), *dx = mem_floats(size);
    float *bx = blocks_of(f, x, n, c, pixels, lanes), *bdy = blocks_of(f, dy, n, c, pixels, lanes);
    float *by = blocks_of(f, NULL, n, c, pixels, lanes);
    float *bscale = blocks_of(f, NULL, n, c, pixels, lanes);
    float *bdx = blocks_of(f, NULL, n, c, pixels, lanes);
    f->ref->lrn(y, scale, x, n, c, pixels, p->size, 0.3f, p->beta, 1.5f);
    f->ref->lrn_back(dx, dy, y, scale, x, false, n, c, pixels, p->size, 0.3f, p->beta);
    f->k->norm_blocks->lrn(by, bscale, bx, blocks, lanes, c, pixels, p->size, 0.3f, p->beta, 1.5f);
    f->k->norm_blocks->lrn_back(bdx, bdy, by, bscale, bx, false, blocks, lanes, c, pixels, p->size,
                                0.3f, p->beta);
    check_blocks(f, "lrn_block_back", bdx, dx, n, c, pixels, lanes, TOLERANCE);
    bdx = blocks_of(f, x, n, c, pixels, lanes);
    f->k->norm_blocks->lrn_back(bdx, bdy, by, bscale, bdx, false, blocks, lanes, c, pixels, p->size,
                                0.3f, p->beta);
    check_blocks(f, "lrn_block_back in place", bdx, dx, n, c, pixels, lanes, TOLERANCE);
    f->ref->acts[ACT_RELU].back(dx, x, size, 0);
    f->k->norm_blocks->lrn_back(bx, bdy, by, bscale, bx, true, blocks, lanes, c, pixels, p->size,
                                0.3f, p->beta);
    check_blocks(f, "lrn_block_back through a relu, in place", bx, dx, n, c, pixels, lanes,
                 TOLERANCE);
    check_blocks(f, "lrn_block", by, y, n, c, pixels, lanes, TOLERANCE);
    free(x), free(dy), free(y), free(scale), free(dx), free(bdy), free(bscale);
}

static void test_lrn(struct family *f, int lanes) {
    static const struct lrn_case cases[] = {
        {1, 1, 3, 0.75f},   {32, 16, 3, 0.75f}, {33, 7, 5, 0.75f}, {96, 4, 5, 0.75f},
        {20, 9, 9, 0.75f},  {10, 3, 1, 0.75f},  {3, 5, 7, 0.75f},  {20, 4, 4, 0.75f},
        {33, 2, 25, 0.75f}, {40, 3, 5, 0.5f},   {7, 2, 4, 1.0f},   {2, 3, 5, 0.75f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_lrn(f, &cases[i], lanes + 3, lanes);
}

int main(void) {
    return test_families("local response normalisation of blocks is that of samples", test_lrn);
}
