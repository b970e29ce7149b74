// Local contrast normalisation of blocks and its adjoint.
#include "../helper/blocks.h"
#include "kernels/blocks.h"

#define TOLERANCE 1e-5f // means, roots and quotients that are computed in other ways

struct lcn_case {
    int c, h, w, size;
    float least;
};

static void check_lcn(struct family *f, const struct lcn_case *p, int n, int lanes) {
    int c = p->c, pixels = p->h * p->w, blocks = block_count(n, lanes);
    size_t size = (size_t)(n * c * pixels), plane = (size_t)(n * pixels);
    float *x = noise(f, size), *dy = noise(f, size), *y = mem_floats(size), *dx = mem_floats(size);
    float *v = mem_floats(size), *s = mem_floats(plane);
    float *planes = mem_floats(2 * (size_t)(lanes * pixels));
    float *bx = blocks_of(f, x, n, c, pixels, lanes), *bdy = blocks_of(f, dy, n, c, pixels, lanes);
    float *by = blocks_of(f, NULL, n, c, pixels, lanes);
    float *bv = blocks_of(f, NULL, n, c, pixels, lanes);
    float *bs = blocks_of(f, NULL, n, 1, pixels, lanes);
    float *bdx = blocks_of(f, NULL, n, c, pixels, lanes);
    f->ref->lcn(y, v, s, x, n, c, p->h, p->w, p->size, p->least);
    f->ref->lcn_back(dx, dy, v, s, planes, n, c, p->h, p->w, p->size, p->least);
    f->k->norm_blocks->lcn(by, bv, bs, bx, blocks, lanes, c, p->h, p->w, p->size, p->least);
    f->k->norm_blocks->lcn_back(bdx, bdy, bv, bs, planes, blocks, lanes, c, p->h, p->w, p->size,
                                p->least);
    check_blocks(f, "lcn_block", by, y, n, c, pixels, lanes, TOLERANCE);
    check_blocks(f, "lcn_block's v", bv, v, n, c, pixels, lanes, TOLERANCE);
    check_blocks(f, "lcn_block's s", bs, s, n, 1, pixels, lanes, TOLERANCE);
    check_blocks(f, "lcn_block_back", bdx, dx, n, c, pixels, lanes, TOLERANCE);
    free(x), free(dy), free(y), free(dx), free(v), free(s), free(planes), free(bx), free(bdy);
}

static void test_lcn(struct family *f, int lanes) {
    static const struct lcn_case cases[] = {
        {2, 1, 1, 3, 0.1f},  {3, 7, 5, 5, 0.1f},  {20, 6, 9, 3, 0.9f},
        {33, 4, 4, 9, 0.9f}, {16, 5, 8, 1, 0.1f}, {10, 3, 3, 13, 0.8f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_lcn(f, &cases[i], lanes + 3, lanes);
}

int main(void) {
    return test_families("local contrast normalisation of blocks is that of samples", test_lcn);
}
