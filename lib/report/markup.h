// Text for XML and HTML: nothing from outside goes out without passing here.
#ifndef ADAM_REPORT_MARKUP_H
#define ADAM_REPORT_MARKUP_H

#include <stddef.h>
#include <stdio.h>

// As content or as a quoted attribute: & < > " ' become entities, bytes that are
// not UTF-8 (or that XML forbids) become U+FFFD.
void markup_text(FILE *out, const char *text);

// The same as content, with places where a long name may break: behind _ - . and /.
void markup_words(FILE *out, const char *text);

void markup_base64(FILE *out, const void *data, size_t size);

// Numbers as people read them, into `text`: "61,706", "2.5 M", "1h05m", "97.31%".
#define MARKUP_NUMBER 48
void markup_count(char text[MARKUP_NUMBER], double count);
void markup_large(char text[MARKUP_NUMBER], double count);
void markup_seconds(char text[MARKUP_NUMBER], double seconds);
void markup_percent(char text[MARKUP_NUMBER], double share);

#endif
