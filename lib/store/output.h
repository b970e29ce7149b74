// A file that appears complete or not at all: it is written under a temporary
// name beside its place, and output_close makes it durable (fsync), gives it its
// name (rename) and makes the name durable (fsync of the folder). A name ending
// in .gz, .zst or .xz is compressed; the same bytes give the same file.
#ifndef ADAM_STORE_OUTPUT_H
#define ADAM_STORE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

struct output; // belongs to one thread

// `path` "-" is standard output; it, pipes and devices are written straight on.
// STATUS_CANTCREATE, also when `path` exists and `force` is false.
int output_open(struct output **out, const char *path, bool force, struct error *err);

// STATUS_IO.
int output_write(struct output *output, const void *data, size_t size, struct error *err);

// Writes out all of it, durably, so that output_close has only to give it its name: for outputs
// that belong together and are to appear at nearly the same time. STATUS_IO.
int output_complete(struct output *output, struct error *err);
// Removes what stands in its place, durably; an output without `force` finds nothing there.
// STATUS_CANTCREATE, STATUS_IO.
int output_clear(struct output *output, struct error *err);

// Completes the file and puts it in place. Frees the output in any case.
// STATUS_CANTCREATE when another file has taken the name meanwhile, STATUS_IO.
int output_close(struct output *output, struct error *err);
// Removes what was written, as far as it was not to a pipe. Frees the output.
void output_abort(struct output *output);

// A whole file of these bytes. Statuses of the functions above.
int output_whole(const char *path, bool force, const void *data, size_t size, struct error *err);

// The path, or "standard output", for messages.
const char *output_name(const struct output *output);

// Whether what is written to `path` goes on: to standard output, a pipe or a device, beside which
// no other file has a place.
bool output_is_stream(const char *path);
// Whether two paths, of files or folders that need not be there, name the same one.
bool output_same(const char *a, const char *b);
// A text that two paths have in common when output_same says so, to be freed with free(); NULL when
// out of memory.
char *output_place(const char *path);

// Length of the part of `path` before .gz, .zst or .xz.
size_t output_plain_length(const char *path);
// Length of `path` before the extension of its last name: the last one, with what compresses it.
size_t output_stem_length(const char *path);

// The name of a file or folder to work under before `path` is complete, in the
// same folder: ".NAME.PID-N.tmp", to be freed with free(); NULL when out of memory.
char *output_temporary(const char *path, unsigned n);
// Makes the folders around `path` that are missing, for an output that is a folder itself: for a
// file nothing is made, so that a slip of the pen is found. STATUS_CANTCREATE.
int output_make_parents(const char *path, struct error *err);
// Gives a complete file or folder its name, and makes the name durable. Without
// `force` an existing file is kept, and that is STATUS_CANTCREATE.
int output_rename(const char *from, const char *to, bool force, struct error *err);
// Makes the name of a file or folder durable: syncs the folder that it is in. STATUS_IO.
int output_sync_name(const char *path, struct error *err);
// Removes a file, if it is there, and makes that durable. STATUS_CANTCREATE, STATUS_IO.
int output_remove(const char *path, struct error *err);
// Both exist, and each gets the other's name at once.
int output_exchange(const char *from, const char *to, struct error *err);

#endif
