// Bodies of requests for predictions: whatever the type and the bytes, samples that lie within
// what was read, or a message. The first line is the type.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "answer/body.h"
#include "core/error.h"

enum { VALUES = 3, SAMPLES = 5 };

// Reads all of the samples.
static unsigned touch(const struct body *body) {
    unsigned sum = 0;
    for (int i = 0; i < body->count; i++) {
        const unsigned char *bytes = body->samples[i].bytes;
        for (size_t b = 0; b < body->samples[i].size; b++)
            sum += bytes[b];
        for (int v = 0; body->samples[i].floats && v < VALUES; v++)
            sum += body->samples[i].floats[v] > 0;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct body_limits limits = {VALUES, SAMPLES};
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t length = newline ? (size_t)(newline - data) : 0, head = length + (newline != NULL);
    char *type = malloc(length + 1), *bytes = malloc(size - head + 1);
    struct body body;
    struct error err = {0};
    if (!type || !bytes)
        abort();
    memcpy(type, data, length);
    type[length] = 0;
    memcpy(bytes, data + head, size - head);
    // Just as large as what was sent: reading beyond is found.
    char *exact = realloc(bytes, size - head + (size == head));
    int status = body_read(&body, type, exact, size - head, &limits, &err);
    if (status ? !*err.text || body.samples : body.count < 1 || body.count > SAMPLES)
        abort();
    volatile unsigned sum = touch(&body);
    (void)sum;
    body_free(&body);
    free(type);
    free(exact);
    return 0;
}
