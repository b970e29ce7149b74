// Update rules and learning-rate schedules. State lies beside the parameters:
// one float a parameter for momentum and adagrad, none for sgd.
#ifndef ADAM_TRAIN_OPTIMIZER_H
#define ADAM_TRAIN_OPTIMIZER_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "model/model.h"

enum rule { RULE_SGD, RULE_MOMENTUM, RULE_ADAGRAD };
extern const char *const rule_names[]; // NULL-terminated, for option tables and checkpoints

struct optimizer {
    enum rule rule;
    float momentum; // share of the last step that goes on
    float decay;    // weight decay where the layer does not say
    float epsilon;  // adagrad: added to the root
    float clip;     // gradient norm of a layer above which it is scaled down; 0: never
};

// What of the state a rule keeps, for checkpoints: "momentum", "adagrad" or NULL.
const char *optimizer_state_name(enum rule rule);

// Applies `gradient` (the layer's parameters, as laid out from weights.offset)
// to the layer's part of `parameters` and `state` (whole arrays; state may be
// NULL for sgd), at this learning rate (times layer->rate). May race with other
// threads on purpose (Adam 3.2.2, core/hogwild.h).
void optimizer_apply(const struct optimizer *optimizer, const struct kernels *kernels,
                     const struct layer *layer, float *parameters, float *state,
                     const float *gradient, float rate);

enum schedule_kind { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_EXPONENTIAL, SCHEDULE_COSINE };

// The rate as a function of progress in epochs (real: 2.5 is half through the
// third), so that a resumed run and another mini-batch see the same curve.
struct schedule {
    enum schedule_kind kind;
    double rate;            // before any decay
    double warmup;          // epochs of linear growth from 0
    double total;           // epochs, for cosine
    double final;           // what cosine ends at
    double factor;          // step and exponential
    double every;           // step: each so many epochs ...
    double at[16];          // ... or at these epochs
    int at_count;
};

// 'constant', 'step:0.1@120,130', 'step:0.5/10', 'exp:0.95', 'cosine', 'cosine:0.001'.
// STATUS_USAGE.
int schedule_parse(struct schedule *schedule, const char *text, struct error *err);
double schedule_rate(const struct schedule *schedule, double epoch);

#endif
