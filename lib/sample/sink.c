#include "sample/sink.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "sample/element.h"
#include "sample/sink_kind.h"

static const struct sink_kind *const kinds[] = {
    &sink_arec, &sink_tar, &sink_folder, &sink_idx, &sink_pnm, &sink_npy,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct {
    const char *ending;
    const struct sink_kind *kind;
} endings[] = {
    {".arec", &sink_arec}, {".tar", &sink_tar}, {"-ubyte", &sink_idx},
    {".idx", &sink_idx},   {".pnm", &sink_pnm}, {".pgm", &sink_pnm},
    {".ppm", &sink_pnm},   {".npy", &sink_npy}, {"/", &sink_folder},
};
enum { ENDINGS = sizeof endings / sizeof *endings };

static bool is_folder(const char *path) {
    struct stat stat_of;
    return stat(path, &stat_of) == 0 && S_ISDIR(stat_of.st_mode);
}

static int kind_by_word(const struct sink_kind **kind, const char *name, struct error *err) {
    const char *names[KINDS];
    for (int i = 0; i < KINDS; i++) {
        names[i] = kinds[i]->name;
        *kind = kinds[i];
        if (!strcmp(names[i], name))
            return STATUS_OK;
    }
    const char *near = text_nearest(name, strlen(name), names, KINDS);
    return error_set(err, STATUS_USAGE, "unknown kind of output '%s'%s", name,
                     text_hint(near).text);
}

static int kind_by_name(const struct sink_kind **kind, const char *path, struct error *err) {
    size_t length = output_plain_length(path);
    *kind = is_folder(path) ? &sink_folder : !strcmp(path, "-") ? &sink_arec : NULL;
    for (int i = 0; !*kind && i < ENDINGS; i++) {
        size_t n = strlen(endings[i].ending);
        if (length >= n && !strncmp(path + length - n, endings[i].ending, n))
            *kind = endings[i].kind;
    }
    if (*kind)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s: the name does not say what to write (.arec, .tar, .idx, .npy, .pnm, or "
                     "/ at its end for a folder); --to KIND does",
                     path);
}

// What is asked for and has no place in this kind is a slip of who asks.
static int check_kind(const struct sink *sink, struct error *err) {
    const struct sink_kind *kind = sink->kind;
    const struct sink_options *options = &sink->options;
    bool encoded = kind->encoded;
    if (options->quality && !encoded)
        return error_set(err, STATUS_USAGE, "--quality: %s holds no JPEG", kind->name);
    if (options->quality && options->codec != CODEC_JPEG)
        return error_set(err, STATUS_USAGE, "--quality: only --codec jpeg has one");
    if (options->codec && !encoded && options->codec != kind->codec)
        return error_set(err, STATUS_USAGE, "--codec: %s holds pixels, which no codec encodes",
                         kind->name);
    if (options->labels_out && !kind->has_labels)
        return error_set(err, STATUS_USAGE, "--labels-out: %s has no file of labels", kind->name);
    return STATUS_OK;
}

static int open_sink(struct sink *sink, const char *path, struct error *err) {
    int status = sink->options.to ? kind_by_word(&sink->kind, sink->options.to, err)
                                  : kind_by_name(&sink->kind, path, err);
    if (!status)
        status = check_kind(sink, err);
    if (status)
        return status;
    if (!(sink->path = mem_string(path)))
        return error_nomem(err);
    if (!sink->kind->files)
        status = output_open(&sink->output, path, sink->options.force, err);
    return status ? status : sink->kind->open(sink, err);
}

int sink_open(struct sink **out, const char *path, const struct sink_options *options,
              const struct classes *classes, struct error *err) {
    struct sink *sink = mem_zeroed(1, sizeof *sink);
    if (!sink)
        return error_nomem(err);
    if (options)
        sink->options = *options;
    sink->classes = classes;
    int status = open_sink(sink, path, err);
    if (status) {
        sink_abort(sink);
        return status;
    }
    *out = sink;
    return STATUS_OK;
}

int sink_put(struct sink *sink, const struct sample *sample, struct error *err) {
    if (sample->label != LABEL_NONE && !sink_class(sink, sample))
        return error_set(err, STATUS_DATA, "%s: sample '%s' has label %d, which has no class name",
                         sink->path, sample->key, sample->label);
    return sink->kind->put(sink, sample, err);
}

enum codec sink_codec(const struct sink *sink) {
    if (!sink->kind->encoded)
        return CODEC_NONE;
    return sink->options.codec ? sink->options.codec : sink->kind->codec;
}

bool sink_keeps(const struct sink *sink, enum codec codec) {
    enum codec wanted = sink->options.codec;
    return sink->kind->encoded && codec && (!wanted || wanted == codec);
}

void sink_names(const struct sink *sink, const char *names[3]) {
    names[0] = sink->output ? output_name(sink->output) : sink->path;
    names[1] = sink->kind->second ? sink->kind->second(sink) : NULL;
    names[2] = sink->kind->beside ? sink->kind->beside(sink) : NULL;
}

static void free_all_but_output(struct sink *sink) {
    if (sink->kind)
        sink->kind->free(sink);
    image_free(&sink->image);
    free(sink->encoded);
    free(sink->singles);
    free(sink->path);
    free(sink);
}

int sink_close(struct sink *sink, struct error *err) {
    int status = sink->kind->finish(sink, err);
    if (!status && sink->output)
        status = output_close(sink->output, err);
    else
        output_abort(sink->output);
    free_all_but_output(sink);
    return status;
}

void sink_abort(struct sink *sink) {
    if (!sink)
        return;
    output_abort(sink->output);
    free_all_but_output(sink);
}

const char *sink_class(const struct sink *sink, const struct sample *sample) {
    bool known = sink->classes && sample->label >= 0 && sample->label < sink->classes->count;
    return known ? sink->classes->names[sample->label] : NULL;
}

int sink_refuse_twice(const struct sink *sink, const char *name, struct error *err) {
    return error_set(err, STATUS_DATA,
                     "%s: two samples have the name '%s'; --name '{number}' gives each its own",
                     sink->path, name);
}

int sink_pixels(struct sink *sink, const struct sample *sample, const struct image **image,
                struct error *err) {
    *image = &sample->image;
    if (sample->encoded_size == 0)
        return STATUS_OK;
    *image = &sink->image;
    int status = image_decode(&sink->image, sample->encoded, sample->encoded_size,
                              &(struct decode_options){0}, err);
    return status ? error_context(err, "%s", sample->path ? sample->path : sample->key) : status;
}

int sink_encode(struct sink *sink, const struct sample *sample, const void **data, size_t *size,
                enum codec *codec, struct error *err) {
    enum codec wanted = sink->options.codec;
    *codec = codec_of(sample->encoded, sample->encoded_size);
    if (sample->encoded_size > 0 && *codec != CODEC_NONE && (!wanted || wanted == *codec)) {
        *data = sample->encoded;
        *size = sample->encoded_size;
        return STATUS_OK;
    }
    const struct image *image;
    int status = sink_pixels(sink, sample, &image, err);
    if (status)
        return status;
    free(sink->encoded);
    sink->encoded = NULL;
    *codec = wanted ? wanted : CODEC_PNG;
    status = image_encode(&sink->encoded, size, image, *codec, sink->options.quality, err);
    *data = sink->encoded;
    return status ? error_context(err, "%s", sample->key) : status;
}

int sink_bytes(struct sink *sink, const struct image *image, bool big, const void **data,
               size_t *size, struct error *err) {
    *size = image_bytes(image);
    *data = image->data;
    if (image->type == PIXEL_U8)
        return STATUS_OK;
    if (*size > sink->singles_size) {
        void *singles = mem_resize(sink->singles, *size, 1);
        if (!singles)
            return error_nomem(err);
        sink->singles = singles;
        sink->singles_size = *size;
    }
    element_singles(sink->singles, image->f32, image_values(image), big);
    *data = sink->singles;
    return STATUS_OK;
}
