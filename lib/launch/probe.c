#include "launch/probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"
#include "net/address.h"

#define MARK "adam-probe " // what the lines of the script begin with

const char *const probe_programs[3] = {"adam-serve", "adam-ps", "adam-worker"};
enum { PROGRAMS = sizeof probe_programs / sizeof *probe_programs };

static double clock_here(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// --- the script -------------------------------------------------------------------------

static void put_clock(struct grow *out) {
    grow_format(out, "echo \"" MARK "clock $(date +%%s.%%N)\"\n");
}

static void put_test(struct grow *out, const char *path, const char *what) {
    if (!path)
        return;
    grow_format(out, "test -r ");
    words_quote(out, path);
    grow_format(out, " && echo '" MARK "%s'\n", what);
}

static void put_certificate(struct grow *out, const char *path, const char *what) {
    grow_format(out, "sed -n '/BEGIN CERT/,/END CERT/s/^/" MARK "%s /p' ", what);
    words_quote(out, path);
    grow_format(out, " 2>/dev/null\n");
}

// What group and others may do with it, as in "rw-r--".
static void put_mode(struct grow *out, const char *path) {
    grow_format(out, "echo \"" MARK "mode $(ls -ldL ");
    words_quote(out, path);
    grow_format(out, " 2>/dev/null | cut -c5-10)\"\n");
}

static void put_keys(struct grow *out, const char *keys) {
    const char *slash = strrchr(keys, '/');
    struct grow authority = {0};
    grow_format(&authority, "%.*sca.crt", slash ? (int)(slash - keys) + 1 : 0, keys);
    char *path = grow_take(&authority);
    put_test(out, keys, "keys");
    put_mode(out, keys);
    put_certificate(out, keys, "own");
    put_certificate(out, path ? path : "", "authority");
    out->failed |= !path;
    free(path);
}

// bash and timeout(1) can tell whether a port is reached; without them it stays unknown.
static void put_reach(struct grow *out, const char *address) {
    char host[PROTO_ADDRESS_MAX];
    if (!address_host(address, host))
        return;
    grow_format(out, "if command -v bash >/dev/null && command -v timeout >/dev/null; then\n"
                     "if timeout 5 bash -c 'exec 3<>\"/dev/tcp/$0/$1\"' ");
    words_quote(out, host);
    grow_format(
        out, " %s 2>/dev/null; then echo '" MARK "reach 1'; else echo '" MARK "reach 0'; fi\nfi\n",
        strrchr(address, ':') + 1);
}

static char *script_of(const struct launch *launch, bool remote) {
    struct grow out = {0};
    char *folder = getcwd(NULL, 0);
    out.failed = !folder;
    put_clock(&out);
    grow_format(&out, "cd ");
    words_quote(&out, folder ? folder : "");
    grow_format(&out, " 2>/dev/null && echo '" MARK "folder'\n");
    for (size_t i = 0; i < PROGRAMS; i++)
        grow_format(&out, "echo \"" MARK "program %zu $(%s --version 2>/dev/null | head -n 1)\"\n",
                    i, probe_programs[i]);
    grow_format(&out, "echo \"" MARK "space $(df -Pk . | awk 'END { print $4 }')\"\n");
    put_test(&out, launch->data, "data");
    put_test(&out, launch->labels, "labels");
    put_test(&out, launch->targets, "targets");
    if (launch->keys)
        put_keys(&out, launch->keys);
    if (remote && launch->dial && !launch->quorum)
        put_reach(&out, launch->dial);
    put_clock(&out);
    grow_format(&out, "exit 0");
    free(folder);
    return grow_take(&out);
}

static int command_of(struct words *command, const struct launch *launch, const struct host *host,
                      struct error *err) {
    char *script = script_of(launch, host != NULL), *own[] = {"sh", "-c", script};
    if (!script)
        return error_nomem(err);
    if (host) { // whatever shell its user has there
        launch_ssh(launch, host, command);
        words_take(command, words_line(own, 3));
    } else {
        for (size_t i = 0; i < 3; i++)
            words_add(command, own[i]);
    }
    free(script);
    return command->failed ? error_nomem(err) : STATUS_OK;
}

int probe_start(struct probe *probe, const struct launch *launch, const struct host *host,
                struct error *err) {
    struct words command = {0};
    char log[64];
    *probe = (struct probe){.host = host, .child.ready = -1, .space = -1, .began = clock_here()};
    probe->output = memfd_create("probe", MFD_CLOEXEC);
    if (probe->output < 0)
        return error_errno(err, STATUS_IO, "memfd_create");
    snprintf(log, sizeof log, "/proc/self/fd/%d", probe->output);
    int status = command_of(&command, launch, host, err);
    if (!status)
        status = child_start(&probe->child, &command, false, log, err);
    words_free(&command);
    return status;
}

// --- what it says -----------------------------------------------------------------------

static void append_message(char **text, const char *line) {
    struct grow all = {0};
    grow_format(&all, "%s%s\n", *text ? *text : "", line);
    free(*text);
    *text = grow_take(&all);
}

static void take_program(struct probe *probe, const char *value) {
    size_t which = (size_t)(*value - '0');
    if (which < PROGRAMS && value[1] == ' ')
        snprintf(probe->versions[which], sizeof probe->versions[which], "%s", value + 2);
}

static void take_clock(struct probe *probe, const char *value) {
    probe->clock[1] = strtod(value, NULL);
    if (probe->clock[0] == 0)
        probe->clock[0] = probe->clock[1];
}

static void take_space(struct probe *probe, const char *value) {
    int64_t kilobytes, bytes;
    if (text_integer(value, strlen(value), &kilobytes) && kilobytes >= 0 &&
        !__builtin_mul_overflow(kilobytes, 1024, &bytes))
        probe->space = bytes;
}

static void take_answer(struct probe *probe, char *line) {
    char *value = line + strcspn(line, " ");
    if (*value)
        *value++ = 0;
    if (!strcmp(line, "folder"))
        probe->folder = true;
    else if (!strcmp(line, "data"))
        probe->data = true;
    else if (!strcmp(line, "labels"))
        probe->labels = true;
    else if (!strcmp(line, "targets"))
        probe->targets = true;
    else if (!strcmp(line, "keys"))
        probe->keys = true;
    else if (!strcmp(line, "mode"))
        probe->exposed = *value && strspn(value, "-") < 6;
    else if (!strcmp(line, "program"))
        take_program(probe, value);
    else if (!strcmp(line, "clock"))
        take_clock(probe, value);
    else if (!strcmp(line, "space"))
        take_space(probe, value);
    else if (!strcmp(line, "reach"))
        probe->reach = *value == '1' ? PROBE_REACHES : PROBE_FAILS;
    else if (!strcmp(line, "own"))
        append_message(&probe->certificate, value);
    else if (!strcmp(line, "authority"))
        append_message(&probe->authority, value);
}

static void take_output(struct probe *probe) {
    enum { MOST = 1 << 16 };
    char *text = mem_zeroed(MOST + 1, 1), *rest = NULL;
    bool read = text && pread(probe->output, text, MOST, 0) > 0;
    for (char *line = read ? strtok_r(text, "\r\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\r\n", &rest)) {
        if (!strncmp(line, MARK, strlen(MARK))) {
            take_answer(probe, line + strlen(MARK));
            continue;
        }
        free(probe->said);
        probe->said = mem_string(line);
    }
    free(text);
}

bool probe_ended(struct probe *probe) {
    if (probe->ended == 0 && child_ended(&probe->child, &probe->wait_status)) {
        probe->ended = clock_here();
        take_output(probe);
    }
    return probe->ended > 0;
}

void probe_close(struct probe *probe) {
    int status;
    child_signal(&probe->child, SIGKILL);
    while (probe->child.pid > 0 && !child_ended(&probe->child, &status))
        usleep(1000);
    if (probe->output > 0)
        close(probe->output);
    free(probe->said);
    free(probe->certificate);
    free(probe->authority);
    *probe = (struct probe){0};
}
