// safetensors: golden bytes, and every kind of header that lies.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "store/safetensors.h"

static bool piecemeal;
static int writes;

// Interrupted, then short, when asked to.
ssize_t write(int fd, const void *data, size_t size) {
    if (piecemeal && ++writes % 2) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_write, fd, data, piecemeal && size > 7 ? 7 : size);
}

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
        CHECK_INT(tap, sum.crc, crc32(0, bytes, (unsigned)size));
    });
    TEST(tap, "the same is written where each write is interrupted, and then short", {
        unsigned char again[1024];
        struct file_sum same;
        piecemeal = true;
        CHECK_INT(tap, written(again, sizeof again, &same), size);
        piecemeal = false;
        CHECK(tap, !memcmp(again, bytes, size));
        CHECK(tap, same.bytes == sum.bytes && same.crc == sum.crc);
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

// Writes one tensor of this name; the file's size.
static size_t write_named(const char *name, unsigned char *bytes, size_t room) {
    static const unsigned char value = 7;
    const struct tensor tensor = {.name = name, .dtype = "U8", .data = &value, .bytes = 1};
    struct file_sum sum;
    FILE *f = tmpfile();
    if (!f || safetensors_write(fileno(f), &tensor, 1, NULL, &sum, NULL))
        abort();
    rewind(f);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    return n;
}

// Whether a file of one tensor with all its sizes is written, or none, where of the allocations one
// fails. *done: none did.
static bool whole_or_none(long n, bool *done) {
    static const unsigned char values[12];
    const struct tensor tensor = {
        .name = "a", .dtype = "U8", .rank = 3, .dims = {2, 2, 3}, .data = values, .bytes = 12};
    unsigned char bytes[512];
    struct safetensors file = {0};
    struct file_sum sum;
    FILE *f = tmpfile();
    heap_fail_once(n);
    int status = safetensors_write(fileno(f), &tensor, 1, NULL, &sum, NULL);
    void *piece = malloc(1); // NULL: the one that fails is still to come
    heap_fail_after(-1);
    free(piece);
    *done = n > 200 || !piece;
    rewind(f);
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    if (status)
        return size == 0;
    bool whole = !safetensors_parse(&file, bytes, size, NULL) && file.tensors[0].rank == 3;
    safetensors_free(&file);
    return whole;
}

static void test_writing(struct tap *tap) {
    TEST(tap, "a header of any length is filled up to the next 64 bytes, and not beyond", {
        char name[65] = "";
        for (size_t n = 0; n < 64; n++) {
            unsigned char bytes[512];
            struct safetensors file;
            size_t size = write_named(name, bytes, sizeof bytes);
            size_t spaces = 0;
            CHECK_INT(tap, (size - 1) % 64, 0);
            while (bytes[size - 2 - spaces] == ' ')
                spaces++;
            CHECK(tap, spaces < 64);
            CHECK_INT(tap, safetensors_parse(&file, bytes, size, NULL), STATUS_OK);
            const struct tensor *tensor = safetensors_find(&file, name);
            CHECK(tap, tensor && *(const unsigned char *)tensor->data == 7 && !file.metadata);
            safetensors_free(&file);
            name[n] = 'n';
        }
    });
    TEST(tap, "of a full disk the reason is told", {
        struct error err = {0};
        struct file_sum sum;
        int fd = open("/dev/full", O_WRONLY);
        CHECK_INT(tap, safetensors_write(fd, NULL, 0, NULL, &sum, &err), STATUS_IO);
        CHECK(tap, strstr(err.text, "No space left"));
        close(fd);
    });
    TEST(tap, "when memory is out nothing is written, and nothing is left", {
        static const unsigned char value = 7;
        const struct tensor tensor = {
            .name = "a", .dtype = "U8", .rank = 1, .dims = {1}, .data = &value, .bytes = 1};
        struct file_sum sum;
        FILE *f = tmpfile();
        long before = heap_live();
        int status = 1;
        int n = 0;
        for (; HEAP_FAILS && status && n < 100; n++) {
            heap_fail_after(n);
            status = safetensors_write(fileno(f), &tensor, 1, NULL, &sum, NULL);
            heap_fail_after(-1);
            CHECK(tap, status == STATUS_OK || status == STATUS_IO);
            CHECK_INT(tap, heap_live(), before);
            CHECK_INT(tap, lseek(fileno(f), 0, SEEK_END) > 0, status == STATUS_OK);
        }
        CHECK(tap, !HEAP_FAILS || (status == STATUS_OK && n > 3));
        fclose(f);
    });
    TEST(tap, "when memory is out for one moment, a file has all it should or is not written", {
        bool done = !HEAP_FAILS;
        for (long n = 0; !done; n++)
            if (!whole_or_none(n, &done))
                FAIL(tap, "a part was written when allocation %ld failed", n);
    });
}

#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_good(struct tap *tap) {
    TEST(tap, "files of other writers are read: any order, no padding, empty tensors", {
        struct error err = {0};
        CHECK_INT(tap, parse("{}", 0, &err), STATUS_OK);
        CHECK_INT(tap, parse(ENTRY("F32", "[1,1,1,1,1,1,1,1]", "[0,4]"), 4, &err), STATUS_OK);
        CHECK_INT(tap,
                  parse("{\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[1,3]},"
                        "\"e\":{\"dtype\":\"F64\",\"shape\":[0,9],\"data_offsets\":[1,1]},"
                        "\"a\":{\"shape\":[1,1],\"data_offsets\":[0,1],\"dtype\":\"BOOL\"}}  ",
                        3, &err),
                  STATUS_OK);
    });
    TEST(tap, "tensors come in the order of their data, empty ones first", {
        static const char header[] =
            "{\"c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
            "\"d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[3,3]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
        struct safetensors file;
        size_t size;
        unsigned char *bytes = file_of(header, 3, &size);
        CHECK_INT(tap, safetensors_parse(&file, bytes, size, NULL), STATUS_OK);
        CHECK_INT(tap, file.count, 4);
        for (size_t i = 0; i < file.count; i++)
            CHECK_INT(tap, file.tensors[i].name[0], 'a' + (int)i);
        safetensors_free(&file);
        CHECK(tap, file.count == 0 && !file.tensors);
        free(bytes);
    });
    TEST(tap, "each type has its size", {
        // https://huggingface.co/docs/safetensors: "dtype"
        static const struct {
            const char *name;
            size_t bytes;
        } types[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                     {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                     {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            for (size_t bytes = types[i].bytes - 1; bytes <= types[i].bytes + 1; bytes++) {
                char header[128];
                snprintf(header, sizeof header,
                         "{\"a\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,%zu]}}",
                         types[i].name, bytes);
                CHECK_INT(tap, parse(header, bytes, NULL),
                          bytes == types[i].bytes ? STATUS_OK : STATUS_DATA);
            }
    });
    TEST(tap, "a file is known by the brace behind its length", {
        CHECK(tap, safetensors_recognised("\2\0\0\0\0\0\0\0{}", 10));
        CHECK(tap, safetensors_recognised("\2\0\0\0\0\0\0\0{", 9));
        CHECK(tap, !safetensors_recognised("\2\0\0\0\0\0\0\0{", 8));
        CHECK(tap, !safetensors_recognised("\2\0\0\0\0\0\0\0[]", 10));
        CHECK(tap, !safetensors_recognised("", 0));
    });
    TEST(tap, "when memory is out a file is not read, and nothing is left", {
        static const char header[] =
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
        long before = heap_live();
        size_t size;
        unsigned char *bytes = file_of(header, 1, &size);
        int status = 1;
        int n = 0;
        for (; HEAP_FAILS && status && n < 200; n++) {
            struct safetensors file;
            heap_fail_after(n);
            status = safetensors_parse(&file, bytes, size, NULL);
            heap_fail_after(-1);
            if (!status)
                safetensors_free(&file);
            CHECK_INT(tap, heap_live(), before + 1);
        }
        CHECK(tap, !HEAP_FAILS || (status == STATUS_OK && n > 3));
        free(bytes);
    });
}

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
        {ENTRY("F32", "[1]", "[0,4]"), "the last 1 bytes of data belong to no tensor", 5},
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
        {ENTRY("F32", "{}", "[0,4]"), "shape", 4},
        {ENTRY("F32", "[1]", "[4,4]"), "needs 4", 4},
        {ENTRY("F32", "[1]", "[0.0,4]"), "must have", 4},
        {ENTRY("F32", "[1]", "4"), "must have", 4},
        {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,1]}}", "must have", 1},
        {"{\"a\":{\"dtype\":\"U8\",\"size\":[1],\"data_offsets\":[0,1]}}", "shape", 1},
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
    TEST(tap, "of a file too short for a length, and of a header that is none, that is told", {
        static const struct {
            const char *bytes;
            size_t size;
            const char *wanted;
        } heads[] = {
            {"\0\0\0\0\0\0\0", 7, "7 bytes are too few"},
            {"\0\0\0\0\0\0\0\0", 8, "does not begin with '{'"},
            {"\0\0\0\0\0\0\0\0{", 9, "does not begin with '{'"},
            {"\1\0\0\0\0\0\0\0{", 9, "JSON"},
        };
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
            struct safetensors file;
            struct error err = {0};
            CHECK_INT(tap, safetensors_parse(&file, heads[i].bytes, heads[i].size, &err),
                      STATUS_DATA);
            CHECK(tap, strstr(err.text, heads[i].wanted));
            CHECK(tap, !file.tensors && file.count == 0 && !file.header && !file.metadata);
        }
    });
    TEST(tap, "a header of more bytes than the reference implementation takes is refused", {
        enum { MOST = 100 * 1000 * 1000 };
        size_t size = MOST + 4096;
        unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (int more = 0; more < 2; more++) {
            uint64_t length = MOST + (unsigned)more;
            struct safetensors file;
            struct error err = {0};
            memcpy(bytes, &length, sizeof length);
            bytes[8] = '{'; // which is looked at, of a header that is taken
            CHECK_INT(tap, safetensors_parse(&file, bytes, size, &err), STATUS_DATA);
            CHECK_INT(tap, strstr(err.text, "the header is said to have") != NULL, more);
        }
        munmap(bytes, size);
    });
}

int main(void) {
    struct tap tap = {0};
    test_golden(&tap);
    test_writing(&tap);
    test_good(&tap);
    test_hostile(&tap);
    return tap_done(&tap);
}
