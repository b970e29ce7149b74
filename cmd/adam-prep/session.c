#include "adam-prep/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/printable.h"
#include "ops/ops.h"
#include "prep/copies.h"

enum { REJECTED_SHOWN = 10 }; // on stderr; the others are counted

static void say_rejected(const char *path, const char *reason) {
    char left[ERROR_TEXT], right[ERROR_TEXT];
    printable_copy(left, sizeof left, path, strlen(path));
    printable_copy(right, sizeof right, reason, strlen(reason));
    talk_note(PROGRAM, "skipped %s: %s", left, right);
}

int session_rejected(void *context, const char *path, const char *reason, struct error *err) {
    struct session *s = context;
    s->rejected++;
    if (!s->options->quiet && s->rejected <= REJECTED_SHOWN) {
        progress_clear(&s->progress);
        say_rejected(path, reason);
        if (s->rejected == REJECTED_SHOWN)
            talk_note(PROGRAM, "further ones are only counted; --reject FILE lists them all");
    }
    return s->reject ? reject_put(s->reject, path, reason, err) : STATUS_OK;
}

// The thread that reads says it; a line waits for the end, so that it does not stand within the
// progress line of another thread.
static void keep_note(void *self, const char *text) {
    struct session *s = self;
    char line[ERROR_TEXT];
    printable_copy(line, sizeof line, text, strlen(text));
    grow_format(&s->notes, "%s\n", line);
}

static void say_notes(struct session *s) {
    char *notes = grow_take(&s->notes);
    for (char *rest = notes, *line; rest && (line = strsep(&rest, "\n")) && rest;)
        progress_say(&s->progress, PROGRAM, line);
    free(notes);
}

// ---- inputs and outputs ----

static enum label_from label_from_word(const char *word) {
    if (!word)
        return LABEL_DEFAULT;
    return !strcmp(word, "parent")   ? LABEL_PARENT
           : !strcmp(word, "column") ? LABEL_COLUMN
                                     : LABEL_NO;
}

struct inputs_config session_inputs(struct session *s, const char *const *paths, size_t count) {
    const struct options *o = s->options;
    return (struct inputs_config){
        .paths = paths,
        .path_count = count,
        .files_from = o->files_from,
        .only = o->only.items,
        .only_count = o->only.count,
        .limit = o->limit,
        .source =
            {
                .from = o->from,
                .labels = o->labels,
                .label_from = label_from_word(o->label_from),
                .separator = o->null ? 0 : '\n',
                .max_bytes = o->max_bytes,
                .hooks = {s, talk_stop, keep_note},
                .decode =
                    {
                        .max_pixels = (uint64_t)o->max_pixels,
                        .channels = !o->channels                   ? 0
                                    : !strcmp(o->channels, "gray") ? 1
                                                                   : 3,
                    },
            },
    };
}

int session_check_inputs(const struct inputs_config *inputs, const char *command,
                         struct error *err) {
    bool standard = inputs->files_from && !strcmp(inputs->files_from, "-");
    int dashes = standard;
    if (!inputs->path_count && !inputs->files_from)
        return error_set(err, STATUS_USAGE,
                         "no input; '-' is standard input, and '%s --help' "
                         "tells more",
                         command);
    for (size_t i = 0; i < inputs->path_count; i++)
        dashes += !strcmp(inputs->paths[i], "-");
    if (dashes > 1)
        return error_set(err, STATUS_USAGE, "standard input can be read only once");
    if (dashes && isatty(STDIN_FILENO))
        return error_set(err, STATUS_USAGE, "standard input is a terminal; '%s --help' tells more",
                         command);
    return STATUS_OK;
}

int session_need_output(const struct session *s, const char *command, struct error *err) {
    return s->options->output
               ? STATUS_OK
               : error_set(err, STATUS_USAGE,
                           "%s%sno output; say where with -o ('-' is standard output)", command,
                           *command ? ": " : "");
}

// ---- beginning and end ----

// A chain of operations; a mistake is shown with a caret below it.
static int parse_ops(struct ops **out, const char *option, const char *text, struct error *err) {
    size_t offset = 0, length = 0;
    if (!text || !text[strspn(text, " \t\n;")])
        return STATUS_OK;
    int status = ops_parse(out, text, 0, &offset, &length, err);
    if (!status)
        return STATUS_OK;
    char why[ERROR_TEXT / 2];
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, err->text);
    char under[256];
    size_t carets = length < 1 ? 1 : length;
    if (offset + carets >= sizeof under || strchr(text, '\n'))
        return error_context(err, "%s", option);
    memset(under, ' ', offset);
    memset(under + offset, '^', carets);
    return error_set(err, status, "%s: %s\n    %s\n    %.*s", option, why, text,
                     (int)(offset + carets), under);
}

static int check_held_out(const struct session *s, struct error *err) {
    const struct options *o = s->options;
    if (s->split.count == 1 && (o->test_ops || o->stratify))
        return error_set(err, STATUS_USAGE, "--%s needs --split",
                         o->test_ops ? "test-ops" : "stratify");
    if (s->split.count > 1 && !o->test_ops && s->ops && ops_random(s->ops))
        return error_set(err, STATUS_USAGE,
                         "--ops draws random numbers; say with --test-ops what "
                         "is done to the parts held out (--test-ops '' for nothing)");
    return STATUS_OK;
}

// The list of what was skipped is written anew: it must be nothing that is read or written.
static int open_reject(struct session *s, const char *const *operands, size_t count,
                       struct error *err) {
    const struct options *o = s->options;
    const char *const files[] = {o->files_from, o->labels, o->classes,
                                 o->output,     o->mean,   o->labels_out};
    int status = reject_check(o->reject, operands, count, err);
    if (!status)
        status = reject_check(o->reject, files, sizeof files / sizeof *files, err);
    return status ? status : reject_open(&s->reject, o->reject, err);
}

int session_start(struct session *s, char *const *operands, int count, struct error *err) {
    const struct options *o = s->options;
    int status = parse_ops(&s->ops, "--ops", o->ops, err);
    if (!status)
        status = parse_ops(&s->test_ops, "--test-ops", o->test_ops, err);
    if (!status)
        status = split_parse(&s->split, o->split, err);
    if (!status)
        status = check_held_out(s, err);
    if (!status && o->name)
        status = copies_check_name(o->name, o->copies > 1 || o->balance, err);
    if (!status && o->classes)
        status = classes_read(&s->classes, o->classes, err);
    if (!status && o->reject && !strcmp(o->reject, "-") && o->output && !strcmp(o->output, "-"))
        status =
            error_set(err, STATUS_USAGE, "--reject and --output cannot both be standard output");
    if (!status && o->reject)
        status = open_reject(s, (const char *const *)operands, (size_t)count, err);
    s->started = clock_seconds();
    progress_start(&s->progress, o->quiet);
    stop_on_signals(false);
    return status;
}

int session_end(struct session *s, int status, struct error *err) {
    progress_clear(&s->progress);
    say_notes(s);
    int closed = reject_close(s->reject, status ? NULL : err);
    ops_free(s->ops);
    ops_free(s->test_ops);
    classes_free(&s->classes);
    return status ? status : closed ? closed : s->rejected ? STATUS_SKIPPED : STATUS_OK;
}
