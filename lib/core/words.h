// The words of a command line: collected one by one, then run as they are, or written as
// a shell would have them typed.
#ifndef ADAM_CORE_WORDS_H
#define ADAM_CORE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/grow.h"

// A list that ends with NULL, as execvp(3) wants it. {0} is an empty one. That memory ran
// out is remembered, so that a writer need not ask after each word.
struct words {
    char **items;
    size_t count;
    bool failed;
};

void words_add(struct words *words, const char *text);
void words_format(struct words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Takes `text` over; NULL is memory that ran out.
void words_take(struct words *words, char *text);
void words_free(struct words *words);

// One word as sh(1) reads it back: quoted where it must be.
void words_quote(struct grow *out, const char *word);
// The whole command in one line, to be freed with free(); NULL when memory ran out.
char *words_line(char *const *items, size_t count);
// The same of a program's own command line, by the name that it is known by, for records: what is
// not UTF-8 is replaced.
char *words_command(const char *program, int argc, char *const *argv);

#endif
