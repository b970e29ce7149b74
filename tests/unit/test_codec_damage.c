// Truncated, damaged and oversized pictures: refused with the reason, quickly,
// without a crash and without a half-gray result. And what is written comes back.
#include <sys/resource.h>
#include <unistd.h>

#include <zlib.h>

#include "../helper/pictures.h"
#include "../helper/tap.h"
#include "core/error.h"

static int decode(struct image *image, const uint8_t *data, size_t size, struct error *err) {
    struct decode_options options = {0};
    return image_decode(image, data, size, &options, err);
}

// Small files of every kind.
enum { JPEG, PROGRESSIVE, JPEG_GRAY, JPEG_CMYK, PNG, P1, P2, P3, P4, P5, P6, KINDS };
static const char *const kind_names[KINDS] = {
    "JPEG", "progressive JPEG", "gray JPEG", "CMYK JPEG", "PNG", "P1", "P2", "P3", "P4", "P5",
    "P6"};

static void make_file(struct bytes *file, int kind) {
    static const char *const texts[] = {
        [P1] = "P1 # bits\n3 2\n101\n011\n", [P2] = "P2 2 2 9\n1 2\n3 4\n",
        [P3] = "P3 2 1 9\n1 2 3\n4 5 6\n",   [P4] = "P4 9 2\nabcd",
        [P5] = "P5 2 2 255\nabcd",           [P6] = "P6 # raw\n1 2 255\nabcdef"};
    struct image image = {0};
    draw(&image, 35, 20, kind == JPEG_GRAY ? 1 : kind == JPEG_CMYK ? 4 : 3);
    if (kind == JPEG)
        jpeg_write(file, &image, JCS_RGB, JCS_YCbCr, NULL);
    else if (kind == PROGRESSIVE)
        jpeg_write(file, &image, JCS_RGB, JCS_YCbCr, jpeg_simple_progression);
    else if (kind == JPEG_GRAY)
        jpeg_write(file, &image, JCS_GRAYSCALE, JCS_GRAYSCALE, NULL);
    else if (kind == JPEG_CMYK)
        jpeg_write(file, &image, JCS_CMYK, JCS_YCCK, NULL);
    else if (kind == PNG)
        encode(file, &image, CODEC_PNG);
    else
        bytes_append(file, texts[kind], strlen(texts[kind]));
    image_free(&image);
}

// A copy of exactly this length, so that a sanitizer sees a byte read too many.
static int decode_exactly(struct image *image, const uint8_t *data, size_t size,
                          struct error *err) {
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    int status = decode(image, copy, size, err);
    free(copy);
    return status;
}

static void test_truncation(struct tap *tap) {
    for (int kind = 0; kind < KINDS; kind++) {
        struct bytes file = {0};
        struct image image = {0};
        make_file(&file, kind);
        // A plain picture does without its final newline.
        size_t whole = kind >= P1 && kind <= P3 ? file.size - 1 : file.size;
        char name[80];
        snprintf(name, sizeof name, "%s cut at every length is refused", kind_names[kind]);
        TEST(tap, name, {
            CHECK_INT(tap, decode_exactly(&image, file.data, whole, NULL), STATUS_OK);
            for (size_t size = 0; size < whole; size++) {
                struct error err = {0};
                int status = decode_exactly(&image, file.data, size, &err);
                if (status != STATUS_DATA || !err.text[0])
                    FAIL(tap, "%zu of %zu bytes: status %d, '%s'", size, file.size, status,
                         err.text);
                else if (size > 30 && !strstr(err.text, "truncated"))
                    FAIL(tap, "%zu of %zu bytes: '%s'", size, file.size, err.text);
            }
        });
        image_free(&image);
        bytes_free(&file);
    }
}

static void test_stream_truncation(struct tap *tap) {
    TEST(tap, "a PNM stream asks for more at every length", {
        for (int kind = P1; kind <= P6; kind++) {
            struct decode_options options = {0};
            struct bytes file = {0};
            struct image image = {0};
            size_t used = 1;
            make_file(&file, kind);
            size_t whole = kind <= P3 ? file.size - 1 : file.size;
            for (size_t size = 0; size < whole; size++) {
                CHECK_INT(tap, pnm_decode(&image, file.data, size, &used, &options, NULL), 0);
                CHECK_INT(tap, used, 0);
            }
            CHECK_INT(tap, pnm_decode(&image, file.data, file.size, &used, &options, NULL), 0);
            CHECK_INT(tap, used, whole);
            image_free(&image);
            bytes_free(&file);
        }
    });
}

static void test_damage(struct tap *tap) {
    for (int kind = 0; kind < KINDS; kind++) {
        struct bytes file = {0};
        struct image image = {0};
        struct image whole = {0};
        make_file(&file, kind);
        decode(&whole, file.data, file.size, NULL);
        char name[80];
        snprintf(name, sizeof name, "%s damaged at every byte does no harm", kind_names[kind]);
        TEST(tap, name, {
            for (size_t at = 0; at < file.size; at++)
                for (int flip = 1; flip < 256; flip = flip * 4 + 1) {
                    struct error err = {0};
                    file.data[at] ^= (uint8_t)flip;
                    int status = decode_exactly(&image, file.data, file.size, &err);
                    file.data[at] ^= (uint8_t)flip;
                    if (status && (status != STATUS_DATA || !err.text[0]))
                        FAIL(tap, "byte %zu: status %d, '%s'", at, status, err.text);
                    // Every chunk that we write has a CRC over its pixels or shape.
                    if (!status && kind == PNG &&
                        memcmp(image.u8, whole.u8, image_bytes(&whole)) != 0)
                        FAIL(tap, "byte %zu: other pixels", at);
                }
        });
        image_free(&image);
        image_free(&whole);
        bytes_free(&file);
    }
}

static void put32(uint8_t *to, uint32_t value) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void png_chunk(struct bytes *out, const char *type, const void *data, size_t size) {
    uint8_t number[4];
    size_t start = out->size + 4;
    put32(number, (uint32_t)size);
    bytes_append(out, number, 4);
    bytes_append(out, type, 4);
    bytes_append(out, data, size);
    put32(number, (uint32_t)crc32(0, out->data + start, (uInt)(size + 4)));
    bytes_append(out, number, 4);
}

// A PNG that claims width x height gray pixels, with `raw` bytes of zeros in it.
static void png_claim(struct bytes *out, uint32_t width, uint32_t height, size_t raw) {
    uint8_t header[13] = {[8] = 8};
    uint8_t *zeros = calloc(1, raw + 1);
    uLongf size = compressBound(raw);
    uint8_t *packed = malloc(size);
    put32(header, width);
    put32(header + 4, height);
    compress(packed, &size, zeros, raw);
    bytes_append(out, "\x89PNG\r\n\x1a\n", 8);
    png_chunk(out, "IHDR", header, sizeof header);
    png_chunk(out, "IDAT", packed, size);
    png_chunk(out, "IEND", "", 0);
    free(zeros);
    free(packed);
}

static void jpeg_claim(struct bytes *out, unsigned width, unsigned height) {
    make_file(out, JPEG);
    for (size_t i = 0; i + 8 < out->size; i++)
        if (out->data[i] == 0xff && out->data[i + 1] == 0xc0) {
            out->data[i + 5] = (uint8_t)(height >> 8), out->data[i + 6] = (uint8_t)height;
            out->data[i + 7] = (uint8_t)(width >> 8), out->data[i + 8] = (uint8_t)width;
            return;
        }
}

static void check_refused(struct tap *tap, struct bytes *file, const char *reason) {
    struct image image = {0};
    struct error err = {0};
    CHECK_INT(tap, decode(&image, file->data, file->size, &err), STATUS_DATA);
    CHECK_TEXT(tap, err.text, reason);
    CHECK_INT(tap, image.capacity, 0);
    image_free(&image);
    bytes_free(file);
}

static void test_bombs(struct tap *tap) {
    struct bytes file = {0};
    TEST(tap, "a picture over the limit is refused before memory is taken for it", {
        png_claim(&file, 60000, 60000, 100);
        check_refused(tap, &file, "60000x60000 pixels are more than the limit of 100000000");
        png_claim(&file, 2000000000, 2000000000, 100);
        check_refused(tap, &file,
                      "2000000000x2000000000 pixels are more than the limit of 100000000");
        png_claim(&file, 70000, 1, 100);
        check_refused(tap, &file, "70000x1 pixels: a side is longer than 65535");
        jpeg_claim(&file, 60000, 60000);
        check_refused(tap, &file, "60000x60000 pixels are more than the limit of 100000000");
    });
    TEST(tap, "a picture that its bytes cannot hold is refused before memory is taken for it", {
        png_claim(&file, 9000, 9000, 100);
        struct image image = {0};
        struct error err = {0};
        CHECK_INT(tap, decode(&image, file.data, file.size, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "truncated PNG") && strstr(err.text, "for 9000x9000 pixels"));
        bytes_free(&file);
        jpeg_claim(&file, 9000, 9000);
        CHECK_INT(tap, decode(&image, file.data, file.size, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "truncated JPEG") && strstr(err.text, "for 9000x9000 pixels"));
        CHECK_INT(tap, image.capacity, 0);
        bytes_free(&file);
    });
    TEST(tap, "a picture that is nothing but zeros, packed a thousandfold, is decoded", {
        struct image image = {0};
        png_claim(&file, 4000, 1000, 4001 * 1000);
        CHECK_INT(tap, decode(&image, file.data, file.size, NULL), STATUS_OK);
        CHECK_INT(tap, image.width, 4000);
        image_free(&image);
        bytes_free(&file);
    });
    TEST(tap, "--max-pixels is a limit on the product", {
        struct image image = {0};
        struct error err = {0};
        struct decode_options options = {.max_pixels = 699};
        make_file(&file, PNG); // 35x20
        CHECK_INT(tap, image_decode(&image, file.data, file.size, &options, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "35x20 pixels are more than the limit of 699");
        options.max_pixels = 700;
        CHECK_INT(tap, image_decode(&image, file.data, file.size, &options, &err), STATUS_OK);
        image_free(&image);
        bytes_free(&file);
    });
}

// Sanitizers need address space without bound.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void limit_memory(size_t more) {
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm && fscanf(statm, "%lu", &pages) == 1) {
        struct rlimit limit = {pages * (size_t)sysconf(_SC_PAGESIZE) + more, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &limit);
    }
    if (statm)
        fclose(statm);
}

static void test_no_memory(struct tap *tap) {
    TEST(tap, "too little memory is said, and is no fault of the picture", {
        struct bytes file = {0};
        struct image image = {0};
        struct error err = {0};
        png_claim(&file, 8000, 8000, 8001 * 8000);
        limit_memory(16 << 20);
        CHECK_INT(tap, decode(&image, file.data, file.size, &err), STATUS_IO);
        CHECK_TEXT(tap, err.text, "out of memory");
        setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        CHECK_INT(tap, decode(&image, file.data, file.size, &err), STATUS_OK);
        image_free(&image);
        bytes_free(&file);
    });
}
#else
static void test_no_memory(struct tap *tap) {
    TEST(tap, "too little memory # skip a sanitizer takes what it wants", {});
}
#endif

// Appends the file's last scan again and again before the end marker.
static void repeat_last_scan(struct bytes *out, const struct bytes *file, int times) {
    size_t scan = 0;
    for (size_t i = 0; i + 1 < file->size; i++)
        if (file->data[i] == 0xff && file->data[i + 1] == 0xda)
            scan = i;
    bytes_append(out, file->data, scan);
    for (int i = 0; i < times; i++)
        bytes_append(out, file->data + scan, file->size - 2 - scan);
    bytes_append(out, file->data + file->size - 2, 2);
}

static void test_scans(struct tap *tap) {
    TEST(tap, "a JPEG of more scans than anyone needs is refused", {
        struct image picture = {0};
        struct image image = {0};
        struct bytes file = {0};
        struct bytes longer = {0};
        struct error err = {0};
        draw(&picture, 35, 20, 3);
        jpeg_write(&file, &picture, JCS_RGB, JCS_YCbCr, sequential_scans);
        repeat_last_scan(&longer, &file, 50);
        CHECK_INT(tap, decode(&image, longer.data, longer.size, &err), STATUS_OK);
        repeat_last_scan(&longer, &file, 0);
        longer.size = 0;
        repeat_last_scan(&longer, &file, 500);
        CHECK_INT(tap, decode(&image, longer.data, longer.size, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "JPEG: more than 100 scans");
        image_free(&picture);
        image_free(&image);
        bytes_free(&file);
        bytes_free(&longer);
    });
}

static void test_padding(struct tap *tap) {
    TEST(tap, "a few bytes between scan and end marker are padding, many are damage", {
        for (size_t extra = 1; extra <= 1000; extra *= 10) {
            struct image image = {0};
            struct bytes file = {0};
            struct bytes padded = {0};
            struct error err = {0};
            uint8_t zeros[1000] = {0};
            make_file(&file, JPEG);
            bytes_append(&padded, file.data, file.size - 2);
            bytes_append(&padded, zeros, extra);
            bytes_append(&padded, "\xff\xd9", 2);
            CHECK_INT(tap, decode(&image, padded.data, padded.size, &err),
                      extra < 50 ? STATUS_OK : STATUS_DATA);
            CHECK(tap, extra < 50 || strstr(err.text, "extraneous bytes before marker 0xd9"));
            image_free(&image);
            bytes_free(&file);
            bytes_free(&padded);
        }
    });
}

static void test_extras(struct tap *tap) {
    TEST(tap, "PNG: profiles, texts and animation frames are skipped, whatever is in them", {
        struct image image = {0};
        struct image whole = {0};
        struct bytes file = {0};
        struct bytes extra = {0};
        uint8_t *junk = calloc(1, 5000000);
        make_file(&file, PNG);
        CHECK_INT(tap, decode(&whole, file.data, file.size, NULL), STATUS_OK);
        bytes_append(&extra, file.data, 33); // signature and IHDR
        png_chunk(&extra, "acTL", "\0\0\0\2\0\0\0\0", 8);
        png_chunk(&extra, "iCCP", junk, 5000000);
        png_chunk(&extra, "zTXt", junk, 5000000);
        png_chunk(&extra, "gAMA", "\0\0\0\1", 4);
        png_chunk(&extra, "fdAT", junk, 1000);
        bytes_append(&extra, file.data + 33, file.size - 33);
        CHECK_INT(tap, decode(&image, extra.data, extra.size, NULL), STATUS_OK);
        CHECK_INT(tap, memcmp(image.u8, whole.u8, image_bytes(&whole)), 0);
        image_free(&image);
        image_free(&whole);
        bytes_free(&file);
        bytes_free(&extra);
        free(junk);
    });
    TEST(tap, "PNG: the orientation of an eXIf chunk is applied", {
        struct image image = {0};
        struct bytes file = {0};
        struct bytes turned = {0};
        make_file(&file, PNG);
        bytes_append(&turned, file.data, 33);
        png_chunk(&turned, "eXIf",
                  "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 26);
        bytes_append(&turned, file.data + 33, file.size - 33);
        CHECK_INT(tap, decode(&image, turned.data, turned.size, NULL), STATUS_OK);
        CHECK_INT(tap, image.width, 20);
        CHECK_INT(tap, image.height, 35);
        image_free(&image);
        bytes_free(&file);
        bytes_free(&turned);
    });
}

static void test_names(struct tap *tap) {
    TEST(tap, "a picture is known by its first bytes, a codec by its extension", {
        for (int kind = 0; kind < KINDS; kind++) {
            struct bytes file = {0};
            make_file(&file, kind);
            CHECK_INT(tap, codec_of(file.data, 12),
                      kind < PNG    ? CODEC_JPEG
                      : kind == PNG ? CODEC_PNG
                                    : CODEC_PNM);
            CHECK_INT(tap, codec_of(file.data, 2), CODEC_NONE);
            bytes_free(&file);
        }
        CHECK_INT(tap, codec_of("P6x", 3), CODEC_NONE);
        CHECK_INT(tap, codec_of_extension("JPEG"), CODEC_JPEG);
        CHECK_INT(tap, codec_of_extension("pgm"), CODEC_PNM);
        CHECK_INT(tap, codec_of_extension("txt"), CODEC_NONE);
        for (enum codec codec = CODEC_JPEG; codec <= CODEC_PNM; codec++)
            CHECK_INT(tap, codec_of_extension(codec_extension(codec)), codec);
    });
}

static void test_encode(struct tap *tap) {
    TEST(tap, "what is written comes back, and is written the same every time", {
        for (enum codec codec = CODEC_JPEG; codec <= CODEC_PNM; codec++)
            for (int channels = 1; channels <= 3; channels += 2)
                for (int size = 1; size < 200; size = size * 3 + 1) {
                    struct image picture = {0};
                    struct image image = {0};
                    struct bytes file = {0};
                    struct bytes again = {0};
                    draw(&picture, size, size / 2 + 1, channels);
                    encode(&file, &picture, codec);
                    encode(&again, &picture, codec);
                    CHECK(tap,
                          file.size == again.size && !memcmp(file.data, again.data, file.size));
                    CHECK_INT(tap, decode(&image, file.data, file.size, NULL), STATUS_OK);
                    CHECK(tap,
                          largest_difference(&image, &picture) <= (codec == CODEC_JPEG ? 6 : 0));
                    image_free(&picture);
                    image_free(&image);
                    bytes_free(&file);
                    bytes_free(&again);
                }
    });
    TEST(tap, "floats and odd numbers of channels are not written as pictures", {
        struct image image = {0};
        struct error err = {0};
        void *data = NULL;
        size_t size = 0;
        image_shape(&image, 2, 2, 4, PIXEL_U8, NULL);
        CHECK_INT(tap, image_encode(&data, &size, &image, CODEC_PNG, 0, &err), STATUS_DATA);
        image_shape(&image, 2, 2, 3, PIXEL_F32, NULL);
        CHECK_INT(tap, image_encode(&data, &size, &image, CODEC_PNM, 0, &err), STATUS_DATA);
        CHECK(tap, data == NULL);
        image_free(&image);
    });
}

int main(void) {
    struct tap tap = {0};
    test_names(&tap);
    test_encode(&tap);
    test_truncation(&tap);
    test_stream_truncation(&tap);
    test_damage(&tap);
    test_bombs(&tap);
    test_no_memory(&tap);
    test_scans(&tap);
    test_padding(&tap);
    test_extras(&tap);
    return tap_done(&tap);
}
