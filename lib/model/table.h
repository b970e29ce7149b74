// What a model is and costs, layer by layer: adam-ctl check.
#ifndef ADAM_MODEL_TABLE_H
#define ADAM_MODEL_TABLE_H

#include "core/json.h"
#include "model/model.h"

// Bytes of memory that training takes, at a mini-batch of `batch` samples a thread.
struct model_cost {
    size_t weights; // one copy, shared by all threads
    size_t context; // of each thread: activations, error gradients, scratch (net_bytes)
    size_t update;  // of each thread: the gradient of all parameters, what it sends
    size_t total;   // of all threads and the weights; SIZE_MAX when that does not fit
};
struct model_cost model_cost(const struct model *model, int batch, int threads);

// "260", "1.0K", "2.3M": three digits or so, in powers of 1024.
enum { TABLE_BYTES = 24 };
void table_bytes(char text[TABLE_BYTES], size_t bytes);

// One object: the model's totals, and its "layers" in order. A new reference, or
// NULL when out of memory. The keys are in adam-ctl(1).
json_t *table_json(const struct model *model, int batch, int threads);
// The same as aligned columns for people, to be freed with free(); NULL when out
// of memory.
char *table_text(const struct model *model, int batch, int threads);

#endif
