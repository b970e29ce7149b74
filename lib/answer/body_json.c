// {"instances": [...]}
#include <mbedtls/base64.h>
#include <string.h>

#include "answer/body_internal.h"
#include "core/allowance.h"
#include "core/error.h"
#include "core/json.h"
#include "core/mem.h"

// Values up to which a document waits for no other; and lists and objects whose many small pieces
// the heap keeps for itself when they are freed.
enum { SMALL_DOCUMENT = 1 << 16, MANY_LISTS = 1 << 16 };

struct extent {
    size_t values, lists;
};

static int measure(struct extent *extent, const char *data, size_t size, struct error *err) {
    *extent = (struct extent){.values = 1};
    for (size_t i = 0; i < size; i++) {
        bool list = data[i] == '[' || data[i] == '{';
        extent->lists += list;
        extent->values += data[i] == '{' ? BODY_OBJECT_VALUES : list || data[i] == ',';
    }
    return extent->values <= BODY_VALUES_MOST
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "more than %d values in JSON", BODY_VALUES_MOST);
}

// How many numbers there are in lists of lists; -1: something else is, too.
static long count_numbers(const json_t *value) {
    if (json_is_number(value))
        return 1;
    long sum = json_is_array(value) ? 0 : -1;
    for (size_t i = 0; sum >= 0 && i < json_array_size(value); i++) {
        long n = count_numbers(json_array_get(value, i));
        sum = n < 0 ? -1 : sum + n;
    }
    return sum;
}

static float *copy_numbers(float *to, const json_t *value) {
    if (json_is_number(value))
        *to++ = (float)json_number_value(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        to = copy_numbers(to, json_array_get(value, i));
    return to;
}

static int read_numbers(struct body_sample *sample, const json_t *value,
                        const struct body_limits *limits, struct error *err) {
    long count = count_numbers(value);
    if (count < 0)
        return error_set(err, STATUS_DATA, "something that is no number");
    if ((size_t)count != limits->values)
        return error_set(err, STATUS_DATA, "%ld numbers, not the %zu that the model reads", count,
                         limits->values);
    sample->floats = mem_floats(limits->values);
    if (!sample->floats)
        return error_nomem(err);
    copy_numbers(sample->floats, value);
    return STATUS_OK;
}

// Into what is left of body->decoded, `*used` of `room` bytes.
static int read_base64(struct body *body, struct body_sample *sample, const json_t *value,
                       size_t room, size_t *used, struct error *err) {
    const json_t *text = json_object_get(value, "b64");
    size_t written;
    if (!json_is_string(text) || json_object_size(value) != 1)
        return error_set(err, STATUS_DATA, "neither {\"b64\": TEXT} nor a list of numbers");
    if (mbedtls_base64_decode(body->decoded + *used, room - *used, &written,
                              (const unsigned char *)json_string_value(text),
                              json_string_length(text)))
        return error_set(err, STATUS_DATA, "its text is not base64");
    sample->bytes = body->decoded + *used;
    sample->size = written;
    *used += written;
    return STATUS_OK;
}

static int read_instances(struct body *body, const json_t *instances, size_t room,
                          const struct body_limits *limits, struct error *err) {
    size_t used = 0;
    int status = STATUS_OK;
    for (size_t i = 0; i < json_array_size(instances) && !status; i++) {
        const json_t *value = json_array_get(instances, i);
        struct body_sample *sample = body_add(body, limits, err);
        if (!sample)
            return err->status;
        status = json_is_array(value) ? read_numbers(sample, value, limits, err)
                                      : read_base64(body, sample, value, room, &used, err);
        if (status)
            error_context(err, "instance %zu", i);
    }
    return status;
}

static int read_document(struct body *body, const char *data, size_t size,
                         const struct body_limits *limits, struct error *err) {
    json_t *document = NULL;
    int status = json_read(&document, data, size, err);
    const json_t *instances = json_object_get(document, "instances");
    if (!status && (!json_is_array(instances) || json_object_size(document) != 1))
        status = error_set(err, STATUS_DATA, "not of the form {\"instances\": [...]}");
    // Four letters of base64 are three bytes.
    body->decoded = status ? NULL : mem_array(size, 1);
    if (!status && !body->decoded)
        status = error_nomem(err);
    if (!status)
        status = read_instances(body, instances, size, limits, err);
    json_decref(document);
    return status;
}

int body_read_json(struct body *body, const char *data, size_t size,
                   const struct body_limits *limits, struct error *err) {
    struct extent extent;
    int status = measure(&extent, data, size, err);
    bool waits = limits->documents && extent.values > SMALL_DOCUMENT;
    if (status)
        return status;
    uint64_t taken = waits ? allowance_take(limits->documents, extent.values) : 0;
    status = read_document(body, data, size, limits, err);
    if (extent.lists > MANY_LISTS)
        mem_trim();
    if (waits)
        allowance_give(limits->documents, taken);
    return status;
}
