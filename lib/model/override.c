// "layer.key=value" from the command line: the text is written anew with the
// value in its place, so that what is checked, stored and shown is one text.
// A pattern of the shell in the layer's place ("c*") means all layers that it
// matches and that have the key.
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/utf8.h"
#include "model/script.h"

// One override, cut in its three parts.
struct override {
    const char *text; // the whole, for messages
    const char *layer, *key, *value;
    size_t layer_length, key_length, value_length;
};

static int set_error(const struct override *set, struct error *err, const char *message) {
    return error_set(err, STATUS_USAGE, "--set %.200s: %s", set->text, message);
}

// Whether the value can stand on a line of the file, in quotes if need be.
static bool can_be_written(const struct override *set) {
    for (const char *p = set->value; *p; p += utf8_length(p))
        if (utf8_length(p) == 0 || (unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    return !strchr(set->value, '\'') || !strchr(set->value, '"');
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define SPECIAL "*?[]!^" // of patterns

// Names of layers may have dots, keys have none.
static int set_cut(struct override *set, const char *text, struct error *err) {
    *set = (struct override){.text = text, .layer = text};
    size_t length = strspn(text, LETTERS SPECIAL ".");
    const char *dot = memrchr(text, '.', length);
    if (dot) {
        set->layer_length = (size_t)(dot - text);
        set->key_length = length - set->layer_length - 1;
    }
    if (set->layer_length == 0 || set->key_length == 0 || text[length] != '=')
        return set_error(set, err, "must be LAYER.KEY=VALUE, as in c1.maps=20");
    set->key = dot + 1;
    set->value = text + length + 1;
    set->value_length = strlen(set->value);
    if (!can_be_written(set))
        return set_error(set, err, "the value has both kinds of quotes, or is no plain text");
    return STATUS_OK;
}

// Puts the value into the statement's word of that key, or adds one.
static int set_put(const struct override *set, struct statement *statement, struct error *err) {
    struct word *word = script_word(statement, set->key, set->key_length);
    if (!word) {
        size_t count = (size_t)statement->count + 1;
        struct word *words = mem_resize(statement->words, count, sizeof *words);
        if (!words)
            return error_nomem(err);
        statement->words = words;
        word = &words[statement->count++];
        *word = (struct word){.key = set->key, .key_length = set->key_length};
    }
    word->bare = false;
    word->value = set->value;
    word->value_length = set->value_length;
    word->set = set->text;
    return STATUS_OK;
}

static int set_matching(const struct override *set, struct script *script, struct error *err) {
    char *pattern = mem_text(set->layer, set->layer_length);
    int status = pattern ? STATUS_OK : error_nomem(err), found = 0;
    for (int i = 0; status == STATUS_OK && i < script->count; i++) {
        struct statement *statement = &script->statements[i];
        if (fnmatch(pattern, statement->name, 0) ||
            !key_find(statement->type, set->key, set->key_length))
            continue;
        found++;
        status = set_put(set, statement, err);
    }
    free(pattern);
    return status || found ? status : set_error(set, err, "no layer with this key has such a name");
}

static int set_apply(struct script *script, const char *text, struct error *err) {
    struct override set;
    int status = set_cut(&set, text, err);
    if (status != STATUS_OK)
        return status;
    if (strcspn(set.layer, SPECIAL) < set.layer_length)
        return set_matching(&set, script, err);
    int i = names_find(script, set.layer, set.layer_length);
    if (i >= 0)
        return set_put(&set, &script->statements[i], err);
    const char *near = names_nearest(script, set.layer, set.layer_length);
    return error_set(err, STATUS_USAGE, "--set %.200s: no layer named '%.*s'%s", text,
                     SHOWN(set.layer_length), set.layer, text_hint(near).text);
}

static void write_word(struct grow *to, const struct word *word) {
    const char *quote = "";
    if (word->value_length == 0 || strpbrk(word->value, " #"))
        quote = "'";
    if (strchr(word->value, '\''))
        quote = "\"";
    else if (strchr(word->value, '"'))
        quote = "'";
    grow_format(to, "%.*s=%s%s%s", (int)word->key_length, word->key, quote, word->value, quote);
}

// The text with every word that was set replaced, and new ones behind the last.
// NULL when out of memory.
static char *write_text(const struct script *script) {
    struct grow to = {0};
    const char *done = script->text;
    for (int i = 0; i < script->count; i++)
        for (int j = 0; j < script->statements[i].count; j++) {
            const struct word *word = &script->statements[i].words[j];
            const char *until = word->start ? word->start + (word->set ? 0 : word->length) : done;
            grow_put(&to, done, (size_t)(until - done));
            if (!word->start)
                grow_put(&to, " ", 1);
            if (word->set)
                write_word(&to, word);
            done = word->start ? word->start + word->length : done;
        }
    grow_put(&to, done, strlen(done));
    return grow_take(&to);
}

// The new script has the same words in the same order, so it knows their origin.
static int reopen_script(struct script *script, const char *text, struct error *err) {
    struct script fresh;
    int status = script_open(&fresh, script->name, text, err);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < script->count; i++)
        for (int j = 0; j < script->statements[i].count; j++)
            fresh.statements[i].words[j].set = script->statements[i].words[j].set;
    script_close(script);
    *script = fresh;
    return names_assign(script, err);
}

int override_apply(struct script *script, const char *const *sets, size_t count,
                   struct error *err) {
    for (size_t i = 0; i < count; i++) {
        int status = set_apply(script, sets[i], err);
        if (status != STATUS_OK)
            return status;
    }
    if (count == 0)
        return STATUS_OK;
    char *text = write_text(script);
    int status = text ? reopen_script(script, text, err) : error_nomem(err);
    free(text);
    return status;
}
