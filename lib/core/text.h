// Small things about text that every parser needs: strict numbers, near misses.
#ifndef ADAM_CORE_TEXT_H
#define ADAM_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Strict: the whole of text[0..length) is the number, or false ("1hello" is no
// number, neither are "", " 1", "0x10", "nan" and "inf"). A real may be a
// fraction of two decimals, as in 1/255.
bool text_integer(const char *text, size_t length, int64_t *value);
bool text_real(const char *text, size_t length, double *value);
// An integer as numbers are usually written: "7" and "-7", not "007", "+7" and "-0".
bool text_plain_integer(const char *text, int64_t *value);

// How many bytes the byte-order mark of UTF-8 has in front of text[0..length), 3 or 0: some editors
// write one, and it is none of the text.
size_t text_mark(const char *text, size_t length);

// The candidate nearest to `word` by edit distance, for "did you mean 'x'?";
// NULL when none is near enough (a third of its length, at least one).
const char *text_nearest(const char *word, size_t length, const char *const *candidates, size_t n);

// "; did you mean 'NEAR'?" for the end of a message, cut where NEAR is very long; "" for NULL.
struct text_hint {
    char text[320];
};
struct text_hint text_hint(const char *near);

#endif
