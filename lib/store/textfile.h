// Text for a file that appears complete or not at all (store/output.h), written
// with stdio.
#ifndef ADAM_STORE_TEXTFILE_H
#define ADAM_STORE_TEXTFILE_H

#include <stdio.h>

struct error;

struct textfile; // belongs to one thread

// As output_open; a file that exists is replaced at the end.
int textfile_open(struct textfile **out, const char *path, struct error *err);
// To be printed into, not to be closed.
FILE *textfile_stream(struct textfile *file);
// Puts it in place. Frees in any case. STATUS_IO when something was not written.
int textfile_close(struct textfile *file, struct error *err);
void textfile_abort(struct textfile *file); // accepts NULL

#endif
