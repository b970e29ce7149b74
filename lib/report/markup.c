#include "report/markup.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/utf8.h"

static const char *html_entity(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

// The first character of a text; how many bytes it is.
static size_t put_character(FILE *out, const char *text) {
    const char *name = html_entity(*text);
    size_t n = utf8_length(text);
    if (name)
        fputs(name, out);
    else if (n)
        fwrite(text, 1, n, out);
    else
        fputs(UTF8_REPLACEMENT, out);
    return n ? n : 1;
}

void markup_text(FILE *out, const char *text) {
    while (*text)
        text += put_character(out, text);
}

void markup_words(FILE *out, const char *text) {
    while (*text) {
        bool breaks = strchr("_-./", *text) != NULL;
        text += put_character(out, text);
        if (breaks)
            fputs("<wbr>", out);
    }
}

void markup_base64(FILE *out, const void *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t three = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                         (left > 2 ? p[i + 2] : 0);
        putc(digits[three >> 18], out);
        putc(digits[three >> 12 & 63], out);
        putc(left > 1 ? digits[three >> 6 & 63] : '=', out);
        putc(left > 2 ? digits[three & 63] : '=', out);
    }
}

void markup_count(char text[MARKUP_NUMBER], double count) {
    char digits[MARKUP_NUMBER / 2];
    int n = snprintf(digits, sizeof digits, "%.0f", count), k = 0;
    if (n >= (int)sizeof digits) {
        snprintf(text, MARKUP_NUMBER, "%.3g", count);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (i > 0 && digits[i - 1] != '-' && (n - i) % 3 == 0)
            text[k++] = ',';
        text[k++] = digits[i];
    }
    text[k] = 0;
}

void markup_large(char text[MARKUP_NUMBER], double count) {
    static const char *const units[] = {"", " K", " M", " G", " T"};
    int unit = 0;
    while (fabs(count) >= 1000 && unit < 4)
        count /= 1000, unit++;
    snprintf(text, MARKUP_NUMBER, "%.3g%s", count, units[unit]);
}

void markup_seconds(char text[MARKUP_NUMBER], double seconds) {
    double whole = round(seconds);
    if (seconds < 9.95)
        snprintf(text, MARKUP_NUMBER, "%.1f s", seconds);
    else if (whole < 60)
        snprintf(text, MARKUP_NUMBER, "%.0f s", whole);
    else if (whole < 3600)
        snprintf(text, MARKUP_NUMBER, "%.0fm%02.0fs", floor(whole / 60), fmod(whole, 60));
    else
        snprintf(text, MARKUP_NUMBER, "%.0fh%02.0fm", floor(whole / 3600),
                 floor(fmod(whole, 3600) / 60));
}

void markup_percent(char text[MARKUP_NUMBER], double share) {
    snprintf(text, MARKUP_NUMBER, "%.2f%%", 100 * share);
}
