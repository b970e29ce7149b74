// adam-ctl status, top, set, checkpoint, down, prom: look at a run of many processes, and
// direct it, through its controller.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "cli/terminal.h"
#include "cluster/figures.h"
#include "core/error.h"
#include "core/grow.h"
#include "core/printable.h"
#include "member/place.h"
#include "remote/admin.h"
#include "run/settings.h"

// Asks the controller that the first operand names.
static int ask(const struct admin_options *o, const char *place, uint16_t type, const void *message,
               uint16_t wanted, struct kept **answer, struct error *err) {
    struct secrets *keys;
    int status = place_keys(&keys, o->network.keys, err);
    if (status)
        return status;
    const struct admin admin = {place, keys, o->network.insecure};
    status = admin_ask(&admin, type, message, wanted, answer, err);
    secrets_close(keys);
    return status;
}

static int get_status(const struct admin_options *o, const char *place, struct kept **answer,
                      struct error *err) {
    const struct proto_get_status get = {.known = 0};
    return ask(o, place, PROTO_TYPE_GET_STATUS, &get, PROTO_TYPE_STATUS, answer, err);
}

static int run_status(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    const struct admin_options *o = subcommand->options;
    struct kept *answer;
    (void)count;
    int status = get_status(o, operands[0], &answer, err);
    if (status)
        return status;
    status = o->json ? print_json(figures_json(&answer->message.status), err)
                     : print_text(figures_table(&answer->message.status), err);
    kept_drop(answer);
    return status;
}

static int run_prom(const struct subcommand *subcommand, char **operands, int count,
                    struct error *err) {
    struct kept *answer;
    (void)count;
    int status = get_status(subcommand->options, operands[0], &answer, err);
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
        int status = get_status(o, operands[0], &answer, err);
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
    add(&subcommands[0], o, PROGRAM " status", "[--json] RUN",
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
