// What a kind of sink implements; for lib/sample only.
#ifndef ADAM_SAMPLE_SINK_KIND_H
#define ADAM_SAMPLE_SINK_KIND_H

#include "sample/sink.h"
#include "store/output.h"

struct error;

struct sink_kind;

struct sink {
    const struct sink_kind *kind;
    struct sink_options options;
    const struct classes *classes;
    char *path;
    struct output *output; // NULL for a folder
    struct image image;    // scratch, to decode into
    void *encoded;         // scratch, of image_encode
    void *singles;         // scratch, of sink_bytes
    size_t singles_size;
    void *state; // of the kind
};

struct sink_kind {
    const char *name;
    bool files;       // makes a folder, and so opens no output
    bool encoded;     // holds encoded pictures
    bool has_labels;  // in a second file
    enum codec codec; // in which pixels are stored when no other is asked for
    int (*open)(struct sink *sink, struct error *err);
    int (*put)(struct sink *sink, const struct sample *sample, struct error *err);
    // Writes what comes at the end; the output is then completed by sink_close.
    int (*finish)(struct sink *sink, struct error *err);
    void (*free)(struct sink *sink); // in any case, also after a failed open
    // The name of the second file that it writes, or NULL; this is NULL: it never does.
    const char *(*second)(const struct sink *sink);
    // A name that must be free, as readers would take that for the second file; NULL as above.
    const char *(*beside)(const struct sink *sink);
};

extern const struct sink_kind sink_arec, sink_tar, sink_folder, sink_idx, sink_pnm, sink_npy;

// The sample encoded: as it is when `codec` allows (CODEC_NONE: any), else by
// `codec` or PNG. The bytes stay valid until the next call.
int sink_encode(struct sink *sink, const struct sample *sample, const void **data, size_t *size,
                enum codec *codec, struct error *err);
// The sample's pixels, decoded if need be; valid until the next call.
int sink_pixels(struct sink *sink, const struct sample *sample, const struct image **image,
                struct error *err);
// The bytes of a picture as files hold them: floats in the byte order asked
// for; valid until the next call.
int sink_bytes(struct sink *sink, const struct image *image, bool big, const void **data,
               size_t *size, struct error *err);
// STATUS_DATA: `name` is another sample's already.
int sink_refuse_twice(const struct sink *sink, const char *name, struct error *err);
// The class name of a sample, or NULL when it has none.
const char *sink_class(const struct sink *sink, const struct sample *sample);

#endif
