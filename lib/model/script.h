// The words of a model file, with their places in the text, before they mean
// anything: lines, quotes and comments here, names of layers in names.c, and
// overrides from the command line in override.c. Inside lib/model only.
#ifndef ADAM_MODEL_SCRIPT_H
#define ADAM_MODEL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/layer.h"

struct error;

enum {
    SCRIPT_LAYERS_MAX = 10000,
    SCRIPT_NAME_MAX = 63, // bytes of a layer's name
};

// key=value, key='value', or a bare word, which is all value.
struct word {
    const char *key;
    size_t key_length;
    const char *value; // without the quotes
    size_t value_length;
    const char *start; // of the whole word in the text
    size_t length;
    bool bare;       // written without a key
    const char *set; // the override that wrote it; NULL: the file did
};

// One line that is not empty. words[0] is the type; names_assign fills the rest.
struct statement {
    int line;
    struct word *words;
    int count;
    const struct layer_type *type;
    char name[SCRIPT_NAME_MAX + 1];
};

struct script {
    const char *name; // for messages; the caller's
    char *text;       // owned; LF at the end of lines, no byte-order mark
    struct statement *statements;
    int count;
    int *by_name; // indices of statements in the order of their names
};

// Splits the text into statements. STATUS_DATA with place, line and caret.
int script_open(struct script *script, const char *name, const char *text, struct error *err);
void script_close(struct script *script);

// The word of a statement with this key, or NULL.
struct word *script_word(const struct statement *statement, const char *key, size_t length);

// A mistake at a place in script->text. In a word of the file, STATUS_DATA and
//   NAME:LINE:COLUMN: error: MESSAGE
//       7 | the line
//         |     ^~~~
// in a word that an override wrote, STATUS_USAGE and "--set c1.maps=0: MESSAGE".
int script_error(const struct script *script, const char *at, size_t length, struct error *err,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
// At most so much of a word is quoted in a message (for %.*s).
#define SHOWN(length) ((int)((length) < 64 ? (length) : 64))
// The same for a whole word.
#define script_error_word(script, word, err, ...)                                                  \
    script_error(script, (word)->start, (word)->length, err, __VA_ARGS__)

// Gives every statement its type and its name, and checks both. STATUS_DATA, with the line.
int names_assign(struct script *script, struct error *err);
// The statement of that name, or -1; and the nearest name, or NULL.
int names_find(const struct script *script, const char *name, size_t length);
const char *names_nearest(const struct script *script, const char *name, size_t length);

// Rewrites the script's text so that each "layer.key=value" of `sets` holds, and
// reads it again. STATUS_USAGE.
int override_apply(struct script *script, const char *const *sets, size_t count, struct error *err);

static inline bool type_is_input(const struct layer_type *type) {
    return type->inputs_most == 0;
}

// The i-th key of a type, its own first, then those that many types share; NULL
// behind the last.
const struct layer_key *key_at(const struct layer_type *type, size_t i);
const struct layer_key *key_find(const struct layer_type *type, const char *name, size_t length);
const char *key_nearest(const struct layer_type *type, const char *name, size_t length);

#define KEY_WHY 256
// Sets the key's member of the layer. STATUS_DATA, and why ("not a number");
// STATUS_IO when out of memory.
int key_read(struct layer *layer, const struct layer_key *key, const char *value, size_t length,
             char why[KEY_WHY]);
// Sets every member that has a default; and releases what of them is in memory. STATUS_IO, or
// STATUS_BUG when a default cannot be read.
int key_defaults(struct layer *layer, struct error *err);
void key_free(struct layer *layer);

// Fills in and out, the parameters' places and the connections of all layers. STATUS_DATA, with the
// line: what a layer reads does not fit it.
int shape_resolve(struct model *model, const struct script *script, struct error *err);
// "20x4x4", or "400" for a flat vector.
#define SHAPE_TEXT 40
void shape_text(char text[SHAPE_TEXT], struct shape shape);

#endif
