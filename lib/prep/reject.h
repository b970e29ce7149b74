// The list of samples that could not be used: a line each, path, tab, reason.
// Both are written as printable_value (core/printable.h) does.
#ifndef ADAM_PREP_REJECT_H
#define ADAM_PREP_REJECT_H

struct error;

struct reject; // belongs to one thread

// `path` "-" is standard output. STATUS_CANTCREATE. A file that exists is written anew.
int reject_open(struct reject **out, const char *path, struct error *err);
// Each line is in the file when this returns. STATUS_IO.
int reject_put(struct reject *reject, const char *path, const char *reason, struct error *err);
int reject_close(struct reject *reject, struct error *err);

#endif
