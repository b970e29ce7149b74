#include "image/perspective.h"

// (x, y) becomes ((a x + b y + c) / w, (d x + e y + f) / w), w = g x + h y + i.
struct projection {
    double a, b, c, d, e, f, g, h, i;
};

// Of the unit square to the quadrangle.
static struct projection to_quadrangle(const struct quadrangle *to) {
    const struct point *p = to->corner;
    double x1 = p[1].x - p[2].x, x2 = p[3].x - p[2].x, x = p[0].x - p[3].x - x1;
    double y1 = p[1].y - p[2].y, y2 = p[3].y - p[2].y, y = p[0].y - p[3].y - y1;
    double area = x1 * y2 - x2 * y1;
    double g = (x * y2 - x2 * y) / area, h = (x1 * y - x * y1) / area;
    return (struct projection){
        .a = p[1].x - p[0].x + g * p[1].x,
        .b = p[3].x - p[0].x + h * p[3].x,
        .c = p[0].x,
        .d = p[1].y - p[0].y + g * p[1].y,
        .e = p[3].y - p[0].y + h * p[3].y,
        .f = p[0].y,
        .g = g,
        .h = h,
        .i = 1,
    };
}

// The adjugate: a factor for all nine changes nothing.
static struct projection inverse(const struct projection *m) {
    return (struct projection){
        .a = m->e * m->i - m->f * m->h,
        .b = m->c * m->h - m->b * m->i,
        .c = m->b * m->f - m->c * m->e,
        .d = m->f * m->g - m->d * m->i,
        .e = m->a * m->i - m->c * m->g,
        .f = m->c * m->d - m->a * m->f,
        .g = m->d * m->h - m->e * m->g,
        .h = m->b * m->g - m->a * m->h,
        .i = m->a * m->e - m->b * m->d,
    };
}

void perspective_fields(float *dx, float *dy, int width, int height, const struct quadrangle *to) {
    struct projection forward = to_quadrangle(to), m = inverse(&forward);
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++) {
            double x = (column + 0.5) / width, y = (row + 0.5) / height;
            double scale = 1 / (m.g * x + m.h * y + m.i);
            *dx++ = (float)(width * ((m.a * x + m.b * y + m.c) * scale - x));
            *dy++ = (float)(height * ((m.d * x + m.e * y + m.f) * scale - y));
        }
}
