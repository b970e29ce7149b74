#include "report/results.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/json.h"
#include "core/printable.h"
#include "core/utf8.h"
#include "train/events.h"

static json_t *name_or_null(int32_t label, const char *const *names) {
    return label < 0 ? json_null() : json_text(names[label]);
}

// Writes the object as one line and lets go of it; NULL: out of memory.
static int put_json_line(FILE *out, json_t *object, struct error *err) {
    char *line = object ? json_line(object) : NULL;
    json_decref(object);
    if (!line)
        return error_nomem(err);
    fprintf(out, "%s\n", line);
    free(line);
    return STATUS_OK;
}

static json_t *figures_json(const struct tally *tally, uint64_t skipped) {
    json_t *all = json_pack("{s:I}", "samples", (json_int_t)tally->samples);
    json_t *figures = events_figures(tally);
    if (!figures || json_object_update(all, figures)) {
        json_decref(all);
        all = NULL;
    }
    json_decref(figures);
    json_put(&all, "loss", json_number(tally_loss(tally)));
    json_put(&all, "skipped", json_integer((json_int_t)skipped));
    return all;
}

int results_figures(FILE *out, const struct tally *tally, uint64_t skipped, bool json,
                    struct error *err) {
    json_t *all = figures_json(tally, skipped), *value;
    const char *name;
    if (json || !all)
        return put_json_line(out, all, err);
    json_object_foreach(all, name, value) if (json_is_integer(value))
        fprintf(out, "%s\t%lld\n", name, (long long)json_integer_value(value));
    else fprintf(out, "%s\t%.6g\n", name, json_is_null(value) ? NAN : json_real_value(value));
    json_decref(all);
    return STATUS_OK;
}

static double ratio_or_nan(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : NAN;
}

// A share, or nothing where there is none.
static void put_share(FILE *out, double share) {
    if (isfinite(share))
        fprintf(out, "\t%.6g", share);
    else
        putc('\t', out);
}

void results_per_class(FILE *out, const struct tally *tally, const char *const *names) {
    fputs("class\tsamples\tpredicted\tcorrect\tprecision\trecall\n", out);
    for (int c = 0; c < tally->classes; c++) {
        printable_value(out, names[c]);
        fprintf(out, "\t%llu\t%llu\t%llu", (unsigned long long)tally->truth[c],
                (unsigned long long)tally->predicted[c], (unsigned long long)tally->correct[c]);
        put_share(out, ratio_or_nan(tally->correct[c], tally->predicted[c]));
        put_share(out, ratio_or_nan(tally->correct[c], tally->truth[c]));
        putc('\n', out);
    }
}

static void put_number(FILE *out, double number) {
    fprintf(out, "\t%.6g", number);
}

void results_per_output(FILE *out, const struct tally *tally, const char *const *names) {
    bool classes = tally->figure == FIGURE_MAP;
    fputs(classes ? "class\tsamples\tprecision\n" : "output\tmae\tr2\n", out);
    for (int c = 0; c < tally->classes; c++) {
        printable_value(out, names[c]);
        if (classes) {
            fprintf(out, "\t%llu", (unsigned long long)tally->outputs[c].wanted);
            put_share(out, tally_precision(tally, c));
        } else {
            put_number(out, tally_error(tally, c));
            put_number(out, tally_r2(tally, c));
        }
        putc('\n', out);
    }
}

void results_confusion(FILE *out, const struct tally *tally, const char *const *names) {
    fputs("true/predicted", out);
    for (int c = 0; c < tally->classes; c++) {
        putc('\t', out);
        printable_value(out, names[c]);
    }
    const uint64_t *cell = tally->confusion;
    for (int row = 0; row < tally->classes; row++) {
        putc('\n', out);
        printable_value(out, names[row]);
        for (int c = 0; c < tally->classes; c++)
            fprintf(out, "\t%llu", (unsigned long long)*cell++);
    }
    putc('\n', out);
}

json_t *results_top(const float *scores, const int *top, int k, const char *const *names) {
    json_t *list = json_array();
    for (int i = 0; i < k; i++)
        json_append(&list, json_pack("{s:o, s:o}", "class", json_text(names[top[i]]), "score",
                                     json_number((double)scores[top[i]])));
    return list;
}

int results_prediction(FILE *out, const char *key, int32_t label, const float *scores,
                       const int *top, int k, const char *const *names, bool json,
                       struct error *err) {
    if (json)
        return put_json_line(out,
                             json_pack("{s:o, s:o, s:o}", "key", json_text(key), "label",
                                       name_or_null(label, names), "top",
                                       results_top(scores, top, k, names)),
                             err);
    printable_value(out, key);
    for (int i = 0; i < k; i++) {
        putc('\t', out);
        printable_value(out, names[top[i]]);
        fprintf(out, "\t%.6g", (double)scores[top[i]]);
    }
    putc('\n', out);
    return STATUS_OK;
}

json_t *results_outputs(const float *scores, int outputs, const char *const *names) {
    json_t *object = json_object();
    for (int c = 0; c < outputs; c++) {
        char *name = utf8_clean(names[c]);
        json_put(&object, name ? name : "", json_number((double)scores[c]));
        free(name);
    }
    return object;
}

int results_numbers(FILE *out, const char *key, const float *scores, int outputs,
                    const char *const *names, bool json, struct error *err) {
    if (json)
        return put_json_line(out,
                             json_pack("{s:o, s:o}", "key", json_text(key), "outputs",
                                       results_outputs(scores, outputs, names)),
                             err);
    printable_value(out, key);
    for (int c = 0; c < outputs; c++) {
        putc('\t', out);
        printable_value(out, names[c]);
        put_number(out, (double)scores[c]);
    }
    putc('\n', out);
    return STATUS_OK;
}

int results_number_row(FILE *out, const char *key, const float *scores, int outputs,
                       const char *const *names, bool json, struct error *err) {
    if (json)
        return results_numbers(out, key, scores, outputs, names, true, err);
    printable_value(out, key);
    for (int c = 0; c < outputs; c++)
        put_number(out, (double)scores[c]);
    putc('\n', out);
    return STATUS_OK;
}

void results_scores_head(FILE *out, bool numbers, int classes, const char *const *names) {
    fputs(numbers ? "key" : "key\tlabel\tpredicted", out);
    for (int c = 0; c < classes; c++) {
        putc('\t', out);
        printable_value(out, names[c]);
    }
    putc('\n', out);
}

static json_t *score_list(const float *scores, int classes) {
    json_t *list = json_array();
    for (int c = 0; c < classes; c++)
        json_append(&list, json_number((double)scores[c]));
    return list;
}

int results_scores(FILE *out, const char *key, int32_t label, const float *scores, int classes,
                   const char *const *names, bool json, struct error *err) {
    int best;
    scores_top(scores, classes, &best, 1);
    if (json)
        return put_json_line(out,
                             json_pack("{s:o, s:o, s:o, s:o}", "key", json_text(key), "label",
                                       name_or_null(label, names), "predicted",
                                       json_text(names[best]), "scores",
                                       score_list(scores, classes)),
                             err);
    printable_value(out, key);
    putc('\t', out);
    printable_value(out, label < 0 ? "" : names[label]);
    putc('\t', out);
    printable_value(out, names[best]);
    for (int c = 0; c < classes; c++)
        fprintf(out, "\t%.6g", (double)scores[c]);
    putc('\n', out);
    return STATUS_OK;
}
