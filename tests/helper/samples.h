// For tests of sources and sinks: a scratch folder, made-up samples, and
// everything that a source gives, written down for comparison.
#ifndef ADAM_TESTS_SAMPLES_H
#define ADAM_TESTS_SAMPLES_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/random.h"
#include "sample/sink.h"
#include "sample/source.h"

#define SCRATCH_PATH 512

static inline void *test_need(void *p) {
    if (!p) {
        perror("test");
        exit(2);
    }
    return p;
}

// A new folder below $TMPDIR, removed with scratch_remove.
static inline void scratch_make(char folder[SCRATCH_PATH]) {
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, SCRATCH_PATH, "%s/adam-test-XXXXXX", tmp ? tmp : "/tmp");
    test_need(mkdtemp(folder));
}

// Runs a shell command in the scratch folder; its exit status.
static inline int shell(const char *folder, const char *command) {
    char *line = NULL;
    fflush(stdout);
    if (asprintf(&line, "set -e; cd '%s'; %s", folder, command) < 0)
        exit(2);
    int status = system(line);
    free(line);
    return status;
}

static inline void scratch_remove(const char *folder) {
    if (shell(folder, "cd /; rm -rf \"$OLDPWD\""))
        exit(2);
}

// Runs a Python script there with numpy and PIL at hand; true when it succeeds.
static inline bool python(const char *folder, const char *script) {
    char path[SCRATCH_PATH + 16];
    snprintf(path, sizeof path, "%s/script.py", folder);
    FILE *file = test_need(fopen(path, "w"));
    fputs(script, file);
    fclose(file);
    return shell(folder, "/usr/bin/python3 script.py") == 0;
}

static inline const char *in(const char *folder, const char *name) {
    static char paths[4][2 * SCRATCH_PATH];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline uint8_t *file_read(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = test_need(malloc(*size + 1));
    *size = fread(data, 1, *size, file);
    fclose(file);
    return data;
}

static inline void file_write(const char *path, const void *data, size_t size) {
    unlink(path); // some file systems sync what is written over
    FILE *file = test_need(fopen(path, "wb"));
    if (fwrite(data, 1, size, file) != size || fclose(file))
        exit(2);
}

// Everything that a source gave, as lines: "key class CxHxW type hash", "skipped
// path: why", and at last "end" or "failed status: text".
struct account {
    char *text;
    size_t size, samples, skipped;
    uint64_t missing; // samples, by the reports
    int status;
    struct error err;
};

static inline void account_line(struct account *account, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void account_line(struct account *account, const char *format, ...) {
    char *line = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0)
        exit(2);
    va_end(args);
    size_t n = strlen(line);
    account->text = test_need(realloc(account->text, account->size + n + 1));
    memcpy(account->text + account->size, line, n + 1);
    account->size += n;
    free(line);
}

static inline void account_sample(struct account *account, const struct classes *classes,
                                  struct sample *sample) {
    const struct image *image = &sample->image;
    account->samples++;
    if (sample_decode(sample, &(struct decode_options){0}, &account->err)) {
        account_line(account, "%s undecodable\n", sample->key);
        return;
    }
    account_line(account, "%s %s %dx%dx%d %s %016llx\n", sample->key,
                 sample->label == LABEL_NONE ? "-" : classes->names[sample->label], image->channels,
                 image->height, image->width, image->type == PIXEL_F32 ? "f32" : "u8",
                 (unsigned long long)hash_bytes(image->data, image_bytes(image)));
}

static inline void account_source(struct account *account, struct source *source,
                                  const struct classes *classes) {
    struct sample sample = {0};
    bool more = true;
    while (more) {
        account->status = source_next(source, &sample, &more, &account->err);
        if (account->status == STATUS_SKIPPED) {
            account->skipped++;
            account->missing += sample.missing;
            account_line(account, "skipped %s: %s\n", sample.path, account->err.text);
        } else if (account->status) {
            account_line(account, "failed %d: %s\n", account->status, account->err.text);
            break;
        } else if (more) {
            account_sample(account, classes, &sample);
        }
    }
    sample_free(&sample);
}

// Freed with account_free.
static inline struct account account_of(const char *path, const struct source_options *options) {
    struct account account = {0};
    struct classes classes = {0};
    struct source *source;
    account_line(&account, "%s", "");
    account.status = source_open(&source, path, options, &classes, &account.err);
    if (account.status) {
        account_line(&account, "failed %d: %s\n", account.status, account.err.text);
    } else {
        account_source(&account, source, &classes);
        source_close(source);
    }
    classes_free(&classes);
    return account;
}

static inline void account_free(struct account *account) {
    free(account->text);
    *account = (struct account){0};
}

// Ways in which made-up samples differ.
struct made {
    int count, channels, height, width;
    enum pixel type;
    int classes;           // 0: no labels; names are "c0", "c1"... or, `numbers`, "0", "1"...
    bool numbers, folders; // folders: the class is in front of the key
};

static inline void made_sample(struct sample *sample, const struct made *made,
                               struct classes *classes, int i) {
    struct random random = random_stream(5, (uint64_t)i, 0);
    struct error err = {0};
    char key[64], name[32] = "";
    int label = LABEL_NONE;
    if (made->classes > 0) {
        snprintf(name, sizeof name, made->numbers ? "%d" : "c%d", i % made->classes);
        if (classes_label(classes, name, &label, &err))
            exit(2);
    }
    snprintf(key, sizeof key, "%s%s%07d", made->folders ? name : "",
             made->folders && *name ? "/" : "", i);
    if (sample_key(sample, key, &err) ||
        image_shape(&sample->image, made->width, made->height, made->channels, made->type, &err))
        exit(2);
    sample->label = label;
    sample->encoded_size = 0;
    for (size_t v = 0; v < image_values(&sample->image); v++)
        if (made->type == PIXEL_F32)
            sample->image.f32[v] = random_normal(&random);
        else
            sample->image.u8[v] = (uint8_t)random_u32(&random);
}

// Writes made-up samples to a sink and notes them as account_of would.
static inline int made_write(const char *path, const struct sink_options *options,
                             const struct made *made, struct account *account, struct error *err) {
    struct sample sample = {0};
    struct classes classes = {0};
    struct sink *sink;
    int status = sink_open(&sink, path, options, &classes, err);
    bool opened = status == STATUS_OK;
    for (int i = 0; !status && i < made->count; i++) {
        made_sample(&sample, made, &classes, i);
        status = sink_put(sink, &sample, err);
        if (account)
            account_sample(account, &classes, &sample);
    }
    if (opened && status)
        sink_abort(sink);
    else if (opened)
        status = sink_close(sink, err);
    sample_free(&sample);
    classes_free(&classes);
    return status;
}

#endif
