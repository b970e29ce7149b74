// Values of keys: from the text of a model file to members of struct layer.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "model/script.h"

// Of the common keys, `from` and `cut` are for all that read a layer, the others for those
// with parameters.
static bool has_common(const struct layer_type *type, const struct layer_key *key) {
    bool all = key->kind == KEY_LAYERS || key->offset == offsetof(struct layer, cut);
    return all ? type->inputs_most > 0 : type->trains;
}

const struct layer_key *key_at(const struct layer_type *type, size_t i) {
    if (i < type->key_count)
        return &type->keys[i];
    i -= type->key_count;
    size_t count;
    const struct layer_key *common = layer_common_keys(&count);
    for (size_t j = 0; j < count; j++)
        if (has_common(type, &common[j]) && i-- == 0)
            return &common[j];
    return NULL;
}

const struct layer_key *key_find(const struct layer_type *type, const char *name, size_t length) {
    const struct layer_key *key;
    for (size_t i = 0; (key = key_at(type, i)); i++)
        if (strlen(key->name) == length && memcmp(key->name, name, length) == 0)
            return key;
    return NULL;
}

const char *key_nearest(const struct layer_type *type, const char *name, size_t length) {
    const char *names[64];
    size_t count = 0;
    const struct layer_key *key;
    for (size_t i = 0; count < 64 && (key = key_at(type, i)); i++)
        names[count++] = key->name;
    return text_nearest(name, length, names, count);
}

static bool refuse_because(char why[KEY_WHY], const char *reason) {
    snprintf(why, KEY_WHY, "%s", reason);
    return false;
}

static bool check_range(const struct layer_key *key, double value, char why[KEY_WHY]) {
    if (value >= key->low && value <= key->high)
        return true;
    snprintf(why, KEY_WHY, "must be between %.10g and %.10g", key->low, key->high);
    return false;
}

static bool read_int(int *to, const struct layer_key *key, const char *text, size_t length,
                     char why[KEY_WHY]) {
    int64_t value;
    if (!text_integer(text, length, &value))
        return refuse_because(why, "not a whole number");
    if (!check_range(key, (double)value, why))
        return false;
    *to = (int)value;
    return true;
}

// "5" is 5x5.
static bool read_pair(struct pair *to, const struct layer_key *key, const char *text, size_t length,
                      char why[KEY_WHY]) {
    const char *x = memchr(text, 'x', length);
    size_t first = x ? (size_t)(x - text) : length;
    int64_t h, w;
    if (key->choices && strlen(key->choices[0]) == length &&
        !memcmp(key->choices[0], text, length)) {
        *to = (struct pair){0, 0};
        return true;
    }
    if (!text_integer(text, first, &h) || (x && !text_integer(x + 1, length - first - 1, &w)))
        return refuse_because(why, key->choices
                                       ? "not a whole number, nor two as in 5x3, nor all"
                                       : "not a whole number, or two as in 5x3 (height x width)");
    if (!x)
        w = h;
    if (!check_range(key, (double)h, why) || !check_range(key, (double)w, why))
        return false;
    *to = (struct pair){(int)h, (int)w};
    return true;
}

static bool read_real(float *to, const struct layer_key *key, const char *text, size_t length,
                      char why[KEY_WHY]) {
    double value;
    if (!text_real(text, length, &value))
        return refuse_because(why, "not a number");
    if (!check_range(key, value, why))
        return false;
    *to = (float)value;
    return true;
}

static bool read_choice(int *to, const struct layer_key *key, const char *text, size_t length,
                        char why[KEY_WHY]) {
    size_t count = 0;
    for (; key->choices[count]; count++)
        if (strlen(key->choices[count]) == length &&
            memcmp(key->choices[count], text, length) == 0) {
            *to = (int)count;
            return true;
        }
    int n = snprintf(why, KEY_WHY, "not one of");
    for (size_t i = 0; i < count && n < KEY_WHY; i++)
        n += snprintf(why + n, KEY_WHY - (size_t)n, "%s %s", i ? "," : "", key->choices[i]);
    const char *near = text_nearest(text, length, key->choices, count);
    if (n < KEY_WHY)
        snprintf(why + n, KEY_WHY - (size_t)n, "%s", text_hint(near).text);
    return false;
}

static int read_text(char **to, const char *text, size_t length) {
    char *copy = mem_text(text, length);
    if (!copy)
        return STATUS_IO;
    free(*to);
    *to = copy;
    return STATUS_OK;
}

static size_t count_commas(const char *text, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += text[i] == ',';
    return count;
}

// "0.5,2,1"
static int read_reals(struct reals *to, const struct layer_key *key, const char *text,
                      size_t length, char why[KEY_WHY]) {
    size_t count = length ? count_commas(text, length) + 1 : 0;
    float *at = count ? mem_floats(count) : NULL;
    if (count && !at)
        return STATUS_IO;
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        const char *comma = memchr(text, ',', length);
        size_t number = comma ? (size_t)(comma - text) : length;
        good = read_real(&at[i], key, text, number, why);
        text += number + 1;
        length -= number + (comma != NULL);
    }
    free(good ? to->at : at);
    if (good)
        *to = (struct reals){at, (int)count};
    return good ? STATUS_OK : STATUS_DATA;
}

// A name, and behind a colon the number that some of them take.
static bool read_init(struct layer *layer, const char *text, size_t length, char why[KEY_WHY]) {
    static const struct {
        const char *name;
        enum init init;
        bool number;
    } known[] = {{"he", INIT_HE, false},         {"standard", INIT_STANDARD, false},
                 {"glorot", INIT_GLOROT, false}, {"small", INIT_SMALL, false},
                 {"zero", INIT_ZERO, false},     {"one", INIT_ONE, false},
                 {"normal", INIT_NORMAL, true},  {"uniform", INIT_UNIFORM, true}};
    const char *colon = memchr(text, ':', length);
    size_t name = colon ? (size_t)(colon - text) : length;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double value = 0;
        if (strlen(known[i].name) != name || memcmp(known[i].name, text, name) != 0 ||
            known[i].number != (colon != NULL))
            continue;
        if (colon && (!text_real(colon + 1, length - name - 1, &value) || value < 0 || value > 1e6))
            return refuse_because(why, "needs a number between 0 and 1e6 behind the colon");
        layer->init = known[i].init;
        layer->init_value = (float)value;
        return true;
    }
    return refuse_because(why,
                          "not one of he, standard, glorot, small, zero, one, normal:DEVIATION, "
                          "uniform:HALFWIDTH");
}

static bool read_dimension(int *to, const struct layer_key *key, const char *text, size_t length) {
    int64_t value;
    if (!text_integer(text, length, &value) || value < (int64_t)key->low ||
        value > (int64_t)key->high)
        return false;
    *to = (int)value;
    return true;
}

static bool read_shape(struct shape *shape, const struct layer_key *key, const char *text,
                       size_t length, char why[KEY_WHY]) {
    const char *end = text + length, *x = memchr(text, 'x', length);
    const char *y = x ? memchr(x + 1, 'x', (size_t)(end - x - 1)) : NULL;
    *shape = (struct shape){1, 1, 1};
    bool good = false;
    if (y)
        good = read_dimension(&shape->c, key, text, (size_t)(x - text)) &&
               read_dimension(&shape->h, key, x + 1, (size_t)(y - x - 1)) &&
               read_dimension(&shape->w, key, y + 1, (size_t)(end - y - 1));
    else if (!x)
        good = read_dimension(&shape->c, key, text, length);
    return good ||
           refuse_because(why, "must be channels x height x width, as in 1x28x28, or one number");
}

// All kinds but those that need memory.
static bool read_value(struct layer *layer, const struct layer_key *key, const char *value,
                       size_t length, char why[KEY_WHY]) {
    void *member = (char *)layer + key->offset;
    switch (key->kind) {
    case KEY_INT:
        return read_int(member, key, value, length, why);
    case KEY_PAIR:
        return read_pair(member, key, value, length, why);
    case KEY_REAL:
        return read_real(member, key, value, length, why);
    case KEY_CHOICE:
        return read_choice(member, key, value, length, why);
    case KEY_INIT:
        return read_init(layer, value, length, why);
    case KEY_SHAPE:
        return read_shape(member, key, value, length, why);
    case KEY_TEXT:
    case KEY_REALS:
    case KEY_LAYERS: // parse.c, which knows the others
        break;
    }
    return refuse_because(why, "not a value");
}

int key_read(struct layer *layer, const struct layer_key *key, const char *value, size_t length,
             char why[KEY_WHY]) {
    if (key->kind == KEY_TEXT)
        return read_text((char **)((char *)layer + key->offset), value, length);
    if (key->kind == KEY_REALS)
        return read_reals((struct reals *)((char *)layer + key->offset), key, value, length, why);
    return read_value(layer, key, value, length, why) ? STATUS_OK : STATUS_DATA;
}

// Defaults may lie outside of what may be written: -1 for "as the command line says".
int key_defaults(struct layer *layer, struct error *err) {
    char why[KEY_WHY];
    const struct layer_key *key;
    for (size_t i = 0; (key = key_at(layer->type, i)); i++) {
        if (!key->standard || key->kind == KEY_INIT || key->kind == KEY_LAYERS)
            continue;
        struct layer_key wide = *key;
        wide.low = -HUGE_VAL;
        wide.high = HUGE_VAL;
        int status = key_read(layer, &wide, key->standard, strlen(key->standard), why);
        if (status == STATUS_DATA)
            return error_set(err, STATUS_BUG, "%s: the default of %s is %s: %s", layer->type->name,
                             key->name, key->standard, why);
        if (status)
            return error_nomem(err);
    }
    return STATUS_OK;
}

static void free_value(const struct layer_key *key, void *member) {
    if (key->kind == KEY_TEXT) {
        char **text = member;
        free(*text);
        *text = NULL;
    } else if (key->kind == KEY_REALS) {
        struct reals *reals = member;
        free(reals->at);
        *reals = (struct reals){0};
    }
}

void key_free(struct layer *layer) {
    const struct layer_key *key;
    for (size_t i = 0; layer->type && (key = key_at(layer->type, i)); i++)
        free_value(key, (char *)layer + key->offset);
}
