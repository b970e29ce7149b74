// Operations that move pixels. They compose into one inverse mapping from the
// result to the picture, which is sampled once.
#include <math.h>

#include "core/error.h"
#include "core/mem.h"
#include "image/elastic.h"
#include "image/perspective.h"
#include "ops/op.h"

static const double RADIAN = 3.14159265358979323846 / 180;

static int check_size(const char *name, int64_t width, int64_t height, struct error *err) {
    if (width <= IMAGE_MAX_SIDE && height <= IMAGE_MAX_SIDE && width * height <= OPS_PIXELS_MOST)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "%s: a result of %lldx%lld pixels is too large (at most %d a side and %d in "
                     "all)",
                     name, (long long)width, (long long)height, IMAGE_MAX_SIDE, OPS_PIXELS_MOST);
}

// Values wait behind the geometry, never before it.
static int begin_geometry(struct canvas *canvas, struct error *err) {
    if (!canvas->point.mapped && !canvas->point.linear)
        return STATUS_OK;
    return canvas_settle(canvas, err);
}

// Begins or continues a warp; what else is waiting is done first.
static int begin_warp(struct canvas *canvas, struct error *err) {
    int status = begin_geometry(canvas, err);
    if (!status && canvas->geometry.kind == GEOMETRY_RESIZE)
        status = canvas_settle(canvas, err);
    if (!status && canvas->geometry.kind == GEOMETRY_NONE)
        canvas->geometry = (struct geometry){
            .kind = GEOMETRY_WARP,
            .width = canvas->image->width,
            .height = canvas->image->height,
            .map = affine_identity(),
        };
    return status;
}

// The same for an operation that looks outside the frame: it joins what waits
// only when that says the same about the outside.
static int begin_outside(struct canvas *canvas, enum border border, float fill, struct error *err) {
    const struct geometry *g = &canvas->geometry;
    bool other = g->bordered && (g->border != border || g->fill != fill);
    int status = STATUS_OK;
    if (g->kind == GEOMETRY_WARP && (g->framed || other))
        status = canvas_settle(canvas, err);
    if (!status)
        status = begin_warp(canvas, err);
    canvas->geometry.bordered = true;
    canvas->geometry.border = border;
    canvas->geometry.fill = fill;
    return status;
}

static void compose_map(struct canvas *canvas, struct affine map) {
    canvas->geometry.map = affine_then(canvas->geometry.map, map);
}

static enum border border_of(const struct op_value *value) {
    return (enum border)value->word;
}

// The map `m` around the middle of the frame instead of its corner.
static struct affine around_centre(const struct canvas *canvas, struct affine m) {
    double x = (canvas->geometry.width - 1) / 2.0, y = (canvas->geometry.height - 1) / 2.0;
    m.c = x - m.a * x - m.b * y;
    m.f = y - m.d * x - m.e * y;
    return m;
}

// resize

static int rounded(double v) {
    return v < 1 ? 1 : (int)fmin(rint(v), 1e9);
}

// The whole size that a w x h picture is resampled to.
static void scaled_size(const struct op *op, int w, int h, int *full_width, int *full_height) {
    const struct op_value *size = &op->values[RESIZE_SIZE], *mode = &op->values[RESIZE_MODE];
    bool exact = mode->given ? mode->word == MODE_EXACT : !size->square;
    double across = (double)size->width / w, down = (double)size->height / h;
    double scale = mode->given && mode->word == MODE_FIT ? fmin(across, down) : fmax(across, down);
    *full_width = exact || scale == across ? size->width : rounded(w * scale);
    *full_height = exact || scale == down ? size->height : rounded(h * scale);
}

static bool resize_fills(const struct op *op) {
    return op->values[RESIZE_MODE].given && op->values[RESIZE_MODE].word == MODE_FILL;
}

static bool resize_shape(const struct op *op, int *width, int *height, int *channels) {
    int w, h;
    (void)channels;
    scaled_size(op, *width, *height, &w, &h);
    if (check_size("", w, h, NULL))
        return false;
    *width = resize_fills(op) ? op->values[RESIZE_SIZE].width : w;
    *height = resize_fills(op) ? op->values[RESIZE_SIZE].height : h;
    return true;
}

static int resize_apply(const struct op *op, struct canvas *canvas, struct random *random,
                        struct error *err) {
    (void)random;
    int status = canvas_settle(canvas, err), w, h;
    if (status)
        return status;
    scaled_size(op, image_true_width(canvas->image), image_true_height(canvas->image), &w, &h);
    if ((status = check_size("resize", w, h, err)))
        return status;
    if (w == canvas->image->width && h == canvas->image->height && !resize_fills(op) &&
        !canvas->image->true_size.by)
        return STATUS_OK;
    int width = resize_fills(op) ? op->values[RESIZE_SIZE].width : w;
    int height = resize_fills(op) ? op->values[RESIZE_SIZE].height : h;
    canvas->geometry = (struct geometry){
        .kind = GEOMETRY_RESIZE,
        .width = width,
        .height = height,
        .filter = (enum filter)op->values[RESIZE_FILTER].word,
        .full_width = w,
        .full_height = h,
        .left = (w - width) / 2,
        .top = (h - height) / 2,
    };
    return STATUS_OK;
}

const struct op_code op_resize = {.apply = resize_apply, .shape = resize_shape};

// crop and pad

static bool crop_shape(const struct op *op, int *width, int *height, int *channels) {
    const struct op_value *size = &op->values[CROP_SIZE];
    (void)channels;
    if (size->width > *width || size->height > *height)
        return false;
    *width = size->width, *height = size->height;
    return true;
}

static int crop_apply(const struct op *op, struct canvas *canvas, struct random *random,
                      struct error *err) {
    const struct op_value *size = &op->values[CROP_SIZE];
    int x = canvas_width(canvas) - size->width, y = canvas_height(canvas) - size->height;
    if (x < 0 || y < 0)
        return error_set(err, STATUS_DATA,
                         "crop: %dx%d does not fit into a picture of %dx%d; resize or pad it first",
                         size->width, size->height, canvas_width(canvas), canvas_height(canvas));
    bool chance = op->values[CROP_PLACE].word == PLACE_RANDOM;
    x = chance ? (int)random_below(random, (uint32_t)x + 1) : x / 2;
    y = chance ? (int)random_below(random, (uint32_t)y + 1) : y / 2;
    int status = begin_geometry(canvas, err);
    if (!status && canvas->geometry.kind == GEOMETRY_RESIZE)
        canvas->geometry.left += x, canvas->geometry.top += y;
    else if (!status && !(status = begin_warp(canvas, err)))
        compose_map(canvas, (struct affine){1, 0, x, 0, 1, y});
    canvas->geometry.framed = true;
    canvas->geometry.width = size->width, canvas->geometry.height = size->height;
    return status;
}

const struct op_code op_crop = {.apply = crop_apply, .shape = crop_shape};

static bool pad_shape(const struct op *op, int *width, int *height, int *channels) {
    const struct op_value *size = &op->values[PAD_SIZE];
    int64_t w = *width + (int64_t)2 * size->width, h = *height + (int64_t)2 * size->height;
    (void)channels;
    if (check_size("", w, h, NULL))
        return false;
    *width = (int)w, *height = (int)h;
    return true;
}

static int pad_apply(const struct op *op, struct canvas *canvas, struct random *random,
                     struct error *err) {
    const struct op_value *size = &op->values[PAD_SIZE];
    (void)random;
    int64_t width = canvas_width(canvas) + (int64_t)2 * size->width;
    int64_t height = canvas_height(canvas) + (int64_t)2 * size->height;
    int status = check_size("pad", width, height, err);
    if (!status)
        status = begin_outside(canvas, border_of(&op->values[PAD_BORDER]),
                               (float)op->values[PAD_FILL].low, err);
    if (status)
        return status;
    compose_map(canvas, (struct affine){1, 0, -size->width, 0, 1, -size->height});
    canvas->geometry.framed = true;
    canvas->geometry.width = (int)width, canvas->geometry.height = (int)height;
    return STATUS_OK;
}

const struct op_code op_pad = {.apply = pad_apply, .shape = pad_shape};

// moves, mirrors and turns

static int translate_apply(const struct op *op, struct canvas *canvas, struct random *random,
                           struct error *err) {
    const struct op_value *v = op->values;
    int x = op_draw_whole(&v[v[TRANSLATE_X].given ? TRANSLATE_X : TRANSLATE_BY], random);
    int y = op_draw_whole(&v[v[TRANSLATE_Y].given ? TRANSLATE_Y : TRANSLATE_BY], random);
    int status =
        begin_outside(canvas, border_of(&v[TRANSLATE_BORDER]), (float)v[TRANSLATE_FILL].low, err);
    if (!status)
        compose_map(canvas, (struct affine){1, 0, -x, 0, 1, -y});
    return status;
}

const struct op_code op_translate = {.apply = translate_apply};

static int hflip_apply(const struct op *op, struct canvas *canvas, struct random *random,
                       struct error *err) {
    (void)op, (void)random;
    int status = begin_warp(canvas, err);
    if (!status)
        compose_map(canvas, (struct affine){-1, 0, canvas->geometry.width - 1, 0, 1, 0});
    return status;
}

const struct op_code op_hflip = {.apply = hflip_apply};

static int vflip_apply(const struct op *op, struct canvas *canvas, struct random *random,
                       struct error *err) {
    (void)op, (void)random;
    int status = begin_warp(canvas, err);
    if (!status)
        compose_map(canvas, (struct affine){1, 0, 0, 0, -1, canvas->geometry.height - 1});
    return status;
}

const struct op_code op_vflip = {.apply = vflip_apply};

// Cosine and sine, exact at quarter turns, so that these move pixels whole.
static void cosine_and_sine(double degrees, double *cosine, double *sine) {
    double quarters = degrees / 90;
    *cosine = cos(degrees * RADIAN), *sine = sin(degrees * RADIAN);
    if (quarters == rint(quarters))
        *cosine = rint(*cosine), *sine = rint(*sine);
}

// The inverse of: scale, shear to the right, turn counterclockwise (y points down).
//   forward = [ cos sin; -sin cos ] [ 1 -tan; 0 1 ] scale
//   inverse = [ 1 tan; 0 1 ] [ cos -sin; sin cos ] / scale
static struct affine inverse_of(double degrees, double scale, double shear) {
    double cosine, sine, lean = tan(shear * RADIAN);
    cosine_and_sine(degrees, &cosine, &sine);
    return (struct affine){
        .a = (cosine + lean * sine) / scale,
        .b = (-sine + lean * cosine) / scale,
        .d = sine / scale,
        .e = cosine / scale,
    };
}

static int rotate_apply(const struct op *op, struct canvas *canvas, struct random *random,
                        struct error *err) {
    double angle = op_draw(&op->values[ROTATE_ANGLE], random);
    int status = begin_outside(canvas, border_of(&op->values[ROTATE_BORDER]),
                               (float)op->values[ROTATE_FILL].low, err);
    if (!status)
        compose_map(canvas, around_centre(canvas, inverse_of(angle, 1, 0)));
    return status;
}

const struct op_code op_rotate = {.apply = rotate_apply};

static int affine_apply(const struct op *op, struct canvas *canvas, struct random *random,
                        struct error *err) {
    double angle = op_draw(&op->values[AFFINE_ROTATE], random);
    double scale = op_draw(&op->values[AFFINE_SCALE], random);
    double shear = op_draw(&op->values[AFFINE_SHEAR], random);
    int status = begin_outside(canvas, border_of(&op->values[AFFINE_BORDER]),
                               (float)op->values[AFFINE_FILL].low, err);
    if (!status)
        compose_map(canvas, around_centre(canvas, inverse_of(angle, scale, shear)));
    return status;
}

const struct op_code op_affine = {.apply = affine_apply};

// Both directions, first to the right, then down; y points down.
//   inverse = [ 1 tan x; 0 1 ] [ 1 0; -tan y 1 ]
static int shear_apply(const struct op *op, struct canvas *canvas, struct random *random,
                       struct error *err) {
    double right = tan(op_draw(&op->values[SHEAR_X], random) * RADIAN);
    double down = tan(op_draw(&op->values[SHEAR_Y], random) * RADIAN);
    int status = begin_outside(canvas, border_of(&op->values[SHEAR_BORDER]),
                               (float)op->values[SHEAR_FILL].low, err);
    struct affine inverse = {.a = 1 - right * down, .b = right, .d = -down, .e = 1};
    if (!status)
        compose_map(canvas, around_centre(canvas, inverse));
    return status;
}

const struct op_code op_shear = {.apply = shear_apply};

// Fields of displacements bend the result of what waits: both are one mapping. It ends there,
// for what follows would have to look between the values of the fields.

// Room for the fields dx and dy of what waits, and `more` floats behind them.
static float *room_for_fields(struct canvas *canvas, size_t more) {
    const struct geometry *g = &canvas->geometry;
    return scratch_floats(canvas->scratch, 2 * (size_t)g->width * (size_t)g->height + more);
}

static int bend(struct canvas *canvas, const float *dx, const float *dy, struct error *err) {
    const struct geometry *g = &canvas->geometry;
    int status = image_warp_field(&canvas->scratch->spare, canvas->image, g->width, g->height,
                                  g->map, dx, dy, g->border, g->fill, err);
    if (!status)
        image_swap(&canvas->scratch->spare, canvas->image);
    canvas->geometry = (struct geometry){0};
    return status;
}

static int elastic_apply(const struct op *op, struct canvas *canvas, struct random *random,
                         struct error *err) {
    double alpha = op_draw(&op->values[ELASTIC_ALPHA], random);
    double sigma = op_draw(&op->values[ELASTIC_SIGMA], random);
    int status = begin_outside(canvas, border_of(&op->values[ELASTIC_BORDER]),
                               (float)op->values[ELASTIC_FILL].low, err);
    if (status)
        return status;
    const struct geometry *g = &canvas->geometry;
    size_t n = (size_t)g->width * (size_t)g->height;
    float *dx = room_for_fields(canvas, elastic_room(g->width, g->height, sigma));
    if (!dx)
        return error_nomem(err);
    elastic_fields(dx, dx + n, dx + 2 * n, g->width, g->height, sigma, alpha, random);
    return bend(canvas, dx, dx + n, err);
}

const struct op_code op_elastic = {.apply = elastic_apply, .draws = true};

// Each corner moves inwards, by up to `most` of half the side in each direction, as torchvision's
// RandomPerspective has it.
static struct quadrangle draw_corners(double most, struct random *random) {
    struct quadrangle q = {{{0, 0}, {1, 0}, {1, 1}, {0, 1}}};
    for (int i = 0; i < 4; i++) {
        q.corner[i].x += (1 - 2 * q.corner[i].x) * most / 2 * (double)random_unit(random);
        q.corner[i].y += (1 - 2 * q.corner[i].y) * most / 2 * (double)random_unit(random);
    }
    return q;
}

static int perspective_apply(const struct op *op, struct canvas *canvas, struct random *random,
                             struct error *err) {
    struct quadrangle corners =
        draw_corners(op_draw(&op->values[PERSPECTIVE_DISTORTION], random), random);
    int status = begin_outside(canvas, border_of(&op->values[PERSPECTIVE_BORDER]),
                               (float)op->values[PERSPECTIVE_FILL].low, err);
    if (status)
        return status;
    const struct geometry *g = &canvas->geometry;
    size_t n = (size_t)g->width * (size_t)g->height;
    float *dx = room_for_fields(canvas, 0);
    if (!dx)
        return error_nomem(err);
    perspective_fields(dx, dx + n, g->width, g->height, &corners);
    return bend(canvas, dx, dx + n, err);
}

const struct op_code op_perspective = {.apply = perspective_apply, .draws = true};
