// adam-ps: a parameter server of a run.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/network.h"
#include "cli/option.h"
#include "cli/talk.h"
#include "core/cpu.h"
#include "core/error.h"
#include "member/place.h"
#include "role/paramserver/parameter_server.h"

static const char name[] = "adam-ps";

struct options {
    struct network network;
    int64_t threads;
    uint64_t memory;
    const char *store;
    bool aside;
    double flush;
    const char *checkpoints;
    struct talk talk;
};

struct addresses {
    char training[PROTO_ADDRESS_MAX], replication[PROTO_ADDRESS_MAX], admin[PROTO_ADDRESS_MAX];
};

static int place_all(struct addresses *at, const struct network *n, struct error *err) {
    int status = place_address(at->training, "ps", n->listen, NULL, err);
    if (!status)
        status = place_address(at->replication, "ps-replication", n->replication, n->listen, err);
    if (!status)
        status = place_address(at->admin, "ps-admin", n->admin, n->listen, err);
    return status;
}

// Names without a number of a process, since the next process goes on with the store.
static const char *store_owner(const struct network *n, char host[NETWORK_NAME_MAX]) {
    if (n->name)
        return n->name;
    if (gethostname(host, NETWORK_NAME_MAX))
        snprintf(host, NETWORK_NAME_MAX, "server");
    host[NETWORK_NAME_MAX - 1] = 0;
    return host;
}

static int run(struct options *o, struct error *err) {
    const struct network *n = &o->network;
    struct addresses at;
    struct secrets *keys = NULL;
    char room[NETWORK_NAME_MAX], host[NETWORK_NAME_MAX];
    int status = place_keys(&keys, n->keys, err);
    if (!status)
        status = place_all(&at, n, err);
    if (status) {
        secrets_close(keys);
        return status;
    }
    const struct parameter_server_options options = {
        .controller = n->controller,
        .name = o->store ? store_owner(n, host) : network_name(n, room),
        .training = at.training,
        .replication = at.replication,
        .administration = at.admin,
        .ready = {n->port_file, n->pid_file, (int)n->ready_fd},
        .keys = keys,
        .insecure = n->insecure,
        .threads = (uint32_t)o->threads,
        .memory = o->memory,
        .store = o->store,
        .aside = o->aside,
        .owner = store_owner(n, host),
        .flush = o->flush,
        .checkpoints = o->checkpoints,
        .hooks = {&o->talk, talk_stop, talk_say},
    };
    stop_on_signals(true);
    status = parameter_server_run(&options, err);
    secrets_close(keys);
    return status;
}

// Whether to go on: the options are in `o`. Else *status is how to end.
static bool parse(struct options *o, int argc, char **argv, int *status, struct error *err) {
    const struct option_row rows[] = {
        HEADING("Network"),
        NETWORK_ROWS(&o->network),
        LISTEN_ROW(&o->network, "address for workers"),
        TEXT(0, "replication", "ADDR", &o->network.replication, "beside --listen",
             "address for other parameter servers"),
        ADMIN_ROW(&o->network),
        LISTEN_ROWS(&o->network),
        HEADING("Resources"),
        INT('t', "threads", "N", &o->threads, 1, 1024, "all cores", "threads that apply updates"),
        BYTES(0, "memory", "BYTES", &o->memory, "any", "bytes of weights, their state and buffers"),
        HEADING("Store"),
        TEXT(0, "store", "DIR", &o->store, "none: nothing is on a disk",
             "folder that keeps what changes, and restores it at a start"),
        FLAG(0, "aside", &o->aside, "set a store of another run aside, as DIR.old"),
        TIME(0, "flush", "TIME", &o->flush, "1s", "how old a change gets before it is written"),
        HEADING("Checkpoints"),
        TEXT(0, "checkpoints", "DIR", &o->checkpoints, "none",
             "folder for its parts of checkpoints, with checkpoint-parts = local"),
        HEADING("Behaviour"),
        FLAG('q', "quiet", &o->talk.quiet, "say nothing but errors"),
    };
    const struct command command = {
        .name = name,
        .synopsis = "--controller ADDR [options]",
        .about = "hold a part of a run's parameters, and apply updates to them",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
    };
    int operands;
    if (!network_parse(&o->network, &command, argc, argv, &operands, status, err))
        return false;
    if (operands < argc)
        *status = error_set(err, STATUS_USAGE, "unexpected '%s'", argv[operands]);
    return *status == STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.talk = {.program = name}, .threads = cpu_count(), .flush = 1};
    struct error err = {0};
    int status;
    talk_begin(_exit);
    network_default(&o.network);
    if (parse(&o, argc, argv, &status, &err))
        status = run(&o, &err);
    return talk_end(name, status, &err, o.talk.quiet);
}
