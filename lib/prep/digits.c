#include "prep/digits.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/random.h"

// ---- the shapes: x to the right, y down, both 0..1 in the digit's box ----

// A pen goes smoothly through its marks, and turns sharply at a corner.
struct mark {
    float x, y;
    bool corner;
};

#define MARKS 12
#define STROKES 2

struct stroke {
    int count;
    struct mark marks[MARKS];
};

// One way to write one digit. Styles are drawn equally often.
struct style {
    int digit;
    struct stroke strokes[STROKES]; // those not used have no marks
};

// clang-format off
#define P(x, y) {x, y, false}
#define C(x, y) {x, y, true}
static const struct style styles[] = {
    {0, {{9, {P(.5f, 0), P(.17f, .17f), P(.07f, .5f), P(.17f, .83f), P(.5f, 1), P(.83f, .83f), P(.93f, .5f), P(.83f, .17f), P(.5f, 0)}}}},
    {0, {{9, {P(.68f, .04f), P(.3f, .1f), P(.1f, .45f), P(.2f, .86f), P(.5f, 1), P(.82f, .8f), P(.9f, .42f), P(.7f, .1f), P(.4f, .02f)}}}},

    {1, {{2, {P(.5f, 0), P(.5f, 1)}}}},
    {1, {{3, {P(.18f, .28f), C(.58f, 0), P(.56f, 1)}}}},
    {1, {{3, {P(.22f, .25f), C(.55f, 0), P(.55f, 1)}}, {2, {P(.18f, 1), P(.92f, 1)}}}},

    {2, {{8, {P(.1f, .25f), P(.28f, .04f), P(.6f, 0), P(.88f, .22f), P(.76f, .5f), P(.42f, .76f), C(.06f, 1), P(.95f, .98f)}}}},
    {2, {{10, {P(.12f, .22f), P(.35f, .02f), P(.7f, .04f), P(.86f, .28f), P(.66f, .6f), P(.3f, .92f), P(.1f, .92f), P(.2f, .76f), P(.55f, .9f), P(.98f, .96f)}}}},
    {2, {{4, {P(.08f, .18f), P(.5f, 0), P(.88f, .25f), C(.1f, 1)}}, {2, {P(.1f, 1), P(.92f, 1)}}}},

    {3, {{9, {P(.12f, .14f), P(.48f, 0), P(.83f, .18f), P(.74f, .39f), C(.4f, .47f), P(.78f, .56f), P(.92f, .78f), P(.6f, 1), P(.08f, .88f)}}}},
    {3, {{7, {P(.1f, .02f), C(.86f, .02f), C(.44f, .42f), P(.8f, .5f), P(.92f, .75f), P(.6f, 1), P(.08f, .9f)}}}},

    {4, {{3, {P(.18f, 0), C(.1f, .54f), P(.94f, .54f)}}, {2, {P(.74f, .08f), P(.68f, 1)}}}},
    {4, {{3, {P(.66f, 0), C(.04f, .66f), P(.96f, .66f)}}, {2, {P(.66f, 0), P(.66f, 1)}}}},
    {4, {{4, {P(.2f, .02f), P(.12f, .4f), P(.3f, .55f), P(.82f, .42f)}}, {2, {P(.86f, 0), P(.72f, 1)}}}},

    {5, {{8, {P(.88f, 0), C(.24f, .02f), C(.16f, .45f), P(.5f, .36f), P(.88f, .55f), P(.86f, .84f), P(.5f, 1), P(.1f, .9f)}}}},
    {5, {{6, {P(.26f, .04f), C(.2f, .44f), P(.56f, .38f), P(.9f, .66f), P(.6f, .98f), P(.08f, .92f)}}, {2, {P(.26f, .04f), P(.92f, 0)}}}},

    {6, {{9, {P(.76f, .02f), P(.36f, .24f), P(.1f, .64f), P(.3f, .96f), P(.68f, .97f), P(.88f, .74f), P(.66f, .52f), P(.32f, .56f), P(.13f, .74f)}}}},
    {6, {{8, {P(.58f, 0), P(.26f, .42f), P(.12f, .76f), P(.42f, 1), P(.8f, .88f), P(.8f, .62f), P(.46f, .55f), P(.18f, .7f)}}}},

    {7, {{3, {P(.08f, .03f), C(.92f, 0), P(.4f, 1)}}}},
    {7, {{3, {P(.06f, 0), C(.9f, 0), P(.42f, 1)}}, {2, {P(.28f, .5f), P(.88f, .48f)}}}},
    {7, {{5, {P(.1f, .2f), C(.12f, .02f), C(.92f, .02f), P(.6f, .48f), P(.46f, 1)}}}},

    {8, {{11, {P(.5f, .47f), P(.18f, .27f), P(.3f, .04f), P(.7f, .04f), P(.82f, .26f), P(.5f, .47f), P(.12f, .75f), P(.3f, .98f), P(.7f, .98f), P(.88f, .74f), P(.5f, .47f)}}}},
    {8, {{7, {P(.5f, 0), P(.2f, .14f), P(.26f, .4f), P(.5f, .46f), P(.76f, .38f), P(.8f, .12f), P(.5f, 0)}},
         {7, {P(.5f, .46f), P(.14f, .64f), P(.2f, .92f), P(.5f, 1), P(.82f, .92f), P(.86f, .64f), P(.5f, .46f)}}}},

    {9, {{8, {P(.84f, .2f), P(.5f, 0), P(.15f, .18f), P(.18f, .45f), P(.52f, .53f), C(.85f, .22f), P(.8f, .6f), P(.68f, 1)}}}},
    {9, {{9, {P(.86f, .24f), P(.52f, 0), P(.14f, .2f), P(.22f, .48f), P(.58f, .5f), C(.87f, .22f), P(.87f, .66f), P(.64f, .97f), P(.18f, .93f)}}}},
};
// clang-format on

#define STYLE_COUNT ((int)(sizeof styles / sizeof *styles))

int digits_label(uint64_t index) {
    return (int)(index % DIGITS_CLASSES);
}

static const struct style *style_of(struct random *r, int digit) {
    int first = 0;
    while (styles[first].digit != digit)
        first++;
    int count = 1;
    while (first + count < STYLE_COUNT && styles[first + count].digit == digit)
        count++;
    return &styles[first + (int)random_below(r, (uint32_t)count)];
}

// ---- from marks to a fine polyline ----

#define PIECES 8 // of the way from one mark to the next
#define POINTS (STROKES * MARKS * PIECES)

struct pen_point {
    float x, y;
};

// The path of the pen. It is lifted before each point that starts a stroke.
struct pen_path {
    int count;
    struct pen_point points[POINTS];
    bool starts[POINTS];
};

static void add_point(struct pen_path *path, float x, float y, bool starts) {
    path->points[path->count] = (struct pen_point){x, y};
    path->starts[path->count++] = starts;
}

// The direction of the pen at mark i, coming from or going to mark `other`: that
// of the neighbours' chord (Catmull and Rom), or straight along at ends and corners.
static struct pen_point pen_direction(const struct stroke *s, int i, int other) {
    const struct mark *m = s->marks;
    int before = i - 1, after = i + 1;
    if (before < 0 || after >= s->count || m[i].corner)
        before = i < other ? i : other, after = i < other ? other : i;
    float scale = after - before == 2 ? 0.5f : 1.0f;
    return (struct pen_point){(m[after].x - m[before].x) * scale,
                              (m[after].y - m[before].y) * scale};
}

// Hermite's cubic from mark i to the next, without its first point.
static void add_curve_piece(struct pen_path *path, const struct stroke *s, int i) {
    const struct mark *a = &s->marks[i], *b = &s->marks[i + 1];
    struct pen_point u = pen_direction(s, i, i + 1), v = pen_direction(s, i + 1, i);
    for (int k = 1; k <= PIECES; k++) {
        float t = (float)k / PIECES, t2 = t * t, t3 = t2 * t;
        float wa = 2 * t3 - 3 * t2 + 1, wb = 3 * t2 - 2 * t3, wu = t3 - 2 * t2 + t, wv = t3 - t2;
        add_point(path, wa * a->x + wb * b->x + wu * u.x + wv * v.x,
                  wa * a->y + wb * b->y + wu * u.y + wv * v.y, false);
    }
}

// Nobody makes the same stroke twice: every mark is a little off.
static void add_stroke(struct pen_path *path, struct stroke stroke, struct random *r) {
    const float off = 0.028f;
    for (int i = 0; i < stroke.count; i++) {
        stroke.marks[i].x += off * random_normal(r);
        stroke.marks[i].y += off * random_normal(r);
    }
    add_point(path, stroke.marks[0].x, stroke.marks[0].y, true);
    for (int i = 0; i + 1 < stroke.count; i++)
        add_curve_piece(path, &stroke, i);
}

// ---- distortions of the path ----

static float clamp_float(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

// A smooth field of displacements: a few long waves in random directions, which
// bend strokes as an elastic sheet would (Simard, Steinkraus and Platt 2003 do the
// same to pixels).
static void bend_path(struct pen_path *path, struct random *r) {
    for (int wave = 0; wave < 3; wave++) {
        float fx = random_range(r, -5, 5), fy = random_range(r, -5, 5);
        float phase = random_range(r, 0, 6.2831853f);
        float dx = 0.035f * random_normal(r), dy = 0.035f * random_normal(r);
        for (int i = 0; i < path->count; i++) {
            struct pen_point *p = &path->points[i];
            float s = sinf(fx * p->x + fy * p->y + phase);
            p->x += dx * s, p->y += dy * s;
        }
    }
}

// Slant, rotation, width and height; the result is about its own middle.
static void place_path(struct pen_path *path, float size, struct random *r) {
    float height = size * random_range(r, 0.56f, 0.78f);
    float width = height * random_range(r, 0.5f, 0.85f);
    float slant = clamp_float(0.2f * random_normal(r), -0.5f, 0.5f);
    float angle = clamp_float(0.12f * random_normal(r), -0.35f, 0.35f);
    float c = cosf(angle), s = sinf(angle);
    struct pen_point low = {1e9f, 1e9f}, high = {-1e9f, -1e9f};
    for (int i = 0; i < path->count; i++) {
        struct pen_point *p = &path->points[i];
        float y = (p->y - 0.5f) * height, x = (p->x - 0.5f) * width - slant * y;
        *p = (struct pen_point){c * x - s * y, s * x + c * y};
        low.x = fminf(low.x, p->x), low.y = fminf(low.y, p->y);
        high.x = fmaxf(high.x, p->x), high.y = fmaxf(high.y, p->y);
    }
    float off = 0.045f * size;
    float x = (size - 1) / 2 - (low.x + high.x) / 2 + random_range(r, -off, off);
    float y = (size - 1) / 2 - (low.y + high.y) / 2 + random_range(r, -off, off);
    for (int i = 0; i < path->count; i++)
        path->points[i].x += x, path->points[i].y += y;
}

// ---- ink ----

// Adds a line from a to b whose half width goes from `from` to `to`; the edge is
// one pixel wide, so that it is antialiased.
static void ink_line(float *ink, int size, struct pen_point a, struct pen_point b, float from,
                     float to) {
    float reach = fmaxf(from, to) + 1;
    int left = (int)fmaxf(0, floorf(fminf(a.x, b.x) - reach));
    int right = (int)fminf((float)size - 1, ceilf(fmaxf(a.x, b.x) + reach));
    int top = (int)fmaxf(0, floorf(fminf(a.y, b.y) - reach));
    int bottom = (int)fminf((float)size - 1, ceilf(fmaxf(a.y, b.y) + reach));
    float dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            float px = (float)x - a.x, py = (float)y - a.y;
            float t = square > 0 ? clamp_float((px * dx + py * dy) / square, 0, 1) : 0;
            float ex = px - t * dx, ey = py - t * dy;
            float distance = sqrtf(ex * ex + ey * ey);
            float cover = clamp_float(from + t * (to - from) - distance + 0.5f, 0, 1);
            float *value = &ink[y * size + x];
            *value = fmaxf(*value, cover);
        }
}

// The pen's half width changes steadily along the path.
static void ink_path(float *ink, int size, const struct pen_path *path, struct random *r) {
    float half = (float)size * random_range(r, 0.024f, 0.058f);
    float end = half * random_range(r, 0.7f, 1.3f), step = (end - half) / (float)path->count;
    for (int i = 1; i < path->count; i++)
        if (!path->starts[i])
            ink_line(ink, size, path->points[i - 1], path->points[i], half + step * (float)(i - 1),
                     half + step * (float)i);
}

// Bright ink on a dark ground, with the grain of a camera.
static void develop_ink(uint8_t *pixels, const float *ink, size_t count, struct random *r) {
    float ground = random_range(r, 0, 0.12f), bright = random_range(r, 0.65f, 1);
    float grain = random_range(r, 0.01f, 0.07f);
    for (size_t i = 0; i < count; i++) {
        float value = ground + (bright - ground) * ink[i] + grain * random_normal(r);
        pixels[i] = (uint8_t)(255 * clamp_float(value, 0, 1) + 0.5f);
    }
}

int digits_draw(struct image *image, int size, uint64_t seed, uint64_t index, struct error *err) {
    if (size < DIGITS_MIN_SIZE || size > DIGITS_MAX_SIZE)
        return error_set(err, STATUS_DATA, "a digit of %d pixels is out of bounds", size);
    // The ink is drawn as floats, then developed into the first quarter of the same memory: a
    // pixel is written only after its float, and all floats before it, have been read.
    int status = image_shape(image, size, size, 1, PIXEL_F32, err);
    if (status)
        return status;
    size_t count = image_values(image);
    memset(image->f32, 0, count * sizeof(float));
    struct random r = random_stream(seed, index, hash_bytes("digits", 6));
    const struct style *style = style_of(&r, digits_label(index));
    struct pen_path path = {0};
    for (int i = 0; i < STROKES && style->strokes[i].count; i++)
        add_stroke(&path, style->strokes[i], &r);
    bend_path(&path, &r);
    place_path(&path, (float)size, &r);
    ink_path(image->f32, size, &path, &r);
    develop_ink(image->u8, image->f32, count, &r);
    return image_shape(image, size, size, 1, PIXEL_U8, err);
}
