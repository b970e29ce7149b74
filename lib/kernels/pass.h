// The three passes of a convolution or a dense layer.
#ifndef ADAM_KERNELS_PASS_H
#define ADAM_KERNELS_PASS_H

enum conv_pass { CONV_FORWARD, CONV_BACK_INPUT, CONV_BACK_WEIGHTS };

#endif
