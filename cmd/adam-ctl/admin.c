// adam-ctl status, top, set, checkpoint, down, prom: look at a run of many processes, and
// direct it, through its controller.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adam-ctl/asking.h"
#include "cli/talk.h"
#include "cli/terminal.h"
#include "cluster/buckets.h"
#include "cluster/figures.h"
#include "core/error.h"
#include "core/grow.h"
#include "core/printable.h"
#include "run/settings.h"

// Of who is no controller nothing is known but itself.
static struct kept *find_places(const struct admin_options *o, const char *place) {
    struct kept *answer;
    return ask_places(o, place, &answer, NULL) ? NULL : answer;
}

static int print_status_json(const struct proto_status *status, const struct kept *places,
                             struct error *err) {
    json_t *object = figures_json(status);
    if (places)
        json_put(&object, "buckets", buckets_json(&places->message.places));
    return print_json(object, err);
}

static int print_status_table(const struct proto_status *status, const struct kept *places,
                              struct error *err) {
    char *table = figures_table(status), *text = NULL;
    char *shares = places ? buckets_shares(&places->message.places, status) : strdup("");
    if (!table || !shares || asprintf(&text, "%s%s%s", table, *shares ? "\n" : "", shares) < 0)
        text = NULL;
    free(table);
    free(shares);
    return print_text(text, err);
}

// Bucket by bucket.
static int print_buckets(const struct admin_options *o, const char *place,
                         const struct proto_status *status, struct error *err) {
    struct kept *places;
    int failed = ask_places(o, place, &places, err);
    if (failed)
        return failed;
    failed = print_text(buckets_table(&places->message.places, status), err);
    kept_drop(places);
    return failed;
}

static int print_status(const struct admin_options *o, const char *place,
                        const struct proto_status *status, struct error *err) {
    if (o->buckets && !o->json)
        return print_buckets(o, place, status, err);
    struct kept *places = find_places(o, place);
    int failed =
        o->json ? print_status_json(status, places, err) : print_status_table(status, places, err);
    kept_drop(places);
    return failed;
}

static int run_status(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    const struct admin_options *o = subcommand->options;
    struct kept *answer;
    (void)count;
    int status = ask_status(o, operands[0], &answer, err);
    if (status)
        return status;
    status = print_status(o, operands[0], &answer->message.status, err);
    kept_drop(answer);
    return status;
}

static int run_prom(const struct subcommand *subcommand, char **operands, int count,
                    struct error *err) {
    struct kept *answer;
    (void)count;
    int status = ask_status(subcommand->options, operands[0], &answer, err);
    if (status)
        return status;
    status = print_text(figures_prometheus(&answer->message.status), err);
    kept_drop(answer);
    return status;
}

static void rest(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL); // a signal ends it
}

// The whole run in a line, then all its members. Where the table is cut, whom they wait
// for stands below.
static int draw_page(const struct proto_status *status, struct error *err) {
    struct terminal_size size = terminal_size(STDOUT_FILENO);
    char line[FIGURES_LINE];
    char *table = figures_table(status), *waits = figures_waits(status);
    char *page = NULL; // of which asprintf says nothing when it fails
    figures_line(line, status, 0);
    bool made = table && waits &&
                asprintf(&page, "%s%s%s%s", line, *line ? "\n\n" : "", table,
                         terminal_cuts(size, table) ? waits : "") >= 0;
    if (made)
        terminal_page(stdout, size, page);
    free(page);
    free(table);
    free(waits);
    return made ? STATUS_OK : error_nomem(err);
}

// Until a signal, or the end of the run.
static int run_top(const struct subcommand *subcommand, char **operands, int count,
                   struct error *err) {
    const struct admin_options *o = subcommand->options;
    bool terminal = isatty(STDOUT_FILENO) && talk_is_terminal();
    struct kept *answer;
    (void)count;
    stop_on_signals(false);
    for (bool first = true; !stop_requested(); first = false) {
        int status = ask_status(o, operands[0], &answer, err);
        if (!first && (status == STATUS_UNAVAILABLE || status == STATUS_NOINPUT)) {
            *err = (struct error){0}; // the run has ended, as expected
            return STATUS_OK;
        }
        if (status)
            return status;
        fputs(terminal || first ? "" : "\n", stdout);
        status = terminal ? draw_page(&answer->message.status, err)
                          : print_text(figures_table(&answer->message.status), err);
        kept_drop(answer);
        if (status || fflush(stdout))
            return status;
        rest(o->every);
    }
    return STATUS_OK;
}

static int run_set(const struct subcommand *subcommand, char **operands, int count,
                   struct error *err) {
    struct grow lines = {0};
    struct kept *answer;
    for (int i = 1; i < count; i++)
        if (!*operands[i])
            return error_set(err, STATUS_USAGE, "'' is not KEY=VALUE");
    for (int i = 1; i < count; i++)
        grow_format(&lines, "%s\n", operands[i]);
    char *text = grow_take(&lines);
    if (!text)
        return error_nomem(err);
    const struct proto_set set = {.settings = proto_text(text)};
    int status =
        ask(subcommand->options, operands[0], PROTO_TYPE_SET, &set, PROTO_TYPE_DONE, &answer, err);
    if (!status)
        kept_drop(answer);
    free(text);
    return status;
}

static int run_checkpoint(const struct subcommand *subcommand, char **operands, int count,
                          struct error *err) {
    const struct proto_save save = {0};
    struct kept *answer;
    (void)count;
    int status = ask(subcommand->options, operands[0], PROTO_TYPE_SAVE, &save, PROTO_TYPE_SAVED,
                     &answer, err);
    if (status)
        return status;
    const struct proto_text *path = &answer->message.saved.path;
    char text[PATH_MAX];
    printable_copy(text, sizeof text, path->at, path->length);
    puts(text);
    kept_drop(answer);
    return STATUS_OK;
}

static int run_down(const struct subcommand *subcommand, char **operands, int count,
                    struct error *err) {
    const struct admin_options *o = subcommand->options;
    const struct proto_stop stop = {.save = !o->now};
    struct kept *answer;
    (void)count;
    int status = ask(o, operands[0], PROTO_TYPE_STOP, &stop, PROTO_TYPE_DONE, &answer, err);
    if (!status)
        kept_drop(answer);
    return status;
}

static void add(struct subcommand *subcommand, struct admin_options *o, const char *name,
                const char *synopsis, const char *about, const struct option_row *rows,
                size_t row_count, subcommand_run *run, int least, int most) {
    const struct command command = {
        .name = name,
        .synopsis = synopsis,
        .about = about,
        .rows = rows,
        .row_count = row_count,
        .operand = "DIR",
    };
    subcommand_set(subcommand, &command, o, run, least, most);
}

size_t admin_subcommands(struct subcommand *subcommands, struct admin_options *o) {
    const struct option_row status_rows[] = {
        FLAG(0, "json", &o->json, "print one JSON object"),
        FLAG(0, "buckets", &o->buckets, "show who has which parts of the weights instead"),
        SECRET_ROWS(&o->network),
    };
    const struct option_row top_rows[] = {
        REAL(0, "every", "SECONDS", &o->every, 0.1, 86400, "2", "time between two updates"),
        SECRET_ROWS(&o->network),
    };
    const struct option_row down_rows[] = {
        FLAG(0, "now", &o->now, "do not save; earlier checkpoints stay"),
        SECRET_ROWS(&o->network),
    };
    const struct option_row rows[] = {SECRET_ROWS(&o->network)};
    add(&subcommands[0], o, PROGRAM " status", "[--json] [--buckets] RUN",
        "show the state of each member of a run", status_rows,
        sizeof status_rows / sizeof *status_rows, run_status, 1, 1);
    add(&subcommands[1], o, PROGRAM " top", "[--every SECONDS] RUN",
        "show the status repeatedly, until the run ends", top_rows,
        sizeof top_rows / sizeof *top_rows, run_top, 1, 1);
    add(&subcommands[2], o, PROGRAM " set", "RUN KEY=VALUE ...",
        "change settings of a run: all of them or none", rows, sizeof rows / sizeof *rows, run_set,
        2, INT_MAX);
    subcommands[2].command.keys = settings_live_key;
    add(&subcommands[3], o, PROGRAM " checkpoint", "RUN", "write a checkpoint, and print its path",
        rows, sizeof rows / sizeof *rows, run_checkpoint, 1, 1);
    add(&subcommands[4], o, PROGRAM " down", "[--now] RUN", "end a run, and keep its state",
        down_rows, sizeof down_rows / sizeof *down_rows, run_down, 1, 1);
    add(&subcommands[5], o, PROGRAM " prom", "RUN", "print all figures as Prometheus reads them",
        rows, sizeof rows / sizeof *rows, run_prom, 1, 1);
    return 6;
}
