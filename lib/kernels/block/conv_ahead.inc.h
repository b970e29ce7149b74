// Packed weights that come from memory soon: some channels of each tap of a row. They are asked for
// while those before them are multiplied, some lines with each tile of sums.
#ifndef ADAM_KERNELS_BLOCK_CONV_AHEAD_INC_H
#define ADAM_KERNELS_BLOCK_CONV_AHEAD_INC_H

#include <stddef.h>

enum { AHEAD_LINE = 16 }; // floats

struct conv_ahead {
    const float *at;
    size_t run, skip, left; // floats of a tap, whole lines; to the next tap; and left of this one
    int taps, lines;        // taps that are left; lines at a time
};

static void ask_ahead(struct conv_ahead *a) {
    for (int i = 0; i < a->lines && a->taps > 0; i++) {
        __builtin_prefetch(a->at, 0, 2); // into the L2 cache
        a->at += AHEAD_LINE;
        a->left -= AHEAD_LINE;
        if (a->left == 0) {
            a->taps--;
            a->at += a->skip;
            a->left = a->run;
        }
    }
}

#endif
