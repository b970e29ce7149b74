// The supervisor: a process that keeps dying is given up for it only when it dies often.
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "launch/supervise.h"

enum { CRASHES = 8 }; // of a process that is never given up: then the test ends

// What the clock is ahead of the machine's, in seconds. Time passes as the test wants it.
static _Atomic long ahead;

int clock_gettime(clockid_t id, struct timespec *t) {
    long result = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_MONOTONIC)
        t->tv_sec += atomic_load(&ahead);
    return (int)result;
}

struct scene {
    char folder[64], log[80];
    struct process processes[2]; // a controller, and a data server that dies at once
    struct plan plan;
    long every; // seconds between two crashes
    int restarts;
};

static void say(void *self, const char *text) {
    struct scene *s = self;
    if (!strstr(text, "starts again"))
        return;
    atomic_fetch_add(&ahead, s->every);
    if (++s->restarts == CRASHES)
        kill(getpid(), SIGTERM);
}

static void hear(void *self, const char *text) {
    (void)self, (void)text;
}

static void put_process(struct process *process, enum proto_role role, char *name,
                        const char *script) {
    *process = (struct process){.name = name, .who = name, .role = role};
    words_add(&process->command, "sh");
    words_add(&process->command, "-c");
    words_add(&process->command, script);
}

static void open_scene(struct scene *s, long every) {
    static char names[][16] = {"controller", "serve-1"};
    const char *folder = getenv("TMPDIR");
    *s = (struct scene){.plan = {.processes = s->processes, .count = 2, .controllers = 1},
                        .every = every};
    snprintf(s->folder, sizeof s->folder, "%.40s/supervise.XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(s->folder))
        abort();
    snprintf(s->log, sizeof s->log, "%s/" LAUNCH_LOGS, s->folder);
    mkdir(s->log, 0777);
    put_process(&s->processes[0], PROTO_ROLE_CONTROLLER, names[0],
                "trap 'exit 75' TERM; echo >&3; while :; do sleep 0.05; done");
    put_process(&s->processes[1], PROTO_ROLE_DATA_SERVER, names[1], "kill -KILL $$");
}

static void close_scene(struct scene *s) {
    char path[128];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s.log", s->log, s->processes[i].name);
        unlink(path);
        words_free(&s->processes[i].command);
    }
    rmdir(s->log);
    rmdir(s->folder);
}

static int supervise(struct scene *s, struct error *err) {
    const struct supervise_config config = {&s->plan, s->folder, {s, say, hear}};
    int by_signal, status = supervise_run(&config, &by_signal, err);
    return by_signal ? -by_signal : status;
}

static void test_window(struct tap *tap) {
    TEST(tap, "who crashes again after five restarts within two minutes ends the run", {
        struct scene s;
        struct error err = {0};
        open_scene(&s, 23); // the first of six is 115 s ago
        CHECK_INT(tap, supervise(&s, &err), STATUS_UNAVAILABLE);
        CHECK_INT(tap, s.restarts, 5);
        CHECK(tap, strstr(err.text, "serve-1 was killed by signal 9 (Killed) after 5 restarts"));
        close_scene(&s);
    });
    TEST(tap, "who crashes less often is started again and again", {
        struct scene s;
        struct error err = {0};
        open_scene(&s, 25); // the first of six is 125 s ago
        CHECK_INT(tap, supervise(&s, &err), STATUS_STOPPED);
        CHECK_INT(tap, s.restarts, CRASHES);
        close_scene(&s);
    });
}

static void drain_say(void *self, const char *text) {
    struct scene *s = self;
    if (strstr(text, "serve-1 was drained, and has left"))
        s->restarts = -1;
}

// The controller is there again: longer passes than anybody waits to start again.
static void drain_hear(void *self, const char *text) {
    (void)self;
    if (strstr(text, "again"))
        atomic_fetch_add(&ahead, 60);
}

// The controller is killed once the other one has left, and stops when it is started again and the
// other one had the time to be.
static void test_drained(struct tap *tap) {
    TEST(tap, "who was drained is not started again, nor with a controller that was killed", {
        struct scene s;
        struct error err = {0};
        char text[512];
        open_scene(&s, 0);
        words_free(&s.processes[0].command);
        words_free(&s.processes[1].command);
        snprintf(
            text, sizeof text,
            "echo >&3; if [ -e %s/again ]; then echo again; sleep 2; exit 75; fi; touch %s/again; "
            "while ! [ -e %s/left ]; do sleep 0.05; done; sleep 0.5; kill -KILL $$",
            s.log, s.log, s.log);
        put_process(&s.processes[0], PROTO_ROLE_CONTROLLER, s.processes[0].name, text);
        snprintf(text, sizeof text, "echo x >>%s/left; exit 1", s.log);
        put_process(&s.processes[1], PROTO_ROLE_PARAMETER_SERVER, s.processes[1].name, text);
        const struct supervise_config config = {&s.plan, s.folder, {&s, drain_say, drain_hear}};
        int by_signal;
        CHECK_INT(tap, supervise_run(&config, &by_signal, &err), STATUS_STOPPED);
        CHECK_INT(tap, s.restarts, -1);
        struct stat left;
        snprintf(text, sizeof text, "%s/left", s.log);
        CHECK(tap, !stat(text, &left) && left.st_size == 2);
        unlink(text);
        snprintf(text, sizeof text, "%s/again", s.log);
        unlink(text);
        close_scene(&s);
    });
}

int main(void) {
    struct tap tap = {0};
    test_window(&tap);
    test_drained(&tap);
    return tap_done(&tap);
}
