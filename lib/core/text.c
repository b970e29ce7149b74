#include "core/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 63, LONGEST_WORD = 63 };

size_t text_mark(const char *text, size_t length) {
    static const char mark[] = {'\xef', '\xbb', '\xbf'};
    return length >= sizeof mark && !memcmp(text, mark, sizeof mark) ? sizeof mark : 0;
}

// Whether every character is one of `set`; `text` need not end in a NUL.
static bool consists_of(const char *text, size_t length, const char *set) {
    for (size_t i = 0; i < length; i++)
        if (!text[i] || !strchr(set, text[i]))
            return false;
    return true;
}

bool text_integer(const char *text, size_t length, int64_t *value) {
    char copy[LONGEST_NUMBER + 1], *end;
    if (length == 0 || length > LONGEST_NUMBER || !consists_of(text, length, "+-0123456789"))
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    errno = 0;
    long long v = strtoll(copy, &end, 10);
    if (errno || end == copy || *end)
        return false;
    *value = v;
    return true;
}

bool text_plain_integer(const char *text, int64_t *value) {
    const char *digits = text + (*text == '-');
    bool plain = (*digits >= '1' && *digits <= '9') || !strcmp(text, "0");
    return plain && text_integer(text, strlen(text), value);
}

static bool parse_decimal(const char *text, size_t length, double *value) {
    char copy[LONGEST_NUMBER + 1], *end;
    if (length == 0 || length > LONGEST_NUMBER || !consists_of(text, length, "+-.eE0123456789"))
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    double v = strtod(copy, &end);
    if (end == copy || *end || !isfinite(v))
        return false;
    *value = v;
    return true;
}

bool text_real(const char *text, size_t length, double *value) {
    const char *slash = memchr(text, '/', length);
    if (!slash)
        return parse_decimal(text, length, value);
    double above, below;
    size_t n = (size_t)(slash - text);
    if (!parse_decimal(text, n, &above) || !parse_decimal(slash + 1, length - n - 1, &below) ||
        below == 0)
        return false;
    *value = above / below;
    return true;
}

static size_t smallest_of_three(size_t a, size_t b, size_t c) {
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

// Letters inserted, left out, replaced, or swapped with their neighbour. Three
// rows of the table at a time: two letters back, one back, and this one's.
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb) {
    size_t rows[3][LONGEST_WORD + 1];
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = smallest_of_three(above[j] + 1, row[j - 1] + 1,
                                       above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return rows[na % 3][nb];
}

const char *text_nearest(const char *word, size_t length, const char *const *candidates, size_t n) {
    const char *best = NULL;
    if (length == 0)
        return NULL;
    size_t best_distance = length / 3 > 1 ? length / 3 : 1;
    for (size_t i = 0; i < n; i++) {
        size_t m = strlen(candidates[i]);
        if (m > LONGEST_WORD)
            continue;
        size_t d = edit_distance(word, length, candidates[i], m);
        if (d < best_distance + !best) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}

struct text_hint text_hint(const char *near) {
    struct text_hint hint = {""};
    if (near)
        snprintf(hint.text, sizeof hint.text, "; did you mean '%s'?", near);
    return hint;
}
