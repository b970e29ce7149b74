// How the weight gradient of convolutions of blocks is cut. Inside lib/kernels.
#ifndef ADAM_KERNELS_GRADIENT_SIZES_H
#define ADAM_KERNELS_GRADIENT_SIZES_H

#include <stdbool.h>

struct convolution;

// Most vectors of maps, and columns, in a tile of the weight gradient of blocks.
enum { GRADIENT_ROWS = 5, GRADIENT_COLUMNS = 9 };

// How the weight gradient of blocks (block/weights.inc.h) cuts one group's work, with
// `lanes` samples in vectors of `vector` floats. A column is a channel at one tap;
// where channels are few, the taps across stand side by side as columns.
struct gradient_sizes {
    int channels;                          // of a group
    int across;                            // taps that are columns: kernel_w, or 1
    int rows, columns, taps;               // the whole: vectors of maps x columns x other taps
    int row_tiles, column_tiles;           // it is cut into
    int task_row_tiles, task_column_tiles; // that are summed up before they are folded
    int task_rows, task_columns;           // no more than these vectors of maps, columns
    int strip;                             // rows of outputs that share the L1 cache
    int chunk_height, chunk_width;         // outputs that are packed at once
    int region_height;                     // rows of outputs that are summed up before a fold
    int region_blocks;                     // in as many blocks
    bool packed, packed_errors;            // the picture, and the error gradients
};

struct gradient_sizes gradient_sizes(const struct convolution *conv, int lanes, int vector);

// Whether channels fill vectors better than maps do: then dW is summed up as that of the
// convolution from maps to channels (conv_turned), whose vectors lie in dW as they are. Of single
// samples and kernels of one tap.
bool gradient_turns(const struct convolution *conv, int lanes, int vector);

#endif
