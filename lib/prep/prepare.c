#include "prep/prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/pipeline.h"
#include "core/random.h"
#include "prep/copies.h"
#include "prep/digits.h"
#include "prep/parts.h"
#include "prep/shuffle.h"
#include "prep/transform.h"
#include "sample/packed.h"
#include "sample/strata.h"

// A group of small samples goes through the pipeline as one job; a large one goes alone.
#define GROUP_COPIES 16
#define GROUP_BYTES (64 * 1024)

// One copy of an input on its way.
struct sample_copy {
    int input; // in the group
    int64_t number;
    bool last; // of all copies of the input
    int part;
    bool bad;           // cannot be made
    bool no_loss;       // bad, and no sample is missing by that
    struct error error; // why it is bad, of the first bad copy of the input in the group
    struct sample out;
};

// What has become of the copies of the input that is being written.
struct copies_written {
    uint64_t good, bad;
    struct error why; // of the first bad one
};

struct copy_group {
    struct sample inputs[GROUP_COPIES];
    uint64_t index[GROUP_COPIES]; // of each input in the run
    bool drawn;                   // the inputs are to be drawn
    int input_count, copy_count;
    struct sample_copy copies[GROUP_COPIES];
    uint64_t finished;    // samples whose last copy is here, and missing ones
    struct classes added; // class names that appeared since the group before
};

struct prepare {
    const struct prepare_config *config;
    const struct split *split;

    // The reader's.
    struct inputs *inputs; // NULL: digits are drawn
    struct classes classes;
    int classes_sent; // to the writer, with the groups
    struct class_copies copies;
    uint64_t ahead[SPLIT_PARTS]; // samples of each part, when balance
    struct strata strata;        // when stratify
    struct sample current;       // its copies from next_copy on are still to come
    int64_t next_copy, copy_count;
    uint64_t current_index, read;
    int current_part;
    uint64_t named;      // copies so far
    struct error failed; // an error that waits for the group before it to leave

    // The workers'.
    struct transform transform;
    struct transform_scratch *scratch;

    // The writer's.
    struct classes out_classes;
    struct copies_written written;
    struct outputs *outputs;
    struct shuffle *shuffle;
    struct prepare_counts *counts;
};

static const struct ops *chain_of(const struct prepare *p, int part) {
    return part == 0 ? p->config->ops : p->config->test_ops;
}

// ---- reading ----

static int draw_next(struct prepare *p, struct sample *sample, bool *more, struct error *err) {
    char key[32];
    *more = p->read < (uint64_t)p->config->draw;
    if (!*more)
        return STATUS_OK;
    snprintf(key, sizeof key, "%06llu", (unsigned long long)p->read);
    sample->label = digits_label(p->read);
    sample->missing = 1;
    sample->encoded_size = 0;
    int status = sample_key(sample, key, err);
    return status ? status : sample_path(sample, key, err);
}

static int read_sample(struct prepare *p, struct sample *sample, bool *more, struct error *err) {
    return p->inputs ? inputs_next(p->inputs, sample, more, err) : draw_next(p, sample, more, err);
}

static struct sample_copy *add_copy(struct copy_group *g) {
    struct sample_copy *copy = &g->copies[g->copy_count++];
    copy->bad = copy->no_loss = false, copy->number = 0, copy->last = true;
    return copy;
}

// A sample that the source could not read takes part only to be reported in its turn.
static int add_bad(const struct prepare *p, struct copy_group *g, const struct error *why,
                   struct error *err) {
    const struct sample *sample = &p->current;
    struct sample_copy *copy = add_copy(g);
    copy->bad = true, copy->error = *why;
    copy->no_loss = sample->no_loss;
    copy->input = g->input_count;
    struct sample *in = &g->inputs[g->input_count++];
    in->missing = sample->missing;
    g->finished += in->missing;
    return sample_path(in, sample->path ? sample->path : "", err);
}

static int sample_part(const struct prepare *p, const struct sample *sample) {
    return p->config->stratify ? strata_part(&p->strata, sample_origin(sample), sample->label)
                               : split_of(p->split, sample_origin(sample));
}

// Reads the next input into `current`. A bad one goes into the group at once.
static int next_input(struct prepare *p, struct copy_group *g, bool *more, struct error *err) {
    struct error why = {0};
    int status = read_sample(p, &p->current, more, &why);
    if (status == STATUS_SKIPPED) {
        p->read++;
        return add_bad(p, g, &why, err);
    }
    if (status) {
        *err = why;
        return status;
    }
    if (!*more)
        return STATUS_OK;
    p->current_index = p->read++;
    p->current_part = sample_part(p, &p->current);
    p->next_copy = 0;
    p->copy_count = p->current_part ? 1 : copies_next(&p->copies, p->current.label);
    return STATUS_OK;
}

static int name_copy(struct prepare *p, struct sample_copy *copy, const struct sample *in,
                     struct error *err) {
    const char *class_name =
        in->label >= 0 && in->label < p->classes.count ? p->classes.names[in->label] : "none";
    char *key = copies_name(p->config->name, in->key, copy->number, p->named++, class_name);
    int status = key ? sample_key(&copy->out, key, err) : error_nomem(err);
    free(key);
    copy->out.label = in->label;
    if (!status)
        status = sample_original(&copy->out, sample_origin(in), err);
    return status ? status : sample_path(&copy->out, in->path ? in->path : in->key, err);
}

// Puts the current input into the group, with as many of its copies as there is room for.
static int add_current(struct prepare *p, struct copy_group *g, struct error *err) {
    int room = GROUP_COPIES - g->copy_count;
    int64_t left = p->copy_count - p->next_copy;
    int count = left < room ? (int)left : room, input = g->input_count++;
    struct sample *in = &g->inputs[input];
    in->missing = 1;
    g->index[input] = p->current_index;
    int status = STATUS_OK;
    if (count == left)
        sample_swap(in, &p->current);
    else
        status = packed_copy(in, &p->current, err);
    for (int i = 0; i < count && !status; i++) {
        struct sample_copy *copy = add_copy(g);
        copy->input = input, copy->part = p->current_part, copy->number = p->next_copy++;
        copy->last = p->next_copy == p->copy_count;
        status = name_copy(p, copy, in, err);
    }
    g->finished += p->next_copy == p->copy_count;
    return status;
}

static size_t sample_weight(const struct sample *s) {
    return s->encoded_size ? s->encoded_size : s->image.data ? image_bytes(&s->image) : 0;
}

// The names that the writer does not know yet.
static int send_classes(struct prepare *p, struct classes *added, struct error *err) {
    int status = STATUS_OK, label;
    for (; p->classes_sent < p->classes.count && !status; p->classes_sent++)
        status = classes_label(added, p->classes.names[p->classes_sent], &label, err);
    return status;
}

static int fill_group(struct prepare *p, struct copy_group *g, struct error *err) {
    size_t bytes = 0;
    bool more = true;
    while (g->copy_count < GROUP_COPIES && g->input_count < GROUP_COPIES && bytes < GROUP_BYTES) {
        int status = STATUS_OK;
        if (p->next_copy == p->copy_count)
            status = next_input(p, g, &more, err);
        if (status || !more)
            return status;
        if (p->next_copy == p->copy_count)
            continue;
        bytes += sample_weight(&p->current);
        status = add_current(p, g, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static int read_prepare_group(void *context, void *slot, bool *more, struct error *err) {
    struct prepare *p = context;
    struct copy_group *g = slot;
    g->input_count = g->copy_count = g->finished = 0;
    g->drawn = !p->inputs;
    classes_free(&g->added);
    int status = p->failed.status;
    if (status) {
        *err = p->failed;
        return status;
    }
    status = fill_group(p, g, err);
    if (status && g->copy_count) { // what was read before the error still counts
        p->failed = *err;
        status = STATUS_OK;
    }
    *more = g->copy_count > 0;
    return status ? status : send_classes(p, &g->added, err);
}

// ---- working ----

static int ready_input(struct prepare *p, struct transform_scratch *scratch, struct copy_group *g,
                       const struct sample_copy *copy, struct error *err) {
    struct sample *in = &g->inputs[copy->input];
    const struct prepare_config *config = p->config;
    if (g->drawn)
        return digits_draw(&in->image, config->draw_size, config->seed, g->index[copy->input], err);
    return transform_input(&p->transform, scratch, chain_of(p, copy->part), in, err);
}

// A picture that cannot be used is the picture's fault; all else ends the run.
static int judge_status(struct sample_copy *copy, int status, bool fatal, struct error *err) {
    if (!status)
        return STATUS_OK;
    if (fatal || status != STATUS_DATA) {
        *err = copy->error;
        return error_context(err, "%s", copy->out.path);
    }
    copy->bad = true;
    return STATUS_OK;
}

// Makes the input of copy `i` ready. When it cannot be used none of its copies can.
static int work_input(struct prepare *p, struct transform_scratch *scratch, struct copy_group *g,
                      int i, struct error *err) {
    struct sample_copy *copy = &g->copies[i];
    int status = judge_status(copy, ready_input(p, scratch, g, copy, &copy->error), false, err);
    for (int k = i + 1; k < g->copy_count && g->copies[k].input == copy->input; k++)
        g->copies[k].bad = copy->bad;
    return status;
}

static int work_copy(struct prepare *p, struct transform_scratch *scratch, struct copy_group *g,
                     int i, struct error *err) {
    struct sample_copy *copy = &g->copies[i];
    bool last = i + 1 == g->copy_count || g->copies[i + 1].input != copy->input, fatal;
    int status =
        transform_copy(&p->transform, scratch, chain_of(p, copy->part), &g->inputs[copy->input],
                       (uint64_t)copy->number, last, &copy->out, &fatal, &copy->error);
    return judge_status(copy, status, fatal, err);
}

static int work_group(void *context, int worker, void *slot, struct error *err) {
    struct prepare *p = context;
    struct copy_group *g = slot;
    struct transform_scratch *scratch = &p->scratch[worker];
    int ready = -1, status = STATUS_OK;
    for (int i = 0; i < g->copy_count && !status; i++) {
        struct sample_copy *copy = &g->copies[i];
        if (!copy->bad && copy->input != ready) {
            status = work_input(p, scratch, g, i, err);
            ready = copy->input;
        }
        if (!copy->bad && !status)
            status = work_copy(p, scratch, g, i, err);
    }
    return status;
}

// ---- writing ----

static int learn_classes(struct prepare *p, const struct classes *added, struct error *err) {
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

static int write_group(void *context, void *slot, struct error *err) {
    struct prepare *p = context;
    struct copy_group *g = slot;
    int status = learn_classes(p, &g->added, err);
    for (int i = 0; i < g->copy_count && !status; i++)
        status = write_copy(p, g, &g->copies[i], err);
    p->counts->in += g->finished;
    report_progress(p);
    return status;
}

// Writes what the shuffle holds.
static int drain_shuffle(struct prepare *p, struct error *err) {
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

// ---- all together ----

// One pass over all inputs before the last one. What cannot be read is reported by that.
static int look_ahead(struct prepare *p, int (*each)(struct prepare *, struct error *),
                      struct error *err) {
    bool more = true;
    uint64_t read = p->read;
    int status = STATUS_OK;
    while (more) {
        status = read_sample(p, &p->current, &more, err);
        if (status == STATUS_SKIPPED)
            continue;
        p->read += !p->inputs && more; // of those that are drawn
        if (!status && more)
            status = each(p, err);
        if (status)
            return status;
        if (p->config->stopped && p->config->stopped())
            return error_set(err, STATUS_STOPPED, "stopped on request");
    }
    p->read = read;
    return p->inputs ? inputs_rewind(p->inputs, err) : STATUS_OK;
}

static int add_stratum(struct prepare *p, struct error *err) {
    return strata_add(&p->strata, sample_origin(&p->current), p->current.label, err);
}

// How many samples of part 0 each class has.
static int count_class(struct prepare *p, struct error *err) {
    int part = sample_part(p, &p->current);
    p->ahead[part]++;
    return part == 0 ? copies_count(&p->copies, p->current.label, err) : STATUS_OK;
}

static int check_parts(const struct prepare *p, const uint64_t *counts, struct error *err) {
    return parts_check(p->split, counts, p->config->stratify, err);
}

static int check_balance(const struct prepare *p, struct error *err) {
    if (p->copies.most)
        return STATUS_OK;
    int status = check_parts(p, p->ahead, err);
    if (status)
        return status;
    return error_set(err, STATUS_DATA, "--balance: no sample%s%s%s has a class",
                     p->split->count > 1 ? " of part '" : "",
                     p->split->count > 1 ? p->split->parts[0].name : "",
                     p->split->count > 1 ? "'" : "");
}

static int look_ahead_all(struct prepare *p, struct error *err) {
    int status = STATUS_OK;
    if (p->config->stratify)
        status = look_ahead(p, add_stratum, err);
    if (!status && p->config->stratify)
        status = strata_decide(&p->strata, p->split, err);
    if (!status && p->config->balance)
        status = look_ahead(p, count_class, err);
    return status || !p->config->balance ? status : check_balance(p, err);
}

static int copy_class_names(struct classes *to, const struct classes *from, struct error *err) {
    int status = STATUS_OK, label;
    for (int i = 0; from && i < from->count && !status; i++)
        status = classes_label(to, from->names[i], &label, err);
    return status;
}

static int name_digits(struct classes *classes, struct error *err) {
    int status = STATUS_OK, label;
    for (char digit[] = "0"; digit[0] <= '9' && !status; digit[0]++)
        status = classes_label(classes, digit, &label, err);
    return status;
}

static int open_prepare_input(struct prepare *p, struct error *err) {
    const struct prepare_config *config = p->config;
    if (config->draw)
        return name_digits(&p->classes, err);
    struct inputs_config inputs = config->inputs;
    inputs.again = config->balance || config->stratify;
    int status = copy_class_names(&p->classes, config->classes, err);
    if (!status)
        status = inputs_open(&p->inputs, &inputs, &p->classes, err);
    return status;
}

static int open_output(struct prepare *p, struct error *err) {
    const struct prepare_config *config = p->config;
    int status = outputs_open(&p->outputs, &config->outputs, &p->out_classes, err);
    if (status)
        return status;
    if (config->bare && outputs_codec(p->outputs) != CODEC_NONE)
        return error_set(err, STATUS_USAGE,
                         "--codec raw: this kind of output holds pictures, not "
                         "bare pixels; pnm comes nearest");
    p->transform = (struct transform){
        .decode = config->inputs.source.decode,
        .codec = outputs_codec(p->outputs),
        .quality = config->outputs.sink.quality,
        .seed = config->seed,
    };
    enum codec wanted = config->outputs.sink.codec;
    for (enum codec c = CODEC_JPEG; c <= CODEC_PNM; c++)
        p->transform.keeps[c] =
            !config->bare && (wanted == CODEC_NONE || wanted == c) && outputs_keep(p->outputs, c);
    return config->shuffle ? shuffle_open(&p->shuffle, config->memory, err) : STATUS_OK;
}

static void free_groups(struct copy_group *groups, int count) {
    for (int i = 0; groups && i < count; i++) {
        for (int k = 0; k < GROUP_COPIES; k++) {
            sample_free(&groups[i].inputs[k]);
            sample_free(&groups[i].copies[k].out);
        }
        classes_free(&groups[i].added);
    }
    free(groups);
}

static int process_all(struct prepare *p, struct error *err) {
    int threads = p->config->threads, slots = 2 * threads + 2;
    struct copy_group *groups = mem_zeroed((size_t)slots, sizeof *groups);
    p->scratch = mem_zeroed((size_t)threads, sizeof *p->scratch);
    int status = groups && p->scratch ? STATUS_OK : error_nomem(err);
    for (int i = 0; i < threads && !status; i++)
        status = transform_scratch_init(&p->scratch[i], err);
    struct pipeline pipeline = {
        .threads = threads,
        .slots = groups,
        .slot_size = sizeof *groups,
        .slot_count = slots,
        .context = p,
        .read = read_prepare_group,
        .work = work_group,
        .write = write_group,
        .stopped = p->config->stopped,
    };
    if (!status)
        status = pipeline_run(&pipeline, err);
    for (int i = 0; p->scratch && i < threads; i++)
        transform_scratch_free(&p->scratch[i]);
    free_groups(groups, slots);
    free(p->scratch);
    return status;
}

static int prepare_all(struct prepare *p, struct error *err) {
    int status = open_prepare_input(p, err);
    if (!status)
        status = open_output(p, err);
    if (!status)
        status = look_ahead_all(p, err);
    if (!status)
        status = process_all(p, err);
    struct classes rest = {0}; // of a folder without pictures, too
    if (!status)
        status = send_classes(p, &rest, err);
    if (!status)
        status = learn_classes(p, &rest, err);
    classes_free(&rest);
    if (!status)
        status = drain_shuffle(p, err);
    if (!status)
        status = check_parts(p, p->counts->parts, err);
    if (!status) {
        struct outputs *outputs = p->outputs;
        p->outputs = NULL;
        status = outputs_close(outputs, err);
    }
    return status;
}

int prepare_run(const struct prepare_config *config, struct prepare_counts *counts,
                struct error *err) {
    *counts = (struct prepare_counts){0};
    struct prepare p = {
        .config = config,
        .split = config->outputs.split,
        .copies = {.per_sample = config->copies},
        .counts = counts,
    };
    int status = prepare_all(&p, err);
    outputs_abort(p.outputs);
    shuffle_close(p.shuffle);
    inputs_close(p.inputs);
    copies_free(&p.copies);
    strata_free(&p.strata);
    sample_free(&p.current);
    classes_free(&p.classes);
    classes_free(&p.out_classes);
    return status;
}
