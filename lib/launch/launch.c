#include "launch/launch_internal.h"

#include <stdio.h>
#include <string.h>

const enum proto_role launch_roles[LAUNCH_ROLES] = {PROTO_ROLE_CONTROLLER, PROTO_ROLE_DATA_SERVER,
                                                    PROTO_ROLE_PARAMETER_SERVER, PROTO_ROLE_WORKER};

int launch_count(const struct launch *launch, enum proto_role role) {
    switch (role) {
    case PROTO_ROLE_CONTROLLER:
        return launch->controllers > 1 ? launch->controllers : 1;
    case PROTO_ROLE_DATA_SERVER:
        return launch->data_servers;
    case PROTO_ROLE_PARAMETER_SERVER:
        return launch->parameter_servers;
    case PROTO_ROLE_WORKER:
        return launch->workers;
    default:
        return 0;
    }
}

const char *launch_short(enum proto_role role) {
    switch (role) {
    case PROTO_ROLE_CONTROLLER:
        return "controller";
    case PROTO_ROLE_DATA_SERVER:
        return "serve";
    case PROTO_ROLE_PARAMETER_SERVER:
        return "ps";
    default:
        return "worker";
    }
}

enum launch_policy launch_policy(enum proto_role role) {
    return role == PROTO_ROLE_WORKER ? LAUNCH_RETRY : LAUNCH_AGAIN;
}

// --- commands ---------------------------------------------------------------------------

static void add_option(struct words *out, const char *name, const char *value) {
    if (!value)
        return;
    words_add(out, name);
    words_add(out, value);
}

// The options of its connections.
static void add_secrets(const struct launch *launch, struct words *out) {
    add_option(out, "--keys", launch->keys);
    if (launch->insecure)
        words_add(out, "--insecure");
}

void launch_down(const struct launch *launch, struct words *out) {
    words_add(out, "adam-ctl");
    words_add(out, "down");
    add_secrets(launch, out);
    words_add(out, launch->folder);
}

static void add_controller(const struct launch *launch, struct words *out) {
    words_add(out, "adam-ctl");
    words_add(out, "controller");
    words_add(out, launch->conf);
    add_option(out, "--out", launch->folder);
    if (!launch->workers_wanted) {
        words_add(out, "--set");
        words_format(out, "workers=%d", launch->workers / launch->partitions);
    }
    if (launch->partitions > 1) {
        words_add(out, "--set");
        words_format(out, "partitions=%d", launch->partitions);
    }
    for (size_t i = 0; i < launch->set_count; i++)
        add_option(out, "--set", launch->set[i]);
    words_add(out, "--set");
    words_format(out, "servers=%d", launch->parameter_servers);
    words_add(out, "--set");
    words_format(out, "data-servers=%d", launch->data_servers);
    if (launch->copies) {
        words_add(out, "--copies");
        words_format(out, "%d", launch->copies);
    }
    if (!launch->quorum)
        add_option(out, "--listen", launch->listen);
    add_option(out, "--quorum", launch->quorum);
    words_add(out, "--port-file");
    words_format(out, "%s/" LAUNCH_PORT_FILE, launch->folder);
    add_secrets(launch, out);
    if (launch->resume && !launch->revive)
        add_option(out, "--resume", launch->folder);
    if (launch->quorum)
        add_option(out, "--listen", launch->own);
}

static void add_own_address(const struct launch *launch, int number, struct words *out) {
    words_add(out, "--listen");
    launch_own_address(launch, number, out);
}

static void add_member_options(const struct launch *launch, enum proto_role role,
                               struct words *out) {
    words_add(out, "--controller");
    if (launch->dial)
        words_add(out, launch->dial);
    else
        words_format(out, "@%s/" LAUNCH_PORT_FILE, launch->folder);
    words_add(out, "--name");
    words_format(out, "%s-%c", launch_short(role), LAUNCH_NUMBER);
    if (role != PROTO_ROLE_WORKER)
        add_option(out, "--listen", launch->member);
    add_secrets(launch, out);
}

static void add_data_server(const struct launch *launch, struct words *out) {
    words_add(out, "adam-serve");
    words_add(out, launch->data);
    add_option(out, "--labels", launch->labels);
    add_option(out, "--targets", launch->targets);
    add_option(out, "--from", launch->from);
    add_member_options(launch, PROTO_ROLE_DATA_SERVER, out);
    words_add(out, "--range");
    words_format(out, "%c/%d", LAUNCH_NUMBER, launch->data_servers);
    words_add(out, "--cursor");
    words_format(out, "%s/serve-%c" LAUNCH_CURSOR, launch->folder, LAUNCH_NUMBER);
}

bool launch_stores_inside(const struct launch *launch) {
    size_t length = strlen(launch->folder);
    return !strncmp(launch->store, launch->folder, length) &&
           !strcmp(launch->store + length, "/" LAUNCH_STORES);
}

void launch_store(const struct launch *launch, int number, struct words *out) {
    if (number)
        words_format(out, "%s/ps-%d", launch->store, number);
    else
        words_format(out, "%s/ps-%c", launch->store, LAUNCH_NUMBER);
}

static void add_parameter_server(const struct launch *launch, struct words *out) {
    words_add(out, "adam-ps");
    add_member_options(launch, PROTO_ROLE_PARAMETER_SERVER, out);
    if (launch->own_parts) {
        words_add(out, "--checkpoints");
        words_format(out, "%s/" LAUNCH_PARTS "/ps-%c", launch->folder, LAUNCH_NUMBER);
    }
    if (!launch->store)
        return;
    words_add(out, "--store");
    launch_store(launch, 0, out);
    if (launch->aside)
        words_add(out, "--aside");
    words_add(out, "--flush");
    words_format(out, "%.9gs", launch->flush);
}

static void add_worker(const struct launch *launch, struct words *out) {
    words_add(out, "adam-worker");
    add_member_options(launch, PROTO_ROLE_WORKER, out);
    if (launch->partitions > 1 && launch->member)
        words_format(out, "--listen=%s", launch->member);
    else if (launch->partitions > 1)
        words_add(out, "--listen");
    else if (launch->threads) {
        words_add(out, "--threads");
        words_format(out, "%d", launch->threads);
    }
}

void launch_command(const struct launch *launch, enum proto_role role, struct words *out) {
    switch (role) {
    case PROTO_ROLE_CONTROLLER:
        add_controller(launch, out);
        break;
    case PROTO_ROLE_DATA_SERVER:
        add_data_server(launch, out);
        break;
    case PROTO_ROLE_PARAMETER_SERVER:
        add_parameter_server(launch, out);
        break;
    default:
        add_worker(launch, out);
        break;
    }
}

void launch_fill(struct grow *out, const char *text, const char *number, const char *host) {
    for (; *text; text++) {
        const char *filling = *text == LAUNCH_NUMBER ? number : *text == LAUNCH_HOST ? host : NULL;
        if (filling)
            grow_put(out, filling, strlen(filling));
        else
            grow_put(out, text, 1);
    }
}

void launch_process(const struct launch *launch, enum proto_role role, int number, const char *host,
                    struct words *out) {
    struct words open = {0};
    char digits[16];
    snprintf(digits, sizeof digits, "%d", number);
    launch_command(launch, role, &open);
    for (size_t i = 0; i < open.count; i++) {
        struct grow text = {0};
        launch_fill(&text, open.items[i], digits, host);
        words_take(out, grow_take(&text));
    }
    if (role == PROTO_ROLE_CONTROLLER && launch->quorum && !launch->own)
        add_own_address(launch, number, out);
    out->failed |= open.failed;
    words_free(&open);
}

void launch_put_name(const struct launch *launch, struct grow *out, enum proto_role role,
                     int number) {
    const char hole[] = {LAUNCH_NUMBER, 0};
    bool numbered = role != PROTO_ROLE_CONTROLLER || launch->controllers > 1;
    grow_format(out, "%s", launch_short(role));
    if (numbered && number)
        grow_format(out, "-%d", number);
    else if (numbered)
        grow_format(out, "-%s", hole);
}

void launch_log(const struct launch *launch, enum proto_role role, int number, struct words *out) {
    struct grow path = {0};
    grow_format(&path, "%s/" LAUNCH_LOGS "/", launch->folder);
    launch_put_name(launch, &path, role, number);
    grow_format(&path, ".log");
    words_take(out, grow_take(&path));
}
