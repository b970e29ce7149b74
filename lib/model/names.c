// Types and names of layers. A layer that has no name in the file is called by
// its type and its number among the layers of that type: "conv2".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "model/script.h"

// Of two types of one name, an output and another, the place decides.
static const struct layer_type *type_find(const char *name, size_t length, bool last) {
    size_t count;
    const struct layer_type *const *types = layer_types(&count), *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (strlen(types[i]->name) == length && memcmp(types[i]->name, name, length) == 0 &&
            (!found || types[i]->output == last))
            found = types[i];
    return found;
}

static int type_unknown(const struct script *script, const struct word *word, struct error *err) {
    size_t count;
    const struct layer_type *const *types = layer_types(&count);
    const char **names = mem_array(count, sizeof *names);
    if (!names)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++)
        names[i] = types[i]->name;
    const char *near = text_nearest(word->value, word->value_length, names, count);
    free(names);
    return script_error_word(script, word, err, "unknown layer type '%.*s'%s",
                             SHOWN(word->value_length), word->value,
                             near ? text_hint(near).text : "; adam-model(5) lists all");
}

static int assign_type(const struct script *script, struct statement *statement,
                       struct error *err) {
    const struct word *word = &statement->words[0];
    bool last = statement == &script->statements[script->count - 1];
    if (!word->bare)
        return script_error_word(script, word, err, "a line starts with the type of a layer");
    statement->type = type_find(word->value, word->value_length, last);
    return statement->type ? STATUS_OK : type_unknown(script, word, err);
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!is_letter(text[i]) && (i == 0 || !text[i] || !strchr("0123456789_-.", text[i])))
            return false;
    return length <= SCRIPT_NAME_MAX && text[length - 1] != '.';
}

// What optimizers keep of the layer c1 is called momentum.c1 in checkpoints (rule/optimizer.h), and
// trained.c1 what an average has the place of (run/checkpoint_tensors.c).
static bool is_kept_name(const char *text, size_t length) {
    static const char *const kept[] = {"momentum", "nesterov", "adagrad", "rmsprop",
                                       "adam",     "adamw",    "trained"};
    const char *dot = memchr(text, '.', length);
    for (size_t i = 0; dot && i < sizeof kept / sizeof *kept; i++)
        if (strlen(kept[i]) == (size_t)(dot - text) && !memcmp(kept[i], text, (size_t)(dot - text)))
            return true;
    return false;
}

bool model_layer_may_be(const char *name) {
    size_t length = strlen(name);
    return length > 0 && is_name(name, length) && !is_kept_name(name, length);
}

// The word behind the type is the name, if it is bare.
static bool has_name(const struct statement *statement) {
    return statement->count > 1 && statement->words[1].bare && !type_is_input(statement->type);
}

static int given_name(const struct script *script, struct statement *statement, struct error *err) {
    const struct word *word = &statement->words[1];
    if (!is_name(word->value, word->value_length))
        return script_error_word(script, word, err,
                                 "%s: '%.*s' is no name: a letter, then letters, digits, '_', '-' "
                                 "and within it '.', at most %d",
                                 statement->type->name, SHOWN(word->value_length), word->value,
                                 SCRIPT_NAME_MAX);
    if (is_kept_name(word->value, word->value_length))
        return script_error_word(script, word, err,
                                 "%s: '%.*s' is no name: checkpoints call so what an optimizer "
                                 "keeps",
                                 statement->type->name, SHOWN(word->value_length), word->value);
    memcpy(statement->name, word->value, word->value_length);
    return STATUS_OK;
}

// `number` counts the layers of this type down to this one.
static int assign_name(const struct script *script, struct statement *statement, int number,
                       struct error *err) {
    if (has_name(statement))
        return given_name(script, statement, err);
    const char *type = statement->type->name;
    if (type_is_input(statement->type) && number == 1)
        snprintf(statement->name, sizeof statement->name, "%s", type);
    else
        snprintf(statement->name, sizeof statement->name, "%s%d", type, number);
    return STATUS_OK;
}

// The shape of an input may stand behind the type without its key, which is the
// first of the type's. All other words have a key.
static int check_bare(const struct script *script, struct statement *statement, struct error *err) {
    for (int i = 1; i < statement->count; i++) {
        struct word *word = &statement->words[i];
        if (!word->bare || (i == 1 && has_name(statement)))
            continue;
        if (i > 1)
            return script_error_word(script, word, err,
                                     "%s: '%.*s' is neither a name, which stands behind the "
                                     "type, nor key=value",
                                     statement->type->name, SHOWN(word->value_length), word->value);
        word->key = statement->type->keys[0].name;
        word->key_length = strlen(word->key);
    }
    return STATUS_OK;
}

static int assign_names(struct script *script, struct error *err) {
    size_t types;
    const struct layer_type *const *type = layer_types(&types);
    int *numbers = mem_zeroed(types, sizeof *numbers);
    if (!numbers)
        return error_nomem(err);
    int status = STATUS_OK;
    for (int i = 0; i < script->count && status == STATUS_OK; i++) {
        struct statement *statement = &script->statements[i];
        status = assign_type(script, statement, err);
        if (status != STATUS_OK)
            break;
        size_t t = 0;
        while (strcmp(type[t]->name, statement->type->name) != 0)
            t++;
        status = check_bare(script, statement, err);
        if (status == STATUS_OK)
            status = assign_name(script, statement, ++numbers[t], err);
    }
    free(numbers);
    return status;
}

static int compare_names(const void *a, const void *b, void *self) {
    const struct statement *statements = self;
    int i = *(const int *)a, j = *(const int *)b;
    int names = strcmp(statements[i].name, statements[j].name);
    return names ? names : (i > j) - (i < j);
}

// Two layers of one name; the place is that of the later name that was given.
static int name_twice(const struct script *script, int first, int second, struct error *err) {
    const struct statement *at = &script->statements[second];
    const struct statement *other = &script->statements[first];
    if (!has_name(at)) {
        const struct statement *swap = at;
        at = other;
        other = swap;
    }
    return script_error_word(script, &at->words[has_name(at)], err,
                             "%s: '%s' is already the name of the %s in line %d%s", at->type->name,
                             at->name, other->type->name, other->line,
                             has_name(other) ? "" : ", by its type and number");
}

int names_assign(struct script *script, struct error *err) {
    int status = assign_names(script, err);
    if (status != STATUS_OK)
        return status;
    script->by_name = mem_array((size_t)script->count, sizeof *script->by_name);
    if (!script->by_name)
        return error_nomem(err);
    for (int i = 0; i < script->count; i++)
        script->by_name[i] = i;
    qsort_r(script->by_name, (size_t)script->count, sizeof *script->by_name, compare_names,
            script->statements);
    for (int i = 1; i < script->count; i++) {
        int a = script->by_name[i - 1], b = script->by_name[i];
        if (strcmp(script->statements[a].name, script->statements[b].name) == 0)
            return name_twice(script, a, b, err);
    }
    return STATUS_OK;
}

int names_find(const struct script *script, const char *name, size_t length) {
    int low = 0, high = script->count;
    while (low < high) {
        int middle = low + (high - low) / 2, i = script->by_name[middle];
        const char *here = script->statements[i].name;
        int side = strncmp(name, here, length);
        if (side == 0 && here[length] == 0)
            return i;
        if (side > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const char *names_nearest(const struct script *script, const char *name, size_t length) {
    const char **names = mem_array((size_t)script->count, sizeof *names);
    if (!names)
        return NULL;
    for (int i = 0; i < script->count; i++)
        names[i] = script->statements[i].name;
    const char *near = text_nearest(name, length, names, (size_t)script->count);
    free(names);
    return near;
}
