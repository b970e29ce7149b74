#include "prep/inputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "prep/park.h"
#include "sample/packed.h"

// An input whose samples are kept because it can be read only once.
struct kept_range {
    bool kept;
    uint64_t from, to;
};

struct inputs {
    struct inputs_config config;
    struct classes *classes; // the caller's
    struct classes own;      // those of the sources, when they are filtered or renumbered
    bool fixed;              // `classes` does not grow
    bool by_line;            // and none of its names is a number, so that numbers are its lines
    size_t at, count;        // inputs
    struct source *source;   // the input that is being read, or
    bool replaying;          // what was kept of it
    struct park_reader reader;
    bool rewound; // what must be kept is kept
    struct park *park;
    struct kept_range *kept;
    int64_t taken;
    bool some;  // samples or reports came, wanted or not
    bool *seen; // by class of config.only: whether it came
};

static const char *input_path(const struct inputs *inputs, size_t input) {
    return input < inputs->config.path_count ? inputs->config.paths[input]
                                             : inputs->config.files_from;
}

// Only files and folders give the same twice.
static bool readable_again(const char *path) {
    struct stat info;
    return strcmp(path, "-") != 0 && stat(path, &info) == 0 &&
           (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

// The line of a list of classes, from 0, that a class is when its name is a number.
static bool class_line(const char *name, int64_t *line) {
    return text_plain_integer(name, line) && *line >= 0;
}

static bool has_numbers(const struct classes *classes) {
    int64_t line;
    for (int i = 0; i < classes->count; i++)
        if (class_line(classes->names[i], &line))
            return true;
    return false;
}

int inputs_open(struct inputs **out, const struct inputs_config *config, struct classes *classes,
                struct error *err) {
    struct inputs *inputs = mem_zeroed(1, sizeof *inputs);
    if (!inputs)
        return error_nomem(err);
    *inputs = (struct inputs){.config = *config,
                              .classes = classes,
                              .fixed = classes->count > 0,
                              .by_line = !has_numbers(classes),
                              .count = config->path_count + (config->files_from != NULL)};
    inputs->kept = mem_zeroed(inputs->count, sizeof *inputs->kept);
    inputs->seen = mem_zeroed(config->only_count + 1, sizeof *inputs->seen);
    int status = inputs->kept && inputs->seen ? STATUS_OK : error_nomem(err);
    for (size_t i = 0; config->again && i < inputs->count && !status; i++) {
        inputs->kept[i].kept = !readable_again(input_path(inputs, i));
        if (inputs->kept[i].kept && !inputs->park)
            status = park_open(&inputs->park, err);
    }
    if (status)
        inputs_close(inputs);
    else
        *out = inputs;
    return status;
}

const char *inputs_kind(const struct inputs *inputs) {
    return inputs->source ? source_kind(inputs->source) : "";
}

static void close_input(struct inputs *inputs) {
    source_close(inputs->source);
    inputs->source = NULL;
    park_reader_free(&inputs->reader);
    inputs->replaying = false;
}

void inputs_close(struct inputs *inputs) {
    if (!inputs)
        return;
    close_input(inputs);
    park_close(inputs->park);
    classes_free(&inputs->own);
    free(inputs->kept);
    free(inputs->seen);
    free(inputs);
}

static struct classes *source_classes(struct inputs *inputs) {
    return inputs->fixed || inputs->config.only_count ? &inputs->own : inputs->classes;
}

static int open_next_input(struct inputs *inputs, struct error *err) {
    struct kept_range *kept = &inputs->kept[inputs->at];
    if (inputs->rewound && kept->kept) {
        inputs->replaying = true;
        return park_read(&inputs->reader, inputs->park, kept->from, kept->to, 1 << 16, err);
    }
    if (kept->kept)
        kept->from = park_end(inputs->park);
    const char *path = input_path(inputs, inputs->at);
    struct source_options options = inputs->config.source;
    if (inputs->rewound)
        options.hooks.say = NULL; // it is said already
    return inputs->at < inputs->config.path_count
               ? source_open(&inputs->source, path, &options, source_classes(inputs), err)
               : source_open_list(&inputs->source, path, &options, source_classes(inputs), err);
}

// A kept sample is the reason why it is bad (empty: it is good), a zero byte, what is lost by that,
// and the packed sample.
struct kept_loss {
    uint64_t missing;
    bool no_loss;
};

static int keep_sample(struct inputs *inputs, const struct sample *sample, const char *reason,
                       struct error *err) {
    struct kept_range *kept = &inputs->kept[inputs->at];
    struct kept_loss loss = {sample->missing, sample->no_loss};
    size_t at = strlen(reason) + 1, packed = at + sizeof loss;
    size_t size = packed + packed_size(sample);
    uint8_t *piece = mem_array(size, 1);
    if (!piece)
        return error_nomem(err);
    memcpy(piece, reason, at);
    memcpy(piece + at, &loss, sizeof loss);
    packed_write(piece + packed, sample);
    int status = park_put(inputs->park, piece, size, err);
    free(piece);
    kept->to = park_end(inputs->park);
    return status;
}

static int replay_sample(struct inputs *inputs, struct sample *sample, bool *more,
                         struct error *err) {
    int status = park_next(&inputs->reader, more, err);
    if (status || !*more)
        return status;
    const char *reason = (const char *)inputs->reader.piece;
    struct kept_loss loss;
    size_t at = strnlen(reason, inputs->reader.size) + 1, packed = at + sizeof loss;
    if (packed > inputs->reader.size)
        return error_set(err, STATUS_IO, "a temporary file is damaged");
    memcpy(&loss, inputs->reader.piece + at, sizeof loss);
    sample->missing = loss.missing;
    sample->no_loss = loss.no_loss;
    status = packed_read(sample, inputs->reader.piece + packed, inputs->reader.size - packed, err);
    if (!status && *reason)
        status = error_set(err, STATUS_SKIPPED, "%s", reason);
    return status;
}

// The next sample of the current input, kept when it must be.
static int next_of_input(struct inputs *inputs, struct sample *sample, bool *more,
                         struct error *err) {
    if (inputs->replaying)
        return replay_sample(inputs, sample, more, err);
    int status = source_next(inputs->source, sample, more, err);
    bool bad = status == STATUS_SKIPPED, good = !status && *more;
    if (inputs->kept[inputs->at].kept && (bad || good)) {
        int kept = keep_sample(inputs, sample, bad ? err->text : "", err);
        status = kept ? kept : status;
    }
    return status;
}

static bool class_is_wanted(struct inputs *inputs, const char *name) {
    for (size_t i = 0; i < inputs->config.only_count; i++)
        if (!strcmp(inputs->config.only[i], name)) {
            inputs->seen[i] = true;
            return true;
        }
    return inputs->config.only_count == 0;
}

static int fixed_label(const struct inputs *inputs, const char *name, int *label,
                       struct error *err) {
    int64_t line;
    *label = classes_find(inputs->classes, name);
    if (*label < 0 && inputs->by_line && class_line(name, &line) && line < inputs->classes->count)
        *label = (int)line;
    if (*label < 0)
        return error_set(err, STATUS_SKIPPED, "class '%s' is not one of those given", name);
    return STATUS_OK;
}

// From the sources' classes to the caller's. *use is false for a class that is not wanted.
static int relabel_sample(struct inputs *inputs, struct sample *sample, bool *use,
                          struct error *err) {
    if (source_classes(inputs) == inputs->classes) {
        *use = true;
        return STATUS_OK;
    }
    if (sample->label < 0 || sample->label >= inputs->own.count) {
        *use = inputs->config.only_count == 0;
        return STATUS_OK;
    }
    const char *name = inputs->own.names[sample->label];
    int label = LABEL_NONE;
    int status = inputs->fixed ? fixed_label(inputs, name, &label, err) : STATUS_OK;
    *use = class_is_wanted(inputs, name) ||
           (label >= 0 && class_is_wanted(inputs, inputs->classes->names[label]));
    if (!*use)
        return STATUS_OK;
    if (!inputs->fixed)
        status = classes_label(inputs->classes, name, &label, err);
    sample->label = label;
    return status;
}

// Names the class that is not there, and one that was perhaps meant.
static int unknown_class(const struct inputs *inputs, const char *name, struct error *err) {
    const struct classes *classes = &inputs->own;
    const char *near = text_nearest(name, strlen(name), (const char *const *)classes->names,
                                    (size_t)classes->count);
    return error_set(err, STATUS_DATA, "--only: no sample has the class '%s'%s", name,
                     text_hint(near).text);
}

// Behind the last input: nothing at all, or a class that never came, is a mistake.
static int check_inputs_end(const struct inputs *inputs, struct error *err) {
    if (!inputs->some)
        return error_set(err, STATUS_DATA, "%s%s holds no samples",
                         strcmp(input_path(inputs, 0), "-") != 0 ? input_path(inputs, 0)
                                                                 : "standard input",
                         inputs->count > 1 ? " and the other inputs" : "");
    for (size_t i = 0; i < inputs->config.only_count; i++)
        if (!inputs->seen[i])
            return unknown_class(inputs, inputs->config.only[i], err);
    return STATUS_OK;
}

int inputs_next(struct inputs *inputs, struct sample *sample, bool *more, struct error *err) {
    *more = true;
    for (;;) {
        bool enough = inputs->config.limit && inputs->taken == inputs->config.limit;
        if (enough || inputs->at == inputs->count) {
            *more = false;
            return enough ? STATUS_OK : check_inputs_end(inputs, err);
        }
        int status = inputs->source || inputs->replaying ? STATUS_OK : open_next_input(inputs, err);
        bool again = true, use = true;
        if (!status)
            status = next_of_input(inputs, sample, &again, err);
        inputs->some = inputs->some || status == STATUS_SKIPPED || (!status && again);
        if (status)
            return status;
        if (!again) {
            close_input(inputs);
            inputs->at++;
            continue;
        }
        status = relabel_sample(inputs, sample, &use, err);
        if (use) {
            inputs->taken += !status;
            return status;
        }
    }
}

int inputs_rewind(struct inputs *inputs, struct error *err) {
    if (!inputs->config.again)
        return error_set(err, STATUS_BUG, "inputs are rewound that were opened for one pass");
    close_input(inputs);
    inputs->rewound = true;
    inputs->at = 0, inputs->taken = 0;
    return STATUS_OK;
}
