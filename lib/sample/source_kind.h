// What a kind of source implements.
#ifndef ADAM_SAMPLE_SOURCE_KIND_H
#define ADAM_SAMPLE_SOURCE_KIND_H

#include "sample/source.h"
#include "store/stream.h"

struct error;

#define SOURCE_MAX_BYTES ((uint64_t)256 << 20)

struct source_kind;

struct source {
    const struct source_kind *kind;
    struct source_options options;
    struct classes *classes;
    const char *path;        // as given; valid while opening
    struct stream *stream;   // NULL for a folder
    void *state;             // of the kind
    bool paths_only;         // source_without_files
    struct targets *targets; // NULL: none, or its taker's
    struct classes unused;   // names that samples with targets have no use for
    uint64_t number;         // of the next sample, for its targets
};

struct source_kind {
    const char *name;
    bool has_folders; // LABEL_PARENT has an answer
    bool has_columns; // LABEL_COLUMN
    bool has_labels;  // in a second file
    // Whether `data`, the first `size` bytes, is of this kind; NULL: cannot tell.
    bool (*recognise)(const char *path, const uint8_t *data, size_t size);
    int (*open)(struct source *source, struct error *err);
    int (*next)(struct source *source, struct sample *sample, bool *more, struct error *err);
    int64_t (*count)(const struct source *source); // NULL: never known
    void (*close)(struct source *source);          // also after a failed open
};

extern const struct source_kind source_folder, source_list, source_tar, source_idx, source_cifar10,
    source_cifar100, source_cifar100_coarse, source_pnm, source_npy, source_image, source_arec;

// Enough of the head of a stream to recognise any kind.
enum { SOURCE_HEAD = 4 * 3074 };

// As source_file, from a stream that is open, and at most max_bytes.
int source_bytes(struct sample *sample, struct stream *stream, uint64_t max_bytes,
                 struct error *err);

// Whether a file name looks like a picture's, so that one in a format we do not
// read is reported and not passed over.
bool source_picture_name(const char *name);

// `path` without its extension, and without "/" and "./" in front.
int source_key_of(struct sample *sample, const char *path, struct error *err);

// Key and path of the sample with this number in its stream.
int source_number(struct source *source, struct sample *sample, uint64_t number, struct error *err);

// Gives the sample the class that its parent folder names; none where there is
// no parent. As classes_label.
int source_label_parent(struct source *source, struct sample *sample, const char *path,
                        struct error *err);

// Gives the sample the class that a text names; a number by classes_number. As these.
int source_label_text(struct source *source, struct sample *sample, const char *text,
                      struct error *err);

// STATUS_SKIPPED in place of STATUS_DATA, so that the source goes on.
int source_skipped(struct error *err);

// Labels of a second file, IDX or npy; and the name it has by custom. STATUS_NOINPUT; STATUS_DATA:
// it is damaged, or does not have as many labels as there are samples.
struct source_labels {
    int32_t *labels; // of the reader's classes
    uint64_t count;
};
int source_labels_open(struct source_labels *labels, const struct source *source, uint64_t samples,
                       struct error *err);
void source_labels_free(struct source_labels *labels);
// "train-labels-idx1-ubyte" for "train-images-idx3-ubyte", "x.2-labels.npy.gz" for
// "x.2.npy.gz"; freed with free(); NULL when out of memory.
char *source_labels_name(const char *path);

#endif
