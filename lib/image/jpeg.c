// JPEG by libjpeg-turbo. Its errors, and those of its warnings that mean a
// damaged picture, leave through longjmp; nothing is ever printed.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "core/error.h"
#include "image/exif.h"
#include "image/formats.h"

// A picture coded progressively needs one scan per component and band of
// coefficients and bit; encoders use about ten. Each scan may walk the whole
// picture for a few bytes of input, so their number is bounded.
#define MAX_SCANS 100
// A block of 8x8 values costs at least the one bit of its DC code, and the
// component sampled most densely has a block for at most 32x8 pixels.
#define MAX_PIXELS_PER_BYTE (8 * 32 * 8)
// Some cameras leave a few bytes of padding before a marker; more than that
// means that the entropy decoder lost its way.
#define MAX_EXTRANEOUS 64
#define FIRST_ROOM 4096 // of what is being written

// What both directions share: the way out.
struct trap {
    struct jpeg_error_mgr mgr; // first, as libjpeg knows only this
    jmp_buf out;
    int status;
    struct error *err;
};

// Every message of libjpeg begins with the same words for damage.
static void error_message(j_common_ptr info, char *text) {
    static const char corrupt[] = "Corrupt JPEG data: ";
    info->err->format_message(info, text);
    if (!strncmp(text, corrupt, strlen(corrupt)))
        memmove(text, text + strlen(corrupt), strlen(text) - strlen(corrupt) + 1);
}

static void on_error(j_common_ptr info) {
    struct trap *trap = (struct trap *)info->err;
    char text[JMSG_LENGTH_MAX];
    switch (info->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
        trap->status = error_nomem(trap->err);
        break;
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY:
        trap->status = error_set(trap->err, STATUS_DATA, "truncated JPEG");
        break;
    default:
        error_message(info, text);
        trap->status = error_set(trap->err, STATUS_DATA, "JPEG: %s", text);
    }
    longjmp(trap->out, 1);
}

static void on_message(j_common_ptr info, int level) {
    if (level >= 0) // a trace, not a warning
        return;
    switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
        if (info->err->msg_parm.i[0] > MAX_EXTRANEOUS)
            on_error(info);
        break;
    case JWRN_ADOBE_XFORM: // of no consequence for the pixels
    case JWRN_JFIF_MAJOR:
    case JWRN_BOGUS_ICC:
        break;
    default:
        on_error(info);
    }
}

static struct jpeg_error_mgr *trap_init(struct trap *trap, struct error *err) {
    trap->err = err;
    jpeg_std_error(&trap->mgr);
    trap->mgr.error_exit = on_error;
    trap->mgr.emit_message = on_message;
    return &trap->mgr;
}

struct jpeg_reader {
    struct jpeg_decompress_struct info;
    struct jpeg_progress_mgr progress;
    struct trap trap;
};

static void on_progress(j_common_ptr info) {
    struct trap *trap = (struct trap *)info->err;
    if (((j_decompress_ptr)info)->input_scan_number <= MAX_SCANS)
        return;
    trap->status = error_set(trap->err, STATUS_DATA, "JPEG: more than %d scans", MAX_SCANS);
    longjmp(trap->out, 1);
}

// Shrinks in the DCT as far as both sides stay long enough.
static void choose_scale(struct jpeg_decompress_struct *info, const struct decode_options *options,
                         int orientation) {
    bool turned = exif_transposes(orientation);
    long least_width = turned ? options->least_height : options->least_width;
    long least_height = turned ? options->least_width : options->least_height;
    if (least_width <= 0 && least_height <= 0)
        return;
    for (unsigned denominator = 8; denominator > 1; denominator /= 2) {
        if (info->image_width >= least_width * denominator &&
            info->image_height >= least_height * denominator) {
            info->scale_num = 1;
            info->scale_denom = denominator;
            return;
        }
    }
}

static void choose_colour(struct jpeg_decompress_struct *info, int channels) {
    if (info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK)
        info->out_color_space = JCS_CMYK;
    else if (channels == 1 || (channels == 0 && info->jpeg_color_space == JCS_GRAYSCALE))
        info->out_color_space = JCS_GRAYSCALE;
    else
        info->out_color_space = JCS_RGB;
}

// Adobe's programs store CMYK inverted, 255 for no ink, and say so by their
// marker alone.
static void cmyk_to_rgb(uint8_t *rgb, const uint8_t *cmyk, int width, bool inverted) {
    unsigned flip = inverted ? 0 : 255;
    for (int x = 0; x < width; x++, cmyk += 4)
        for (int c = 0; c < 3; c++)
            *rgb++ = (uint8_t)(((cmyk[c] ^ flip) * (cmyk[3] ^ flip) + 127) / 255);
}

static void read_rows(struct jpeg_decompress_struct *info, struct image *image) {
    const size_t line = (size_t)image->width * (size_t)image->channels;
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = image->u8 + info->output_scanline * line;
        jpeg_read_scanlines(info, &row, 1);
    }
}

static void read_cmyk_rows(struct jpeg_decompress_struct *info, struct image *image) {
    const size_t line = (size_t)image->width * 3;
    JSAMPARRAY row =
        info->mem->alloc_sarray((j_common_ptr)info, JPOOL_IMAGE, info->output_width * 4, 1);
    while (info->output_scanline < info->output_height) {
        uint8_t *rgb = image->u8 + info->output_scanline * line;
        jpeg_read_scanlines(info, row, 1);
        cmyk_to_rgb(rgb, row[0], image->width, info->saw_Adobe_marker);
    }
}

static int read_header(struct jpeg_reader *r, const uint8_t *data, size_t size,
                       const struct decode_options *options) {
    struct jpeg_decompress_struct *info = &r->info;
    jpeg_create_decompress(info);
    r->progress.progress_monitor = on_progress;
    info->progress = &r->progress;
    jpeg_mem_src(info, data, size);
    jpeg_read_header(info, TRUE);
    int status = format_check_size(info->image_width, info->image_height, options, r->trap.err);
    if (status)
        return status;
    uint64_t pixels = (uint64_t)info->image_width * info->image_height;
    if (!info->arith_code && pixels / MAX_PIXELS_PER_BYTE > size)
        return error_set(r->trap.err, STATUS_DATA, "truncated JPEG: %zu bytes for %ux%u pixels",
                         size, info->image_width, info->image_height);
    return STATUS_OK;
}

// Returns twice when libjpeg fails, so it holds no variable that changes.
static int read_picture(struct jpeg_reader *r, struct image *image, const uint8_t *data,
                        size_t size, const struct decode_options *options) {
    struct jpeg_decompress_struct *info = &r->info;
    if (setjmp(r->trap.out))
        return r->trap.status;
    int status = read_header(r, data, size, options);
    if (status)
        return status;
    choose_scale(info, options, exif_orientation_jpeg(data, size));
    choose_colour(info, options->channels);
    jpeg_calc_output_dimensions(info);
    bool cmyk = info->out_color_space == JCS_CMYK;
    uint64_t kept = info->progressive_mode ? (uint64_t)info->image_width * info->image_height : 0;
    status = format_shape(image, (int)info->output_width, (int)info->output_height,
                          cmyk ? 3 : info->output_components, kept, options, r->trap.err);
    if (status)
        return status;
    if (info->scale_denom > info->scale_num)
        image->true_size = (struct image_true){.by = (int)(info->scale_denom / info->scale_num),
                                               .width = (int)info->image_width,
                                               .height = (int)info->image_height};
    jpeg_start_decompress(info);
    if (cmyk)
        read_cmyk_rows(info, image);
    else
        read_rows(info, image);
    jpeg_finish_decompress(info); // reads on to the end marker: it must be there
    return STATUS_OK;
}

int jpeg_decode(struct image *image, const uint8_t *data, size_t size,
                const struct decode_options *options, struct error *err) {
    struct jpeg_reader r = {0};
    r.info.err = trap_init(&r.trap, err);
    int status = read_picture(&r, image, data, size, options);
    jpeg_destroy_decompress(&r.info);
    if (!status && image->channels == 3 && options->channels == 1)
        image_gray(image);
    if (!status)
        status = exif_apply(image, exif_orientation_jpeg(data, size), err);
    return status;
}

struct jpeg_writer {
    struct jpeg_compress_struct info;
    struct jpeg_destination_mgr destination;
    struct trap trap;
    struct encoded *out;
};

// libjpeg fills the free part of `out`.
static void give_room(j_compress_ptr info, size_t least) {
    struct jpeg_writer *w = info->client_data;
    if (!encoded_reserve(w->out, least))
        ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
    w->destination.next_output_byte = w->out->data + w->out->size;
    w->destination.free_in_buffer = w->out->capacity - w->out->size;
}

static void destination_open(j_compress_ptr info) {
    give_room(info, FIRST_ROOM);
}

static boolean destination_full(j_compress_ptr info) {
    struct jpeg_writer *w = info->client_data;
    w->out->size = w->out->capacity;
    give_room(info, 1); // twice as much
    return TRUE;
}

static void destination_close(j_compress_ptr info) {
    struct jpeg_writer *w = info->client_data;
    w->out->size = w->out->capacity - w->destination.free_in_buffer;
}

static void set_parameters(struct jpeg_compress_struct *info, const struct image *image,
                           int quality) {
    info->image_width = (JDIMENSION)image->width;
    info->image_height = (JDIMENSION)image->height;
    info->input_components = image->channels;
    info->in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, quality, TRUE);
    if (quality >= 90) // keep the colours of small pictures whole
        info->comp_info[0].h_samp_factor = info->comp_info[0].v_samp_factor = 1;
}

static int write_picture(struct jpeg_writer *w, const struct image *image, int quality) {
    struct jpeg_compress_struct *info = &w->info;
    const size_t line = (size_t)image->width * (size_t)image->channels;
    if (setjmp(w->trap.out))
        return w->trap.status;
    jpeg_create_compress(info);
    info->client_data = w;
    info->dest = &w->destination;
    set_parameters(info, image, quality);
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        JSAMPROW row = image->u8 + info->next_scanline * line;
        jpeg_write_scanlines(info, &row, 1);
    }
    jpeg_finish_compress(info);
    return STATUS_OK;
}

int jpeg_encode(struct encoded *out, const struct image *image, int quality, struct error *err) {
    struct jpeg_writer w = {.out = out,
                            .destination = {.init_destination = destination_open,
                                            .empty_output_buffer = destination_full,
                                            .term_destination = destination_close}};
    w.info.err = trap_init(&w.trap, err);
    int status = write_picture(&w, image, quality);
    jpeg_destroy_compress(&w.info);
    return status;
}
