// Counting: top-1, top-5, classes, confusion.
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "train/evaluate.h"

enum { TOP = 5 };

int tally_init(struct tally *tally, int classes, struct error *err) {
    size_t n = (size_t)classes;
    *tally = (struct tally){.classes = classes};
    tally->truth = mem_zeroed(n, sizeof *tally->truth);
    tally->predicted = mem_zeroed(n, sizeof *tally->predicted);
    tally->correct = mem_zeroed(n, sizeof *tally->correct);
    if (tally->truth && tally->predicted && tally->correct)
        return STATUS_OK;
    tally_free(tally);
    return error_nomem(err);
}

int tally_confusion(struct tally *tally, struct error *err) {
    size_t n = (size_t)tally->classes, cells;
    if (!__builtin_mul_overflow(n, n, &cells))
        tally->confusion = mem_zeroed(cells, sizeof *tally->confusion);
    if (!tally->confusion)
        return error_set(err, STATUS_IO, "out of memory for a confusion matrix of %d classes",
                         tally->classes);
    return STATUS_OK;
}

void tally_free(struct tally *tally) {
    free(tally->truth);
    free(tally->predicted);
    free(tally->correct);
    free(tally->confusion);
    free(tally->outputs);
    free(tally->ranks);
    *tally = (struct tally){0};
}

// Whether class a comes before class b; scores that are not numbers come last.
static bool ranks_before(const float *scores, int a, int b) {
    float x = scores[a], y = scores[b];
    if (x == y || (x != x && y != y))
        return a < b;
    return y != y || x > y;
}

// How many classes come before `label`.
static int rank_of(const float *scores, int classes, int label) {
    int rank = 0;
    for (int c = 0; c < classes; c++)
        rank += c != label && ranks_before(scores, c, label);
    return rank;
}

void scores_top(const float *scores, int classes, int *top, int k) {
    int n = 0; // how many stand in top, in order
    for (int c = 0; c < classes; c++) {
        int place = n;
        while (place > 0 && ranks_before(scores, c, top[place - 1]))
            place--;
        if (place == k)
            continue;
        for (int i = n < k ? n++ : k - 1; i > place; i--)
            top[i] = top[i - 1];
        top[place] = c;
    }
}

void tally_add(struct tally *tally, const float *scores, int32_t label) {
    if (label < 0)
        return;
    int rank = rank_of(scores, tally->classes, label), best = label;
    if (rank > 0)
        scores_top(scores, tally->classes, &best, 1);
    tally->samples++;
    tally->top1 += rank == 0;
    tally->top5 += rank < TOP;
    tally->truth[label]++;
    tally->predicted[best]++;
    tally->correct[label] += rank == 0;
    if (tally->confusion)
        tally->confusion[(size_t)label * (size_t)tally->classes + (size_t)best]++;
}

static double mean_over_samples(double sum, uint64_t samples) {
    return samples ? sum / (double)samples : 0;
}

double tally_top1(const struct tally *tally) {
    return mean_over_samples((double)tally->top1, tally->samples);
}

double tally_top5(const struct tally *tally) {
    return mean_over_samples((double)tally->top5, tally->samples);
}

double tally_loss(const struct tally *tally) {
    return mean_over_samples(tally->loss, tally->samples);
}
