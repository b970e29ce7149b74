#include "prep/outputs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/mem.h"
#include "sample/keyset.h"
#include "store/output.h"

struct split_sink {
    struct sink *sink;
    int64_t in_shard, shard;
};

struct outputs {
    struct outputs_options options;
    const struct classes *classes;
    struct split_sink parts[SPLIT_PARTS];
    struct keyset places; // of all files so far, by output_place
};

// That no file of this command, of whatever shard or part, has the place of another, or one where
// readers of another look for its labels.
static int claim_place(struct outputs *o, const char *path, struct error *err) {
    char *place = output_place(path);
    bool again = false;
    int status = place ? keyset_add(&o->places, place, &again, err) : error_nomem(err);
    free(place);
    return status || !again
               ? status
               : error_set(err, STATUS_USAGE,
                           "two outputs of this command have the name %s, or labels of one are "
                           "looked for there; other names of the parts, -o with {split}, or "
                           "--labels-out part them",
                           path);
}

// The end of the place for a shard's number, "%d" or "%06d", that begins at `percent`; NULL when
// it is none.
static const char *place_end(const char *percent, int *width) {
    const char *p = percent + 1;
    bool zero = *p == '0';
    *width = 0;
    while (isdigit((unsigned char)*p) && *width < 20)
        *width = *width * 10 + *p++ - '0';
    return *p != 'd' || *width > 20 || (*width && !zero) ? NULL : p + 1;
}

// The next such place; NULL when there is none.
static const char *shard_place(const char *path, const char **end, int *width) {
    const char *percent = strchr(path, '%');
    while (percent && !(*end = place_end(percent, width)))
        percent = strchr(percent + 1, '%');
    return percent;
}

static char *shard_path(const char *path, int64_t shard) {
    struct grow result = {0};
    const char *at, *end;
    int width;
    for (; (at = shard_place(path, &end, &width)); path = end) {
        grow_put(&result, path, (size_t)(at - path));
        grow_format(&result, "%0*lld", width, (long long)shard);
    }
    grow_put(&result, path, strlen(path));
    return grow_take(&result);
}

// The path of a part's shard, from a pattern. NULL stays NULL.
static int sink_name(char **out, const struct outputs *o, int part, const char *pattern,
                     struct error *err) {
    *out = NULL;
    if (!pattern)
        return STATUS_OK;
    char *of_part = split_path(o->options.split, part, pattern);
    if (!of_part)
        return error_nomem(err);
    *out = o->options.max_count ? shard_path(of_part, o->parts[part].shard) : mem_string(of_part);
    free(of_part);
    return *out ? STATUS_OK : error_nomem(err);
}

static int open_named_sink(struct outputs *o, int part, const char *path, const char *labels,
                           struct error *err) {
    struct sink_options options = o->options.sink;
    const char *names[3];
    options.labels_out = labels;
    int status = claim_place(o, path, err);
    if (!status && labels)
        status = claim_place(o, labels, err);
    if (!status)
        status = sink_open(&o->parts[part].sink, path, &options, o->classes, err);
    if (status)
        return status;
    sink_names(o->parts[part].sink, names);
    if (!labels && names[1])
        status = claim_place(o, names[1], err);
    return status || !names[2] ? status : claim_place(o, names[2], err);
}

static int open_part_sink(struct outputs *o, int part, struct error *err) {
    char *path, *labels = NULL;
    int status = sink_name(&path, o, part, o->options.path, err);
    if (!status)
        status = sink_name(&labels, o, part, o->options.sink.labels_out, err);
    if (!status)
        status = open_named_sink(o, part, path, labels, err);
    free(path);
    free(labels);
    return status;
}

// Each shard needs names of its own, so there must be a place for its number.
static int check_shards(const char *path, struct error *err) {
    const char *end;
    int width;
    if (!path || shard_place(path, &end, &width))
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "--max-count: '%s' has no %%06d for the number of the shard", path);
}

static int check_names(const struct outputs_options *options, struct error *err) {
    int status = options->max_count ? check_shards(options->path, err) : STATUS_OK;
    if (!status && options->max_count)
        status = check_shards(options->sink.labels_out, err);
    if (!status && options->sink.labels_out && !strcmp(options->sink.labels_out, options->path))
        status =
            error_set(err, STATUS_USAGE, "--labels-out: '%s' is the output itself", options->path);
    if (status)
        return status;
    if (options->split->count > 1 && output_is_stream(options->path))
        return error_set(err, STATUS_USAGE, "--split needs a file for each part, not %s",
                         strcmp(options->path, "-") ? options->path : "standard output");
    return STATUS_OK;
}

int outputs_open(struct outputs **out, const struct outputs_options *options,
                 const struct classes *classes, struct error *err) {
    int status = check_names(options, err);
    if (status)
        return status;
    struct outputs *o = mem_zeroed(1, sizeof *o);
    if (!o)
        return error_nomem(err);
    o->options = *options, o->classes = classes;
    if (options->reject)
        status = claim_place(o, options->reject, err);
    for (int part = 0; part < options->split->count && !status; part++)
        status = open_part_sink(o, part, err);
    if (status)
        outputs_abort(o);
    else
        *out = o;
    return status;
}

static int next_shard(struct outputs *o, struct split_sink *part, struct error *err) {
    struct sink *full = part->sink;
    part->sink = NULL;
    int status = sink_close(full, err);
    if (status)
        return status;
    part->in_shard = 0, part->shard++;
    return open_part_sink(o, (int)(part - o->parts), err);
}

int outputs_put(struct outputs *outputs, int part, const struct sample *sample, struct error *err) {
    struct split_sink *p = &outputs->parts[part];
    if (outputs->options.max_count && p->in_shard == outputs->options.max_count) {
        int status = next_shard(outputs, p, err);
        if (status)
            return status;
    }
    p->in_shard++;
    return sink_put(p->sink, sample, err);
}

enum codec outputs_codec(const struct outputs *outputs) {
    return sink_codec(outputs->parts[0].sink);
}

bool outputs_keep(const struct outputs *outputs, enum codec codec) {
    return sink_keeps(outputs->parts[0].sink, codec);
}

int outputs_close(struct outputs *outputs, struct error *err) {
    int status = STATUS_OK;
    for (int part = 0; part < outputs->options.split->count && !status; part++) {
        struct sink *sink = outputs->parts[part].sink;
        outputs->parts[part].sink = NULL;
        status = sink_close(sink, err);
    }
    outputs_abort(outputs);
    return status;
}

void outputs_abort(struct outputs *outputs) {
    if (!outputs)
        return;
    for (int part = 0; part < SPLIT_PARTS; part++)
        if (outputs->parts[part].sink)
            sink_abort(outputs->parts[part].sink);
    keyset_free(&outputs->places);
    free(outputs);
}
