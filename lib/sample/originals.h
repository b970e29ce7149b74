// Which files of a folder are copies of which others: originals.txt, as adam-prep writes it,
// a line for each copy: its key, a tab, the key of its original.
#ifndef ADAM_SAMPLE_ORIGINALS_H
#define ADAM_SAMPLE_ORIGINALS_H

#include <stddef.h>

struct error;

#define ORIGINALS_FILE "originals.txt"

// {0} knows none. Read-only once it is read.
struct originals {
    char *text; // all lines, cut into pieces
    struct original {
        const char *copy, *original;
    } * items; // sorted by copy
    size_t count;
};

// STATUS_NOINPUT, STATUS_IO, STATUS_DATA with the line.
int originals_read(struct originals *originals, const char *path, struct error *err);
// The key of the original of `copy`, or NULL.
const char *originals_find(const struct originals *originals, const char *copy);
void originals_free(struct originals *originals);

#endif
