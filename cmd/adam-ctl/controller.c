// adam-ctl controller: the controller of a run of many processes, in the foreground.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "adam-ctl/subcommand.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "core/error.h"
#include "member/place.h"
#include "role/controller/controller.h"

struct talker {
    struct progress progress;
};

static enum trainer_wish wish(void *self) {
    (void)self;
    return stop_requested() ? TRAINER_STOP : TRAINER_GO_ON;
}

static void show(void *self, const struct trainer_progress *now) {
    struct talker *talker = self;
    char left[32], loss[32] = "";
    if (!progress_due(&talker->progress))
        return;
    if (isfinite(now->loss)) // nothing is known before the first workers tell
        snprintf(loss, sizeof loss, "loss %.4f  ", now->loss);
    progress_left(left, now->doing, now->seconds_left);
    progress_line(&talker->progress,
                  "epoch %.2f of %g  %srate %.3g  %.0f images/s  wait %.0f%%  %s", now->epoch,
                  now->epochs, loss, now->rate, now->samples_per_s, 100 * now->waiting, left);
}

static void say(void *self, const char *text) {
    struct talker *talker = self;
    progress_say(&talker->progress, PROGRAM, text);
}

static int read_file(struct run_file *file, const char *path, const struct controller_options *o,
                     struct error *err) {
    int status = run_file_read(file, path, err);
    if (!status)
        status = run_file_set(file, o->set.items, o->set.count, err);
    if (o->copies)
        file->settings.copies = o->copies;
    return status;
}

static int run_it(const struct controller_options *o, const struct run_file *file,
                  const char *command, struct error *err) {
    struct talker talker = {0};
    struct secrets *keys;
    struct words addresses = {0};
    uint32_t id = 0;
    int status =
        o->quorum ? place_quorum(&addresses, o->quorum, o->network.listen, &id, err) : STATUS_OK;
    if (!status)
        status = place_keys(&keys, o->network.keys, err);
    if (status) {
        words_free(&addresses);
        return status;
    }
    const struct controller_config config = {
        .file = file,
        .folder = o->out,
        .resume = o->resume,
        .listen = o->network.listen,
        .addresses = (const char *const *)addresses.items,
        .controllers = addresses.count ? (uint32_t)addresses.count : 1,
        .id = id,
        .rejoin = o->rejoin,
        .http = o->http,
        .command = command,
        .keys = keys,
        .insecure = o->network.insecure,
        .ready = {o->network.port_file, o->network.pid_file, (int)o->network.ready_fd},
        .hooks = {&talker, wish, show, say},
    };
    progress_start(&talker.progress, o->quiet);
    stop_on_signals(true);
    status = controller_run(&config, err);
    progress_clear(&talker.progress);
    secrets_close(keys);
    words_free(&addresses);
    return status;
}

static int run_controller(const struct subcommand *subcommand, char **operands, int count,
                          struct error *err) {
    const struct controller_options *o = subcommand->options;
    struct run_file file = {0};
    (void)count;
    if (!o->out)
        return error_set(err, STATUS_USAGE, "controller: needs --out DIR");
    int status = read_file(&file, operands[0], o, err);
    const char *typed = getenv(COMMAND_VARIABLE);
    const char *command = typed ? typed : subcommand->typed;
    if (!status)
        status = run_it(o, &file, command, err);
    run_file_free(&file);
    return status;
}

size_t controller_subcommands(struct subcommand *subcommands, struct controller_options *o) {
    const struct option_row rows[] = {
        TEXT('o', "out", "DIR", &o->out, NULL, "run folder: checkpoints, metrics, its own state"),
        TEXT(0, "resume", "DIR", &o->resume, NULL, "begin with the weights of a run or checkpoint"),
        LIST_OF(0, "set", "KEY=VALUE", &o->set, settings_key, "override a line of RUN.conf"),
        COPIES_ROW(&o->copies),
        FLAG('q', "quiet", &o->quiet, "say nothing but errors"),
        HEADING("Network"),
        TEXT('l', "listen", "ADDR", &o->network.listen, NETWORK_LOCAL, "address for all members"),
        TEXT(0, "quorum", "ADDR,ADDR,ADDR", &o->quorum, "none other",
             "addresses of all controllers, --listen among them"),
        FLAG(0, "rejoin", &o->rejoin, "become one of them anew: this one lost its record"),
        TEXT(0, "http", "HOST:PORT", &o->http, NULL, "serve /metrics for Prometheus there"),
        LISTEN_ROWS(&o->network),
        SECRET_ROWS(&o->network),
    };
    const struct command command = {
        .name = PROGRAM " controller",
        .synopsis = "--out DIR [--resume DIR] [--set KEY=VALUE] [options] RUN.conf",
        .about = "control a run of many processes: members, routes, tests, checkpoints",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "FILE",
    };
    subcommand_set(&subcommands[0], &command, o, run_controller, 1, 1);
    return 1;
}
