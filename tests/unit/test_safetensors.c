// safetensors: golden bytes, and every kind of header that lies.
#include <stdlib.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "store/safetensors.h"

// Builds a file around a header; the caller frees.
static unsigned char *file_of(const char *header, size_t data, size_t *size) {
    uint64_t length = strlen(header);
    unsigned char *bytes = calloc(8 + length + data + 1, 1);
    if (!bytes)
        abort();
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(length >> (8 * i));
    memcpy(bytes + 8, header, length);
    *size = 8 + length + data;
    return bytes;
}

static int parse(const char *header, size_t data, struct error *err) {
    struct safetensors file;
    size_t size;
    unsigned char *bytes = file_of(header, data, &size);
    int status = safetensors_parse(&file, bytes, size, err);
    if (!status)
        safetensors_free(&file);
    free(bytes);
    return status;
}

static size_t written(unsigned char *bytes, size_t room, struct file_sum *sum) {
    static const float a[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static const unsigned char b[1] = {7};
    const struct tensor tensors[] = {
        {.name = "a", .dtype = "F32", .rank = 2, .dims = {2, 3}, .data = a, .bytes = sizeof a},
        {.name = "b", .dtype = "U8", .rank = 0, .data = b, .bytes = 1},
    };
    json_t *metadata = json_pack("{s:s}", "k", "v \"quoted\"");
    struct error err = {0};
    FILE *f = tmpfile();
    if (!f || safetensors_write(fileno(f), tensors, 2, metadata, sum, &err))
        abort();
    rewind(f);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    json_decref(metadata);
    return n;
}

static void test_golden(struct tap *tap) {
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"v \\\"quoted\\\"\"},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[24,25]}}";
    unsigned char bytes[1024];
    struct file_sum sum;
    size_t size = written(bytes, sizeof bytes, &sum);
    TEST(tap, "a file is written byte by byte as the format says", {
        size_t length = bytes[0] + 256u * bytes[1], text = strlen(header);
        CHECK_INT(tap, (8 + length) % 64, 0);
        CHECK_INT(tap, size, 8 + length + 25);
        CHECK(tap, !memcmp(bytes + 2, "\0\0\0\0\0\0", 6));
        CHECK(tap, !memcmp(bytes + 8, header, text));
        for (size_t i = text; i < length; i++)
            CHECK_INT(tap, bytes[8 + i], ' ');
        CHECK(tap, !memcmp(bytes + 8 + length, "\0\0\x80\x3f\0\0\0\x40", 8));
        CHECK_INT(tap, bytes[size - 1], 7);
        CHECK_INT(tap, sum.bytes, size);
    });
    TEST(tap, "what was written is read back, from an odd address too", {
        unsigned char moved[1024 + 1];
        struct safetensors file;
        struct error err = {0};
        memcpy(moved + 1, bytes, size);
        CHECK_INT(tap, safetensors_parse(&file, moved + 1, size, &err), STATUS_OK);
        const struct tensor *a = safetensors_find(&file, "a");
        const struct tensor *b = safetensors_find(&file, "b");
        float values[6];
        CHECK(tap, a && b && !safetensors_find(&file, "c"));
        CHECK(tap, a->rank == 2 && a->dims[0] == 2 && a->dims[1] == 3 && b->rank == 0);
        memcpy(values, a->data, sizeof values);
        for (int i = 0; i < 6; i++)
            CHECK_NEAR(tap, (double)values[i], i + 1, 0);
        CHECK_TEXT(tap, safetensors_text(&file, "k"), "v \"quoted\"");
        CHECK(tap, safetensors_text(&file, "x") == NULL);
        safetensors_free(&file);
    });
    TEST(tap, "cut at any length, a file is refused", {
        for (size_t n = 0; n < size; n++) {
            struct safetensors file;
            struct error err = {0};
            unsigned char *part = malloc(n + 1); // its end is where a sanitizer looks
            if (!part)
                abort();
            memcpy(part, bytes, n);
            if (safetensors_parse(&file, part, n, &err) != STATUS_DATA)
                FAIL(tap, "%zu bytes were taken", n);
            free(part);
        }
    });
}

static void test_good(struct tap *tap) {
    TEST(tap, "files of other writers are read: any order, no padding, empty tensors", {
        struct error err = {0};
        CHECK_INT(tap, parse("{}", 0, &err), STATUS_OK);
        CHECK_INT(tap,
                  parse("{\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[1,3]},"
                        "\"e\":{\"dtype\":\"F64\",\"shape\":[0,9],\"data_offsets\":[1,1]},"
                        "\"a\":{\"shape\":[1,1],\"data_offsets\":[0,1],\"dtype\":\"BOOL\"}}  ",
                        3, &err),
                  STATUS_OK);
    });
}

#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_hostile(struct tap *tap) {
    static const struct {
        const char *header, *wanted;
        size_t data;
    } rows[] = {
        {"[]", "'{'", 0},
        {" {}", "'{'", 0},
        {"{", "JSON", 0},
        {"{}x", "JSON", 0},
        {"{\"a\":1}", "must have", 0},
        {"{\"__metadata__\":{\"k\":1}}", "no string", 0},
        {"{\"__metadata__\":[]}", "no object", 0},
        {"{\"__metadata__\":{\"k\":1},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         "no string", 1},
        {"{\"b\":{\"dtype\":\"U9\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         "dtype", 1},
        {ENTRY("F32", "[1]", "[0,4]"), "leave", 3},
        {ENTRY("F32", "[1]", "[0,4]"), "belong to no tensor", 5},
        {ENTRY("F32", "[2]", "[0,4]"), "needs 8", 4},
        {ENTRY("F32", "[1]", "[1,5]"), "begins at", 5},
        {ENTRY("F32", "[1]", "[4,0]"), "leave", 4},
        {ENTRY("F32", "[1]", "[-4,0]"), "leave", 4},
        {ENTRY("F32", "[1]", "[0]"), "must have", 4},
        {ENTRY("F32", "[1]", "[0,4,8]"), "must have", 4},
        {ENTRY("F32", "[1]", "[0,4.0]"), "must have", 4},
        {ENTRY("F33", "[1]", "[0,4]"), "dtype", 4},
        {ENTRY("F32", "[-1]", "[0,4]"), "no count", 4},
        {ENTRY("F32", "[1.5]", "[0,4]"), "no count", 4},
        {ENTRY("F32", "1", "[0,4]"), "shape", 4},
        {ENTRY("F32", "[4611686018427387904,4]", "[0,0]"), "too large", 0},
        {ENTRY("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "at most", 4},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         "begins at", 3},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         "duplicate", 2},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", "must have", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[256];
        snprintf(name, sizeof name, "refused (%s): %.150s", rows[i].wanted, rows[i].header);
        TEST(tap, name, {
            struct error err = {0};
            CHECK_INT(tap, parse(rows[i].header, rows[i].data, &err), STATUS_DATA);
            if (!strstr(err.text, rows[i].wanted))
                FAIL(tap, "the message is '%s'", err.text);
        });
    }
    TEST(tap, "a header longer than the file, or than any, is refused unread", {
        static const unsigned char lengths[][8] = {
            {9, 0, 0, 0, 0, 0, 0, 0},
            {255, 255, 255, 255, 255, 255, 255, 255},
            {0, 0, 0, 0, 0, 0, 0, 128},
            {0, 0, 0, 0, 0, 0, 0, 0},
        };
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            unsigned char bytes[8 + 2] = {[8] = '{', [9] = '}'};
            struct safetensors file;
            struct error err = {0};
            memcpy(bytes, lengths[i], 8);
            CHECK_INT(tap, safetensors_parse(&file, bytes, sizeof bytes, &err), STATUS_DATA);
        }
    });
}

int main(void) {
    struct tap tap = {0};
    test_golden(&tap);
    test_good(&tap);
    test_hostile(&tap);
    return tap_done(&tap);
}
