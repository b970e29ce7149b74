// Plans: each process of a run, where it runs, and how that is reached.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "launch/launch_internal.h"
#include "launch/shell.h"
#include "net/address.h"

// --- hosts ------------------------------------------------------------------------------

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

// --- processes --------------------------------------------------------------------------

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
    launch_put_name(launch, &name, role, number);
    launch_put_name(launch, &who, role, number);
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
