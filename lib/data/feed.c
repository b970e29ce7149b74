#include "data/feed.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/mem.h"
#include "core/text.h"
#include "data/packed.h"
#include "data/park.h"

// An input whose samples are kept because it can be read only once.
struct kept {
    bool kept;
    uint64_t from, to;
};

struct feed {
    struct feed_config config;
    struct classes *classes; // the caller's
    struct classes own;      // those of the sources, when they are filtered or renumbered
    bool fixed;              // `classes` does not grow
    size_t at, count;        // inputs
    struct source *source;   // the input that is being read, or
    bool replaying;          // what was kept of it
    struct park_reader reader;
    bool second; // pass
    struct park *park;
    struct kept *kept;
    int64_t taken;
};

static const char *path_of(const struct feed *feed, size_t input) {
    return input < feed->config.input_count ? feed->config.inputs[input] : feed->config.files_from;
}

// Only files and folders give the same twice.
static bool readable_again(const char *path) {
    struct stat info;
    return strcmp(path, "-") != 0 && stat(path, &info) == 0 &&
           (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
}

int feed_open(struct feed **out, const struct feed_config *config, struct classes *classes,
              struct error *err) {
    struct feed *feed = mem_zeroed(1, sizeof *feed);
    if (!feed)
        return error_nomem(err);
    *feed = (struct feed){.config = *config,
                          .classes = classes,
                          .fixed = classes->count > 0,
                          .count = config->input_count + (config->files_from != NULL)};
    feed->kept = mem_zeroed(feed->count, sizeof *feed->kept);
    int status = feed->kept ? STATUS_OK : error_nomem(err);
    for (size_t i = 0; config->twice && i < feed->count && !status; i++) {
        feed->kept[i].kept = !readable_again(path_of(feed, i));
        if (feed->kept[i].kept && !feed->park)
            status = park_open(&feed->park, err);
    }
    if (status)
        feed_close(feed);
    else
        *out = feed;
    return status;
}

const char *feed_kind(const struct feed *feed) {
    return feed->source ? source_kind(feed->source) : "";
}

static void close_input(struct feed *feed) {
    source_close(feed->source);
    feed->source = NULL;
    park_reader_free(&feed->reader);
    feed->replaying = false;
}

void feed_close(struct feed *feed) {
    if (!feed)
        return;
    close_input(feed);
    park_close(feed->park);
    classes_free(&feed->own);
    free(feed->kept);
    free(feed);
}

static struct classes *source_classes(struct feed *feed) {
    return feed->fixed || feed->config.only_count ? &feed->own : feed->classes;
}

static int open_input(struct feed *feed, struct error *err) {
    struct kept *kept = &feed->kept[feed->at];
    if (feed->second && kept->kept) {
        feed->replaying = true;
        return park_read(&feed->reader, feed->park, kept->from, kept->to, 1 << 16, err);
    }
    if (kept->kept)
        kept->from = park_end(feed->park);
    const char *path = path_of(feed, feed->at);
    const struct source_options *options = &feed->config.source;
    return feed->at < feed->config.input_count
               ? source_open(&feed->source, path, options, source_classes(feed), err)
               : source_open_list(&feed->source, path, options, source_classes(feed), err);
}

// A kept sample is the reason why it is bad (empty: it is good), a zero byte, and
// the packed sample.
static int keep(struct feed *feed, const struct sample *sample, const char *reason,
                struct error *err) {
    struct kept *kept = &feed->kept[feed->at];
    size_t first = strlen(reason) + 1, size = first + packed_size(sample);
    uint8_t *piece = mem_array(size, 1);
    if (!piece)
        return error_nomem(err);
    memcpy(piece, reason, first);
    packed_write(piece + first, sample);
    int status = park_put(feed->park, piece, size, err);
    free(piece);
    kept->to = park_end(feed->park);
    return status;
}

static int replay(struct feed *feed, struct sample *sample, bool *more, struct error *err) {
    int status = park_next(&feed->reader, more, err);
    if (status || !*more)
        return status;
    const char *reason = (const char *)feed->reader.piece;
    size_t first = strnlen(reason, feed->reader.size) + 1;
    if (first > feed->reader.size)
        return error_set(err, STATUS_IO, "the temporary file is damaged");
    status = packed_read(sample, feed->reader.piece + first, feed->reader.size - first, err);
    if (!status && *reason)
        status = error_set(err, STATUS_SKIPPED, "%s", reason);
    return status;
}

// The next sample of the current input, kept when it must be.
static int next_of_input(struct feed *feed, struct sample *sample, bool *more, struct error *err) {
    if (feed->replaying)
        return replay(feed, sample, more, err);
    int status = source_next(feed->source, sample, more, err);
    bool bad = status == STATUS_SKIPPED, good = !status && *more;
    if (feed->kept[feed->at].kept && (bad || good)) {
        int kept = keep(feed, sample, bad ? err->text : "", err);
        status = kept ? kept : status;
    }
    return status;
}

static bool wanted(const struct feed *feed, const char *name) {
    for (size_t i = 0; i < feed->config.only_count; i++)
        if (!strcmp(feed->config.only[i], name))
            return true;
    return feed->config.only_count == 0;
}

static int fixed_label(const struct feed *feed, const char *name, int *label, struct error *err) {
    int64_t line;
    *label = classes_find(feed->classes, name);
    if (*label < 0 && text_integer(name, strlen(name), &line) && line >= 0 &&
        line < feed->classes->count)
        *label = (int)line;
    if (*label < 0)
        return error_set(err, STATUS_SKIPPED, "class '%s' is not one of those given", name);
    return STATUS_OK;
}

// From the sources' classes to the caller's. *use is false for a class that is not wanted.
static int relabel(struct feed *feed, struct sample *sample, bool *use, struct error *err) {
    if (source_classes(feed) == feed->classes) {
        *use = true;
        return STATUS_OK;
    }
    if (sample->label < 0 || sample->label >= feed->own.count) {
        *use = feed->config.only_count == 0;
        return STATUS_OK;
    }
    const char *name = feed->own.names[sample->label];
    int label = LABEL_NONE;
    int status = feed->fixed ? fixed_label(feed, name, &label, err) : STATUS_OK;
    *use = wanted(feed, name) || (label >= 0 && wanted(feed, feed->classes->names[label]));
    if (!*use)
        return STATUS_OK;
    if (!feed->fixed)
        status = classes_label(feed->classes, name, &label, err);
    sample->label = label;
    return status;
}

int feed_next(struct feed *feed, struct sample *sample, bool *more, struct error *err) {
    *more = true;
    for (;;) {
        if (feed->at == feed->count || (feed->config.limit && feed->taken == feed->config.limit)) {
            *more = false;
            return STATUS_OK;
        }
        int status = feed->source || feed->replaying ? STATUS_OK : open_input(feed, err);
        bool again = true, use = true;
        if (!status)
            status = next_of_input(feed, sample, &again, err);
        if (status)
            return status;
        if (!again) {
            close_input(feed);
            feed->at++;
            continue;
        }
        status = relabel(feed, sample, &use, err);
        if (use) {
            feed->taken += !status;
            return status;
        }
    }
}

int feed_rewind(struct feed *feed, struct error *err) {
    if (feed->second)
        return error_set(err, STATUS_BUG, "a feed is rewound twice");
    close_input(feed);
    feed->second = true;
    feed->at = 0, feed->taken = 0;
    return STATUS_OK;
}
