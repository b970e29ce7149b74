// The update rules.
#ifndef ADAM_KERNELS_UPDATE_H
#define ADAM_KERNELS_UPDATE_H

#include <stddef.h>

// One step of an update rule; g is the gradient. What a rule keeps beside each weight is its state:
// v the first, s the second, or the only one.
//   sgd       w -= rate (g + decay w)
//   momentum  v = momentum v + g + decay w; w -= rate v
//   nesterov  v = momentum v + g + decay w; w -= rate (g + decay w + momentum v)
//   adagrad   s += (g + decay w)^2; w -= rate (g + decay w) / (sqrt(s) + epsilon)
//   rmsprop   s = beta2 s + (1 - beta2) (g + decay w)^2; w as by adagrad
//   adam      v = momentum v + (1 - momentum) (g + decay w)
//             s = beta2 s + (1 - beta2) (g + decay w)^2; w -= step v / (root sqrt(s) + epsilon)
//   adamw     w -= rate decay w, then adam without decay
// of which step and root are corrected for means that begin at 0: after t steps
// step = rate / (1 - momentum^t) and root = 1 / sqrt(1 - beta2^t).
enum rule {
    RULE_SGD,
    RULE_MOMENTUM,
    RULE_ADAGRAD,
    RULE_NESTEROV,
    RULE_RMSPROP,
    RULE_ADAM,
    RULE_ADAMW,
};

struct update {
    enum rule rule;
    float rate, decay;
    float momentum, epsilon;
    float beta2, fresh, fresh2; // the latter: 1 - momentum and 1 - beta2, not rounded before
    float step, root;
    size_t second; // of adam: floats from a weight's first state to its second
};

// Steps that kernels.updates takes in one pass.
enum { UPDATES_MOST = 4 };

#endif
