// adam-ctl up, and the same run as text: sh, systemd, sbatch.
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adam-ctl/request.h"
#include "adam-ctl/reviving.h"
#include "adam-ctl/subcommand.h"
#include "adam-ctl/watcher.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"
#include "launch/schedulers.h"
#include "launch/supervise.h"
#include "member/place.h"
#include "net/address.h"
#include "run/checkpoint.h"
#include "run/run_file.h"
#include "store/textfile.h"

// --- adam-ctl up ------------------------------------------------------------------------

// A run that ended before anything was saved begins anew when it is to go on, unless its stores
// have it.
static int find_beginning(struct launch *launch, struct revival *revival, struct error *err) {
    if (!launch->resume || launch->remote_controllers) // who have the run know what there is
        return STATUS_OK;
    if (access(launch->folder, F_OK))
        return error_errno(err, STATUS_NOINPUT, "no run to go on with: %s", launch->folder);
    int status = run_folder_free(launch->folder, err);
    if (status == STATUS_OK)
        status = reviving_look(launch, revival, err);
    launch->force = !launch->revive && !run_folder_saved(launch->folder);
    launch->resume = !launch->force;
    return status;
}

static int supervise(const struct request *r, const struct plan *plan,
                     const struct revival *revival, bool quiet, struct error *err) {
    struct watcher watcher;
    const struct supervise_config config = {
        .plan = plan, .folder = r->folder, .hooks = {&watcher, watcher_say, watcher_told}};
    int number;
    signal(SIGPIPE, SIG_IGN);
    int status = reviving_make_way(&r->launch, err);
    if (status == STATUS_OK)
        status = launch_prepare(&r->launch, err);
    if (status == STATUS_OK)
        status = reviving_report(&r->launch, revival, err);
    if (status == STATUS_OK)
        status = plan_clear(plan, err);
    if (status == STATUS_OK && r->launch.remote_controllers)
        status = launch_tell(&r->launch, err);
    if (status == STATUS_OK)
        status = request_find_programs(err);
    if (status == STATUS_OK)
        status = watcher_open(&watcher, r->folder, r->launch.keys, r->launch.insecure,
                              r->file.settings.epochs, quiet, err);
    if (status != STATUS_OK)
        return status;
    status = supervise_run(&config, &number, err);
    place_tidy();
    watcher_close(&watcher);
    if (number) { // as if it had not been caught
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, number);
        signal(number, SIG_DFL);
        raise(number);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
    return status;
}

// What the controller of the run writes down as the command that made it: what was typed.
static int name_command(const struct subcommand *subcommand, struct error *err) {
    return setenv(COMMAND_VARIABLE, subcommand->typed, 1) == 0 ? STATUS_OK : error_nomem(err);
}

// What the command line and RUN.conf come to, for all that start a run.
static int open_request(struct request *request, const struct launch_options *options,
                        const char *conf, struct error *err) {
    int status = request_open(request, options, conf, err);
    return status == STATUS_OK ? launch_check_store(&request->launch, &request->file.settings, err)
                               : status;
}

static int run_up(const struct subcommand *subcommand, char **operands, int count,
                  struct error *err) {
    const struct launch_options *options = subcommand->options;
    struct request request;
    struct plan plan = {0};
    struct revival revival = {0};
    (void)count;
    int status = open_request(&request, options, operands[0], err);
    if (status == STATUS_OK)
        status = find_beginning(&request.launch, &revival, err);
    // Otherwise this process does it: what is printed is for others to run.
    request.launch.aside =
        (options->hosts || options->dry_run) && request_may_set_aside(&request.launch);
    if (status == STATUS_OK && !options->hosts)
        request_share_processors(&request.launch);
    if (status == STATUS_OK)
        status = plan_make(&plan, &request.launch, options->hosts ? &request.hosts : NULL, err);
    if (status == STATUS_OK && options->dry_run)
        status = print_text(plan_text(&plan, &request.launch), err);
    else if (status == STATUS_OK && !(status = name_command(subcommand, err)))
        status = supervise(&request, &plan, &revival, options->quiet, err);
    revival_free(&revival);
    plan_free(&plan);
    request_free(&request);
    return status;
}

// --- as text ----------------------------------------------------------------------------

static int run_sh(const struct subcommand *subcommand, char **operands, int count,
                  struct error *err) {
    struct request request;
    (void)count;
    int status = open_request(&request, subcommand->options, operands[0], err);
    if (status == STATUS_OK) {
        request.launch.aside = request_may_set_aside(&request.launch);
        request_share_processors(&request.launch);
        status = print_text(schedulers_sh(&request.launch, request.here), err);
    }
    request_free(&request);
    return status;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int run_sbatch(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    struct launch_options options = *(const struct launch_options *)subcommand->options;
    struct request request;
    char address[32];
    (void)count;
    options.job = true;
    int status = open_request(&request, &options, operands[0], err);
    snprintf(address, sizeof address, "%s://%c:0", options.keys ? "tls+tcp" : "tcp", LAUNCH_HOST);
    if (status == STATUS_OK) {
        const struct slurm slurm = {base_name(request.folder), request.here, options.host,
                                    (int)options.warning};
        request.launch.aside = request_may_set_aside(&request.launch);
        request.launch.member = address;
        request.launch.listen = options.controllers > 1 ? NULL : address;
        status = launch_check(&request.launch, NULL, err);
        if (status == STATUS_OK)
            status = print_text(schedulers_sbatch(&request.launch, &slurm), err);
    }
    request_free(&request);
    return status;
}

static int write_unit(const char *folder, const char *name, const char *text, struct error *err) {
    struct textfile *file;
    struct grow path = {0};
    grow_format(&path, "%s/%s", folder, name);
    char *whole = grow_take(&path);
    int status = whole ? textfile_open(&file, whole, err) : error_nomem(err);
    free(whole);
    if (status != STATUS_OK)
        return status;
    fputs(text, textfile_stream(file));
    return textfile_close(file, err);
}

// Into a folder, or one behind the other as systemctl cat shows them.
static int put_unit(const char *folder, const char *name, const char *text, struct error *err) {
    if (folder)
        return write_unit(folder, name, text, err);
    printf("# %s\n%s\n", name, text);
    return STATUS_OK;
}

static int put_units(const struct launch *launch, const struct systemd *systemd, const char *folder,
                     struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < schedulers_units(launch); i++) {
        char *name, *text = schedulers_unit(launch, systemd, i, &name);
        if (!text)
            return error_nomem(err);
        status = put_unit(folder, name, text, err);
        free(name);
        free(text);
    }
    return status;
}

static int run_systemd(const struct subcommand *subcommand, char **operands, int count,
                       struct error *err) {
    const struct launch_options *options = subcommand->options;
    struct request request;
    struct grow name = {0};
    char self[PATH_MAX] = "";
    const struct passwd *user = getpwuid(getuid());
    (void)count;
    int status = open_request(&request, options, operands[0], err);
    if (status == STATUS_OK && !user)
        status = error_set(err, STATUS_NOINPUT, "this user has no name");
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        *strrchr(self, '/') = 0;
    if (status == STATUS_OK) {
        grow_format(&name, "adam-%s", base_name(request.folder));
        char *text = grow_take(&name);
        const struct systemd systemd = {text, request.here, options->user ? NULL : user->pw_name,
                                        self};
        request.launch.aside = request_may_set_aside(&request.launch);
        request_share_processors(&request.launch);
        status = text ? schedulers_check_units(&request.launch, &systemd, err) : error_nomem(err);
        if (status == STATUS_OK)
            status = put_units(&request.launch, &systemd, options->units, err);
        free(text);
    }
    request_free(&request);
    return status;
}

// --- the command line -------------------------------------------------------------------

static void up_subcommand(struct subcommand *subcommand, struct launch_options *o) {
    const struct option_row rows[] = {
        UP_ROWS(o),
        NETWORK_KEYS(o),
        FLAG('n', "dry-run", &o->dry_run, "print the commands and run nothing"),
        FLAG('q', "quiet", &o->quiet, "do not show what the controller says"),
    };
    const struct command command = {
        .name = PROGRAM " up",
        .synopsis = "[-n] [--serve N] [--ps N] [--workers N] [options] RUN.conf",
        .about = "start all processes of a run, and watch them",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "FILE"};
    subcommand_set(subcommand, &command, o, run_up, 1, 1);
}

static void sh_subcommand(struct subcommand *subcommand, struct launch_options *o) {
    const struct option_row rows[] = {
        LAUNCH_ROWS(o),
        FORCE_ROW(o),
        INT(0, "workers", "N", &o->workers, 1, 4096, "1, or as RUN.conf says",
            "workers, or replicas of a model that is cut"),
        INT('t', "threads", "N", &o->threads, 1, 4096, "as RUN.conf says, or processors / workers",
            "of each worker"),
        STORE_ROWS(o),
    };
    const struct command command = {.name = PROGRAM " sh",
                                    .synopsis =
                                        "[--serve N] [--ps N] [--workers N] [options] RUN.conf",
                                    .about = "print a run on this machine as a script for sh",
                                    .rows = rows,
                                    .row_count = sizeof rows / sizeof *rows,
                                    .operand = "FILE"};
    subcommand_set(subcommand, &command, o, run_sh, 1, 1);
}

static void systemd_subcommand(struct subcommand *subcommand, struct launch_options *o) {
    const struct option_row rows[] = {
        LAUNCH_ROWS(o),
        INT(0, "workers", "N", &o->workers, 1, 4096, "1, or as RUN.conf says",
            "workers, or replicas of a model that is cut"),
        INT('t', "threads", "N", &o->threads, 1, 4096, "as RUN.conf says, or processors / workers",
            "of each worker"),
        STORE_ROWS(o),
        FLAG(0, "user", &o->user, "units for systemctl --user"),
        TEXT(0, "units", "DIR", &o->units, "print them", "write the units into this folder"),
    };
    const struct command command = {
        .name = PROGRAM " systemd",
        .synopsis = "[--user] [--units DIR] [--ps N] [--workers N] [options] RUN.conf",
        .about = "print a run on this machine as units of systemd",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "FILE"};
    subcommand_set(subcommand, &command, o, run_systemd, 1, 1);
}

static void sbatch_subcommand(struct subcommand *subcommand, struct launch_options *o) {
    const struct option_row rows[] = {
        LAUNCH_ROWS(o),
        FORCE_ROW(o),
        INT(0, "workers", "N", &o->workers, 1, 4096, "1, or as RUN.conf says",
            "workers, or replicas of a model that is cut"),
        INT('t', "threads", "N", &o->threads, 1, 4096, "1, or as RUN.conf says", "of each worker"),
        STORE_ROWS(o),
        TEXT(0, "host", "TEXT", &o->host, "$(hostname)", "shell text: a node's name in addresses"),
        INT(0, "warning", "SECONDS", &o->warning, 1, 65535, "120", "to save before time is over"),
        NETWORK_KEYS(o),
    };
    const struct command command = {
        .name = PROGRAM " sbatch",
        .synopsis = "[--serve N] [--ps N] [--workers N] [-t N] [options] RUN.conf",
        .about = "print a run as a batch script of Slurm",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "FILE"};
    subcommand_set(subcommand, &command, o, run_sbatch, 1, 1);
}

size_t launch_subcommands(struct subcommand *subcommands, struct launch_options *options) {
    up_subcommand(&subcommands[0], options);
    sh_subcommand(&subcommands[1], options);
    systemd_subcommand(&subcommands[2], options);
    sbatch_subcommand(&subcommands[3], options);
    return 4;
}
