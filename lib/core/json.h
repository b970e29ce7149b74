// JSON is jansson's: the one place that names its header, and what we add.
#ifndef ADAM_CORE_JSON_H
#define ADAM_CORE_JSON_H

#include <jansson.h>

struct error;

// Parses one strict document (duplicate keys refused, nesting bounded by
// jansson's 2048; a byte-order mark in front is passed over). *out is a new reference. STATUS_DATA
// with line and column.
int json_read(json_t **out, const char *text, size_t size, struct error *err);

enum { JSON_DIGITS = 9 }; // of reals: what a float needs

// One compact line, keys in insertion order, reals with JSON_DIGITS significant digits,
// to be freed with free(); NULL when out of memory.
char *json_line(const json_t *value);

// The number as it is when it is read back from such a line, or from a sealed file: what goes on
// from there must not differ from what goes on here.
double json_kept(double value);

// Any bytes as a text: what is not UTF-8 is replaced. NULL when out of memory.
json_t *json_text(const char *bytes);
// A number, or null where it is not finite: JSON has none for that.
json_t *json_number(double value);

// Appends to the list and takes `value`. When either is NULL, or memory is out, the list is freed,
// and is NULL: so a list is whole or none, and one look at its end is enough.
void json_append(json_t **list, json_t *value);
// The same for a member of an object.
void json_put(json_t **object, const char *name, json_t *value);

#endif
