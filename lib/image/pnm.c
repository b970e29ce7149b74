// PBM, PGM and PPM, plain and raw, as netpbm's manuals pbm(5), pgm(5) and
// ppm(5) describe them.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "image/formats.h"

#define MAX_NUMBER 999999999 // of a size; format_check_size has the last word
#define MAX_MAXVAL 65535

struct pnm_reader {
    const uint8_t *data;
    size_t size, at;
    bool last;    // no more bytes will follow these
    bool wanting; // they ended before the picture did
    char kind;    // '1'..'6'
    unsigned maxval;
    struct error *err;
};

static bool is_plain(const struct pnm_reader *r) {
    return r->kind <= '3';
}

static bool is_bitmap(const struct pnm_reader *r) {
    return r->kind == '1' || r->kind == '4';
}

static int ran_out(struct pnm_reader *r) {
    r->wanting = true;
    return r->last ? error_set(r->err, STATUS_DATA, "truncated PNM") : STATUS_DATA;
}

static void skip_comment(struct pnm_reader *r) {
    while (r->at < r->size && r->data[r->at] != '\n' && r->data[r->at] != '\r')
        r->at++;
}

static void skip_space(struct pnm_reader *r) {
    while (r->at < r->size) {
        if (r->data[r->at] == '#')
            skip_comment(r);
        else if (isspace(r->data[r->at]))
            r->at++;
        else
            return;
    }
}

// A number is complete when something else follows it, or nothing ever will.
static int read_number(struct pnm_reader *r, uint64_t limit, const char *what, unsigned *value) {
    skip_space(r);
    size_t start = r->at;
    uint64_t number = 0;
    for (; r->at < r->size && isdigit(r->data[r->at]); r->at++) {
        number = number * 10 + (uint64_t)(r->data[r->at] - '0');
        if (number > limit)
            return error_set(r->err, STATUS_DATA, "PNM: byte %zu: the %s is more than %llu", start,
                             what, (unsigned long long)limit);
    }
    if (r->at == r->size && (r->at == start || !r->last))
        return ran_out(r);
    if (r->at == start)
        return error_set(r->err, STATUS_DATA, "PNM: byte %zu: no %s", start, what);
    *value = (unsigned)number;
    return STATUS_OK;
}

// One white space, or a comment up to the end of its line, stands before a raster.
static int end_header(struct pnm_reader *r) {
    if (r->at < r->size && r->data[r->at] == '#')
        skip_comment(r);
    if (r->at == r->size)
        return ran_out(r);
    if (!isspace(r->data[r->at]))
        return error_set(r->err, STATUS_DATA, "PNM: byte %zu: no white space after the header",
                         r->at);
    r->at++;
    return STATUS_OK;
}

static int read_header(struct pnm_reader *r, unsigned *width, unsigned *height) {
    if (r->size < 3)
        return ran_out(r);
    if (codec_of(r->data, r->size) != CODEC_PNM)
        return error_set(r->err, STATUS_DATA, "not a PNM picture: it does not begin with P1 to P6");
    r->kind = (char)r->data[1];
    r->at = 2;
    r->maxval = 1;
    int status = read_number(r, MAX_NUMBER, "width", width);
    if (!status)
        status = read_number(r, MAX_NUMBER, "height", height);
    if (!status && !is_bitmap(r))
        status = read_number(r, MAX_MAXVAL, "maxval", &r->maxval);
    if (!status && r->maxval == 0) {
        error_set(r->err, STATUS_DATA, "PNM: the maxval is 0");
        return STATUS_DATA;
    }
    return status || is_plain(r) ? status : end_header(r);
}

// The fewest bytes that can hold the raster, so that no few bytes make us
// allocate much. Sizes are within the limits by now.
static size_t least_bytes(const struct pnm_reader *r, size_t width, size_t height,
                          size_t channels) {
    if (r->kind == '1')
        return width * height;
    if (is_plain(r)) // a digit each, and something between
        return width * height * channels * 2 - 1;
    if (r->kind == '4')
        return (width + 7) / 8 * height;
    return width * height * channels * (r->maxval > 255 ? 2 : 1);
}

static uint8_t scale_value(const struct pnm_reader *r, unsigned value) {
    return (uint8_t)((value * 255 + r->maxval / 2) / r->maxval);
}

static int too_large(const struct pnm_reader *r, size_t at, unsigned value) {
    return error_set(r->err, STATUS_DATA, "PNM: byte %zu: the value %u is more than the maxval %u",
                     at, value, r->maxval);
}

static int read_bits(struct pnm_reader *r, uint8_t *values, size_t width, size_t height) {
    for (size_t y = 0; y < height; y++, values += width, r->at += (width + 7) / 8)
        for (size_t x = 0; x < width; x++)
            values[x] = r->data[r->at + x / 8] & (0x80 >> x % 8) ? 0 : 255; // 1 is black
    return STATUS_OK;
}

static int read_plain_bits(struct pnm_reader *r, uint8_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        skip_space(r);
        if (r->at == r->size)
            return ran_out(r);
        uint8_t c = r->data[r->at++];
        if (c != '0' && c != '1')
            return error_set(r->err, STATUS_DATA, "PNM: byte %zu: no bit", r->at - 1);
        values[i] = c == '1' ? 0 : 255;
    }
    return STATUS_OK;
}

static int read_plain_values(struct pnm_reader *r, uint8_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned value;
        int status = read_number(r, r->maxval, "value", &value);
        if (status)
            return status;
        values[i] = scale_value(r, value);
    }
    return STATUS_OK;
}

static int read_bytes(struct pnm_reader *r, uint8_t *values, size_t n) {
    uint8_t table[256];
    const uint8_t *from = r->data + r->at;
    for (unsigned v = 0; v <= r->maxval; v++)
        table[v] = scale_value(r, v);
    for (size_t i = 0; i < n; i++) {
        if (from[i] > r->maxval)
            return too_large(r, r->at + i, from[i]);
        values[i] = table[from[i]];
    }
    r->at += n;
    return STATUS_OK;
}

static int read_words(struct pnm_reader *r, uint8_t *values, size_t n) {
    for (size_t i = 0; i < n; i++, r->at += 2) {
        unsigned value = (unsigned)r->data[r->at] << 8 | r->data[r->at + 1];
        if (value > r->maxval)
            return too_large(r, r->at, value);
        values[i] = scale_value(r, value);
    }
    return STATUS_OK;
}

static int read_raster(struct pnm_reader *r, uint8_t *values, size_t width, size_t height,
                       size_t channels) {
    size_t n = width * height * channels;
    if (r->kind == '1')
        return read_plain_bits(r, values, n);
    if (is_plain(r))
        return read_plain_values(r, values, n);
    if (r->kind == '4')
        return read_bits(r, values, width, height);
    return r->maxval > 255 ? read_words(r, values, n) : read_bytes(r, values, n);
}

static int read_picture(struct pnm_reader *r, struct image *image,
                        const struct decode_options *options) {
    unsigned width = 0, height = 0;
    int status = read_header(r, &width, &height);
    if (status || (status = format_check_size(width, height, options, r->err)))
        return status;
    int channels = r->kind == '3' || r->kind == '6' ? 3 : 1;
    if (least_bytes(r, width, height, (size_t)channels) > r->size - r->at)
        return ran_out(r);
    bool spread = channels == 1 && options->channels == 3;
    status =
        format_shape(image, (int)width, (int)height, spread ? 3 : channels, 0, options, r->err);
    if (status)
        return status;
    // Gray for RGB is read to the end of the space, then spread from its start.
    size_t pixels = (size_t)width * height;
    uint8_t *values = image->u8 + (spread ? 2 * pixels : 0);
    status = read_raster(r, values, width, height, (size_t)channels);
    for (size_t i = 0; spread && i < pixels; i++)
        memset(image->u8 + 3 * i, values[i], 3);
    if (!status && channels == 3 && options->channels == 1)
        image_gray(image);
    return status;
}

int pnm_decode(struct image *image, const void *data, size_t size, size_t *used,
               const struct decode_options *options, struct error *err) {
    struct pnm_reader r = {.data = data, .size = size, .err = err};
    int status = read_picture(&r, image, options);
    *used = status ? 0 : r.at;
    return r.wanting ? STATUS_OK : status;
}

int pnm_decode_last(struct image *image, const uint8_t *data, size_t size,
                    const struct decode_options *options, struct error *err) {
    struct pnm_reader r = {.data = data, .size = size, .last = true, .err = err};
    return read_picture(&r, image, options);
}

int pnm_encode(struct encoded *out, const struct image *image, struct error *err) {
    char header[64];
    int length = snprintf(header, sizeof header, "P%c\n%d %d\n255\n",
                          image->channels == 1 ? '5' : '6', image->width, image->height);
    size_t bytes = image_bytes(image);
    if (!encoded_reserve(out, (size_t)length + bytes))
        return error_nomem(err);
    memcpy(out->data, header, (size_t)length);
    memcpy(out->data + length, image->u8, bytes);
    out->size = (size_t)length + bytes;
    return STATUS_OK;
}
