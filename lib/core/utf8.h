// Text from outside may be any bytes; JSON, XML and HTML take only UTF-8.
#ifndef ADAM_CORE_UTF8_H
#define ADAM_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD

// Bytes of the valid sequence (RFC 3629) at the head of a NUL-terminated text,
// or 0 when it is damaged or is a character that XML 1.0 forbids: controls other
// than tab, line feed and carriage return, U+FFFE and U+FFFF. *text must not be 0.
size_t utf8_length(const char *text);

// Whether the whole text is UTF-8 (RFC 3629), control characters and all: then JSON can hold it.
bool utf8_is_valid(const char *text);

// A copy of `text` with each damaged byte replaced, to be freed with free();
// NULL when out of memory.
char *utf8_clean(const char *text);

#endif
