// adam-prep, adam-prep draw.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adam-prep/session.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"
#include "prep/prepare.h"

static void on_prepared(void *context, const struct prepare_counts *counts) {
    struct session *s = context;
    if (progress_due(&s->progress)) {
        double seconds = clock_seconds() - s->started;
        progress_line(&s->progress, "%llu in, %llu out, %.0f samples/s",
                      (unsigned long long)counts->in, (unsigned long long)counts->out,
                      (double)counts->in / fmax(seconds, 1e-6));
    }
}

static enum codec codec_of_word(const char *word) {
    if (!word || !strcmp(word, "raw"))
        return CODEC_NONE;
    return !strcmp(word, "png") ? CODEC_PNG : !strcmp(word, "pnm") ? CODEC_PNM : CODEC_JPEG;
}

static struct sink_options sink_of(const struct options *o) {
    return (struct sink_options){
        .to = o->to,
        .labels_out = o->labels_out,
        .codec = codec_of_word(o->codec),
        .quality = (int)o->quality,
        .force = o->force,
    };
}

static void say_prepared(const struct session *s, const struct prepare_counts *counts) {
    char took[16], copies[48] = "", parts[SPLIT_PARTS * (SPLIT_NAME + 24)] = "";
    size_t used = 0;
    for (int i = 0; s->split.count > 1 && i < s->split.count; i++)
        used += (size_t)snprintf(parts + used, sizeof parts - used, "%s%s %llu", i ? ", " : " (",
                                 s->split.parts[i].name, (unsigned long long)counts->parts[i]);
    progress_duration(took, clock_seconds() - s->started);
    if (counts->copies_skipped)
        snprintf(copies, sizeof copies, ", %llu copies skipped",
                 (unsigned long long)counts->copies_skipped);
    talk_note(PROGRAM, "%llu in, %llu out%s%s, %llu skipped%s, %d classes, %s",
              (unsigned long long)counts->in, (unsigned long long)counts->out, parts,
              used ? ")" : "", (unsigned long long)counts->skipped, copies, counts->classes, took);
}

static int prepare(struct session *s, const char *const *paths, size_t count, int64_t draw,
                   struct error *err) {
    const struct options *o = s->options;
    struct prepare_config config = {
        .inputs = session_inputs(s, paths, count),
        .draw = draw,
        .draw_size = (int)o->size,
        .ops = s->ops,
        .test_ops = o->test_ops ? s->test_ops : s->ops,
        .copies = o->copies,
        .stratify = o->stratify,
        .balance = o->balance,
        .name = o->name,
        .shuffle = o->shuffle,
        .memory = o->memory,
        .bare = o->codec && !strcmp(o->codec, "raw"),
        .outputs = {o->output, &s->split, sink_of(o), o->max_count, o->reject},
        .classes = o->classes ? &s->classes : NULL,
        .stop_on_error = !strcmp(o->on_error, "stop"),
        .threads = (int)o->threads,
        .seed = (uint64_t)o->seed,
        .context = s,
        .rejected = session_rejected,
        .progress = on_prepared,
        .stopped = stop_requested,
    };
    struct prepare_counts counts;
    int status = talk_refuse_terminal(o->output, err);
    if (!status)
        status = prepare_run(&config, &counts, err);
    progress_clear(&s->progress);
    if (!status && !o->quiet)
        say_prepared(s, &counts);
    return status;
}

int run_prepare(struct session *s, char **operands, int count, struct error *err) {
    const char *const *paths = (const char *const *)operands;
    struct inputs_config inputs = session_inputs(s, paths, (size_t)count);
    int status = session_check_inputs(&inputs, PROGRAM, err);
    if (!status && !s->options->output && count == 1 && strcmp(paths[0], "-") != 0 &&
        access(paths[0], F_OK))
        status = error_set(err, STATUS_USAGE,
                           "'%s' is neither an input nor a subcommand (stat, sheet, draw); "
                           "'" PROGRAM " --help' tells more",
                           paths[0]);
    if (!status)
        status = session_need_output(s, "", err);
    return status ? status : prepare(s, paths, (size_t)count, 0, err);
}

int run_draw(struct session *s, char **operands, int count, struct error *err) {
    int64_t draw;
    if (count != 1)
        return error_set(err, STATUS_USAGE, "draw: needs one number, how many pictures to draw");
    if (!text_integer(operands[0], strlen(operands[0]), &draw) || draw < 1 || draw > 1000000000)
        return error_set(err, STATUS_USAGE, "draw: '%s' is not a number from 1 to 1000000000",
                         operands[0]);
    int status = session_need_output(s, "draw", err);
    return status ? status : prepare(s, NULL, 0, draw, err);
}
