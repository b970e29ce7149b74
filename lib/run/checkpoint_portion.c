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
    uint64_t offset; // of its values in the file; 0: it is not here
};

enum { WINDOW = 1 << 16 }; // bytes of the file that are read at a time

struct portion_copy {
    const struct content *content;
    unsigned char *window; // what was read last, from `at` on
    uint64_t at, size;
    int status; // of reading
    struct error err;
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

// So many bytes of the file, most of which lie behind those before.
static void read_bytes(struct portion_copy *copy, unsigned char *to, uint64_t from, size_t size) {
    while (size > 0 && !copy->status) {
        uint64_t end = copy->at + copy->size;
        if (from < copy->at || from >= end) {
            uint64_t left = copy->content->size - from;
            copy->at = from;
            copy->size = left < WINDOW ? left : WINDOW;
            copy->status =
                content_read(copy->content, copy->window, copy->at, (size_t)copy->size, &copy->err);
            end = copy->at + copy->size;
        }
        size_t n = size < end - from ? size : (size_t)(end - from);
        memcpy(to, copy->window + (from - copy->at), n);
        to += n;
        from += n;
        size -= n;
    }
}

static void copy_run(void *self, const struct cut_run *run) {
    struct portion_copy *copy = self;
    const struct portion_tensor *tensor =
        bsearch(&run->whole, copy->tensors, copy->count, sizeof *tensor, holds);
    if (!tensor || !tensor->offset)
        return;
    float *to = copy->own + run->own;
    read_bytes(copy, (unsigned char *)to,
               tensor->offset + (run->whole - tensor->named->parameter->offset) * sizeof *to,
               run->count * sizeof *to);
    for (size_t i = 0; i < run->count && !copy->status; i++)
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
        copy->tensors[copy->count++] = (struct portion_tensor){named, tensor ? tensor->offset : 0};
    }
    qsort(copy->tensors, copy->count, sizeof *copy->tensors, by_offset);
    return status;
}

int checkpoint_get_portion(const struct safetensors *file, const struct content *content,
                           const struct named_lists *lists, const bool *here,
                           const struct checkpoint_wanted *wanted, struct error *err) {
    struct portion_copy copy = {
        .content = content,
        .window = mem_array(WINDOW, 1),
        .tensors = mem_array(lists->each + 1, sizeof *copy.tensors),
        .own = wanted->own,
    };
    int status = copy.tensors && copy.window ? list_tensors(&copy, file, lists, here, err)
                                             : error_nomem(err);
    if (!status)
        cut_runs(wanted->cut, wanted->partition, copy_run, &copy);
    free(copy.tensors);
    free(copy.window);
    if (!status && copy.status)
        status = error_set(err, copy.status, "%s", copy.err.text);
    return status || !copy.bad ? status : checkpoint_refuse_values(copy.bad, err);
}
