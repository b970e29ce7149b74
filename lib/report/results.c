#include "report/results.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/json.h"
#include "core/printable.h"

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

int results_figures(FILE *out, const struct tally *tally, uint64_t skipped, bool json,
                    struct error *err) {
    double top1 = tally_top1(tally), top5 = tally_top5(tally), loss = tally_loss(tally);
    if (json)
        return put_json_line(out,
                             json_pack("{s:I, s:o, s:o, s:o, s:I}", "samples",
                                       (json_int_t)tally->samples, "top1", json_number(top1),
                                       "top5", json_number(top5), "loss", json_number(loss),
                                       "skipped", (json_int_t)skipped),
                             err);
    fprintf(out, "samples\t%llu\n", (unsigned long long)tally->samples);
    fprintf(out, "top1\t%.6g\ntop5\t%.6g\nloss\t%.6g\n", top1, top5, loss);
    fprintf(out, "skipped\t%llu\n", (unsigned long long)skipped);
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

void results_scores_head(FILE *out, int classes, const char *const *names) {
    fputs("key\tlabel\tpredicted", out);
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
