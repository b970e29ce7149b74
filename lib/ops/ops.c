// Applies a chain: operations note on the canvas what is to be done, and pixels
// move when something must see them.
#include "ops/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "ops/op.h"
#include "ops/picture.h"

bool ops_random(const struct ops *ops) {
    for (size_t i = 0; i < ops->count; i++)
        if (ops->list[i].random)
            return true;
    return false;
}

bool ops_file(const struct ops *ops, size_t *offset, size_t *length) {
    for (size_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->list[i];
        if (op->info->code != &op_mean || !op->values[MEAN_FILE].given)
            continue;
        *offset = op->values[MEAN_FILE].offset;
        *length = op->values[MEAN_FILE].length;
        return true;
    }
    return false;
}

char *ops_picture(const struct image *image) {
    char *picture = picture_write(image), *text = NULL;
    if (picture && asprintf(&text, "image=%s", picture) < 0)
        text = NULL;
    free(picture);
    return text;
}

struct ops_scratch *ops_scratch_new(void) {
    return mem_zeroed(1, sizeof(struct ops_scratch));
}

void ops_scratch_free(struct ops_scratch *scratch) {
    if (!scratch)
        return;
    image_free(&scratch->spare);
    free(scratch->field);
    free(scratch);
}

void ops_scratch_trim(struct ops_scratch *scratch, size_t most) {
    if (scratch->spare.capacity > most)
        image_free(&scratch->spare);
    if (scratch->field_size > most / sizeof *scratch->field) {
        free(scratch->field);
        scratch->field = NULL;
        scratch->field_size = 0;
    }
}

float *scratch_floats(struct ops_scratch *scratch, size_t n) {
    if (n > scratch->field_size) {
        float *field = mem_floats(n);
        if (!field)
            return NULL;
        free(scratch->field);
        scratch->field = field;
        scratch->field_size = n;
    }
    return scratch->field;
}

double op_draw(const struct op_value *value, struct random *random) {
    if (value->low == value->high)
        return value->low;
    return value->low + (value->high - value->low) * (double)random_unit(random);
}

int op_draw_whole(const struct op_value *value, struct random *random) {
    if (value->low == value->high)
        return (int)value->low;
    return (int)value->low + (int)random_below(random, (uint32_t)(value->high - value->low) + 1);
}

int canvas_width(const struct canvas *canvas) {
    return canvas->geometry.kind == GEOMETRY_NONE ? canvas->image->width : canvas->geometry.width;
}

int canvas_height(const struct canvas *canvas) {
    return canvas->geometry.kind == GEOMETRY_NONE ? canvas->image->height : canvas->geometry.height;
}

enum pixel canvas_type(const struct canvas *canvas) {
    return canvas->point.linear ? PIXEL_F32 : canvas->image->type;
}

void canvas_map(struct canvas *canvas, const uint8_t table[256]) {
    struct point_op *point = &canvas->point;
    for (int v = 0; v < 256; v++)
        point->table[v] = table[point->mapped ? point->table[v] : v];
    point->mapped = true;
}

int canvas_needs_bytes(const struct canvas *canvas, const struct op *op, struct error *err) {
    if (canvas_type(canvas) == PIXEL_U8)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%s: this picture's values are floats, and it works on bytes; put it before "
                     "scale, mean and std",
                     op->info->name);
}

static int settle_geometry(struct canvas *canvas, struct error *err) {
    const struct geometry *g = &canvas->geometry;
    struct image *spare = &canvas->scratch->spare;
    int status = STATUS_OK;
    if (g->kind == GEOMETRY_RESIZE)
        status = image_resize(spare, canvas->image, g->filter, g->full_width, g->full_height,
                              g->left, g->top, g->width, g->height, err);
    else if (g->kind == GEOMETRY_WARP)
        status =
            image_warp(spare, canvas->image, g->width, g->height, g->map, g->border, g->fill, err);
    if (!status && g->kind != GEOMETRY_NONE)
        image_swap(spare, canvas->image);
    canvas->geometry = (struct geometry){0};
    return status;
}

static void map_bytes(struct image *image, const uint8_t table[256]) {
    size_t n = image_values(image);
    for (size_t i = 0; i < n; i++)
        image->u8[i] = table[image->u8[i]];
}

static int make_linear(struct canvas *canvas, struct error *err) {
    const struct point_op *point = &canvas->point;
    float gain[OP_LIST_MOST], offset[OP_LIST_MOST];
    for (int c = 0; c < point->count; c++)
        gain[c] = (float)point->gain[c], offset[c] = (float)point->offset[c];
    int status =
        image_linear(&canvas->scratch->spare, canvas->image, gain, offset, point->count, err);
    if (!status)
        image_swap(&canvas->scratch->spare, canvas->image);
    return status;
}

static int settle_points(struct canvas *canvas, struct error *err) {
    int status = STATUS_OK;
    if (canvas->point.mapped)
        map_bytes(canvas->image, canvas->point.table);
    if (canvas->point.linear)
        status = make_linear(canvas, err);
    canvas->point.mapped = canvas->point.linear = false;
    return status;
}

int canvas_settle(struct canvas *canvas, struct error *err) {
    int status = settle_geometry(canvas, err);
    return status ? status : settle_points(canvas, err);
}

// Every operation has a stream of its own: "(seed, epoch, sample key, operation)".
static int apply_op(const struct op *op, size_t place, struct canvas *canvas, struct ops_draw draw,
                    struct error *err) {
    struct random random = random_stream(draw.seed, draw.epoch, hash_mix(draw.key, place));
    if (op->probability < 1 && (double)random_unit(&random) >= op->probability)
        return STATUS_OK;
    return op->info->code->apply(op, canvas, &random, err);
}

int ops_apply(const struct ops *ops, struct ops_scratch *scratch, struct image *image,
              struct ops_draw draw, struct error *err) {
    struct canvas canvas = {.image = image, .scratch = scratch};
    for (size_t i = 0; i < ops->count; i++) {
        int status = apply_op(&ops->list[i], i, &canvas, draw, err);
        if (status)
            return status;
    }
    return canvas_settle(&canvas, err);
}

void ops_decode_hint(const struct ops *ops, struct decode_options *options) {
    if (!ops->count || ops->list[0].info->code != &op_resize || ops->list[0].probability < 1)
        return;
    // Whatever the mode, a picture that is at least SIZE on both sides is not enlarged.
    options->least_width = ops->list[0].values[RESIZE_SIZE].width;
    options->least_height = ops->list[0].values[RESIZE_SIZE].height;
}

bool ops_shape(const struct ops *ops, int *width, int *height, int *channels) {
    for (size_t i = 0; i < ops->count; i++) {
        const struct op *op = &ops->list[i];
        int w = *width, h = *height, c = *channels;
        if (op->probability == 0 || !op->info->code->shape)
            continue;
        if (!op->info->code->shape(op, &w, &h, &c))
            return false;
        bool changed = w != *width || h != *height || c != *channels;
        if (changed && op->probability < 1)
            return false;
        *width = w, *height = h, *channels = c;
    }
    return true;
}
