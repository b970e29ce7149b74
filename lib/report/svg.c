#include "report/svg.h"

#include "report/markup.h"

void svg_open(struct svg *svg, FILE *out, double width, double height, const char *title) {
    svg->out = out;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" role=\"img\" font-family=\"system-ui, 'Liberation Sans', 'DejaVu "
            "Sans', Arial, sans-serif\">\n<title>",
            width, height, width, height);
    markup_text(out, title);
    fputs("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", out);
}

void svg_close(struct svg *svg) {
    fputs("</svg>\n", svg->out);
}

void svg_line(struct svg *svg, double x1, double y1, double x2, double y2, const char *colour,
              double width) {
    fprintf(svg->out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"%.2g\"/>\n",
            x1, y1, x2, y2, colour, width);
}

void svg_path(struct svg *svg, const double *x, const double *y, size_t n, const char *colour,
              double width, const char *dash, double opacity) {
    fputs("<polyline points=\"", svg->out);
    for (size_t i = 0; i < n; i++)
        fprintf(svg->out, "%s%.1f,%.1f", i ? " " : "", x[i], y[i]);
    fprintf(svg->out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.2g\" stroke-linejoin=\"round\" "
            "stroke-linecap=\"round\"",
            colour, width);
    if (dash)
        fprintf(svg->out, " stroke-dasharray=\"%s\"", dash);
    if (opacity < 1)
        fprintf(svg->out, " stroke-opacity=\"%.2g\"", opacity);
    fputs("/>\n", svg->out);
}

void svg_dot(struct svg *svg, double x, double y, double radius, const char *colour) {
    fprintf(svg->out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.2g\" fill=\"%s\" stroke=\"#ffffff\" "
            "stroke-width=\"1\"/>\n",
            x, y, radius, colour);
}

void svg_text(struct svg *svg, double x, double y, enum anchor anchor, double size,
              const char *colour, int bold, const char *text) {
    static const char *const anchors[] = {"start", "middle", "end"};
    fprintf(svg->out,
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%.3g\" fill=\"%s\"%s>", x,
            y, anchors[anchor], size, colour, bold ? " font-weight=\"600\"" : "");
    markup_text(svg->out, text);
    fputs("</text>\n", svg->out);
}
