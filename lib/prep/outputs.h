// The sinks of one run: one for each part of a split, cut into shards when so
// many samples are in one.
#ifndef ADAM_PREP_OUTPUTS_H
#define ADAM_PREP_OUTPUTS_H

#include "sample/sink.h"
#include "sample/split.h"

struct error;

struct outputs; // belongs to one thread

struct outputs_options {
    const char *path; // with %d or %06d where shards are wanted
    const struct split *split;
    struct sink_options sink; // labels_out names like path
    int64_t max_count;        // samples in a shard; 0: no shards
    const char *reject;       // another file that the command writes; NULL: none
};

// Opens the first sink of every part, so that what cannot be created is known
// at once. Everything pointed to outlives it. STATUS_USAGE, also when two files
// have one name, and as sink_open.
int outputs_open(struct outputs **out, const struct outputs_options *options,
                 const struct classes *classes, struct error *err);

// As sink_put and, where a shard is full, as sink_close and sink_open; STATUS_USAGE
// when the next shard has the name of a file that was written before.
int outputs_put(struct outputs *outputs, int part, const struct sample *sample, struct error *err);

// The codec in which samples should come, or CODEC_NONE for pixels; and whether
// a sample in `codec` is kept as it is.
enum codec outputs_codec(const struct outputs *outputs);
bool outputs_keep(const struct outputs *outputs, enum codec codec);

// Puts all in place; frees in any case. As sink_close.
int outputs_close(struct outputs *outputs, struct error *err);
// Removes what was begun and not complete; frees.
void outputs_abort(struct outputs *outputs);

#endif
