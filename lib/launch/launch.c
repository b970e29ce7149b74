#include "launch/launch_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "launch/shell.h"
#include "net/address.h"
#include "run/checkpoint.h"
#include "run/settings.h"

const enum proto_role launch_roles[LAUNCH_ROLES] = {PROTO_ROLE_CONTROLLER, PROTO_ROLE_DATA_SERVER,
                                                    PROTO_ROLE_PARAMETER_SERVER, PROTO_ROLE_WORKER};

// --- what the user wants ----------------------------------------------------------------

static int check_control_characters(const char *text, struct error *err) {
    for (const char *c = text ? text : ""; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return error_set(err, STATUS_USAGE, "a control character in '%s'", text);
    return STATUS_OK;
}

static int check_advertised(const struct launch *launch, const char *address, const char *host,
                            struct error *err) {
    if (!address)
        return STATUS_OK;
    struct grow text = {0};
    launch_fill(&text, address, "1", host);
    char *filled = grow_take(&text);
    int status =
        filled ? address_check(filled, launch->keys, launch->insecure, err) : error_nomem(err);
    free(filled);
    return status;
}

static bool host_serves(const struct host *host) {
    return host->placed[PROTO_ROLE_CONTROLLER] > 0 || host->placed[PROTO_ROLE_DATA_SERVER] > 0 ||
           host->placed[PROTO_ROLE_PARAMETER_SERVER] > 0;
}

static int host_work(const struct host *host) {
    return host->placed[PROTO_ROLE_CONTROLLER] + host->placed[PROTO_ROLE_DATA_SERVER] +
           host->placed[PROTO_ROLE_PARAMETER_SERVER] + host->placed[PROTO_ROLE_WORKER];
}

static bool is_local(const struct launch *launch, const struct host *host) {
    struct grow text = {0};
    launch_fill(&text, launch->member, "1", host->address);
    char *address = grow_take(&text);
    bool local = address && address_is_local(address);
    free(address);
    return local;
}

// Whether those who run beyond this machine can reach the rest: an address such as
// "localhost" would mean their own.
static int check_reachable(const struct launch *launch, const struct hosts *hosts,
                           struct error *err) {
    bool beyond = false;
    for (size_t i = 0; i < hosts->count; i++)
        beyond |= host_work(&hosts->items[i]) > 0 && !is_local(launch, &hosts->items[i]);
    if (beyond && address_is_local(launch->listen))
        return error_set(err, STATUS_USAGE,
                         "other machines cannot reach the controller by --listen %s; say the name "
                         "that they know this one by",
                         launch->listen);
    for (size_t i = 0; beyond && i < hosts->count; i++)
        if (host_serves(&hosts->items[i]) && is_local(launch, &hosts->items[i]))
            return error_set(err, STATUS_USAGE,
                             "other machines cannot reach the servers on %s by the address '%s'; "
                             "say address=NAME in its line",
                             hosts->items[i].name, hosts->items[i].address);
    return STATUS_OK;
}

int launch_check(const struct launch *launch, const struct hosts *hosts, struct error *err) {
    const char *const texts[] = {launch->conf,    launch->folder, launch->data, launch->labels,
                                 launch->targets, launch->from,   launch->keys, launch->ssh,
                                 launch->store,   launch->here};
    int status = STATUS_OK;
    if (launch->ssh && !launch->ssh[strspn(launch->ssh, " ")])
        status = error_set(err, STATUS_USAGE, "--ssh needs a command");
    for (size_t i = 0; status == STATUS_OK && i < sizeof texts / sizeof *texts; i++)
        status = check_control_characters(texts[i], err);
    for (size_t i = 0; status == STATUS_OK && i < launch->set_count; i++)
        status = check_control_characters(launch->set[i], err);
    if (status == STATUS_OK)
        status = settings_check_text("out", launch->folder, err);
    if (status == STATUS_OK && !launch->quorum)
        status = check_advertised(launch, launch->listen, "HOST", err);
    if (status == STATUS_OK && !hosts)
        status = check_advertised(launch, launch->member, "HOST", err);
    for (size_t i = 0; status == STATUS_OK && hosts && i < hosts->count; i++)
        status = check_advertised(launch, launch->member, hosts->items[i].address, err);
    return status;
}

int launch_check_store(const struct launch *launch, const struct settings *settings,
                       struct error *err) {
    if (launch->store || strcmp(settings->ack, "durable") != 0)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "ack = durable: pushes are done when they are on a disk; give the parameter "
                     "servers stores with --store");
}

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

static int remove_folder_file(const char *folder, const char *name, struct error *err) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return error_set(err, STATUS_CANTCREATE, "%s: the path is too long", folder);
    if (unlink(path) && errno != ENOENT)
        return error_errno(err, STATUS_CANTCREATE, "cannot remove %s", path);
    return STATUS_OK;
}

// What a controller agreed on, alone or with others, in an earlier run.
static int remove_states(const char *folder, struct error *err) {
    char name[32];
    int status = remove_folder_file(folder, LAUNCH_STATE, err);
    for (int i = 1; status == STATUS_OK && i <= LAUNCH_CONTROLLERS; i++) {
        snprintf(name, sizeof name, LAUNCH_STATE_OF, i);
        status = remove_folder_file(folder, name, err);
    }
    return status;
}

int launch_check_folder(const struct launch *launch, struct error *err) {
    return launch->resume || launch->force ? run_folder_free(launch->folder, err)
                                           : run_folder_check(launch->folder, true, err);
}

bool launch_keeps_states(const struct launch *launch) {
    return launch->revive || (launch->resume && launch->remote_controllers);
}

int launch_prepare(const struct launch *launch, struct error *err) {
    char logs[PATH_MAX], cursor[32];
    int status = launch_check_folder(launch, err);
    snprintf(logs, sizeof logs, "%s/" LAUNCH_LOGS, launch->folder);
    if (status == STATUS_OK)
        status = launch->resume ? run_folder_create(launch->folder, err)
                                : run_folder_make(launch->folder, err);
    if (status == STATUS_OK)
        status = remove_folder_file(launch->folder, LAUNCH_PORT_FILE, err);
    if (status == STATUS_OK && !launch_keeps_states(launch))
        status = remove_states(launch->folder, err);
    if (status == STATUS_OK && launch->store && !launch->remote_stores)
        status = run_folder_create(launch->store, err);
    if (status == STATUS_OK)
        status = run_folder_create(logs, err);
    for (int i = 1; status == STATUS_OK && !launch->resume && i <= launch->data_servers; i++) {
        snprintf(cursor, sizeof cursor, "serve-%d" LAUNCH_CURSOR, i);
        status = remove_folder_file(launch->folder, cursor, err);
    }
    return status;
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

// "controller", or "ps-2", or "ps-" with a hole.
static void put_name(const struct launch *launch, struct grow *out, enum proto_role role,
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
    put_name(launch, &path, role, number);
    grow_format(&path, ".log");
    words_take(out, grow_take(&path));
}

// --- plans ------------------------------------------------------------------------------

static struct process *add_process(struct plan *plan) {
    struct process *items = mem_resize(plan->processes, plan->count + 1, sizeof *items);
    if (!items)
        return NULL;
    plan->processes = items;
    items[plan->count] = (struct process){0};
    return &items[plan->count++];
}

// What is behind "USER@", and behind "ssh://".
static const char *host_label(const struct host *host) {
    const char *label = host->name;
    for (const char *at = label; *at; at++)
        if (strchr("@/", *at) && at[1])
            label = at + 1;
    return label;
}

// What reaches a host; what the user says of ssh comes first, for there the first word
// counts. Nobody is asked for a password, who could not answer.
static void add_ssh(const struct launch *launch, const struct host *host, struct words *out) {
    static const char *const own[] = {"-o", "BatchMode=yes",        "-o", "ConnectTimeout=10",
                                      "-o", "ServerAliveInterval=5"};
    const char *at = launch->ssh ? launch->ssh : "ssh";
    for (size_t length; *(at += strspn(at, " ")); at += length) {
        length = strcspn(at, " ");
        words_format(out, "%.*s", (int)length, at);
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        words_add(out, own[i]);
    if (host->socket) {
        words_add(out, "-o");
        words_format(out, "ControlPath=%s", host->socket);
    }
}

void launch_ssh(const struct launch *launch, const struct host *host, struct words *out) {
    add_ssh(launch, host, out);
    words_add(out, host->name);
}

// The connection that the processes of a host share, each as a session of it; those for which
// it is not there, or full, connect by themselves.
static int add_connection(struct plan *plan, const struct launch *launch, const struct host *host,
                          struct error *err) {
    static const char *const own[] = {"-o", "ControlMaster=yes", "-o", "ControlPersist=no", "-N"};
    struct process *process = add_process(plan);
    if (!process)
        return error_nomem(err);
    struct words *command = &process->command;
    struct grow name = {0};
    grow_format(&name, "host-%s", host_label(host));
    process->remote = true;
    process->name = grow_take(&name);
    process->who = process->name ? strdup(process->name) : NULL;
    process->socket = strdup(host->socket);
    add_ssh(launch, host, command);
    process->reach = command->count;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        words_add(command, own[i]);
    words_add(command, host->name);
    return process->who && process->socket && !command->failed ? STATUS_OK : error_nomem(err);
}

static bool wants_connection(const struct host *host) {
    return host->socket && host_work(host) - host->placed[PROTO_ROLE_CONTROLLER] > 1;
}

static size_t connection_to(const struct plan *plan, const struct host *host) {
    for (size_t i = 0; host->socket && i < plan->count; i++)
        if (plan->processes[i].socket && strcmp(plan->processes[i].socket, host->socket) == 0)
            return i;
    return 0;
}

// What a host is to run, for whatever shell its user has: that stays, to tell by which
// signal the command was killed.
static char *host_line(const struct launch *launch, const struct words *command) {
    struct grow out = {0};
    char *line = words_line(command->items, command->count);
    out.failed = !line || command->failed;
    launch_put_folders(&out, launch);
    grow_format(&out, " && env TERM=dumb %s; exit", line ? line : "");
    free(line);
    return grow_take(&out);
}

static void add_remote_command(const struct launch *launch, enum proto_role role, int number,
                               const struct host *host, struct words *out) {
    struct launch there = *launch;
    struct words command = {0};
    if (host->threads)
        there.threads = host->threads;
    launch_process(&there, role, number, host->address, &command);
    add_ssh(launch, host, out);
    // A terminal of its own there makes what runs in it die with the connection.
    words_add(out, "-tt");
    words_add(out, host->name);
    words_take(out, host_line(launch, &command));
    words_free(&command);
}

// On `host`, or with NULL here.
static int add_role_process(struct plan *plan, const struct launch *launch, enum proto_role role,
                            int number, const struct host *host, struct error *err) {
    struct process *process = add_process(plan);
    struct grow name = {0}, who = {0};
    if (!process)
        return error_nomem(err);
    process->role = role;
    process->remote = host != NULL;
    process->through = host ? connection_to(plan, host) : 0;
    put_name(launch, &name, role, number);
    put_name(launch, &who, role, number);
    if (host)
        grow_format(&who, " on %s", host_label(host));
    process->name = grow_take(&name);
    process->who = grow_take(&who);
    if (host)
        add_remote_command(launch, role, number, host, &process->command);
    else
        launch_process(launch, role, number, "localhost", &process->command);
    return process->name && process->who && !process->command.failed ? STATUS_OK : error_nomem(err);
}

// A controller's connection is its own: it does not break with those of others.
static int add_controller_process(struct plan *plan, const struct launch *launch, int number,
                                  struct host *host, struct error *err) {
    if (!host)
        return add_role_process(plan, launch, PROTO_ROLE_CONTROLLER, number, NULL, err);
    struct host alone = *host;
    alone.socket = NULL;
    host->placed[PROTO_ROLE_CONTROLLER]++;
    return add_role_process(plan, launch, PROTO_ROLE_CONTROLLER, number, &alone, err);
}

static int add_controllers(struct plan *plan, const struct launch *launch,
                           const struct hosts *hosts, struct error *err) {
    int status = STATUS_OK;
    for (int i = 1; !status && i <= launch_count(launch, PROTO_ROLE_CONTROLLER); i++) {
        struct host *host = launch_controller_host(launch, hosts, i);
        status = add_controller_process(plan, launch, i, host, err);
        if (!status && host && !launch->resume)
            status = plan_add_clear(plan, launch, i, host, err);
    }
    return status;
}

static int add_local_processes(struct plan *plan, const struct launch *launch, enum proto_role role,
                               struct error *err) {
    int status = STATUS_OK;
    for (int i = 1; status == STATUS_OK && i <= launch_count(launch, role); i++)
        status = add_role_process(plan, launch, role, i, NULL, err);
    return status;
}

static int add_host_processes(struct plan *plan, const struct launch *launch, enum proto_role role,
                              const struct hosts *hosts, struct error *err) {
    int status = STATUS_OK, number = 0;
    for (size_t i = 0; i < hosts->count; i++)
        for (int n = 0; status == STATUS_OK && n < hosts->items[i].placed[role]; n++)
            status = add_role_process(plan, launch, role, ++number, &hosts->items[i], err);
    return status;
}

static int add_down(struct plan *plan, const struct launch *launch, struct error *err) {
    launch_down(launch, &plan->down);
    return plan->down.failed ? error_nomem(err) : STATUS_OK;
}

int plan_make(struct plan *plan, const struct launch *launch, struct hosts *hosts,
              struct error *err) {
    *plan = (struct plan){0};
    int status = add_controllers(plan, launch, hosts, err);
    plan->controllers = plan->count;
    if (status == STATUS_OK && plan->controllers > 1)
        status = add_down(plan, launch, err);
    for (size_t i = 1; status == STATUS_OK && hosts && i < LAUNCH_ROLES; i++)
        status = hosts_place(hosts, launch_roles[i], launch_count(launch, launch_roles[i]), err);
    if (status == STATUS_OK && hosts)
        status = check_reachable(launch, hosts, err);
    for (size_t i = 0; status == STATUS_OK && hosts && i < hosts->count; i++)
        if (wants_connection(&hosts->items[i]))
            status = add_connection(plan, launch, &hosts->items[i], err);
    for (size_t i = 1; status == STATUS_OK && i < LAUNCH_ROLES; i++)
        status = hosts ? add_host_processes(plan, launch, launch_roles[i], hosts, err)
                       : add_local_processes(plan, launch, launch_roles[i], err);
    if (status != STATUS_OK)
        plan_free(plan);
    return status;
}

void plan_free(struct plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->processes[i].name);
        free(plan->processes[i].who);
        free(plan->processes[i].socket);
        words_free(&plan->processes[i].command);
    }
    for (size_t i = 0; i < plan->clear_count; i++)
        words_free(&plan->clears[i]);
    free(plan->clears);
    free(plan->processes);
    words_free(&plan->down);
    *plan = (struct plan){0};
}

// The first words of a command, and what is behind them.
static void put_command_words(struct grow *out, const struct words *command, size_t count,
                              const char *behind) {
    char *line = words_line(command->items, count);
    out->failed |= !line;
    grow_format(out, "%s%s", line ? line : "", behind);
    free(line);
}

static void put_process_line(struct grow *out, const struct process *process) {
    const struct words *command = &process->command;
    if (process->socket) { // goes to the background when it is made
        put_command_words(out, command, command->count - 1, " -f ");
        words_quote(out, command->items[command->count - 1]);
        grow_format(out, "\n");
    } else { // where ssh would be stopped for touching this side's terminal
        put_command_words(out, command, command->count,
                          process->remote ? " </dev/null &\n" : " &\n");
    }
}

static void put_connection_end(struct grow *out, const struct process *process) {
    const struct words *command = &process->command;
    put_command_words(out, command, process->reach, " -O exit ");
    words_quote(out, command->items[command->count - 1]);
    grow_format(out, "\n");
}

char *plan_text(const struct plan *plan, const struct launch *launch) {
    struct grow out = {0};
    shell_prepare(&out, launch);
    if (launch->force)
        shell_forget(&out, launch);
    if (launch->remote_controllers)
        launch_put_port_file(&out, launch);
    for (size_t i = 0; i < plan->clear_count; i++)
        put_command_words(&out, &plan->clears[i], plan->clears[i].count, " </dev/null\n");
    for (size_t i = 0; i < plan->count; i++)
        put_process_line(&out, &plan->processes[i]);
    grow_format(&out, "wait\n");
    for (size_t i = 0; i < plan->count; i++)
        if (plan->processes[i].socket)
            put_connection_end(&out, &plan->processes[i]);
    return grow_take(&out);
}
