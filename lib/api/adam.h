// libadam: predictions of a trained model, for programs in C and what can call it. adam(3).
//
// A function that can fail returns ADAM_OK or another status, and says why in *error, which may be
// NULL. Any number of threads may predict with one model at a time.
#ifndef ADAM_API_ADAM_H
#define ADAM_API_ADAM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ADAM_PUBLIC __attribute__((visibility("default")))

enum adam_status {
    ADAM_OK = 0,
    ADAM_DATA = 65,    // a damaged picture or checkpoint, or a picture that does not fit the model
    ADAM_NOINPUT = 66, // a file cannot be read
    ADAM_IO = 74,      // out of memory, or an error while reading
};

#define ADAM_MESSAGE 2048

struct adam_error {
    int status;
    char message[ADAM_MESSAGE]; // for people: one or more lines, without the last newline
};

struct adam_model;

// Opens a model: the folder of a run (its latest checkpoint), of a checkpoint, or a file in it.
// *model is to be closed with adam_close; NULL after a failure.
ADAM_PUBLIC int adam_open(struct adam_model **model, const char *path, struct adam_error *error);
// No thread may be predicting with it. NULL: nothing.
ADAM_PUBLIC void adam_close(struct adam_model *model);

// The shape that the model reads.
ADAM_PUBLIC void adam_input(const struct adam_model *model, int *channels, int *height, int *width);
// Number of classes, and the name of each, 0 to one less; valid until adam_close.
ADAM_PUBLIC int adam_classes(const struct adam_model *model);
ADAM_PUBLIC const char *adam_class(const struct adam_model *model, int index);

// Predicts one picture, the bytes of a JPEG, PNG or PNM file: writes adam_classes() scores. The
// operations of the model's input are applied to it first.
ADAM_PUBLIC int adam_predict(struct adam_model *model, const void *bytes, size_t size,
                             float *scores, struct adam_error *error);
// Predicts `count` samples that are ready for the model, each channels x height x width floats as
// after its operations; writes count x adam_classes() scores.
ADAM_PUBLIC int adam_predict_floats(struct adam_model *model, const float *values, int count,
                                    float *scores, struct adam_error *error);

#ifdef __cplusplus
}
#endif

#endif
