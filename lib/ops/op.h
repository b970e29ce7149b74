// One operation of a chain, and the picture that a chain works on. Inside
// lib/ops only.
#ifndef ADAM_OPS_OP_H
#define ADAM_OPS_OP_H

#include "core/random.h"
#include "image/floats.h"
#include "image/resize.h"
#include "image/warp.h"
#include "ops/ops.h"

struct error;

enum { OP_VALUES_MOST = 6, OP_LIST_MOST = IMAGE_LINEAR_MOST };

// A result of more pixels than this is refused, as a decoded picture would be.
#define OPS_PIXELS_MOST 100000000

// One parameter as given or by default; which members count is its kind's matter.
struct op_value {
    bool given;
    double low, high;  // REAL, COUNT (both the same), RANGE, SPREAD, SHIFT, FACTOR
    int width, height; // SIZE
    bool square;       // SIZE was a single number
    int word;          // WORD: index
    float list[OP_LIST_MOST];
    int count;             // of list
    size_t offset, length; // FILE: of the whole parameter in the chain's text
    struct image image;    // IMAGE; owned
};

struct op {
    const struct op_info *info;
    size_t offset, length; // of its text in the chain
    double probability;
    struct op_value values[OP_VALUES_MOST]; // in the order of info->parameters
    bool random;
};

struct ops {
    struct op *list;
    size_t count;
};

// What is still to be done to the pixels. Geometric operations wait, so that
// several become one mapping; so do those that change each value by itself.
struct geometry {
    enum { GEOMETRY_NONE, GEOMETRY_RESIZE, GEOMETRY_WARP } kind;
    int width, height; // of the result
    // RESIZE: the part from (left, top) of a result of full_width x full_height
    enum filter filter;
    int full_width, full_height, left, top;
    // WARP
    struct affine map;
    bool framed;   // what lies outside the frame is cut off or filled: nobody may look there
    bool bordered; // border and fill are those of an operation that looks outside
    enum border border;
    float fill;
};

struct point_op {
    bool mapped; // bytes: through this table
    uint8_t table[256];
    bool linear; // to floats: value * gain[channel] + offset[channel]
    int count;   // 1: the same for all channels
    double gain[OP_LIST_MOST], offset[OP_LIST_MOST];
};

struct canvas {
    struct image *image;
    struct ops_scratch *scratch;
    struct geometry geometry;
    struct point_op point;
};

struct ops_scratch {
    struct image spare;
    float *field; // displacements
    size_t field_size;
};

struct op_code {
    int (*apply)(const struct op *op, struct canvas *canvas, struct random *random,
                 struct error *err);
    // The shape of the result; NULL: that of the picture. False: impossible.
    bool (*shape)(const struct op *op, int *width, int *height, int *channels);
    bool draws; // random numbers, whatever its parameters
};

// The shape that the picture has once everything waiting is done.
int canvas_width(const struct canvas *canvas);
int canvas_height(const struct canvas *canvas);
enum pixel canvas_type(const struct canvas *canvas);

// Does what is waiting: the geometry first, then the values. As ops_apply.
int canvas_settle(struct canvas *canvas, struct error *err);

// Every byte v becomes table[v], behind what waits; the canvas has bytes.
void canvas_map(struct canvas *canvas, const uint8_t table[256]);

// STATUS_DATA when the canvas has floats, for an operation that is defined on bytes alone.
int canvas_needs_bytes(const struct canvas *canvas, const struct op *op, struct error *err);

// The nearest byte.
static inline uint8_t op_byte(double v) {
    v = v > 0 ? v : 0;
    v = v < 255 ? v : 255;
    return (uint8_t)(int)(v + 0.5);
}

// Floats that stay valid until the next call; NULL when out of memory.
float *scratch_floats(struct ops_scratch *scratch, size_t n);

// A number of a RANGE, SPREAD or FACTOR, and a whole one of a SHIFT. Nothing is
// drawn when there is no choice.
double op_draw(const struct op_value *value, struct random *random);
int op_draw_whole(const struct op_value *value, struct random *random);

// The families.
extern const struct op_code op_resize, op_crop, op_pad, op_translate, op_hflip, op_vflip, op_rotate,
    op_affine, op_shear, op_perspective, op_elastic;
extern const struct op_code op_brightness, op_contrast, op_saturation, op_hue, op_noise, op_gray,
    op_invert;
extern const struct op_code op_cutout, op_erase;
extern const struct op_code op_blur, op_sharpness;
extern const struct op_code op_posterize, op_solarize, op_autocontrast, op_equalize;
extern const struct op_code op_randaugment;
extern const struct op_code op_scale, op_mean, op_std;

// Places of the parameters in the table's rows, for the code that reads them.
enum { RESIZE_SIZE, RESIZE_MODE, RESIZE_FILTER };
enum { MODE_FIT, MODE_FILL, MODE_EXACT };
enum { CROP_SIZE, CROP_PLACE };
enum { PLACE_CENTRE, PLACE_CENTER, PLACE_RANDOM };
enum { PAD_SIZE, PAD_BORDER, PAD_FILL };
enum { TRANSLATE_BY, TRANSLATE_X, TRANSLATE_Y, TRANSLATE_BORDER, TRANSLATE_FILL };
enum { ROTATE_ANGLE, ROTATE_BORDER, ROTATE_FILL };
enum { AFFINE_ROTATE, AFFINE_SCALE, AFFINE_SHEAR, AFFINE_BORDER, AFFINE_FILL };
enum { SHEAR_X, SHEAR_Y, SHEAR_BORDER, SHEAR_FILL };
enum { PERSPECTIVE_DISTORTION, PERSPECTIVE_BORDER, PERSPECTIVE_FILL };
enum { ELASTIC_ALPHA, ELASTIC_SIGMA, ELASTIC_BORDER, ELASTIC_FILL };
enum { MEAN_VALUES, MEAN_FILE, MEAN_IMAGE };
enum { CUTOUT_SIZE, CUTOUT_COUNT, CUTOUT_FILL };
enum { ERASE_WITH, ERASE_AREA, ERASE_ASPECT, ERASE_FILL };
enum { WITH_FILL, WITH_NOISE };
enum { RANDAUGMENT_COUNT, RANDAUGMENT_STRENGTH, RANDAUGMENT_BORDER, RANDAUGMENT_FILL };
enum { RANDAUGMENT_MOST = 30 }; // the greatest strength

#endif
