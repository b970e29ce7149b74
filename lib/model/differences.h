// What overrides of keys have made of the text of a model.
#ifndef ADAM_MODEL_DIFFERENCES_H
#define ADAM_MODEL_DIFFERENCES_H

#include <stdbool.h>

enum { MODEL_DIFFERENCE = 512 }; // of text, its last byte included

// The next line, from *line on, that two texts of as many lines do not share: as "line 3 of the
// model is 'dense d1 units=16 rate=0' now, was 'dense d1 units=16'". *line, 0 at first, counts on;
// false: there are no more.
bool model_difference(char text[MODEL_DIFFERENCE], const char *before, const char *after,
                      int *line);

#endif
