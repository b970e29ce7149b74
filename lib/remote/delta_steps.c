#include "remote/delta_steps.h"

#include <math.h>

#include "core/hogwild.h"

enum {
    LINE = 16,         // floats of a line of the cache
    LOOKED_AT = 65536, // parameters, at most, in lines that are evenly spread
    CURVATURE = 10,    // times the diagonal, which is only a part of it
    SHORTER = 6,       // times the excess; see tests/bench/results/learns.txt
    MEASURES = 16,     // that the mean is over
    DOUBTS = 3,        // measures of no excess with which the mean begins
    CAREFUL = 32,      // measures until steps are as long as these say
};

struct sums {
    double squares, excess;
};

// Where the steps and the others' movement have one direction, `x` is positive.
static inline float excess_of(float x) {
    return x > 0 ? (x < 1 ? x : 1) : 0;
}

HOGWILD static void add_line(struct sums *sums, const struct delta_view *view, size_t first,
                             size_t n, const struct update *update) {
    float squares = 0, excess = 0, scale = (float)(CURVATURE * view->batch) / update->rate;
    for (size_t i = first; i < first + n; i++) {
        float step = view->weights[i] - view->base[i], others = view->news[i] - view->base[i];
        float root = view->squares ? sqrtf(view->squares[i]) + update->epsilon : 1;
        squares += step * step;
        excess += step * step * excess_of(step * others * scale * root);
    }
    sums->squares += (double)squares;
    sums->excess += (double)excess;
}

// Of a layer's weights or biases, lines that are so many floats apart.
static void add_lines(struct sums *sums, const struct delta_view *view, size_t first, size_t n,
                      size_t apart, struct update update) {
    if (update.rate <= 0)
        return;
    for (size_t at = 0; at < n; at += apart)
        add_line(sums, view, first + at, n - at < LINE ? n - at : LINE, &update);
}

void delta_steps_measure(struct delta_steps *steps, const struct delta_view *view) {
    const struct model *model = view->model;
    size_t apart = LINE * (1 + model->parameter_count / LOOKED_AT);
    struct sums sums = {0};
    for (int i = 0; i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        add_lines(&sums, view, layer->weights.offset, layer->weights.count, apart,
                  optimizer_weights_update(view->optimizer, layer, view->rate));
        add_lines(&sums, view, layer->biases.offset, layer->biases.count, apart,
                  optimizer_biases_update(view->optimizer, layer, view->rate));
    }
    double excess = sums.excess / sums.squares; // no number where nothing has moved
    if (!isfinite(excess))
        return;
    steps->measures++;
    double share = 1 / fmin((double)steps->measures + DOUBTS, MEASURES);
    steps->excess += share * (excess - steps->excess);
}

// At first steps are shorter by the root of the sharers, whatever was measured.
static double careful(const struct delta_steps *steps, double sharers) {
    double doubt = fmax(0, 1 - (double)steps->measures / CAREFUL);
    return 1 - doubt * (1 - 1 / sqrt(sharers));
}

float delta_steps_length(const struct delta_steps *steps, size_t sharers) {
    double all = sharers > 1 ? (double)sharers : 1;
    double length = (1 - SHORTER * steps->excess) * careful(steps, all);
    return (float)fmax(length, 1 / all);
}
