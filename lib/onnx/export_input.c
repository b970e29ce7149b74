// The operations of a model's input as a factor and a summand of each value. They are not read but
// tried: what they make of pictures of 0, of 255 and of noise says whether each value becomes
// factor x value + summand of itself alone, whatever the operations are called.
#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "onnx/export_internal.h"
#include "run/model_ops.h"

#define NEAR 1e-5 // of the largest value: how far from a straight line rounding may lead
#define WHITE 255

enum probe { PROBE_BLACK, PROBE_WHITE, PROBE_NOISE, PROBES };

static uint8_t probe_value(enum probe probe, size_t i) {
    return probe == PROBE_BLACK ? 0 : probe == PROBE_WHITE ? WHITE : (uint8_t)(i * 97 % 251);
}

// Of a value in c x h x w, the place in h x w x c.
static size_t pixel_place(struct shape shape, size_t i) {
    size_t pixels = (size_t)shape.h * (size_t)shape.w;
    return i % pixels * (size_t)shape.c + i / pixels;
}

// What the operations make of a picture, as c x h x w.
static int try_picture(const struct ops *ops, struct shape shape, enum probe probe, float *made,
                       struct error *err) {
    struct ops_scratch *scratch = ops_scratch_new();
    struct image image = {0};
    int status =
        scratch ? image_shape(&image, shape.w, shape.h, shape.c, PIXEL_U8, err) : error_nomem(err);
    for (size_t i = 0; !status && i < shape_size(shape); i++)
        image.u8[i] = probe_value(probe, i);
    if (!status)
        status = ops_apply(ops, scratch, &image, (struct ops_draw){0}, err);
    bool same = image.width == shape.w && image.height == shape.h && image.channels == shape.c;
    if (!status && !same)
        status = error_set(err, STATUS_DATA, "they change the size of pictures");
    for (size_t i = 0; !status && i < shape_size(shape); i++) {
        size_t at = pixel_place(shape, i);
        made[i] = image.type == PIXEL_U8 ? (float)image.u8[at] : image.f32[at];
    }
    image_free(&image);
    ops_scratch_free(scratch);
    return status;
}

static bool is_line(struct shape shape, const float *const made[PROBES], size_t i) {
    double low = (double)made[PROBE_BLACK][i], high = (double)made[PROBE_WHITE][i];
    double value = probe_value(PROBE_NOISE, pixel_place(shape, i));
    double wanted = low + (high - low) * value / WHITE;
    return fabs((double)made[PROBE_NOISE][i] - wanted) <= NEAR * (fabs(low) + fabs(high) + 1);
}

// As few dimensions as tell all of them: one for all, one a channel, or each its own.
static const char *add_values(struct exporting *ex, const char *name, struct shape shape,
                              const float *values) {
    size_t pixels = (size_t)shape.h * (size_t)shape.w;
    const int64_t dims[] = {shape.c, shape.h, shape.w}, channels[] = {shape.c, 1, 1};
    bool flat = true;
    for (size_t i = 0; i < shape_size(shape); i++)
        flat = flat && values[i] == values[i / pixels * pixels];
    if (!flat)
        return graph_floats(ex->graph, name, dims, 3, values);
    float *few = graph_room(ex->graph, (size_t)shape.c);
    for (int c = 0; few && c < shape.c; c++)
        few[c] = values[(size_t)c * pixels];
    return few ? graph_floats(ex->graph, name, channels, 3, few) : "";
}

// Factors of a channel that differ by the rounding of summands alone become one.
static void level_channel(float *factors, size_t n) {
    double sum = 0;
    bool same = true;
    for (size_t i = 0; i < n; i++)
        sum += (double)factors[i];
    for (size_t i = 0; i < n; i++)
        same = same && fabs((double)factors[i] - sum / (double)n) <= NEAR * fabs(sum / (double)n);
    for (size_t i = 0; same && i < n; i++)
        factors[i] = (float)(sum / (double)n);
}

static int add_line(struct exporting *ex, const struct layer *input,
                    const float *const made[PROBES], struct error *err) {
    struct graph *graph = ex->graph;
    size_t n = shape_size(input->out);
    float *factors = graph_room(graph, n), *summands = graph_room(graph, n);
    for (size_t i = 0; factors && summands && i < n; i++) {
        if (!is_line(input->out, made, i))
            return error_set(err, STATUS_DATA, "they look at more than each value, or bend it");
        factors[i] = (made[PROBE_WHITE][i] - made[PROBE_BLACK][i]) / WHITE;
        summands[i] = made[PROBE_BLACK][i];
    }
    if (!factors || !summands)
        return error_nomem(err);
    for (size_t pixels = n / (size_t)input->out.c, c = 0; c < (size_t)input->out.c; c++)
        level_channel(factors + c * pixels, pixels);
    struct graph_node *times = graph_node(graph, "Mul", "input.scaled");
    graph_input(graph, times, "pictures");
    graph_input(graph, times, add_values(ex, "input.factor", input->out, factors));
    struct graph_node *plus = graph_node(graph, "Add", input->name);
    graph_input(graph, plus, graph_output(times));
    graph_input(graph, plus, add_values(ex, "input.summand", input->out, summands));
    ex->values[input->index] = graph_output(plus);
    return STATUS_OK;
}

static int export_ops(struct exporting *ex, const struct layer *input, struct error *err) {
    size_t n = shape_size(input->out);
    float *made = mem_floats(PROBES * n);
    struct ops *ops = NULL;
    int status = made ? model_ops_open(&ops, ex->model, err) : error_nomem(err);
    for (int probe = 0; !status && probe < PROBES; probe++)
        status = try_picture(ops, input->out, (enum probe)probe, made + (size_t)probe * n, err);
    const float *const all[PROBES] = {made, made + n, made + 2 * n};
    if (!status)
        status = add_line(ex, input, all, err);
    ops_free(ops);
    free(made);
    return status == STATUS_DATA
               ? error_context(err, "the operations of the input (%s) cannot be exported",
                               input->ops)
               : status;
}

int export_input(struct exporting *ex, struct error *err) {
    const struct layer *input = model_input(ex->model);
    if (input->ops)
        return export_ops(ex, input, err);
    ex->values[input->index] = "pictures";
    return STATUS_OK;
}
