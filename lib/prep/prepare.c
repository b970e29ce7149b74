#include "prep/prepare.h"

#include <stdlib.h>

#include "core/mem.h"
#include "core/pipeline.h"
#include "prep/digits.h"
#include "prep/prepare_internal.h"

// ---- working ----

static const struct ops *chain_of(const struct prepare *p, int part) {
    return part == 0 ? p->config->ops : p->config->test_ops;
}

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

// ---- all together ----

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
        .read = prepare_read_group,
        .work = work_group,
        .write = prepare_write_group,
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
        status = prepare_look_ahead(p, err);
    if (!status)
        status = process_all(p, err);
    struct classes rest = {0}; // of a folder without pictures, too
    if (!status)
        status = prepare_send_classes(p, &rest, err);
    if (!status)
        status = prepare_learn_classes(p, &rest, err);
    classes_free(&rest);
    if (!status)
        status = prepare_drain_shuffle(p, err);
    if (!status)
        status = prepare_check_parts(p, p->counts->parts, err);
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
