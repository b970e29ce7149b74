// What must be so before a run starts: what the user wants, and the run's folder.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "launch/launch.h"
#include "net/address.h"
#include "run/checkpoint.h"
#include "run/settings.h"

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
