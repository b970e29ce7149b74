// One sample on its way through the programs, and the table of class names.
#ifndef ADAM_SAMPLE_SAMPLE_H
#define ADAM_SAMPLE_SAMPLE_H

#include <stdint.h>

#include "image/codec.h"
#include "image/image.h"

struct error;

// Class names in label order; the label is the index. Names are unique; only the
// functions below add them.
struct classes {
    char **names;
    int count;
    uint32_t *slots; // hash table over names: label + 1, or 0; kept by the functions below
    uint32_t slot_count;
};

#define CLASSES_MAX 1000000
#define CLASS_NAME_MAX 255 // bytes

// The label of `name`, or -1.
int classes_find(const struct classes *classes, const char *name);
// STATUS_DATA: `where` has a class `name` that is none of the first `count`, which are the
// model's and are listed as far as they fit into a line.
int classes_unknown(const struct classes *classes, int count, const char *where, const char *name,
                    struct error *err);
// As classes_find, adding the name at the end when it is new.
// STATUS_DATA when the name is empty, too long or holds a control character.
int classes_label(struct classes *classes, const char *name, int *label, struct error *err);
// The label of the class whose name is the decimal number. While all names are
// "0", "1", "2"... in order, the missing ones up to it are added, so that label
// and number agree.
int classes_number(struct classes *classes, int64_t number, int *label, struct error *err);
// Adds the names of a file, one a line; those that are there keep their labels.
// STATUS_NOINPUT, STATUS_DATA with the line, also for a name that comes twice.
int classes_read(struct classes *classes, const char *path, struct error *err);
int classes_copy(struct classes *to, const struct classes *from, struct error *err);
void classes_free(struct classes *classes);

#define LABEL_NONE (-1)

// A sample is either encoded (JPEG, PNG or PNM bytes, `encoded_size` > 0) or
// decoded (`image`). It owns all it points to, and what it owns is used again
// from sample to sample.
struct sample {
    char *key; // names the sample within its set: path without extension, or number
    // Key of the sample that it is a copy of, made by adam-prep; NULL or empty: it is none.
    char *original;
    char *path;    // where it came from, for messages: file, or archive and member
    int32_t label; // LABEL_NONE when it has none
    // What it has in the place of a label, of the source and as long as that; NULL: nothing.
    const float *targets;
    // Of a report (STATUS_SKIPPED of source_next) in its place: how many samples are missing
    // by it. Usually 1; 0 when what is wrong is no sample, such as the end of a file.
    uint64_t missing;
    // Of a report: it is on what was never a sample, such as a link in a folder that leads back, or
    // one in an archive that has no picture's name.
    bool no_loss;
    uint8_t *encoded;
    size_t encoded_size, encoded_capacity;
    struct image image;
};

int sample_key(struct sample *sample, const char *key, struct error *err);
int sample_original(struct sample *sample, const char *key, struct error *err);
// The original's key, or its own.
const char *sample_origin(const struct sample *sample);
int sample_path(struct sample *sample, const char *path, struct error *err);
// "NAME: sample NUMBER"
int sample_path_number(struct sample *sample, const char *name, uint64_t number, struct error *err);
// A key that is a number, with zeros in front, so that keys sort as they come.
int sample_key_number(struct sample *sample, uint64_t number, struct error *err);
// Room for `size` encoded bytes; those that are there are kept.
int sample_reserve(struct sample *sample, size_t size, struct error *err);
// Decodes if it is still encoded. As image_decode; the error names the path.
int sample_decode(struct sample *sample, const struct decode_options *options, struct error *err);
void sample_swap(struct sample *a, struct sample *b);
void sample_free(struct sample *sample);

#endif
