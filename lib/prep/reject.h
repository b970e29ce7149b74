// The list of samples that could not be used: a line each, path, tab, reason.
// Both are written as printable_value (core/printable.h) does.
#ifndef ADAM_PREP_REJECT_H
#define ADAM_PREP_REJECT_H

#include <stddef.h>

struct error;

struct reject; // belongs to one thread

// STATUS_USAGE: one of these names, of what is read and written beside the list, is that of the
// list, which is written anew. NULL is no name.
int reject_check(const char *path, const char *const *names, size_t count, struct error *err);
// `path` "-" is standard output. STATUS_CANTCREATE. A file that exists is written anew.
int reject_open(struct reject **out, const char *path, struct error *err);
// Each line is in the file when this returns. STATUS_IO.
int reject_put(struct reject *reject, const char *path, const char *reason, struct error *err);
int reject_close(struct reject *reject, struct error *err);

#endif
