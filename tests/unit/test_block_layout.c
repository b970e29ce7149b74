// Samples to blocks and back, against the definition of the layout, in every family.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/mem.h"
#include "kernels/blocks.h"
#include "kernels/kernels.h"

enum { GUARD = 32 }; // floats behind a buffer that must stay as they are

static const float UNTOUCHED = -7;

static float *guarded(size_t n) {
    float *x = mem_floats(n + GUARD);
    for (size_t i = 0; i < n + GUARD; i++)
        x[i] = UNTOUCHED;
    return x;
}

static void check_guard(struct tap *tap, const char *what, const float *end) {
    for (int i = 0; i < GUARD; i++)
        if (end[i] != UNTOUCHED) {
            FAIL(tap, "%s writes %d floats behind its end", what, i + 1);
            return;
        }
}

// Each sample is numbered through, so that every number says where it belongs.
static float numbered(int sample, int map, int pixel) {
    return (float)(sample * 100000 + map * 1000 + pixel + 1);
}

static void check_blocks(struct tap *tap, const float *blocks, int n, int c, int pixels,
                         int lanes) {
    int count = (n + lanes - 1) / lanes;
    for (int i = 0; i < count * lanes * c * pixels; i++) {
        int sample = i / (lanes * c * pixels) * lanes + i % lanes;
        int map = i / lanes % c, pixel = i / (lanes * c) % pixels;
        float wanted = sample < n ? numbered(sample, map, pixel) : 0;
        if (blocks[i] != wanted) {
            FAIL(tap, "n %d c %d pixels %d lanes %d: blocks[%d] is %g, not %g", n, c, pixels, lanes,
                 i, (double)blocks[i], (double)wanted);
            return;
        }
    }
}

static void check_layout(struct tap *tap, const struct kernels *k, int n, int c, int pixels,
                         int lanes) {
    size_t size = (size_t)(n * c * pixels);
    size_t room = (size_t)((n + lanes - 1) / lanes * lanes * c * pixels);
    float *samples = guarded(size), *blocks = guarded(room), *back = guarded(size);
    for (int i = 0; i < (int)size; i++)
        samples[i] = numbered(i / pixels / c, i / pixels % c, i % pixels);
    k->blocks->block(blocks, samples, n, c, pixels, lanes);
    check_blocks(tap, blocks, n, c, pixels, lanes);
    check_guard(tap, "block", blocks + room);
    k->blocks->unblock(back, blocks, n, c, pixels, lanes);
    if (memcmp(back, samples, size * sizeof *back) != 0)
        FAIL(tap, "n %d c %d pixels %d lanes %d: unblock does not undo block", n, c, pixels, lanes);
    check_guard(tap, "unblock", back + size);
    free(samples), free(blocks), free(back);
}

static void test_family(struct tap *tap, const struct kernels *k) {
    static const int samples[] = {1, 3, 16, 37}, maps[] = {1, 2, 3, 10, 16, 20, 33};
    static const int pixels[] = {1, 2, 7, 9, 16, 33, 196};
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++)
        for (size_t c = 0; c < sizeof maps / sizeof *maps; c++)
            for (size_t p = 0; p < sizeof pixels / sizeof *pixels; p++)
                for (int lanes = 1; lanes <= k->lanes; lanes *= 2)
                    check_layout(tap, k, samples[s], maps[c], pixels[p], lanes);
}

int main(void) {
    struct tap tap = {0};
    for (enum cpu_level level = CPU_REF; level <= CPU_AVX512; level++) {
        const struct kernels *k = kernels_of(level);
        char name[128];
        bool blocks = k && k->lanes;
        if (blocks)
            test_family(&tap, k);
        snprintf(name, sizeof name, "samples become blocks and come back: %s%s",
                 cpu_level_name(level), blocks ? "" : " # skip: no blocks");
        tap_result(&tap, name);
    }
    return tap_done(&tap);
}
