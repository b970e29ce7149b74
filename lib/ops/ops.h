// Chains of operations on pictures: 'resize 36; crop 32 random; hflip p=0.5'.
// One table (ops_table) serves the parser, --help and adam-ops(7). The same
// text is accepted by adam-prep, by `input ops=` in a model (deterministic ones
// only) and by adam-worker --ops.
#ifndef ADAM_OPS_OPS_H
#define ADAM_OPS_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/codec.h"
#include "image/image.h"

struct error;

struct ops;         // a parsed chain: immutable, shared by threads
struct ops_scratch; // one per thread: pictures and fields that are used again

enum {
    OPS_DETERMINISTIC = 1, // refuse operations that draw random numbers
    OPS_FILES = 2,         // let parameters name files; such a chain is not applied (ops_file)
};

// An empty text is the chain that does nothing. On STATUS_USAGE, *offset is
// where in `text` the mistake begins and *length how long it is (for a caret),
// and err says what is wrong and what was perhaps meant.
int ops_parse(struct ops **out, const char *text, unsigned flags, size_t *offset, size_t *length,
              struct error *err);
void ops_free(struct ops *ops);

// The first parameter that names a file: where "file=FILE" is in the text. False: there is none.
// ops_picture gives the word that stands for the picture of that file, "image=...": in its
// place the chain needs the file no more. Freed with free(); NULL when out of memory.
bool ops_file(const struct ops *ops, size_t *offset, size_t *length);
char *ops_picture(const struct image *image);

bool ops_random(const struct ops *ops); // whether any draws random numbers

struct ops_scratch *ops_scratch_new(void); // NULL when out of memory
void ops_scratch_free(struct ops_scratch *scratch);
// Frees each piece of it that has more than `most` bytes.
void ops_scratch_trim(struct ops_scratch *scratch, size_t most);

// What the random numbers of one application depend on, and nothing else does:
// "randomness is a function of (seed, epoch, sample key, operation)".
struct ops_draw {
    uint64_t seed;
    uint64_t epoch; // or copy
    uint64_t key;   // hash_bytes of the sample's key
};

// Applies the chain to `image` in place. A long-running caller reaches a steady
// state without allocation. STATUS_DATA: an operation does not fit this picture; what is in `image`
// is then undefined.
int ops_apply(const struct ops *ops, struct ops_scratch *scratch, struct image *image,
              struct ops_draw draw, struct error *err);

// The smallest size at which a picture may be decoded without losing what the
// chain keeps: sets least_width and least_height when it begins with a resize.
void ops_decode_hint(const struct ops *ops, struct decode_options *options);

// The shape of the result for a picture of this shape, where the chain fixes it.
// False when it depends on the picture's content or is impossible.
bool ops_shape(const struct ops *ops, int *width, int *height, int *channels);

// The standard deviation that values of pictures of bytes, of this size, may be expected to have
// behind the chain: a quarter of the range of what it makes of black and of white. STATUS_DATA
// where the chain cannot be applied, and as ops_apply.
int ops_deviation(double *deviation, const struct ops *ops, int width, int height, int channels,
                  struct error *err);

// The table: what the parser obeys and what help and manuals show.

// How the text of a value is read. N is a number, whole for sizes, counts and
// shifts; "A..B" is uniform between A and B, and "=N" is N itself.
enum op_value_kind {
    OP_REAL,   // N
    OP_COUNT,  // N
    OP_SIZE,   // N or WIDTHxHEIGHT
    OP_WORD,   // one of `words`
    OP_LIST,   // N or N,N,N: one for all channels, or one a channel
    OP_RANGE,  // N means N itself; or A..B
    OP_SPREAD, // N means -N..N; or A..B; or =N
    OP_SHIFT,  // the same in whole pixels
    OP_FACTOR, // N means 1-N..1+N; or A..B; or =N
    OP_FILE,   // a path without blanks
    OP_IMAGE,  // a picture as one word: ops/picture.h
};

struct op_parameter {
    const char *name;         // NULL for positional ones
    const char *value;        // metavariable, "SIZE"
    const char *what;         // one line
    const char *default_text; // NULL when required; "" when leaving it out means what `what` says
    enum op_value_kind kind;
    double low, high;         // bounds of what may be given
    const char *const *words; // NULL-terminated
};

struct op_code; // how it is applied: ops/op.h

struct op_info {
    const char *name;
    const char *synopsis; // "resize SIZE [MODE] [filter=FILTER]"; p= is left out
    const char *what;     // one line
    bool random;          // draws random numbers (perhaps only with some parameters)
    const struct op_parameter *parameters;
    size_t parameter_count;
    const struct op_code *code;
};
const struct op_info *ops_table(size_t *count);
const char *ops_name(size_t index); // of row `index`; NULL behind the last
// The parameter that every operation has: p=.
const struct op_parameter *ops_probability(void);

#endif
