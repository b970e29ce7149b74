// Which dense layers push their gradient as its factors, and what is pushed of the others.
//
// "we can send the activation and error gradient vectors to the parameter servers where
// the matrix multiply can be performed locally to compute and apply the weight updates.
// This significantly reduces the communication traffic volume from M*N to k*(M+N)"
// (Adam 3.2.6)
#ifndef ADAM_REMOTE_HOME_FACTORS_H
#define ADAM_REMOTE_HOME_FACTORS_H

#include <stdbool.h>

#include "model/model.h"
#include "rule/optimizer.h"

struct error;

// `taken` (layer_count of them) says of each layer whether it pushes factors of at most
// `samples` samples. `choice` is "auto": where that is cheaper; "none"; or names of dense
// layers: LAYER,... STATUS_USAGE: no such layer, or one that cannot.
int factors_choose(bool *taken, const struct model *model, const char *choice, int samples,
                   struct error *err);

// Samples whose factors, of this dense layer, fit into one message.
uint64_t factors_most(const struct layer *layer);

// The parameters of the layers that are not taken, as spans in ascending order, of which
// `spans` has room for layer_count. Returns how many.
size_t factors_rest(const bool *taken, const struct model *model, struct span *spans);

#endif
