// The file of a run of many processes, RUN.conf (adam-run(5)): lines KEY = VALUE, blank
// lines, and comments from a # at the beginning of a line or behind a blank. Keys are
// those of run/settings.h; LAYER.KEY overrides a key of the model's layer.
#ifndef ADAM_RUN_RUN_FILE_H
#define ADAM_RUN_RUN_FILE_H

#include "run/settings.h"

struct error;

struct run_file {
    struct settings settings; // paths are relative to the working folder here
    const char **sets;        // LAYER.KEY=VALUE, in their order
    size_t set_count;
    // What texts of the two point into.
    char **texts;
    size_t text_count;
};

// Settings not in the file have their defaults. Nothing is in `file` on failure.
// STATUS_NOINPUT when it cannot be read, STATUS_DATA for a mistake in it:
//   run.conf:3:1: error: unknown key 'rte'; did you mean 'rate'?
//       3 | rte = 0.1
//         | ^~~
int run_file_read(struct run_file *file, const char *path, struct error *err);
// All that --set has, as KEY=VALUE; paths are as they are. What the file has that means nothing
// beside these any more goes, as the beta2 of another optimizer (settings_fit). STATUS_USAGE.
int run_file_set(struct run_file *file, const char *const *assignments, size_t count,
                 struct error *err);
void run_file_free(struct run_file *file);

#endif
