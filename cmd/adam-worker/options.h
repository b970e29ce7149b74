// The options of adam-worker, and what they ask for together.
#ifndef ADAM_WORKER_OPTIONS_H
#define ADAM_WORKER_OPTIONS_H

#include "cli/network.h"
#include "cli/option.h"
#include "core/words.h"
#include "run/settings.h"

struct error;

#define PROGRAM "adam-worker"

struct options {
    struct settings settings;
    const char *model, *out, *resume, *listen;
    struct option_list set, freeze;
    struct network network;
    bool force, quiet;
    char *folder;        // of the run that --resume means
    struct words frozen; // overrides that --freeze stands for
    const char *alone;   // an option that was given and is not of a worker of a run; NULL
};

// As cli_parse, over what is in `o` already.
enum cli_next options_parse(struct options *o, int argc, char **argv, int *operand,
                            struct error *err);
// Whether the options fit together. STATUS_USAGE.
int options_check(const struct options *o, int argc, int operand, char **argv, struct error *err);
// What has no meaning beside the rest. Of a run that goes on the rest is what it was begun with,
// too, and what is refused is what is `given` now. STATUS_USAGE.
int options_check_settings(const struct settings *s, const struct settings *given,
                           struct error *err);

#endif
