// Work cut into nearly equal pieces. Inside lib/kernels.
#ifndef ADAM_KERNELS_CUTS_H
#define ADAM_KERNELS_CUTS_H

// `whole` in nearly equal pieces: how many there are of at most `most`, and where
// piece i begins.
static inline int cuts(int whole, int most) {
    return (whole + most - 1) / most;
}

static inline int cut(int whole, int pieces, int i) {
    int more = whole % pieces;
    return whole / pieces * i + (i < more ? i : more);
}

#endif
