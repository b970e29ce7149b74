#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/talk.h"
#include "cli/terminal.h"
#include "core/clock.h"

#define REDRAW 0.1 // seconds between two drawings on a terminal

void progress_start(struct progress *progress, bool quiet) {
    *progress = (struct progress){.quiet = quiet, .terminal = talk_is_terminal()};
    progress->started = progress->last = clock_seconds();
    progress->interval = progress->terminal ? REDRAW : 1;
}

bool progress_due(struct progress *progress) {
    return !progress->quiet && clock_seconds() - progress->last >= progress->interval;
}

void progress_line(struct progress *progress, const char *format, ...) {
    char text[512];
    va_list args;
    if (progress->quiet)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    progress->last = clock_seconds();
    if (progress->terminal) {
        // Cut to the width: a line that wraps cannot be redrawn in place.
        int width = terminal_size(STDERR_FILENO).columns - 1;
        fprintf(stderr, "\r%.*s\033[K", width, text);
        progress->drawn = true;
    } else {
        fprintf(stderr, "%s\n", text);
        progress->interval *= 2;
    }
    fflush(stderr);
}

void progress_clear(struct progress *progress) {
    if (!progress->drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->drawn = false;
}

void progress_say(struct progress *progress, const char *program, const char *text) {
    if (progress->quiet)
        return;
    progress_clear(progress);
    talk_note(program, "%s", text);
}

void progress_duration(char text[16], double seconds) {
    // The first comparison also catches what is not a number.
    if (!(seconds < 1e9))
        snprintf(text, 16, "?");
    else if (seconds < 60)
        snprintf(text, 16, "%ds", (int)(seconds > 0 ? seconds : 0));
    else if (seconds < 3600)
        snprintf(text, 16, "%dm%02ds", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, 16, "%dh%02dm", (int)(seconds / 3600), (int)(seconds / 60) % 60);
}

void progress_left(char text[32], const char *doing, double seconds) {
    char left[16] = "?";
    if (seconds >= 0)
        progress_duration(left, seconds);
    if (doing)
        snprintf(text, 32, "%s", doing);
    else
        snprintf(text, 32, "left %s", left);
}
