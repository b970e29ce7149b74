// Where samples go: one interface over every kind of output.
//
//   kind    chosen by                            what
//   arec    *.arec                               our records (adam-records(5))
//   tar     *.tar *.tar.gz *.tar.zst             key.ext key.cls, same bytes twice
//   folder  name ending in /, or a directory     class/key.ext, and classes.txt
//   idx     *-ubyte *-ubyte.gz *.idx             IDX; labels beside it (see --labels-out)
//   pnm     *.pnm *.pgm *.ppm                    a stream of pictures
//   npy     *.npy                                N x H x W [x C]; labels beside it
// "-" is standard output, arec unless `to` says otherwise; never a terminal. There, and on pipes
// and devices, labels of idx and npy have no place, unless `labels_out` gives them one, and are
// refused. In pnm they have none anywhere. A file that has the customary name of the labels of an
// idx or npy would be read with it: where it is none of the new ones, it is refused as an existing
// output is, and removed by `force`. Any kind but folder is compressed when its name ends in .gz,
// .zst or .xz.
#ifndef ADAM_SAMPLE_SINK_H
#define ADAM_SAMPLE_SINK_H

#include <stdbool.h>

#include "sample/sample.h"

struct error;

struct sink; // belongs to one thread

struct sink_options {
    const char *to;         // a kind, NULL to choose by the name
    const char *labels_out; // where idx and npy put the labels; NULL for the customary name
    enum codec codec;       // for pixels in tar, folder and arec; CODEC_NONE: arec raw, else PNG
    int quality;            // of JPEG, with CODEC_JPEG; 0 means 92
    bool force;             // overwrite what exists
};

// Writes under a temporary name; nothing appears before sink_close.
// `classes` is read at sink_close (and for folder names before).
// STATUS_USAGE, also when the options ask for what the kind does not have; STATUS_CANTCREATE,
// STATUS_IO.
int sink_open(struct sink **out, const char *path, const struct sink_options *options,
              const struct classes *classes, struct error *err);

// Takes nothing over. A sample that is still encoded, and whose codec the sink
// may keep, is written as it is, without decoding.
// STATUS_DATA when the kind cannot hold it (another shape in idx or npy), STATUS_CANTCREATE,
// STATUS_IO.
int sink_put(struct sink *sink, const struct sample *sample, struct error *err);

// The codec in which pixels end up here, so that they can be encoded before, by
// many threads; CODEC_NONE when they are stored as pixels. And whether a sample
// that is encoded in `codec` already is stored as it is.
enum codec sink_codec(const struct sink *sink);
bool sink_keeps(const struct sink *sink, enum codec codec);

// The names of the output, of a second file with labels or NULL, and of the customary place of
// labels that go elsewhere, or NULL. Valid as long as the sink is.
void sink_names(const struct sink *sink, const char *names[3]);

// Completes the output and puts it in place; frees the sink in any case. STATUS_DATA: what was put
// makes no output of the kind, such as an idx without samples; STATUS_CANTCREATE, STATUS_IO.
int sink_close(struct sink *sink, struct error *err);
// Removes what was begun; frees the sink.
void sink_abort(struct sink *sink);

#endif
