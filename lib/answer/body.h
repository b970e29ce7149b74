// The samples in the body of a request for predictions. What it is, its type says:
//   application/json       {"instances": [{"b64": "..."}, [0.5, ...], ...]}: encoded pictures
//                          in base64, or floats as the model reads them, nested at will
//   multipart/form-data    each part an encoded picture
//   any other, or none     one encoded picture
#ifndef ADAM_ANSWER_BODY_H
#define ADAM_ANSWER_BODY_H

#include <stddef.h>

struct allowance; // core/allowance.h
struct error;

// Values of a document of JSON, which take some ten times their text in memory, and an object ten
// times as much as a number.
enum { BODY_VALUES_MOST = 4000000, BODY_OBJECT_VALUES = 10 };

// The caller's limits.
struct body_limits {
    size_t values;               // floats that a sample has
    int samples;                 // that a body may hold
    struct allowance *documents; // values of those that are read at a time; NULL: no limit
};

struct body_sample {
    const void *bytes; // an encoded picture
    size_t size;
    float *floats; // not NULL: no picture, but so many values
};

// Owns what it points to, but pictures that lie in the request itself. {0} is empty.
struct body {
    struct body_sample *samples;
    int count; // at least 1
    unsigned char *decoded;
};

// `type` is the request's Content-Type, or NULL; `data` must stay as long as the body.
// STATUS_DATA: it is not what its type says, or beyond the limits. STATUS_IO: out of memory.
int body_read(struct body *body, const char *type, const char *data, size_t size,
              const struct body_limits *limits, struct error *err);
void body_free(struct body *body);

#endif
