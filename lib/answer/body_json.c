// {"instances": [...]}
#include <mbedtls/base64.h>
#include <string.h>

#include "answer/body_internal.h"
#include "core/error.h"
#include "core/json.h"
#include "core/mem.h"

// Values of a document, which take some ten times their text in memory, and an object ten times as
// much as a number.
enum { VALUES_MOST = 4000000, OBJECT_VALUES = 10 };

static int check_values(const char *data, size_t size, struct error *err) {
    size_t values = 1;
    for (size_t i = 0; i < size; i++)
        values += data[i] == '{' ? OBJECT_VALUES : data[i] == ',' || data[i] == '[';
    return values <= VALUES_MOST
               ? STATUS_OK
               : error_set(err, STATUS_DATA, "more than %d values in JSON", VALUES_MOST);
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

int body_read_json(struct body *body, const char *data, size_t size,
                   const struct body_limits *limits, struct error *err) {
    json_t *document = NULL;
    int status = check_values(data, size, err);
    if (!status)
        status = json_read(&document, data, size, err);
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
