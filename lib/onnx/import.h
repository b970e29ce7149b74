// Models of others, from ONNX files.
#ifndef ADAM_ONNX_IMPORT_H
#define ADAM_ONNX_IMPORT_H

#include "run/checkpoint.h"

struct error;

// What the file does not say. NULL: as adam-ctl(1) has it by default.
struct import_wish {
    const char *ops;               // what makes of a picture what the graph takes
    const char *shape;             // CxHxW of what it takes, where the file leaves that open
    const char *scores;            // "softmax", "logistic" or "linear": what its output becomes
    const struct classes *classes; // names, one for each score
};

// What neither the file says nor the wish.
struct import_guess {
    char *ops;          // the operations of the input, to be freed with free(); NULL: it is said
    const char *scores; // NULL: it is said
};

// Operator sets whose nodes are understood.
enum { IMPORT_OPSET_LEAST = 9, IMPORT_OPSET_MOST = 20 };

// Reads the graph at `path` as a model with its weights; *checkpoint is one that nothing has
// trained, to be freed with checkpoint_free in any case. STATUS_NOINPUT; STATUS_DATA:
// no ONNX file, damaged, or with what adam does not have, which err names: node, operator and
// operator set.
int onnx_import(struct checkpoint *checkpoint, const char *path, const struct import_wish *wish,
                struct import_guess *guess, struct error *err);
// The same of bytes in memory, `name` for messages.
int onnx_import_bytes(struct checkpoint *checkpoint, const char *name, const void *bytes,
                      size_t size, const struct import_wish *wish, struct import_guess *guess,
                      struct error *err);

#endif
