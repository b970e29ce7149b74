#include "prep/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "image/resize.h"

#define GAP 2     // pixels between cells, and around them
#define GROUND 72 // gray level of gaps and empty cells

// Pictures that were chosen, made small already. A bucket fills from the left;
// when it is full, each further one may take a random place (Waterman's
// algorithm R), so that all seen are equally likely.
struct bucket {
    struct image *images; // capacity of them
    int capacity, count;
    uint64_t seen;
};

struct choice {
    const struct sheet_config *config;
    struct bucket *buckets; // one, or one for each row
    int bucket_count;
    int full; // buckets
    int cell; // 0 until the first picture
    struct random random;
    struct image decoded, bytes;
};

static int open_choice(struct choice *c, const struct sheet_config *config, struct error *err) {
    *c = (struct choice){.config = config, .cell = config->cell};
    c->random = random_stream(config->seed, 0, hash_bytes("sheet", 5));
    c->bucket_count = config->by_class ? config->rows : 1;
    c->buckets = mem_zeroed((size_t)c->bucket_count, sizeof *c->buckets);
    if (!c->buckets)
        return error_nomem(err);
    for (int i = 0; i < c->bucket_count; i++) {
        struct bucket *bucket = &c->buckets[i];
        bucket->capacity = config->columns * (config->by_class ? 1 : config->rows);
        bucket->images = mem_zeroed((size_t)bucket->capacity, sizeof *bucket->images);
        if (!bucket->images)
            return error_nomem(err);
    }
    return STATUS_OK;
}

static void close_choice(struct choice *c) {
    for (int i = 0; c->buckets && i < c->bucket_count; i++) {
        for (int k = 0; c->buckets[i].images && k < c->buckets[i].capacity; k++)
            image_free(&c->buckets[i].images[k]);
        free(c->buckets[i].images);
    }
    free(c->buckets);
    image_free(&c->decoded);
    image_free(&c->bytes);
}

// Bytes from floats: the least becomes 0, the most 255.
static int scale_to_bytes(struct choice *c, struct error *err) {
    const struct image *from = &c->decoded;
    if (from->type == PIXEL_U8)
        return STATUS_OK;
    int status = image_shape(&c->bytes, from->width, from->height, from->channels, PIXEL_U8, err);
    size_t count = image_values(from);
    float low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < count; i++)
        low = fminf(low, from->f32[i]), high = fmaxf(high, from->f32[i]);
    float scale = high > low ? 255 / (high - low) : 0;
    for (size_t i = 0; i < count && !status; i++) {
        float value = (from->f32[i] - low) * scale;
        c->bytes.u8[i] = value >= 0 && value <= 255 ? (uint8_t)lrintf(value) : 0;
    }
    if (!status)
        image_swap(&c->decoded, &c->bytes);
    return status;
}

static int decode_for_cell(struct choice *c, struct sample *sample, struct error *err) {
    struct decode_options options = c->config->inputs.source.decode;
    options.least_width = options.least_height = c->cell;
    if (!sample->encoded_size) {
        image_swap(&c->decoded, &sample->image);
        int status = image_channels(&c->decoded, options.channels, err);
        return status ? status : scale_to_bytes(c, err);
    }
    return image_decode(&c->decoded, sample->encoded, sample->encoded_size, &options, err);
}

// Makes the decoded picture as large as the cell lets it be, and puts it at `to`.
static int shrink_to_cell(struct choice *c, struct image *to, struct error *err) {
    const struct image *from = &c->decoded;
    int across = image_true_width(from), down = image_true_height(from);
    int longer = across > down ? across : down;
    if (!c->cell)
        c->cell = longer < 16 ? 16 : longer > 128 ? 128 : longer;
    int width = (int)((int64_t)across * c->cell / longer);
    int height = (int)((int64_t)down * c->cell / longer);
    width = width ? width : 1, height = height ? height : 1;
    return image_resize(to, from, FILTER_AREA, width, height, 0, 0, width, height, err);
}

static struct bucket *bucket_of(struct choice *c, int label) {
    if (!c->config->by_class)
        return &c->buckets[0];
    return label >= 0 && label < c->bucket_count ? &c->buckets[label] : NULL;
}

// Where in its bucket the next picture goes, or -1. It counts only once it is decoded.
static int bucket_place(struct choice *c, const struct bucket *bucket) {
    if (bucket->count < bucket->capacity)
        return bucket->count;
    if (!c->config->random || bucket->seen >= UINT32_MAX - 1)
        return -1;
    uint32_t place = random_below(&c->random, (uint32_t)bucket->seen + 1);
    return place < (uint32_t)bucket->capacity ? (int)place : -1;
}

static int consider_sample(struct choice *c, struct sample *sample, struct error *err) {
    struct bucket *bucket = bucket_of(c, sample->label);
    int place = bucket ? bucket_place(c, bucket) : -1;
    if (place >= 0) {
        int status = decode_for_cell(c, sample, err);
        if (!status)
            status = shrink_to_cell(c, &bucket->images[place], err);
        if (status)
            return status;
    }
    if (bucket && place == bucket->count && ++bucket->count == bucket->capacity)
        c->full++;
    if (bucket)
        bucket->seen++;
    return STATUS_OK;
}

// Tells of a sample that is left out.
static int pass_over(const struct choice *c, const struct sample *sample, struct error *err) {
    const struct sheet_config *config = c->config;
    struct error why = *err;
    return config->rejected ? config->rejected(config->context, sample->path, why.text, err)
                            : STATUS_OK;
}

// Reads a sample and considers it. What the input says of one, and a picture that cannot be
// used, is the sample's fault; all else ends the run.
static int next_picture(struct choice *c, struct inputs *inputs, struct sample *sample, bool *more,
                        struct error *err) {
    int status = inputs_next(inputs, sample, more, err);
    bool bad = status == STATUS_SKIPPED;
    if (!status && *more) {
        status = consider_sample(c, sample, err);
        bad = status == STATUS_DATA;
    }
    return bad ? pass_over(c, sample, err) : status;
}

static int choose_pictures(struct choice *c, struct inputs *inputs, struct error *err) {
    const struct sheet_config *config = c->config;
    struct sample sample = {0};
    bool more = true;
    int status = STATUS_OK;
    while (!status && more && (config->random || c->full < c->bucket_count)) {
        status = next_picture(c, inputs, &sample, &more, err);
        if (!status && config->stopped && config->stopped())
            status = error_set(err, STATUS_STOPPED, "stopped on request");
    }
    sample_free(&sample);
    return status;
}

static void put_pixel(uint8_t *to, int to_channels, const uint8_t *from, int from_channels) {
    for (int c = 0; c < to_channels; c++)
        to[c] = from[from_channels == 3 ? c : 0];
}

// Puts a picture into the middle of cell number `cell`.
static void put_cell(struct image *sheet, const struct choice *c, const struct image *picture,
                     int cell) {
    int column = cell % c->config->columns, row = cell / c->config->columns, n = sheet->channels;
    int left = GAP + column * (c->cell + GAP) + (c->cell - picture->width) / 2;
    int top = GAP + row * (c->cell + GAP) + (c->cell - picture->height) / 2;
    for (int y = 0; y < picture->height; y++)
        for (int x = 0; x < picture->width; x++)
            put_pixel(sheet->u8 + ((size_t)(top + y) * (size_t)sheet->width + (size_t)(left + x)) *
                                      (size_t)n,
                      n,
                      picture->u8 + ((size_t)y * (size_t)picture->width + (size_t)x) *
                                        (size_t)picture->channels,
                      picture->channels);
}

static int render_sheet(struct image *sheet, const struct choice *c, int *shown,
                        struct error *err) {
    const struct sheet_config *config = c->config;
    bool colour = false;
    int last = 0; // cell that is used
    *shown = 0;
    for (int i = 0; i < c->bucket_count; i++)
        for (int k = 0; k < c->buckets[i].count; k++, ++*shown) {
            colour = colour || c->buckets[i].images[k].channels == 3;
            last = i * config->columns + k;
        }
    if (!*shown)
        return error_set(err, STATUS_DATA, "there is no picture %sto show",
                         config->by_class ? "with a class " : "");
    int rows = last / config->columns + 1;
    int status = image_shape(sheet, GAP + config->columns * (c->cell + GAP),
                             GAP + rows * (c->cell + GAP), colour ? 3 : 1, PIXEL_U8, err);
    if (status)
        return status;
    memset(sheet->u8, GROUND, image_bytes(sheet));
    for (int i = 0; i < c->bucket_count; i++)
        for (int k = 0; k < c->buckets[i].count; k++)
            put_cell(sheet, c, &c->buckets[i].images[k], i * config->columns + k);
    return STATUS_OK;
}

int sheet_draw(struct image *sheet, const struct sheet_config *config, int *shown,
               struct error *err) {
    struct classes classes = {0};
    struct choice choice;
    struct inputs *inputs = NULL;
    int status = open_choice(&choice, config, err), label;
    for (int i = 0; config->classes && i < config->classes->count && !status; i++)
        status = classes_label(&classes, config->classes->names[i], &label, err);
    if (!status)
        status = inputs_open(&inputs, &config->inputs, &classes, err);
    if (!status)
        status = choose_pictures(&choice, inputs, err);
    if (!status)
        status = render_sheet(sheet, &choice, shown, err);
    inputs_close(inputs);
    close_choice(&choice);
    classes_free(&classes);
    return status;
}
