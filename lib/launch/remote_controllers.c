// Controllers on the machines of --hosts: where they are, how the others find them, and what must
// not be there when a new run begins.
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "launch/launch_internal.h"
#include "launch/shell.h"
#include "net/address.h"
#include "net/ready.h"

// --- where they are ---------------------------------------------------------------------

void launch_own_address(const struct launch *launch, int number, struct words *out) {
    const char *at = launch->quorum;
    for (int i = 1; i < number && at; i++)
        at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    words_format(out, "%.*s", (int)strcspn(at ? at : "", ","), at ? at : "");
}

struct host *launch_controller_host(const struct launch *launch, const struct hosts *hosts,
                                    int number) {
    char host[PROTO_ADDRESS_MAX];
    struct words own = {0};
    if (!hosts || !launch->quorum)
        return NULL;
    launch_own_address(launch, number, &own);
    bool any = own.count && address_host(own.items[0], host);
    words_free(&own);
    return any ? hosts_controller(hosts, host) : NULL;
}

static void list_addresses(const struct launch *launch, struct words *out) {
    for (int i = 1; i <= launch->controllers; i++)
        launch_own_address(launch, i, out);
}

static char *port_file(const struct launch *launch) {
    struct grow path = {0};
    grow_format(&path, "%s/" LAUNCH_PORT_FILE, launch->folder);
    return grow_take(&path);
}

int launch_tell(const struct launch *launch, struct error *err) {
    struct words addresses = {0};
    char *file = port_file(launch);
    struct ready ready = {.port_file = file, .fd = -1};
    list_addresses(launch, &addresses);
    int status =
        file && !addresses.failed
            ? ready_tell(&ready, (const char *const *)addresses.items, addresses.count, err)
            : error_nomem(err);
    words_free(&addresses);
    free(file);
    return status;
}

void launch_put_port_file(struct grow *out, const struct launch *launch) {
    struct words command = {0};
    char *file = port_file(launch);
    words_add(&command, "printf");
    words_add(&command, "%s\\n");
    list_addresses(launch, &command);
    char *line = command.failed ? NULL : words_line(command.items, command.count);
    out->failed |= !line || !file;
    grow_format(out, "%s >", line ? line : "");
    words_quote(out, file ? file : "");
    grow_format(out, "\n");
    words_free(&command);
    free(line);
    free(file);
}

// --- what is not to be there ------------------------------------------------------------

void launch_put_folders(struct grow *out, const struct launch *launch) {
    char *folder = getcwd(NULL, 0);
    out->failed |= !folder;
    grow_format(out, "cd ");
    words_quote(out, folder ? folder : "");
    grow_format(out, " && mkdir -p ");
    words_quote(out, launch->folder);
    free(folder);
}

// Lines of a shell, one behind the other.
static void put_lines(struct grow *out, const char *lines) {
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        grow_format(out, " && %.*s", (int)length, lines);
    }
}

// The record that another run left, and that run where it is to be replaced.
static char *clear_line(const struct launch *launch, int number) {
    struct grow out = {0}, state = {0}, run = {0};
    grow_format(&state, "%s/" LAUNCH_STATE_OF, launch->folder, number);
    char *name = grow_take(&state);
    out.failed = !name;
    launch_put_folders(&out, launch);
    grow_format(&out, " && rm -f ");
    words_quote(&out, name ? name : "");
    free(name);
    if (launch->force)
        shell_forget(&run, launch);
    char *lines = launch->force ? grow_take(&run) : NULL;
    out.failed |= launch->force && !lines;
    put_lines(&out, lines ? lines : "");
    free(lines);
    return grow_take(&out);
}

int plan_add_clear(struct plan *plan, const struct launch *launch, int number,
                   const struct host *host, struct error *err) {
    struct host alone = *host;
    struct words *clears = mem_resize(plan->clears, plan->clear_count + 1, sizeof *clears);
    if (!clears)
        return error_nomem(err);
    plan->clears = clears;
    struct words *command = &clears[plan->clear_count++];
    *command = (struct words){0};
    alone.socket = NULL; // there is none yet
    launch_ssh(launch, &alone, command);
    words_take(command, clear_line(launch, number));
    return command->failed ? error_nomem(err) : STATUS_OK;
}

static int run_command(const struct words *command, struct error *err) {
    posix_spawn_file_actions_t actions;
    int wait_status = 0;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
    int why = posix_spawnp(&pid, command->items[0], &actions, NULL, command->items, environ);
    posix_spawn_file_actions_destroy(&actions);
    errno = why;
    if (why)
        return error_errno(err, STATUS_UNAVAILABLE, "cannot run %s", command->items[0]);
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        ;
    if (!wait_status)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, "cannot make way for a controller on %s",
                     command->items[command->count - 2]);
}

int plan_clear(const struct plan *plan, struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; i < plan->clear_count && !status; i++)
        status = run_command(&plan->clears[i], err);
    return status;
}
