// What a partition of a model (model/cut.h) has of a checkpoint: runs of floats of its tensors.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/cut.h"
#include "run/checkpoint_internal.h"

// A tensor of the file, and where its values lie among those of the whole model.
struct portion_tensor {
    const struct named_parameter *named;
    const unsigned char *values; // unaligned; NULL: it is not here
};

struct portion_copy {
    struct portion_tensor *tensors; // in the order of the whole model's values
    size_t count;
    float *own;
    const char *bad; // tensor with a value that is no finite number
};

static int by_offset(const void *a, const void *b) {
    size_t x = ((const struct portion_tensor *)a)->named->parameter->offset;
    size_t y = ((const struct portion_tensor *)b)->named->parameter->offset;
    return x < y ? -1 : x > y;
}

static int holds(const void *key, const void *element) {
    size_t at = *(const size_t *)key;
    const struct parameter *parameter = ((const struct portion_tensor *)element)->named->parameter;
    return at < parameter->offset ? -1 : at >= parameter->offset + parameter->count;
}

static void copy_run(void *self, const struct cut_run *run) {
    struct portion_copy *copy = self;
    const struct portion_tensor *tensor =
        bsearch(&run->whole, copy->tensors, copy->count, sizeof *tensor, holds);
    if (!tensor || !tensor->values)
        return;
    float *to = copy->own + run->own;
    memcpy(to, tensor->values + (run->whole - tensor->named->parameter->offset) * sizeof *to,
           run->count * sizeof *to);
    for (size_t i = 0; i < run->count; i++)
        if (!isfinite(to[i]))
            copy->bad = tensor->named->name;
}

static int list_tensors(struct portion_copy *copy, const struct safetensors *file,
                        const struct named_lists *lists, const bool *here, struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < lists->each; i++) {
        const struct named_parameter *named = &lists->named[0][i];
        const struct tensor *tensor = NULL;
        if (!here || here[i])
            status = checkpoint_find_tensor(&tensor, file, named, err);
        copy->tensors[copy->count++] = (struct portion_tensor){named, tensor ? tensor->data : NULL};
    }
    qsort(copy->tensors, copy->count, sizeof *copy->tensors, by_offset);
    return status;
}

int checkpoint_get_portion(const struct safetensors *file, const struct named_lists *lists,
                           const bool *here, const struct checkpoint_wanted *wanted,
                           struct error *err) {
    struct portion_copy copy = {
        .tensors = mem_array(lists->each + 1, sizeof *copy.tensors),
        .own = wanted->own,
    };
    int status = copy.tensors ? list_tensors(&copy, file, lists, here, err) : error_nomem(err);
    if (!status)
        cut_runs(wanted->cut, wanted->partition, copy_run, &copy);
    free(copy.tensors);
    return status || !copy.bad ? status : checkpoint_refuse_values(copy.bad, err);
}
