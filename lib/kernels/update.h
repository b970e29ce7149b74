// The update rules.
#ifndef ADAM_KERNELS_UPDATE_H
#define ADAM_KERNELS_UPDATE_H

// One step of an update rule; g is the gradient.
//   sgd       w -= rate (g + decay w)
//   momentum  v = momentum v + g + decay w; w -= rate v
//   adagrad   s += (g + decay w)^2; w -= rate (g + decay w) / (sqrt(s) + epsilon)
enum rule { RULE_SGD, RULE_MOMENTUM, RULE_ADAGRAD };

struct update {
    enum rule rule;
    float rate, decay;
    float momentum, epsilon;
};

// Steps that kernels.updates takes in one pass.
enum { UPDATES_MOST = 4 };

#endif
