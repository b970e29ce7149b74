// One status line on stderr: redrawn in place on a terminal (ten times a second
// at most), else, and where TERM is dumb, printed as plain lines at doubling intervals
// (1, 2, 4, 8... s); quiet prints nothing.
#ifndef ADAM_CLI_PROGRESS_H
#define ADAM_CLI_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool quiet, terminal;
    double started, last, interval; // seconds of clock_seconds()
    bool drawn;                     // a line stands on the terminal
};

void progress_start(struct progress *progress, bool quiet);
// Whether a line is due now: ask before formatting one.
bool progress_due(struct progress *progress);
void progress_line(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Clears the line from a terminal, so that other talk starts at the left.
void progress_clear(struct progress *progress);

// A line of other talk, as talk_note writes it; nothing when quiet.
void progress_say(struct progress *progress, const char *program, const char *text);

// "3m20s", "1h05m", "12s" into text (16 bytes).
void progress_duration(char text[16], double seconds);
// What it is doing, or when that is NULL "left 3m20s"; "left ?" for seconds below 0.
void progress_left(char text[32], const char *doing, double seconds);

#endif
