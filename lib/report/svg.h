// Vector graphics (SVG 1.1), written as they are drawn. Lengths are pixels, y
// grows downward. Errors show in the stream: check ferror() at the end.
#ifndef ADAM_REPORT_SVG_H
#define ADAM_REPORT_SVG_H

#include <stddef.h>
#include <stdio.h>

struct svg {
    FILE *out; // the caller's
};

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

// Opens the drawing with a white ground and `title` for those who cannot see it.
void svg_open(struct svg *svg, FILE *out, double width, double height, const char *title);
void svg_close(struct svg *svg);

void svg_line(struct svg *svg, double x1, double y1, double x2, double y2, const char *colour,
              double width);
// n points joined; dash may be NULL. opacity 0..1.
void svg_path(struct svg *svg, const double *x, const double *y, size_t n, const char *colour,
              double width, const char *dash, double opacity);
// With a white rim, so that it stands out from lines.
void svg_dot(struct svg *svg, double x, double y, double radius, const char *colour);
void svg_text(struct svg *svg, double x, double y, enum anchor anchor, double size,
              const char *colour, int bold, const char *text);

#endif
