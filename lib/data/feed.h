// All inputs of a run as one stream of samples: several sources, one behind the
// other, the classes filtered and renumbered, and read twice where that is needed.
#ifndef ADAM_DATA_FEED_H
#define ADAM_DATA_FEED_H

#include <stddef.h>

#include "data/source.h"

struct feed; // belongs to one thread

struct feed_config {
    const char *const *inputs; // paths, "-" for standard input
    size_t input_count;
    const char *files_from; // a list of paths, as one more input; NULL: none
    struct source_options source;
    const char *const *only; // class names: leave all other samples out
    size_t only_count;       // 0: no filter
    int64_t limit;           // end behind so many samples; 0: no limit
    bool twice;              // feed_rewind will be called: what cannot be read again (a
                             // pipe) is kept in a temporary file
};

// `classes` is the caller's and grows as samples come. When it has names already
// (--classes), it does not grow: a sample of another class is bad. A class that
// is a number then means that line of the table, counted from 0.
// What `config` points to outlives the feed.
int feed_open(struct feed **out, const struct feed_config *config, struct classes *classes,
              struct error *err);

// As source_next.
int feed_next(struct feed *feed, struct sample *sample, bool *more, struct error *err);

// Starts over; once, behind the end.
int feed_rewind(struct feed *feed, struct error *err);

// The kind of the input that is being read ("tar"), or "" between two.
const char *feed_kind(const struct feed *feed);

void feed_close(struct feed *feed);

#endif
