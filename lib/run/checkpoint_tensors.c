#include "run/checkpoint_tensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "run/checkpoint_internal.h"

// --- names ------------------------------------------------------------------------

static int add_parameter(struct named_parameter *list, size_t *count, const char *prefix,
                         const struct layer *layer, const char *what,
                         const struct parameter *parameter, struct error *err) {
    struct named_parameter *named = &list[*count];
    if (parameter->count == 0)
        return STATUS_OK;
    named->parameter = parameter;
    if (asprintf(&named->name, "%s%s%s.%s", prefix ? prefix : "", prefix ? "." : "", layer->name,
                 what) < 0) {
        named->name = NULL;
        return error_nomem(err);
    }
    ++*count;
    return STATUS_OK;
}

// PyTorch's names.
static int add_parameters(struct named_parameter *list, size_t *count, const char *prefix,
                          const struct layer *layer, struct error *err) {
    static const char *const statistics[LAYER_STATISTICS] = {"running_mean", "running_var"};
    int status = add_parameter(list, count, prefix, layer, "weight", &layer->weights, err);
    if (!status)
        status = add_parameter(list, count, prefix, layer, "bias", &layer->biases, err);
    for (int i = 0; !status && i < LAYER_STATISTICS; i++)
        status =
            add_parameter(list, count, prefix, layer, statistics[i], &layer->statistics[i], err);
    return status;
}

int named_parameters(struct named_parameter **out, size_t *count, const struct model *model,
                     const char *prefix, struct error *err) {
    size_t most = (2 + LAYER_STATISTICS) * (size_t)model->layer_count;
    struct named_parameter *named = mem_zeroed(most, sizeof *named);
    int status = named ? STATUS_OK : error_nomem(err);
    *count = 0;
    for (int i = 0; !status && i < model->layer_count; i++)
        status = add_parameters(named, count, prefix, &model->layers[i], err);
    *out = named;
    if (status) {
        named_parameters_free(named, *count);
        *out = NULL;
        *count = 0;
    }
    return status;
}

void named_parameters_free(struct named_parameter *named, size_t count) {
    for (size_t i = 0; named && i < count; i++)
        free(named[i].name);
    free(named);
}

// Of the weights that are trained, where their average has their place.
static const char trained[] = "trained";

static const char *list_prefix(const struct optimizer *optimizer, int list) {
    if (list == 0)
        return NULL;
    return list <= optimizer_states(optimizer->rule)
               ? optimizer_state_name(optimizer->rule, list - 1)
               : trained;
}

int named_lists_make(struct named_lists *lists, const struct model *model,
                     const struct optimizer *optimizer, struct error *err) {
    int status = STATUS_OK, kept = optimizer ? optimizer_kept(optimizer) : 0;
    *lists = (struct named_lists){.averaged = optimizer && optimizer->ema > 0};
    for (int i = 0; !status && i <= kept; i++) {
        const char *prefix = list_prefix(optimizer, i);
        size_t each; // 0 after a failure
        status = named_parameters(&lists->named[i], &each, model, prefix, err);
        lists->each = status ? lists->each : each;
        lists->count += !status;
    }
    return status;
}

void named_lists_free(struct named_lists *lists) {
    for (size_t i = 0; i < lists->count; i++)
        named_parameters_free(lists->named[i], lists->each);
}

size_t named_lists_array(const struct named_lists *lists, size_t list) {
    size_t last = lists->count - 1;
    bool swapped = lists->averaged && (list == 0 || list == last);
    return swapped ? last - list : list;
}

int checkpoint_lists(struct named_lists *lists, const struct checkpoint *checkpoint,
                     struct error *err) {
    const struct optimizer *optimizer = checkpoint->state ? &checkpoint->optimizer : NULL;
    return named_lists_make(lists, checkpoint->model, optimizer, err);
}

float *checkpoint_values(const struct checkpoint *checkpoint, const struct named_lists *lists,
                         size_t list) {
    size_t array = named_lists_array(lists, list);
    return array == 0 ? checkpoint->parameters
                      : checkpoint->state + (array - 1) * checkpoint->model->parameter_count;
}

// --- values -----------------------------------------------------------------------

struct tensor named_tensor(const struct named_parameter *named, const float *values) {
    struct tensor tensor = {
        .name = named->name,
        .dtype = "F32",
        .rank = named->parameter->rank,
        .data = values ? values + named->parameter->offset : NULL,
        .bytes = named->parameter->count * sizeof *values,
    };
    for (int i = 0; i < tensor.rank; i++)
        tensor.dims[i] = (uint64_t)named->parameter->dims[i];
    return tensor;
}

// "10x1x5x5" into text.
static const char *shape_text(char text[128], int rank, const uint64_t *dims) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < rank && used < 100; i++)
        used += (size_t)snprintf(text + used, 128 - used, "%s%" PRIu64, i ? "x" : "", dims[i]);
    return text;
}

static bool same_shape(const struct tensor *tensor, const uint64_t *dims, int rank) {
    if (tensor->rank != rank || strcmp(tensor->dtype, "F32") != 0)
        return false;
    for (int i = 0; i < rank; i++)
        if (tensor->dims[i] != dims[i])
            return false;
    return true;
}

int checkpoint_find_tensor(const struct tensor **out, const struct safetensors *file,
                           const struct named_parameter *named, struct error *err) {
    const struct parameter *parameter = named->parameter;
    const struct tensor *tensor = safetensors_find(file, named->name);
    uint64_t dims[TENSOR_RANK_MAX];
    char wanted[128], found[128];
    if (!tensor)
        return error_set(err, STATUS_DATA, "tensor '%s' is missing", named->name);
    for (int i = 0; i < parameter->rank; i++)
        dims[i] = (uint64_t)parameter->dims[i];
    if (!same_shape(tensor, dims, parameter->rank))
        return error_set(err, STATUS_DATA, "tensor '%s' is %s %s where the model has F32 %s",
                         named->name, tensor->dtype, shape_text(found, tensor->rank, tensor->dims),
                         shape_text(wanted, parameter->rank, dims));
    *out = tensor;
    return STATUS_OK;
}

int checkpoint_refuse_values(const char *tensor, struct error *err) {
    return error_set(err, STATUS_DATA, "tensor '%s' has values that are no finite numbers", tensor);
}

int checkpoint_get_tensor(const struct safetensors *file, const struct content *content,
                          const struct named_parameter *named, float *values, struct error *err) {
    const struct parameter *parameter = named->parameter;
    const struct tensor *tensor;
    int status = checkpoint_find_tensor(&tensor, file, named, err);
    if (status)
        return status;
    status = content_read(content, values + parameter->offset, tensor->offset,
                          parameter->count * sizeof *values, err);
    if (status)
        return status;
    for (size_t i = 0; i < parameter->count; i++)
        if (!isfinite(values[parameter->offset + i]))
            return checkpoint_refuse_values(named->name, err);
    return STATUS_OK;
}
