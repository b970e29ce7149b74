// What the subcommands of adam-prep share: the options, and what a run of any of them holds
// on to. Each has a file of its own in this folder; cmd/adam-prep.c puts them together.
#ifndef ADAM_PREP_SESSION_H
#define ADAM_PREP_SESSION_H

#include "cli/option.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "core/grow.h"
#include "prep/inputs.h"
#include "prep/reject.h"
#include "sample/split.h"

struct error;

#define PROGRAM "adam-prep"

struct options {
    // Input.
    const char *from, *labels, *label_from, *files_from, *classes, *channels;
    struct option_list only;
    bool null;
    int64_t limit, max_pixels;
    uint64_t max_bytes;
    // Change.
    const char *ops, *test_ops, *name, *split;
    int64_t copies, seed;
    bool stratify, balance, shuffle;
    uint64_t memory;
    // Output.
    const char *output, *to, *codec, *labels_out;
    int64_t quality, max_count;
    bool force;
    // Behaviour.
    const char *on_error, *reject;
    int64_t threads;
    bool quiet, json;
    // Of stat, sheet and draw.
    const char *mean;
    bool by_class, random;
    int64_t cell, size;
};

// What a run holds on to, and talks about on the way.
struct session {
    const struct options *options;
    struct classes classes; // of --classes
    struct ops *ops, *test_ops;
    struct split split;
    struct reject *reject;
    struct progress progress;
    uint64_t rejected;
    struct grow notes; // lines of the inputs, for the end
    double started;
};

// Reads what the options name. session_end also after a failure; it takes the status of the
// run, and gives that to exit with.
int session_start(struct session *s, char *const *operands, int count, struct error *err);
int session_end(struct session *s, int status, struct error *err);

// Inputs of the options and the command line; they must be there, and no terminal.
struct inputs_config session_inputs(struct session *s, const char *const *paths, size_t count);
int session_check_inputs(const struct inputs_config *inputs, const char *command,
                         struct error *err);
int session_need_output(const struct session *s, const char *command, struct error *err);

// A sample was skipped: a hook of the library, `context` is the session.
int session_rejected(void *context, const char *path, const char *reason, struct error *err);

// The subcommands, with their operands; without one it is run_prepare. Each returns a status.
typedef int run_function(struct session *s, char **operands, int count, struct error *err);
run_function run_prepare, run_draw; // preparing.c
run_function run_stat;              // measuring.c
run_function run_sheet;             // sheet.c

#endif
