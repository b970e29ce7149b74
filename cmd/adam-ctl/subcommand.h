// What the subcommands of adam-ctl share. Each file of this folder defines some of them,
// with the options that they take; cmd/adam-ctl.c puts them together.
#ifndef ADAM_CTL_SUBCOMMAND_H
#define ADAM_CTL_SUBCOMMAND_H

#include "cli/network.h"
#include "cli/option.h"
#include "core/json.h"

struct error;

#define PROGRAM "adam-ctl"
#define SUBCOMMAND_ROWS 32
// What up tells the controller: the command line that metrics and checkpoints name.
#define COMMAND_VARIABLE "ADAM_COMMAND"

// On how many parameter servers each part of the weights is.
#define COPIES_ROW(target)                                                                         \
    INT(0, "copies", "N", target, 1, 3, "1", "parameter servers that have each part of the weights")

struct subcommand;

// Carries it out, with its operands: least..most of them. Returns a status.
typedef int subcommand_run(const struct subcommand *subcommand, char **operands, int count,
                           struct error *err);

struct subcommand {
    struct command command; // its rows are those below
    struct option_row rows[SUBCOMMAND_ROWS];
    const void *options; // that the rows point into
    subcommand_run *run;
    int least, most;   // operands
    const char *typed; // the whole command line, for the record
};

// Copies the command with its rows.
void subcommand_set(struct subcommand *subcommand, const struct command *command,
                    const void *options, subcommand_run *run, int least, int most);

// Results on stdout; both take over what they print, and NULL is out of memory.
int print_text(char *text, struct error *err);
int print_json(json_t *value, struct error *err);

// The subcommands of each file, into an array that has room; returns how many.
struct model_options { // check, time
    struct option_list set;
    int64_t batch, threads, partitions;
    double seconds;
    bool json, predict, kernels;
};
size_t model_subcommands(struct subcommand *subcommands, struct model_options *options);

struct export_options { // export
    struct option_list set;
    const char *output;
    bool force;
};
size_t export_subcommands(struct subcommand *subcommands, struct export_options *options);

struct import_options { // import
    const char *out, *ops, *shape, *classes, *scores;
    bool force;
};
size_t import_subcommands(struct subcommand *subcommands, struct import_options *options);

struct picture_options { // plot, report
    struct option_list set, range;
    int64_t readers;
    const char *output, *title, *x, *data, *labels, *from;
};
size_t picture_subcommands(struct subcommand *subcommands, struct picture_options *options);

struct compare_options { // compare
    const char *sort;    // NULL: as they are named
    bool json;
};
size_t compare_subcommands(struct subcommand *subcommands, struct compare_options *options);

struct controller_options { // controller
    struct network network;
    struct option_list set;
    const char *out, *resume, *http, *quorum;
    int64_t copies; // 0: not told
    bool quiet, rejoin;
};
size_t controller_subcommands(struct subcommand *subcommands, struct controller_options *options);

struct admin_options { // status, top, set, checkpoint, drain, down, prom
    struct network network;
    bool json, now, buckets, no_wait;
    double every;
};
size_t admin_subcommands(struct subcommand *subcommands, struct admin_options *options);
size_t drain_subcommands(struct subcommand *subcommands, struct admin_options *options);
size_t gather_subcommands(struct subcommand *subcommands, struct admin_options *options);

struct launch_options { // up, doctor, sh, systemd, sbatch
    struct option_list set;
    const char *out, *hosts, *ssh, *listen, *keys, *host, *units;
    const char *store;                              // "": in the run's folder
    double flush;                                   // 0: not told
    int64_t serve, ps, threads, partitions, copies; // 0: as RUN.conf says
    int64_t workers, warning;                       // 0: not told; workers: as RUN.conf says
    int64_t controllers;                            // 0: one
    bool resume, force, insecure, dry_run, quiet, user, json;
    bool job; // of Slurm, which says where controllers are
};
size_t launch_subcommands(struct subcommand *subcommands, struct launch_options *options);
size_t doctor_subcommands(struct subcommand *subcommands, struct launch_options *options);

struct key_options { // keys
    int64_t days;
};
size_t key_subcommands(struct subcommand *subcommands, struct key_options *options);

struct store_options { // store
    bool json;
};
size_t store_subcommands(struct subcommand *subcommands, struct store_options *options);

#endif
