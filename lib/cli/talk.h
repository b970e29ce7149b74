// What all programs say on stderr, and how they end. Used by cmd/ only. All of it is printable
// (core/printable.h), whatever names of files, classes or members a message holds.
#ifndef ADAM_CLI_TALK_H
#define ADAM_CLI_TALK_H

#include <stdbool.h>
#include <stddef.h>

struct error;

// First in every main. Standard input, output and error that are closed stay reserved, so that
// no file of ours gets their number; to read or write the first two is then an error. Beyond a
// limit on the size of files (RLIMIT_FSIZE) a write fails with EFBIG, as on a full disk, and does
// not kill the process; a file that becomes shorter while it is mapped ends it with a word and
// STATUS_IO, by `end`, which is _exit. Calls mem_begin (core/mem.h) and cpu_flush_subnormals
// (core/cpu.h).
void talk_begin(void (*end)(int status));

// "adam-prep: error: TEXT"; a text that starts with "file:line:" goes out as it is.
// Returns err->status, so that main can `return talk_error(...)`.
int talk_error(const char *program, const struct error *err);
void talk_note(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));
// A line that another process said, as it is.
void talk_line(const char *line, size_t length);

// The end of a program that may be told to stop: that it was is a note, which `quiet` leaves
// out, all other failures are errors, unless `err` is empty; then talk_finish.
int talk_end(const char *program, int status, const struct error *err, bool quiet);

// Flushes and closes stdout; a failure (full disk) becomes STATUS_IO with a
// message, else returns `status`. Called last by every main, or by talk_end for it.
int talk_finish(const char *program, int status);

// "refusing to write binary data to a terminal" when path is "-" and stdout is one.
int talk_refuse_terminal(const char *path, struct error *err);

// Who talks, for hooks that take a `self`: whether a signal came, and a note unless quiet.
struct talk {
    const char *program;
    bool quiet;
};
bool talk_stop(void *self);
void talk_say(void *self, const char *text);

bool talk_is_terminal(void); // stderr is one, and TERM is not dumb

// SIGTERM and SIGINT: the first sets the flag that stop_requested() reads, a
// second one ends the process at once. Long-running programs ignore SIGPIPE,
// filters die of it quietly.
void stop_on_signals(bool ignore_sigpipe);
bool stop_requested(void);

#endif
