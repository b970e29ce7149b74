#include "core/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/utf8.h"

enum { UTF8_MOST = 4, PIECE = 4 * UTF8_MOST + 1 }; // bytes of a character, and of its escapes

static uint32_t code_point(const unsigned char *p, size_t length) {
    static const unsigned char head_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = p[0] & head_bits[length];
    for (size_t i = 1; i < length; i++)
        point = point << 6 | (p[i] & 0x3f);
    return point;
}

static bool is_printable(uint32_t point) {
    static const struct {
        uint32_t first, last;
    } others[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (point >= others[i].first && point <= others[i].last)
            return false;
    return true;
}

static void escape_byte(char written[PIECE], const char *bytes, size_t length) {
    static const char special[] = "\t\n\r\\", letters[] = "tnr\\";
    const char *found = *bytes ? strchr(special, *bytes) : NULL;
    if (found) {
        snprintf(written, PIECE, "\\%c", letters[found - special]);
        return;
    }
    for (size_t i = 0; i < length; i++)
        snprintf(written + 4 * i, PIECE - 4 * i, "\\x%02x", (unsigned char)bytes[i]);
}

// The character at the head of text[0..left), as it is or escaped; how many bytes of the text
// it takes.
static size_t write_character(char written[PIECE], const char *text, size_t left) {
    char head[UTF8_MOST + 1] = "";
    memcpy(head, text, left < UTF8_MOST ? left : UTF8_MOST);
    size_t length = *head ? utf8_length(head) : 0;
    if (length && is_printable(code_point((const unsigned char *)head, length)))
        snprintf(written, PIECE, "%.*s", (int)length, head);
    else
        escape_byte(written, head, length ? length : 1);
    return length ? length : 1;
}

static void copy_printable(char *to, size_t room, const char *text, size_t length,
                           const char *kept) {
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        char written[PIECE] = "";
        if (text[at] && strchr(kept, text[at]))
            written[0] = text[at++];
        else
            at += write_character(written, text + at, length - at);
        size_t more = strlen(written);
        if (used + more >= room)
            break;
        memcpy(to + used, written, more);
        used += more;
    }
    to[used] = 0;
}

void printable_copy(char *to, size_t room, const char *text, size_t length) {
    copy_printable(to, room, text, length, "");
}

void printable_lines(char *to, size_t room, const char *text, size_t length) {
    copy_printable(to, room, text, length, "\t\n");
}

void printable_value(FILE *out, const char *text) {
    for (size_t left = strlen(text); left > 0;) {
        char written[PIECE];
        size_t taken = 1;
        if (*text == '\\')
            escape_byte(written, text, 1);
        else
            taken = write_character(written, text, left);
        fputs(written, out);
        text += taken;
        left -= taken;
    }
}
