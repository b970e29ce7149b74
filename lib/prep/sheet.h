// A contact sheet: many samples of a data set in one picture, to look at them.
#ifndef ADAM_PREP_SHEET_H
#define ADAM_PREP_SHEET_H

#include "prep/inputs.h"

struct error;

struct sheet_config {
    struct inputs_config inputs;
    const struct classes *classes; // as in prepare_config
    int columns, rows;
    int cell;      // side of a cell in pixels; 0: as the first picture, within 16..128
    bool by_class; // a row for each class
    bool random;   // chosen at random from the seed, not the first ones
    uint64_t seed;
    void *context;
    int (*rejected)(void *context, const char *path, const char *reason, struct error *err);
    bool (*stopped)(void);
};

#define SHEET_MAX_CELLS 65536
#define SHEET_MAX_CELL 1024

// Draws the sheet, 8-bit gray, or RGB when any of its pictures has colours.
// *shown is how many pictures are on it; rows below the last of them are left off. Damaged ones are
// passed over. Reads no further than it must. STATUS_DATA when there is nothing to show.
int sheet_draw(struct image *sheet, const struct sheet_config *config, int *shown,
               struct error *err);

#endif
