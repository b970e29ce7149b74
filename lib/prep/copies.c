#include "prep/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

static int grow_counts(struct class_copies *c, size_t classes, struct error *err) {
    uint64_t *counts = mem_resize(c->counts, classes, sizeof *counts);
    c->counts = counts ? counts : c->counts;
    uint64_t *given = mem_resize(c->given, classes, sizeof *given);
    c->given = given ? given : c->given;
    if (!counts || !given)
        return error_nomem(err);
    memset(counts + c->classes, 0, (classes - c->classes) * sizeof *counts);
    memset(given + c->classes, 0, (classes - c->classes) * sizeof *given);
    c->classes = classes;
    return STATUS_OK;
}

int copies_count(struct class_copies *copies, int label, struct error *err) {
    if (label < 0)
        return STATUS_OK;
    if ((size_t)label >= copies->classes) {
        int status = grow_counts(copies, (size_t)label + 1, err);
        if (status)
            return status;
    }
    uint64_t count = ++copies->counts[label];
    copies->most = count > copies->most ? count : copies->most;
    return STATUS_OK;
}

// n things are spread over `count` places: how many are in the first `places`.
static uint64_t spread_before(uint64_t n, uint64_t count, uint64_t places) {
    return (uint64_t)((unsigned __int128)n * places / count);
}

int64_t copies_next(struct class_copies *copies, int label) {
    if (label < 0 || (size_t)label >= copies->classes || !copies->counts[label])
        return copies->per_sample;
    uint64_t all = copies->most * (uint64_t)copies->per_sample, count = copies->counts[label];
    uint64_t i = copies->given[label]++;
    return (int64_t)(spread_before(all, count, i + 1) - spread_before(all, count, i));
}

void copies_free(struct class_copies *copies) {
    free(copies->counts);
    free(copies->given);
    *copies = (struct class_copies){0};
}

static const char *const placeholders[] = {"key", "copy", "number", "class"};
enum { KEY, COPY, NUMBER, CLASS, PLACEHOLDERS };

// Which placeholder stands between the braces at text; PLACEHOLDERS for none.
static int placeholder_at(const char *text, size_t *length) {
    const char *end = strchr(text, '}');
    *length = end ? (size_t)(end + 1 - text) : strlen(text);
    for (int i = 0; i < PLACEHOLDERS && end; i++)
        if (strlen(placeholders[i]) == *length - 2 &&
            !memcmp(text + 1, placeholders[i], *length - 2))
            return i;
    return PLACEHOLDERS;
}

int copies_check_name(const char *pattern, bool several, struct error *err) {
    bool used[PLACEHOLDERS + 1] = {false};
    for (const char *p = strchr(pattern, '{'); p; p = strchr(p, '{')) {
        size_t length;
        int which = placeholder_at(p, &length);
        if (which == PLACEHOLDERS)
            return error_set(err, STATUS_USAGE,
                             "--name: unknown placeholder '%.*s'; there are "
                             "{key}, {copy}, {number} and {class}",
                             (int)length, p);
        used[which] = true;
        p += length;
    }
    if (!used[KEY] && !used[NUMBER])
        return error_set(err, STATUS_USAGE,
                         "--name: without {key} or {number} all samples would "
                         "have the same key");
    if (several && !used[COPY] && !used[NUMBER])
        return error_set(err, STATUS_USAGE,
                         "--name: without {copy} or {number} the copies of a "
                         "sample would have the same key");
    return STATUS_OK;
}

static void put_placeholder(FILE *to, int which, const char *key, int64_t copy, uint64_t number,
                            const char *class_name) {
    if (which == KEY)
        fputs(key, to);
    else if (which == COPY)
        fprintf(to, "%lld", (long long)copy + 1);
    else if (which == NUMBER)
        fprintf(to, "%06llu", (unsigned long long)number);
    else
        fputs(class_name, to);
}

char *copies_name(const char *pattern, const char *key, int64_t copy, uint64_t number,
                  const char *class_name) {
    if (!pattern)
        pattern = copy ? "{key}-{copy}" : "{key}";
    char *name = NULL;
    size_t size;
    FILE *to = open_memstream(&name, &size);
    if (!to)
        return NULL;
    while (*pattern) {
        size_t length;
        if (*pattern == '{') {
            int which = placeholder_at(pattern, &length);
            put_placeholder(to, which, key, copy, number, class_name);
        } else {
            length = strcspn(pattern, "{");
            fwrite(pattern, 1, length, to);
        }
        pattern += length;
    }
    if (fclose(to)) {
        free(name);
        return NULL;
    }
    return name;
}
