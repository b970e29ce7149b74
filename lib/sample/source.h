// Where samples come from: one interface over every kind of input.
//
//   kind    what                                    recognised by
//   folder  a folder per class                      a directory
//   list    paths, one a line (or NUL-separated)    --files-from
//   tar     key.jpg key.cls members (libarchive)    "ustar" at byte 257
//   idx     MNIST IDX, labels in a second file      00 00 type dimensions
//   cifar10, cifar100   binary records              name *.bin and labels in bounds, or --from
//   cifar100-coarse     with the 20 coarse labels   --from only
//   pnm     a stream of P1..P6 pictures             'P' and a digit
//   npy     numpy array N x H x W [x C] or N x D    93 'NUMPY'
//   image   a single JPEG or PNG file               its first bytes
//   arec    our records (adam-records(5))           "adamrec"
#ifndef ADAM_SAMPLE_SOURCE_H
#define ADAM_SAMPLE_SOURCE_H

#include <stdbool.h>

#include "sample/sample.h"

struct error;
struct targets;

struct source; // belongs to one thread

enum label_from {
    LABEL_DEFAULT, // as the kind has it
    LABEL_PARENT,  // folder, list, tar, image: name of the parent folder
    LABEL_COLUMN,  // list only: path, tab, class name
    LABEL_NO,      // no labels
};

// How a source reaches the program around it. A function may be NULL.
struct source_hooks {
    void *self;
    bool (*stop)(void *self);                  // asked while it waits for a pipe (store/stream.h)
    void (*say)(void *self, const char *text); // a line for the user (data/dataset.h)
};

struct source_options {
    const char *from; // a kind of the table above, NULL to recognise
    // A second file with labels (idx and npy only). NULL: the one beside it that has the
    // customary name, if there is one (train-labels-idx1-ubyte, x-labels.npy).
    const char *labels;
    // A table of targets (sample/targets.h), which samples have in the place of labels; NULL: none.
    const char *targets;
    enum label_from label_from;
    char separator;     // of a list: '\n' or 0
    uint64_t max_bytes; // of one encoded sample; 0 means 256 MiB
    // Paths of a list were named one by one, so that pipes among them are meant. Else what is
    // no regular file is skipped, as it is in folders.
    bool each_named;
    struct decode_options decode;
    struct source_hooks hooks;
};

// `path` may be "-" for standard input. Gzip, zstd and xz are undone for every
// kind. `classes` belongs to the caller, outlives the source, and is added to
// as names come (a folder's names at once, in sorted order; else in order of
// appearance); a name that is already there keeps its label. Labels that are
// numbers become the classes "0", "1"...; CIFAR has its own names. A folder that
// holds a classes.txt, as adam-prep writes it, has the order of that file. Where there
// are targets, the names are those of their columns or classes (targets_open), and a
// sample without targets is reported (STATUS_SKIPPED). A link
// in a folder that leads back to a folder it is in is reported (STATUS_SKIPPED).
// STATUS_NOINPUT, STATUS_DATA, STATUS_IO, STATUS_STOPPED; STATUS_USAGE when its kind has no labels
// where the options look for them.
int source_open(struct source **out, const char *path, const struct source_options *options,
                struct classes *classes, struct error *err);

// The same from a list of paths (kind "list"): `path` is the list, or "-".
int source_open_list(struct source **out, const char *path, const struct source_options *options,
                     struct classes *classes, struct error *err);

// The next sample into `sample`, or *more = false at the end. JPEG, PNG and PNM
// files come encoded, the rest decoded.
// STATUS_SKIPPED: this one is bad (sample->path says which, err says why, without
// the path, and sample->missing how many samples that costs) and the next call goes
// on behind it. Any other status ends the source, and err names it.
int source_next(struct source *source, struct sample *sample, bool *more, struct error *err);

// Samples that are files of their own come without their bytes from now on; source_file
// reads these when they are wanted. Gives the most bytes that one may have; 0: samples of
// this kind come whole.
uint64_t source_without_files(struct source *source);
// Reads sample->path, at most options->max_bytes, into sample->encoded. What fails is
// STATUS_SKIPPED, also what is no regular file unless options->each_named.
int source_file(struct sample *sample, const struct source_options *options, struct error *err);

// Whether it is a regular file of records (arec) whose labels are wanted, so that samples can
// be read by their offset.
bool source_has_offsets(const struct source *source);
// Of such a source: the file offset of the chunk that the last sample came from.
uint64_t source_offset(const struct source *source);

// Whether a report is no loss (sample->no_loss). If so, hooks.say tells the user, and a
// reader that wants all samples can go on.
bool source_passes_over(const struct source *source, const struct sample *sample,
                        const struct error *why);

// Which kind of input ("arec", "tar") the first bytes of the file `path` look like; NULL: none.
const char *source_recognised(const char *path, const uint8_t *data, size_t size);

// Numbers that each sample has as targets; 0: it has a label, if anything.
int source_targets(const struct source *source);
// The table of them, which is the caller's from now on, who finds rows in it: samples come without
// targets. NULL: there is none. Before the first sample.
struct targets *source_take_targets(struct source *source);

// How many samples there will be, or -1 when the kind cannot know before the end.
int64_t source_count(const struct source *source);

// The name of its kind ("tar"), for messages and `adam-prep stat`.
const char *source_kind(const struct source *source);

void source_close(struct source *source);

#endif
