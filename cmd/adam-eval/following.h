// --follow: the accuracy of a model that is being trained, again and again.
#ifndef ADAM_EVAL_FOLLOWING_H
#define ADAM_EVAL_FOLLOWING_H

#include "adam-eval/options.h"

struct error;

// Prints a line a test, until the run is over. Returns a status.
int follow_until_done(const struct options *o, struct error *err);

#endif
