#include "launch/hosts.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/io.h"
#include "core/mem.h"
#include "core/text.h"
#include "net/address.h"

// Where a file is read, for messages.
struct file_line {
    const char *path;
    int line;
    struct error *err;
};

static int line_error(const struct file_line *at, const char *what, const char *word) {
    return error_set(at->err, STATUS_DATA, "%s:%d: error: %s '%s'", at->path, at->line, what, word);
}

static const struct {
    const char *name;
    enum proto_role role;
} roles[] = {{"controller", PROTO_ROLE_CONTROLLER},
             {"serve", PROTO_ROLE_DATA_SERVER},
             {"ps", PROTO_ROLE_PARAMETER_SERVER},
             {"worker", PROTO_ROLE_WORKER}};
enum { ROLES = sizeof roles / sizeof *roles };

static int set_roles(struct host *host, char *text, const struct file_line *at) {
    char *rest;
    memset(host->takes, 0, sizeof host->takes);
    for (char *name = strtok_r(text, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        size_t i = 0;
        while (i < ROLES && strcmp(roles[i].name, name) != 0)
            i++;
        if (i == ROLES)
            return line_error(at, "roles are controller, serve, ps and worker, not", name);
        host->takes[roles[i].role] = true;
    }
    return STATUS_OK;
}

static int set_number(int *number, const char *text, const struct file_line *at) {
    int64_t value;
    if (!text_integer(text, strlen(text), &value) || value < 1 || value > 4096)
        return line_error(at, "needs a whole number from 1 to 4096, not", text);
    *number = (int)value;
    return STATUS_OK;
}

static int set_address(struct host *host, const char *text, const struct file_line *at) {
    if (!*text || strpbrk(text, "/@"))
        return line_error(at, "needs the name or number of a host, not", text);
    if (address_is_any(text))
        return line_error(at, "needs the name or number that others reach this host by, not", text);
    free(host->address);
    host->address = mem_string(text);
    return host->address ? STATUS_OK : error_nomem(at->err);
}

static int set_host_key(struct host *host, char *word, const struct file_line *at) {
    char *value = strchr(word, '=');
    if (!value)
        return line_error(at, "no KEY=VALUE:", word);
    *value++ = 0;
    if (!strcmp(word, "slots"))
        return set_number(&host->slots, value, at);
    if (!strcmp(word, "threads"))
        return set_number(&host->threads, value, at);
    if (!strcmp(word, "roles"))
        return set_roles(host, value, at);
    if (!strcmp(word, "address"))
        return set_address(host, value, at);
    return line_error(at, "keys are slots, roles, address and threads, not", word);
}

// Takes a name over as that of a host with all roles.
static int host_init(struct host *host, const char *name, const struct file_line *at) {
    const char *user = strrchr(name, '@');
    if (*name == '-') // would be an option of ssh
        return line_error(at, "no name of a host:", name);
    host->slots = 1;
    for (size_t i = 0; i < ROLES; i++)
        host->takes[roles[i].role] = true;
    host->name = mem_string(name);
    host->address = mem_string(user ? user + 1 : name);
    return host->name && host->address ? STATUS_OK : error_nomem(at->err);
}

static int parse_line(struct hosts *hosts, char *line, const struct file_line *at) {
    static const char blank[] = " \t\r\n";
    char *rest, *word;
    line[strcspn(line, "#")] = 0;
    if (!(word = strtok_r(line, blank, &rest)))
        return STATUS_OK;
    struct host *items = mem_resize(hosts->items, hosts->count + 1, sizeof *items);
    if (!items)
        return error_nomem(at->err);
    hosts->items = items;
    struct host *host = &items[hosts->count++];
    *host = (struct host){0};
    int status = host_init(host, word, at);
    while (status == STATUS_OK && (word = strtok_r(NULL, blank, &rest)))
        status = set_host_key(host, word, at);
    return status;
}

int hosts_read(struct hosts *hosts, const char *path, struct error *err) {
    char *line = NULL;
    size_t size = 0;
    ssize_t length = 0;
    struct file_line at = {.path = path, .err = err};
    *hosts = (struct hosts){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, STATUS_NOINPUT, "cannot read %s", path);
    int status = io_line(file, path, &line, &size, &length, err);
    while (status == STATUS_OK && length >= 0) {
        at.line++;
        status = parse_line(hosts, line, &at);
        if (status == STATUS_OK)
            status = io_line(file, path, &line, &size, &length, err);
    }
    if (status == STATUS_OK && !hosts->count)
        status = error_set(err, STATUS_DATA, "%s names no host", path);
    free(line);
    fclose(file);
    if (status != STATUS_OK)
        hosts_free(hosts);
    return status;
}

void hosts_free(struct hosts *hosts) {
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->items[i].name);
        free(hosts->items[i].address);
        free(hosts->items[i].socket);
    }
    free(hosts->items);
    *hosts = (struct hosts){0};
}

struct host *hosts_controller(const struct hosts *hosts, const char *address) {
    for (size_t i = 0; i < hosts->count; i++)
        if (hosts->items[i].takes[PROTO_ROLE_CONTROLLER] &&
            !strcmp(hosts->items[i].address, address))
            return &hosts->items[i];
    return NULL;
}

int hosts_slots(const struct hosts *hosts) {
    int slots = 0;
    for (size_t i = 0; i < hosts->count; i++)
        if (hosts->items[i].takes[PROTO_ROLE_WORKER])
            slots += hosts->items[i].slots;
    return slots;
}

static const char *role_name(enum proto_role role) {
    size_t i = 0;
    while (i < ROLES - 1 && roles[i].role != role)
        i++;
    return roles[i].name;
}

int hosts_place(struct hosts *hosts, enum proto_role role, int count, struct error *err) {
    bool workers = role == PROTO_ROLE_WORKER;
    int left = count, before;
    if (workers && count > hosts_slots(hosts))
        return error_set(err, STATUS_USAGE,
                         "%d workers are more than the hosts have slots (%d); say slots=N", count,
                         hosts_slots(hosts));
    do { // round after round
        before = left;
        for (size_t i = 0; i < hosts->count && left > 0; i++) {
            struct host *host = &hosts->items[i];
            int most = !host->takes[role] ? 0 : workers ? host->slots : 1;
            int taken = most < left ? most : left;
            host->placed[role] += taken;
            left -= taken;
        }
    } while (left > 0 && left < before);
    if (left > 0)
        return error_set(err, STATUS_USAGE, "no host takes the role %s; say roles=%s",
                         role_name(role), role_name(role));
    return STATUS_OK;
}
