// adam-serve: a data server of a run.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/network.h"
#include "cli/option.h"
#include "cli/talk.h"
#include "core/cpu.h"
#include "core/error.h"
#include "member/place.h"
#include "ops/ops.h"
#include "role/dataserver/data_server.h"

static const char name[] = "adam-serve";

struct options {
    struct network network;
    const char *from, *labels, *targets, *ops, *range, *cursor;
    int64_t threads;
    uint64_t cache, ahead;
    uint32_t part, parts; // of --range
    struct talk talk;
};

static int serve(struct options *o, char **paths, int count, const char *listen,
                 const struct secrets *keys, struct error *err) {
    const struct network *n = &o->network;
    char room[NETWORK_NAME_MAX];
    const struct data_server_options options = {
        .paths = (const char *const *)paths,
        .path_count = (size_t)count,
        .source = {.from = o->from,
                   .labels = o->labels,
                   .targets = o->targets,
                   .hooks = {&o->talk, talk_stop, talk_say}},
        .ops = o->ops,
        .part = o->part,
        .parts = o->parts,
        .cache = o->cache,
        .ahead = o->ahead,
        .threads = (int)o->threads,
        .cursor = o->cursor,
        .controller = n->controller,
        .name = network_name(n, room),
        .listen = listen,
        .ready = {n->port_file, n->pid_file, (int)n->ready_fd},
        .keys = keys,
        .insecure = n->insecure,
        .hooks = {&o->talk, talk_stop, talk_say},
    };
    return data_server_run(&options, err);
}

static int run(struct options *o, char **paths, int count, struct error *err) {
    const struct network *n = &o->network;
    char listen[PROTO_ADDRESS_MAX];
    struct secrets *keys = NULL;
    int status = place_keys(&keys, n->keys, err);
    if (!status)
        status = place_address(listen, "serve", n->listen, NULL, err);
    if (!status) {
        stop_on_signals(true);
        status = serve(o, paths, count, listen, keys, err);
    }
    secrets_close(keys);
    return status;
}

static int check_range(struct options *o, struct error *err) {
    char more;
    if (!o->range)
        return STATUS_OK;
    if (sscanf(o->range, "%" SCNu32 "/%" SCNu32 "%c", &o->part, &o->parts, &more) == 2 &&
        o->part >= 1 && o->part <= o->parts)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "--range '%s' is not I/N with I from 1 to N, such as 1/2 and 2/2", o->range);
}

static int check(struct options *o, int count, struct error *err) {
    if (count == 0)
        return error_set(err, STATUS_USAGE, "needs a data set; try '%s --help'", name);
    return check_range(o, err);
}

// Whether to go on: the options are in `o`. Else *status is how to end.
static bool parse(struct options *o, int argc, char **argv, int *operand, int *status,
                  struct error *err) {
    const struct option_row rows[] = {
        HEADING("Data"),
        TEXT(0, "labels", "FILE", &o->labels, NULL,
             "labels of IDX or .npy, in a file of their own"),
        TEXT(0, "targets", "FILE", &o->targets, NULL,
             "what samples have in the place of labels: classes of each, or numbers"),
        TEXT(0, "from", "KIND", &o->from, "recognised", "kind of the data"),
        TEXT_OF(0, "ops", "OPS", &o->ops, ops_name, "the run's",
                "augment each picture, see adam-ops(7)"),
        TEXT(0, "range", "I/N", &o->range, "all", "serve only part I of N of the samples"),
        TEXT(0, "cursor", "FILE", &o->cursor, NULL,
             "record finished leases there, to continue from"),
        HEADING("Network"),
        NETWORK_ROWS(&o->network),
        LISTEN_ROW(&o->network, "address for workers and controllers"),
        LISTEN_ROWS(&o->network),
        HEADING("Resources"),
        BYTES(0, "cache", "BYTES", &o->cache, "3/4 of memory", "keep decoded pictures"),
        BYTES(0, "ahead", "BYTES", &o->ahead, "64M", "make batches ahead of demand"),
        INT('t', "threads", "N", &o->threads, 1, 1024, "all cores",
            "threads that decode and augment"),
        HEADING("Behaviour"),
        FLAG('q', "quiet", &o->talk.quiet, "say nothing but errors"),
    };
    const struct command command = {
        .name = name,
        .synopsis = "DATA... --controller ADDR [options]",
        .about = "serve batches of a data set to the workers of a run",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "FILE",
    };
    if (!network_parse(&o->network, &command, argc, argv, operand, status, err))
        return false;
    *status = check(o, argc - *operand, err);
    return *status == STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.talk = {.program = name},
                        .threads = cpu_count(),
                        .cache = cpu_memory() / 4 * 3,
                        .ahead = 64 << 20};
    struct error err = {0};
    int status, operand;
    talk_begin(_exit);
    network_default(&o.network);
    if (parse(&o, argc, argv, &operand, &status, &err))
        status = run(&o, argv + operand, argc - operand, &err);
    return talk_end(name, status, &err, o.talk.quiet);
}
