#include "cli/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"

enum { TEXT = 4 * ERROR_TEXT }; // of a message, with what is escaped in it

// Whether the text is a message about a place, "mnist.net:7:14: error: ...":
// the first word, or the words before "error:", end in ":NUMBER:". An address is none.
static bool names_a_place(const char *text) {
    const char *scheme = strstr(text, "://");
    if (scheme && scheme < text + strcspn(text, " \n"))
        return false;
    for (const char *p = strchr(text, ':'); p && p[1] != '\n'; p = strchr(p + 1, ':')) {
        size_t digits = strspn(p + 1, "0123456789");
        const char *end = p + 1 + digits;
        if (digits == 0 || strncmp(end, ": ", 2) != 0)
            continue;
        return strcspn(text, " \n") == (size_t)(end + 1 - text) || !strncmp(end + 2, "error:", 6);
    }
    return false;
}

// What was closed is opened in the wrong direction: to read or write it is an error, and the
// next file that is opened does not take its number. Errors may be dropped.
static void reserve_standard(void) {
    static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", modes[fd]);
}

// As below: what a signal handler needs must be static. Written once, before there are threads.
static void (*end_process)(int status);

// What a file that is mapped lacks since it was opened: somebody wrote over it, or its disk failed.
// Nothing can go on with it, and no thread but this one knows.
static void file_shrank(int number, siginfo_t *info, void *context) {
    static const char text[] = ": error: a file has become shorter while it was read\n";
    const char *name = program_invocation_short_name;
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL); // comes again as soon as this handler returns
        return;
    }
    (void)!write(STDERR_FILENO, name, strlen(name));
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    end_process(STATUS_IO);
}

static void tell_shrunk_files(void (*end)(int status)) {
    end_process = end;
    struct sigaction action = {.sa_sigaction = file_shrank, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void talk_begin(void (*end)(int status)) {
    mem_begin();
    cpu_flush_subnormals();
    reserve_standard();
    signal(SIGXFSZ, SIG_IGN);
    tell_shrunk_files(end);
}

bool talk_is_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static bool has_colour(void) {
    const char *no = getenv("NO_COLOR");
    return talk_is_terminal() && !(no && *no);
}

int talk_error(const char *program, const struct error *err) {
    bool colour = has_colour();
    char text[TEXT];
    printable_lines(text, sizeof text, err->text, strlen(err->text));
    if (names_a_place(text))
        fprintf(stderr, "%s\n", text);
    else
        fprintf(stderr, "%s: %serror:%s %s\n", program, colour ? "\033[1;31m" : "",
                colour ? "\033[0m" : "", text);
    return err->status;
}

void talk_note(const char *program, const char *format, ...) {
    char raw[TEXT], text[TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    printable_lines(text, sizeof text, raw, strlen(raw));
    fprintf(stderr, "%s: %s\n", program, text);
}

void talk_line(const char *line, size_t length) {
    char text[TEXT];
    printable_copy(text, sizeof text, line, length);
    fprintf(stderr, "%s\n", text);
}

int talk_finish(const char *program, int status) {
    errno = 0;
    bool failed = ferror(stdout) || fflush(stdout) != 0;
    // A stdout that was closed from the start and never written to is no failure.
    if (fclose(stdout) != 0 && errno != EBADF)
        failed = true;
    if (!failed)
        return status;
    struct error err = {0};
    if (errno)
        error_errno(&err, STATUS_IO, "cannot write to standard output");
    else
        error_set(&err, STATUS_IO, "cannot write to standard output");
    talk_error(program, &err);
    // A status that already says what went wrong is worth more to a script.
    return status > STATUS_SKIPPED ? status : STATUS_IO;
}

int talk_end(const char *program, int status, const struct error *err, bool quiet) {
    if (status == STATUS_STOPPED && err->status && !quiet)
        talk_note(program, "%s", err->text);
    else if (status != STATUS_STOPPED && err->status)
        talk_error(program, err);
    return talk_finish(program, status);
}

int talk_refuse_terminal(const char *path, struct error *err) {
    if (strcmp(path, "-") != 0 || !isatty(STDOUT_FILENO))
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "refusing to write binary data to a terminal; redirect it or name a file");
}

// A signal handler has no argument but the signal's number, so what it tells
// the program must be static. Nothing but the handler writes it; any thread may read it.
static atomic_int stop_flag; // without a lock, so that a handler may use it

static void stop_handler(int number) {
    if (stop_flag) {
        // Delivered as soon as this handler returns: status 128+number.
        signal(number, SIG_DFL);
        raise(number);
    }
    stop_flag = 1;
}

void stop_on_signals(bool ignore_sigpipe) {
    struct sigaction action = {.sa_handler = stop_handler, .sa_flags = SA_RESTART}, old;
    sigemptyset(&action.sa_mask);
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        // A shell script starts its background jobs with SIGINT ignored: leave it so.
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, ignore_sigpipe ? SIG_IGN : SIG_DFL);
}

bool stop_requested(void) {
    return stop_flag != 0;
}

bool talk_stop(void *self) {
    (void)self;
    return stop_requested();
}

void talk_say(void *self, const char *text) {
    const struct talk *talk = self;
    if (!talk->quiet)
        talk_note(talk->program, "%s", text);
}
