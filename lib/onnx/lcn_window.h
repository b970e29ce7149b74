// The window of lcn in numbers, as a graph has them. Inside lib/onnx only.
#ifndef ADAM_ONNX_LCN_WINDOW_H
#define ADAM_ONNX_LCN_WINDOW_H

enum { LCN_SIZE_MOST = 63 }; // as the layer's key has it

// The weights of size x size places, which are at most those: a Gaussian about the middle whose
// deviation is a quarter of the size.
void lcn_window(float *to, int size);
// What the sum over the window about each of h x w pixels is to be multiplied by to be a mean: more
// where a part of the window is outside.
void lcn_correction(float *to, int size, int h, int w);

#endif
