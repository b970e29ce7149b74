// PNG by libpng. Its errors leave through longjmp, its warnings are dropped.
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "image/exif.h"
#include "image/formats.h"

// "deflate" turns a byte into at most 1032 (258 bytes for two bits).
#define MAX_INFLATION 1032
#define MAX_EXIF (1 << 20)

struct png_reader {
    png_structp png;
    png_infop info;
    const uint8_t *data;
    size_t size, at;
    int status;
    struct error *err;
};

static void on_read(png_structp png, png_bytep to, size_t n) {
    struct png_reader *r = png_get_io_ptr(png);
    if (n > r->size - r->at) {
        r->status = error_set(r->err, STATUS_DATA, "truncated PNG");
        png_longjmp(png, 1);
    }
    memcpy(to, r->data + r->at, n);
    r->at += n;
}

static void on_read_error(png_structp png, png_const_charp text) {
    struct png_reader *r = png_get_error_ptr(png);
    // For want of memory libpng has no code, only words.
    r->status = strstr(text, "memory") ? error_nomem(r->err)
                                       : error_set(r->err, STATUS_DATA, "PNG: %s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png, (void)text;
}

// Everything but pixels and the orientation is skipped unread: colour profiles,
// texts and animation frames can be large, damaged or bombs. The chunk with the
// orientation is kept as it is, because libpng's own reader of it (1.6.39) takes
// whatever memory the chunk claims.
static void skip_extras(png_structp png) {
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_ALWAYS, (png_const_bytep) "eXIf", 1);
    png_set_chunk_malloc_max(png, MAX_EXIF);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); // format_check_size decides
}

static int check_size(struct png_reader *r, const struct decode_options *options) {
    uint64_t width = png_get_image_width(r->png, r->info);
    uint64_t height = png_get_image_height(r->png, r->info);
    uint64_t bits =
        (uint64_t)png_get_bit_depth(r->png, r->info) * png_get_channels(r->png, r->info);
    int status = format_check_size(width, height, options, r->err);
    if (!status && width * height / 8 * bits / MAX_INFLATION > r->size)
        status = error_set(r->err, STATUS_DATA, "truncated PNG: %zu bytes for %ux%u pixels",
                           r->size, (unsigned)width, (unsigned)height);
    return status;
}

// Returns the passes over the rows that interlacing needs.
static int set_transformations(png_structp png, png_infop info, int channels) {
    bool deep = png_get_bit_depth(png, info) == 16;
    // In 8 bits even where the samples have 16, as these are being reduced.
    png_color_16 background = {.red = 255, .green = 255, .blue = 255, .gray = 255};
    png_set_expand(png);
    if (png_get_color_type(png, info) & PNG_COLOR_MASK_ALPHA ||
        png_get_valid(png, info, PNG_INFO_tRNS))
        png_set_background(png, &background, PNG_BACKGROUND_GAMMA_SCREEN, 0, 1);
    if (deep)
        png_set_scale_16(png);
    if (channels == 3)
        png_set_gray_to_rgb(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return passes;
}

static int orientation(const struct png_reader *r) {
    png_unknown_chunkp chunks;
    int count = png_get_unknown_chunks(r->png, r->info, &chunks);
    return count > 0 ? exif_orientation(chunks[0].data, chunks[0].size) : 1;
}

// Returns twice when libpng fails, so it holds no variable that changes.
static int read_picture(struct png_reader *r, struct image *image,
                        const struct decode_options *options) {
    if (setjmp(png_jmpbuf(r->png)))
        return r->status;
    png_set_read_fn(r->png, r, on_read);
    skip_extras(r->png);
    png_read_info(r->png, r->info);
    int status = check_size(r, options);
    if (status)
        return status;
    int passes = set_transformations(r->png, r->info, options->channels);
    status = format_shape(image, (int)png_get_image_width(r->png, r->info),
                          (int)png_get_image_height(r->png, r->info),
                          png_get_channels(r->png, r->info), 0, options, r->err);
    if (status)
        return status;
    const size_t line = (size_t)image->width * (size_t)image->channels;
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < image->height; y++)
            png_read_row(r->png, image->u8 + (size_t)y * line, NULL);
    png_read_end(r->png, r->info);
    return STATUS_OK;
}

int png_decode(struct image *image, const uint8_t *data, size_t size,
               const struct decode_options *options, struct error *err) {
    struct png_reader r = {.data = data, .size = size, .err = err};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_read_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    int status = r.info ? read_picture(&r, image, options) : error_nomem(err);
    int turned = status ? 1 : orientation(&r);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    if (!status && image->channels == 3 && options->channels == 1)
        image_gray(image);
    if (!status)
        status = exif_apply(image, turned, err);
    return status;
}

struct png_writer {
    png_structp png;
    png_infop info;
    struct encoded *out;
    int status;
    struct error *err;
};

static void on_write(png_structp png, png_bytep from, size_t n) {
    struct png_writer *w = png_get_io_ptr(png);
    if (!encoded_reserve(w->out, n)) {
        w->status = error_nomem(w->err);
        png_longjmp(png, 1);
    }
    memcpy(w->out->data + w->out->size, from, n);
    w->out->size += n;
}

static void on_flush(png_structp png) {
    (void)png;
}

static void on_write_error(png_structp png, png_const_charp text) {
    struct png_writer *w = png_get_error_ptr(png);
    w->status = error_set(w->err, STATUS_IO, "PNG: %s", text);
    png_longjmp(png, 1);
}

static int write_picture(struct png_writer *w, const struct image *image) {
    const size_t line = (size_t)image->width * (size_t)image->channels;
    if (setjmp(png_jmpbuf(w->png)))
        return w->status;
    png_set_write_fn(w->png, w, on_write, on_flush);
    png_set_IHDR(w->png, w->info, (png_uint_32)image->width, (png_uint_32)image->height, 8,
                 image->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (int y = 0; y < image->height; y++)
        png_write_row(w->png, image->u8 + (size_t)y * line);
    png_write_end(w->png, w->info);
    return STATUS_OK;
}

int png_encode(struct encoded *out, const struct image *image, struct error *err) {
    struct png_writer w = {.out = out, .err = err};
    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_write_error, on_warning);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    int status = w.info ? write_picture(&w, image) : error_nomem(err);
    png_destroy_write_struct(&w.png, &w.info);
    return status;
}
