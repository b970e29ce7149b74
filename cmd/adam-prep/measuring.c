// adam-prep stat.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adam-prep/session.h"
#include "core/error.h"
#include "prep/stat_table.h"
#include "prep/statistics.h"

static void on_measured(void *context, uint64_t samples) {
    struct session *s = context;
    if (progress_due(&s->progress))
        progress_line(&s->progress, "%llu samples", (unsigned long long)samples);
}

static int print_statistics(const struct statistics *statistics, const struct options *o,
                            struct error *err) {
    char *text;
    int status = o->json ? stat_table_json(&text, statistics, o->mean, err)
                         : stat_table_text(&text, statistics, o->mean, err);
    if (status)
        return status;
    fputs(text, stdout);
    free(text);
    return STATUS_OK;
}

int run_stat(struct session *s, char **operands, int count, struct error *err) {
    const struct options *o = s->options;
    struct statistics_config config = {
        .inputs = session_inputs(s, (const char *const *)operands, (size_t)count),
        .classes = o->classes ? &s->classes : NULL,
        .pixel_mean = o->mean != NULL,
        .threads = (int)o->threads,
        .context = s,
        .rejected = session_rejected,
        .progress = on_measured,
        .stopped = stop_requested,
    };
    int status = session_check_inputs(&config.inputs, PROGRAM " stat", err);
    if (!status && o->mean && (strpbrk(o->mean, " \t;") || !strcmp(o->mean, "-")))
        status = error_set(err, STATUS_USAGE,
                           "--mean: '%s' cannot stand in a chain of operations; choose a file name "
                           "without blanks and ';'",
                           o->mean);
    if (status)
        return status;
    struct statistics statistics;
    status = statistics_run(&config, &statistics, err);
    progress_clear(&s->progress);
    if (!status && o->mean)
        status = stat_table_mean(o->mean, &statistics, o->force, err);
    if (!status)
        status = print_statistics(&statistics, o, err);
    statistics_free(&statistics);
    return status;
}
