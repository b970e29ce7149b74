// All inputs of a run as one stream of samples: several sources, one behind the
// other, the classes filtered and renumbered, and read again where that is needed.
#ifndef ADAM_PREP_INPUTS_H
#define ADAM_PREP_INPUTS_H

#include <stddef.h>

#include "sample/source.h"

struct error;

struct inputs; // belongs to one thread

struct inputs_config {
    const char *const *paths; // "-" for standard input
    size_t path_count;
    const char *files_from; // a list of paths, as one more input; NULL: none
    struct source_options source;
    const char *const *only; // class names: leave all other samples out
    size_t only_count;       // 0: no filter
    int64_t limit;           // end behind so many samples; 0: no limit
    bool again;              // inputs_rewind will be called: what cannot be read again (a
                             // pipe) is kept in a temporary file
};

// `classes` is the caller's and grows as samples come. When it has names already
// (--classes), it does not grow: a sample of another class is bad. A class that
// is a number then means that line of the table, counted from 0, if no name in it is a number.
// What `config` points to outlives the inputs. STATUS_IO.
int inputs_open(struct inputs **out, const struct inputs_config *config, struct classes *classes,
                struct error *err);

// As source_next.
int inputs_next(struct inputs *inputs, struct sample *sample, bool *more, struct error *err);

// Starts over, behind the end. STATUS_BUG: without config->again.
int inputs_rewind(struct inputs *inputs, struct error *err);

// The kind of the input that is being read ("tar"), or "" between two.
const char *inputs_kind(const struct inputs *inputs);

void inputs_close(struct inputs *inputs);

#endif
