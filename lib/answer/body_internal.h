// The kinds of bodies: what body_read gives to each.
#ifndef ADAM_ANSWER_BODY_INTERNAL_H
#define ADAM_ANSWER_BODY_INTERNAL_H

#include "answer/body.h"

// A new sample at the end, all zero; NULL after an error: too many, or out of memory.
struct body_sample *body_add(struct body *body, const struct body_limits *limits,
                             struct error *err);

int body_read_json(struct body *body, const char *data, size_t size,
                   const struct body_limits *limits, struct error *err);
int body_read_multipart(struct body *body, const char *type, const char *data, size_t size,
                        const struct body_limits *limits, struct error *err);

#endif
