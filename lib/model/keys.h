// Keys that several types of layers share. Inside lib/model only.
#ifndef ADAM_MODEL_KEYS_H
#define ADAM_MODEL_KEYS_H

#include "model/layer.h"

// Names in the order of the enums of model.h, NULL-terminated.
extern const char *const act_names[], *const rounding_names[], *const size_names[],
                                                                   *const cut_names[];

// clang-format off
#define KEY_COUNT_OF(keys) (sizeof(keys) / sizeof *(keys))
#define MEMBER(name) offsetof(struct layer, name)
#define KEY_MAPS {"maps", KEY_INT, MEMBER(maps), 1, 1e6, NULL, NULL, "maps (channels) of the output"}
#define KEY_KERNEL {"kernel", KEY_PAIR, MEMBER(kernel), 1, 1e4, NULL, NULL, "height and width of the kernel, as 5 or 5x3"}
#define KEY_SIZE_PAIR {"size", KEY_PAIR, MEMBER(kernel), 1, 1e4, NULL, size_names, "height and width of the window, as 2 or 2x3; all: those of the input"}
#define KEY_STRIDE {"stride", KEY_PAIR, MEMBER(stride), 1, 1e4, "1", NULL, "pixels from one window to the next"}
#define KEY_PAD {"pad", KEY_PAIR, MEMBER(pad), 0, 1e4, "0", NULL, "rows and columns of padding on each side"}
#define KEY_DILATION {"dilation", KEY_PAIR, MEMBER(dilation), 1, 1e4, "1", NULL, "pixels from one tap of the kernel to the next"}
#define KEY_ROUND {"round", KEY_CHOICE, MEMBER(round), 0, 0, "down", rounding_names, "what becomes of a last window that does not fit: left out (down) or clipped (up)"}
#define KEY_ACT {"act", KEY_CHOICE, MEMBER(act), 0, 0, "linear", act_names, "activation"}
#define KEY_SLOPE {"slope", KEY_REAL, MEMBER(slope), 0, 1, "0.01", NULL, "of leaky: factor of what is below 0"}
#define KEY_DROPOUT(standard) {"dropout", KEY_REAL, MEMBER(dropout), 0, 0.999, standard, NULL, "share of the outputs dropped in training"}
// clang-format on

// The window that a layer slides over its input.
struct window layer_window(const struct layer *layer);
struct convolution layer_convolution(const struct layer *layer);

// Sets out.h and out.w from in, kernel, stride, pad, round; false with *misfit.
bool window_shape(struct layer *layer, const char *key, struct misfit *misfit);

#endif
