// The tiles of sums that fit the registers of a family, for templates: X(lanes,
// rows, n) is a declaration or a name.
#ifndef ADAM_KERNELS_BLOCK_TILE_SHAPES_INC_H
#define ADAM_KERNELS_BLOCK_TILE_SHAPES_INC_H

// X(lanes, rows, n) for n up to a number.
#define UP_TO_2(X, lanes, rows) X(lanes, rows, 1) X(lanes, rows, 2)
#define UP_TO_3(X, lanes, rows) UP_TO_2(X, lanes, rows) X(lanes, rows, 3)
#define UP_TO_4(X, lanes, rows) UP_TO_3(X, lanes, rows) X(lanes, rows, 4)
#define UP_TO_5(X, lanes, rows) UP_TO_4(X, lanes, rows) X(lanes, rows, 5)
#define UP_TO_6(X, lanes, rows) UP_TO_5(X, lanes, rows) X(lanes, rows, 6)
#define UP_TO_9(X, lanes, rows)                                                                    \
    UP_TO_6(X, lanes, rows) X(lanes, rows, 7) X(lanes, rows, 8) X(lanes, rows, 9)
#define UP_TO_12(X, lanes, rows)                                                                   \
    UP_TO_9(X, lanes, rows) X(lanes, rows, 10) X(lanes, rows, 11) X(lanes, rows, 12)

// As many as fit beside so many rows: their sums, the operand that waits, and one
// more. No more than 12, which may have a pointer each.
#if FAMILY_REGISTERS == 32
#define WITH_1_ROW(X, lanes) UP_TO_12(X, lanes, 1)
#define WITH_2_ROWS(X, lanes) UP_TO_12(X, lanes, 2)
#define WITH_3_ROWS(X, lanes) UP_TO_9(X, lanes, 3)
#define WITH_4_ROWS(X, lanes) UP_TO_6(X, lanes, 4)
#define WITH_5_ROWS(X, lanes) UP_TO_5(X, lanes, 5)
#define WITH_6_ROWS(X, lanes) UP_TO_4(X, lanes, 6)
#else
#define WITH_1_ROW(X, lanes) UP_TO_12(X, lanes, 1)
#define WITH_2_ROWS(X, lanes) UP_TO_6(X, lanes, 2)
#define WITH_3_ROWS(X, lanes) UP_TO_4(X, lanes, 3)
#define WITH_4_ROWS(X, lanes) UP_TO_3(X, lanes, 4)
#define WITH_5_ROWS(X, lanes) UP_TO_2(X, lanes, 5)
#define WITH_6_ROWS(X, lanes) UP_TO_2(X, lanes, 6)
#endif

#endif
