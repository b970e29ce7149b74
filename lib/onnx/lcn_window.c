#include "onnx/lcn_window.h"

#include <math.h>

// One factor for each of both directions.
static double weight(int size, int place) {
    double away = (place - size / 2) / (size / 4.0);
    return exp(-0.5 * away * away);
}

void lcn_window(float *to, int size) {
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++)
            *to++ = (float)(weight(size, y) * weight(size, x));
}

// Of the places about pixel `at` those that are among `count`.
static double sum_within(const double *weights, int size, int at, int count) {
    double sum = 0;
    for (int place = 0, pixel = at - size / 2; place < size; place++, pixel++)
        sum += pixel >= 0 && pixel < count ? weights[place] : 0;
    return sum;
}

void lcn_correction(float *to, int size, int h, int w) {
    double weights[LCN_SIZE_MOST];
    for (int place = 0; place < size; place++)
        weights[place] = weight(size, place);
    for (int y = 0; y < h; y++) {
        double rows = sum_within(weights, size, y, h);
        for (int x = 0; x < w; x++)
            *to++ = (float)(1 / (rows * sum_within(weights, size, x, w)));
    }
}
