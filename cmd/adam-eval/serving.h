// --listen: predictions for whoever asks over HTTP.
#ifndef ADAM_EVAL_SERVING_H
#define ADAM_EVAL_SERVING_H

#include "adam-eval/options.h"

struct error;

// Serves until a signal comes, and all who have asked by then are answered. Returns a status.
int serve_until_stopped(const struct options *o, struct error *err);

#endif
