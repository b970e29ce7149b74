// The writer of a preparation: copies in the order of reading, or through the shuffle.
#include <stdio.h>
#include <string.h>

#include "core/random.h"
#include "prep/prepare_internal.h"

int prepare_learn_classes(struct prepare *p, const struct classes *added, struct error *err) {
    int status = STATUS_OK, label;
    for (int i = 0; i < added->count && !status; i++)
        status = classes_label(&p->out_classes, added->names[i], &label, err);
    p->counts->classes = p->out_classes.count;
    return status;
}

static int write_sample(struct prepare *p, int part, const struct sample *sample,
                        struct error *err) {
    int status = outputs_put(p->outputs, part, sample, err);
    if (status == STATUS_DATA)
        return error_context(err, "%s", sample->path);
    if (status)
        return status;
    p->counts->out++;
    p->counts->parts[part]++;
    return STATUS_OK;
}

// Where a sample goes in the shuffle depends on its key alone.
static uint64_t shuffle_place(const struct prepare *p, const char *key) {
    return hash_mix(hash_mix(p->config->seed, 0x73687566), hash_bytes(key, strlen(key)));
}

static int write_good(struct prepare *p, const struct sample_copy *copy, struct error *err) {
    p->written.good++;
    return p->shuffle ? shuffle_put(p->shuffle, shuffle_place(p, copy->out.key), copy->part,
                                    &copy->out, err)
                      : write_sample(p, copy->part, &copy->out, err);
}

static int note_bad(struct prepare *p, const char *path, const struct sample_copy *copy,
                    struct error *err) {
    if (p->config->stop_on_error && !copy->no_loss)
        return error_set(err, STATUS_DATA, "%s: %s", path, copy->error.text);
    if (p->written.bad++ == 0)
        p->written.why = copy->error;
    return STATUS_OK;
}

// Behind the last copy of an input: counts what was skipped, and tells of it once.
static int finish_input(struct prepare *p, const struct sample *in, struct error *err) {
    const struct prepare_config *config = p->config;
    struct copies_written *written = &p->written;
    uint64_t good = written->good, bad = written->bad;
    written->good = written->bad = 0;
    if (!bad)
        return STATUS_OK;
    p->counts->skipped += good ? 0 : in->missing;
    p->counts->copies_skipped += good ? bad : 0;
    char some[64] = "", why[ERROR_TEXT];
    if (good)
        snprintf(some, sizeof some, "%llu of %llu copies: ", (unsigned long long)bad,
                 (unsigned long long)(good + bad));
    snprintf(why, sizeof why, "%s%.*s", some, ERROR_TEXT - (int)sizeof some, written->why.text);
    return config->rejected ? config->rejected(config->context, in->path, why, err) : STATUS_OK;
}

static int write_copy(struct prepare *p, const struct copy_group *g, const struct sample_copy *copy,
                      struct error *err) {
    const struct sample *in = &g->inputs[copy->input];
    int status = copy->bad ? note_bad(p, in->path, copy, err) : write_good(p, copy, err);
    return !status && copy->last ? finish_input(p, in, err) : status;
}

static void report_progress(struct prepare *p) {
    if (p->config->progress)
        p->config->progress(p->config->context, p->counts);
}

int prepare_write_group(void *context, void *slot, struct error *err) {
    struct prepare *p = context;
    struct copy_group *g = slot;
    int status = prepare_learn_classes(p, &g->added, err);
    for (int i = 0; i < g->copy_count && !status; i++)
        status = write_copy(p, g, &g->copies[i], err);
    p->counts->in += g->finished;
    report_progress(p);
    return status;
}

int prepare_drain_shuffle(struct prepare *p, struct error *err) {
    struct sample sample = {0};
    bool more = p->shuffle != NULL;
    int status = STATUS_OK;
    while (more && !status) {
        int part;
        if (p->config->stopped && p->config->stopped())
            status = error_set(err, STATUS_STOPPED, "stopped on request");
        if (!status)
            status = shuffle_take(p->shuffle, &part, &sample, &more, err);
        if (!status && more)
            status = write_sample(p, part, &sample, err);
        report_progress(p);
    }
    sample_free(&sample);
    return status;
}
