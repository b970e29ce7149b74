// The parameters of the layers, in adam's order of dimensions, which is that of PyTorch.
#include <math.h>
#include <onnx.pb-c.h>

#include "core/error.h"
#include "onnx/import_internal.h"

static int refuse_values(const struct source *source, const char *why, struct error *err) {
    const char *name = source->tensor->name;
    return error_set(err, STATUS_DATA, "'%.100s' has values that are %s", name ? name : "", why);
}

static int fill(const struct source *source, const struct parameter *parameter, float *to,
                struct error *err) {
    size_t n = parameter->count, rows = (size_t)parameter->dims[0];
    size_t columns = rows && n > rows ? n / rows : 1;
    if (!source->tensor) {
        for (size_t i = 0; source->diagonal && i < rows; i++)
            to[i * columns + i] = 1;
        for (size_t i = 0; source->ones && i < n; i++)
            to[i] = 1;
        return STATUS_OK;
    }
    size_t each = source->each > 0 ? (size_t)source->each : 1;
    if (import_tensor_count(source->tensor) * each != n)
        return error_set(err, STATUS_BUG, "%zu values for %zu parameters",
                         import_tensor_count(source->tensor) * each, n);
    for (size_t i = 0; i < n; i++) {
        size_t at = source->across ? i % columns * rows + i / columns : i / each;
        to[i] = import_float(source->tensor, at) * source->factor;
        if (!isfinite(to[i]))
            return refuse_values(source, "not finite", err);
    }
    return STATUS_OK;
}

static int check_variance(const struct source *source, const float *values, size_t n,
                          struct error *err) {
    for (size_t i = 0; i < n; i++)
        if (values[i] < 0)
            return refuse_values(source, "below 0, and are variances", err);
    return STATUS_OK;
}

static int fill_layer(const struct draft *draft, const struct layer *layer, float *parameters,
                      struct error *err) {
    const struct source *sources[] = {&draft->weights, &draft->biases, &draft->statistics[0],
                                      &draft->statistics[1]};
    const struct parameter *targets[] = {&layer->weights, &layer->biases, &layer->statistics[0],
                                         &layer->statistics[1]};
    int status = STATUS_OK;
    for (int i = 0; !status && i < 4; i++)
        if (targets[i]->count > 0)
            status = fill(sources[i], targets[i], parameters + targets[i]->offset, err);
    if (!status)
        status =
            check_variance(sources[3], parameters + targets[3]->offset, targets[3]->count, err);
    return status ? error_context(err, "layer '%s'", layer->name) : STATUS_OK;
}

int import_weights(const struct importing *im, const struct model *model, float *parameters,
                   struct error *err) {
    int status = STATUS_OK, at = 0;
    for (int i = 0; !status && i < im->draft_count; i++) {
        const struct draft *draft = &im->drafts[i];
        if (draft->used && draft->stands_in == i)
            status = fill_layer(draft, &model->layers[at++], parameters, err);
    }
    return status;
}
