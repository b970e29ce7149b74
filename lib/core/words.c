#include "core/words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/utf8.h"

void words_take(struct words *words, char *text) {
    char **items =
        text && !words->failed ? mem_resize(words->items, words->count + 2, sizeof *items) : NULL;
    if (!items) {
        free(text);
        words->failed = true;
        return;
    }
    words->items = items;
    items[words->count++] = text;
    items[words->count] = NULL;
}

void words_add(struct words *words, const char *text) {
    words_take(words, mem_string(text));
}

void words_format(struct words *words, const char *format, ...) {
    struct grow text = {0};
    va_list args;
    va_start(args, format);
    grow_vformat(&text, format, args);
    va_end(args);
    words_take(words, grow_take(&text));
}

void words_free(struct words *words) {
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
    *words = (struct words){0};
}

void words_quote(struct grow *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    size_t length = strlen(word);
    if (length && strspn(word, plain) == length) {
        grow_put(out, word, length);
        return;
    }
    grow_put(out, "'", 1);
    for (; *word; word++)
        if (*word == '\'')
            grow_put(out, "'\\''", 4);
        else
            grow_put(out, word, 1);
    grow_put(out, "'", 1);
}

char *words_line(char *const *items, size_t count) {
    struct grow out = {0};
    for (size_t i = 0; i < count; i++) {
        if (i)
            grow_put(&out, " ", 1);
        words_quote(&out, items[i]);
    }
    return grow_take(&out);
}

char *words_command(const char *program, int argc, char *const *argv) {
    struct words words = {0};
    words_add(&words, program);
    for (int i = 1; i < argc; i++)
        words_add(&words, argv[i]);
    char *line = words.failed ? NULL : words_line(words.items, words.count);
    char *text = line ? utf8_clean(line) : NULL;
    words_free(&words);
    free(line);
    return text;
}
