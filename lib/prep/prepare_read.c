// The reader of a preparation: samples in groups of copies, and the looks ahead at all of them.
#include <stdio.h>
#include <stdlib.h>

#include "prep/digits.h"
#include "prep/parts.h"
#include "prep/prepare_internal.h"
#include "sample/packed.h"

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

int prepare_send_classes(struct prepare *p, struct classes *added, struct error *err) {
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

int prepare_read_group(void *context, void *slot, bool *more, struct error *err) {
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
    return status ? status : prepare_send_classes(p, &g->added, err);
}

// ---- looks ahead ----

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

int prepare_check_parts(const struct prepare *p, const uint64_t *counts, struct error *err) {
    return parts_check(p->split, counts, p->config->stratify, err);
}

static int check_balance(const struct prepare *p, struct error *err) {
    if (p->copies.most)
        return STATUS_OK;
    int status = prepare_check_parts(p, p->ahead, err);
    if (status)
        return status;
    return error_set(err, STATUS_DATA, "--balance: no sample%s%s%s has a class",
                     p->split->count > 1 ? " of part '" : "",
                     p->split->count > 1 ? p->split->parts[0].name : "",
                     p->split->count > 1 ? "'" : "");
}

int prepare_look_ahead(struct prepare *p, struct error *err) {
    int status = STATUS_OK;
    if (p->config->stratify)
        status = look_ahead(p, add_stratum, err);
    if (!status && p->config->stratify)
        status = strata_decide(&p->strata, p->split, err);
    if (!status && p->config->balance)
        status = look_ahead(p, count_class, err);
    return status || !p->config->balance ? status : check_balance(p, err);
}
