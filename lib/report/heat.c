#include "report/heat.h"

#include <math.h>

#include "core/error.h"
#include "image/codec.h"

enum { SIDE_MOST = 600 }; // pixels: what a page shows without shrinking it

void heat_colour(unsigned char rgb[3], double share, bool right) {
    static const int blue[] = {86, 160, 211}, orange[] = {230, 130, 60};
    const int *colour = right ? blue : orange;
    for (int i = 0; i < 3; i++)
        rgb[i] = (unsigned char)lround(255 - sqrt(share) * (255 - colour[i]));
}

// A block of cells [from, to) on each axis.
struct cells {
    int row, row_end, column, column_end;
};

// The largest share of its class; of right ones, where the block has any.
static void cells_colour(unsigned char rgb[3], const struct tally *tally, const struct cells *b) {
    double most = 0, right = 0;
    for (int row = b->row; row < b->row_end; row++)
        for (int column = b->column; column < b->column_end; column++) {
            size_t at = (size_t)row * (size_t)tally->classes + (size_t)column;
            double *of = row == column ? &right : &most;
            if (tally->truth[row])
                *of = fmax(*of, (double)tally->confusion[at] / (double)tally->truth[row]);
        }
    heat_colour(rgb, right > 0 ? right : most, right > 0);
}

int heat_map(void **png, size_t *size, const struct tally *tally, struct error *err) {
    int step = (tally->classes + SIDE_MOST - 1) / SIDE_MOST;
    int side = (tally->classes + step - 1) / step;
    struct image image = {0};
    int status = image_shape(&image, side, side, 3, PIXEL_U8, err);
    for (int i = 0; i < side * side && status == STATUS_OK; i++) {
        struct cells b = {.row = i / side * step, .column = i % side * step};
        b.row_end = b.row + step < tally->classes ? b.row + step : tally->classes;
        b.column_end = b.column + step < tally->classes ? b.column + step : tally->classes;
        cells_colour(&image.u8[3 * (size_t)i], tally, &b);
    }
    if (status == STATUS_OK)
        status = image_encode(png, size, &image, CODEC_PNG, 0, err);
    image_free(&image);
    return status;
}
