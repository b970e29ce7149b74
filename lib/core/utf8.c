#include "core/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

static int is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

static size_t sequence_length(unsigned char head) {
    if (head < 0x80)
        return 1;
    if (head >= 0xc2 && head < 0xe0)
        return 2;
    if (head >= 0xe0 && head < 0xf0)
        return 3;
    return head >= 0xf0 && head < 0xf5 ? 4 : 0;
}

// Bytes of the sequence at the head of the text, and its code point; 0 when it is damaged.
static size_t decode(const char *text, uint32_t *point) {
    const unsigned char *p = (const unsigned char *)text;
    static const unsigned char head_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = sequence_length(p[0]);
    *point = p[0] & head_bits[length];
    for (size_t i = 1; i < length; i++) { // a NUL does not follow, so this stays inside
        if (!is_continuation(p[i]))
            return 0;
        *point = *point << 6 | (p[i] & 0x3f);
    }
    bool exists =
        *point >= least[length] && *point <= 0x10ffff && (*point < 0xd800 || *point > 0xdfff);
    return exists ? length : 0;
}

static bool is_allowed_in_xml(uint32_t point) {
    if (point < 0x20)
        return point == '\t' || point == '\n' || point == '\r';
    return point != 0xfffe && point != 0xffff;
}

size_t utf8_length(const char *text) {
    uint32_t point;
    size_t length = decode(text, &point);
    return is_allowed_in_xml(point) ? length : 0;
}

bool utf8_is_valid(const char *text) {
    uint32_t point;
    for (size_t length; *text && (length = decode(text, &point)) > 0;)
        text += length;
    return !*text;
}

char *utf8_clean(const char *text) {
    size_t replacement = strlen(UTF8_REPLACEMENT);
    char *clean = mem_array(strlen(text) + 1, replacement), *to = clean;
    if (!clean)
        return NULL;
    while (*text) {
        size_t n = utf8_length(text);
        memcpy(to, n ? text : UTF8_REPLACEMENT, n ? n : replacement);
        to += n ? n : replacement;
        text += n ? n : 1;
    }
    *to = 0;
    return clean;
}
