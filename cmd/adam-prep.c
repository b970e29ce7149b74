// adam-prep: pictures from anywhere, changed, and packed for training. One
// function a subcommand; without one it prepares.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/option.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/printable.h"
#include "core/text.h"
#include "prep/copies.h"
#include "prep/digits.h"
#include "prep/prepare.h"
#include "prep/reject.h"
#include "prep/sheet.h"
#include "prep/stat_table.h"
#include "prep/statistics.h"
#include "store/output.h"

#define PROGRAM "adam-prep"
#define COUNT(array) (sizeof(array) / sizeof *(array))

struct options {
    // Input.
    const char *from, *labels, *label_from, *files_from, *classes, *channels;
    struct option_list only;
    bool null;
    int64_t limit, max_pixels;
    uint64_t max_bytes;
    // Change.
    const char *ops, *test_ops, *name, *split;
    int64_t copies, seed;
    bool stratify, balance, shuffle;
    uint64_t memory;
    // Output.
    const char *output, *to, *codec, *labels_out;
    int64_t quality, max_count;
    bool force;
    // Behaviour.
    const char *on_error, *reject;
    int64_t threads;
    bool quiet, json;
    // Of stat, sheet and draw.
    const char *mean;
    bool by_class, random;
    int64_t cell, size;
};

// What a run holds on to, and talks about on the way.
struct session {
    const struct options *options;
    struct classes classes; // of --classes
    struct ops *ops, *test_ops;
    struct split split;
    struct reject *reject;
    struct progress progress;
    uint64_t rejected;
    double started;
};

enum { REJECTED_SHOWN = 10 }; // on stderr; the others are counted

// ---- what runs tell ----

static void say_rejected(const char *path, const char *reason) {
    char left[ERROR_TEXT], right[ERROR_TEXT];
    printable_copy(left, sizeof left, path, strlen(path));
    printable_copy(right, sizeof right, reason, strlen(reason));
    talk_note(PROGRAM, "skipped %s: %s", left, right);
}

static int on_rejected(void *context, const char *path, const char *reason, struct error *err) {
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

static void on_prepared(void *context, const struct prepare_counts *counts) {
    struct session *s = context;
    if (progress_due(&s->progress)) {
        double seconds = clock_seconds() - s->started;
        progress_line(&s->progress, "%llu in, %llu out, %.0f samples/s",
                      (unsigned long long)counts->in, (unsigned long long)counts->out,
                      (double)counts->in / fmax(seconds, 1e-6));
    }
}

static void on_measured(void *context, uint64_t samples) {
    struct session *s = context;
    if (progress_due(&s->progress))
        progress_line(&s->progress, "%llu samples", (unsigned long long)samples);
}

// ---- from options to what the library wants ----

static enum label_from label_from_word(const char *word) {
    if (!word)
        return LABEL_DEFAULT;
    return !strcmp(word, "parent")   ? LABEL_PARENT
           : !strcmp(word, "column") ? LABEL_COLUMN
                                     : LABEL_NO;
}

static struct inputs_config inputs_of(const struct options *o, const char *const *paths,
                                      size_t count) {
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
                .hooks = {.stop = talk_stop},
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

static int start_session(struct session *s, struct error *err) {
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
        status = reject_open(&s->reject, o->reject, err);
    s->started = clock_seconds();
    progress_start(&s->progress, o->quiet);
    stop_on_signals(false);
    return status;
}

static int end_session(struct session *s, int status, struct error *err) {
    progress_clear(&s->progress);
    int closed = reject_close(s->reject, status ? NULL : err);
    ops_free(s->ops);
    ops_free(s->test_ops);
    classes_free(&s->classes);
    return status ? status : closed ? closed : s->rejected ? STATUS_SKIPPED : STATUS_OK;
}

// Inputs there must be; a terminal is none.
static int check_inputs(const struct inputs_config *inputs, const char *command,
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

// ---- adam-prep, adam-prep draw ----

static void say_prepared(const struct session *s, const struct prepare_counts *counts) {
    char took[16], parts[SPLIT_PARTS * (SPLIT_NAME + 24)] = "";
    size_t used = 0;
    for (int i = 0; s->split.count > 1 && i < s->split.count; i++)
        used += (size_t)snprintf(parts + used, sizeof parts - used, "%s%s %llu", i ? ", " : " (",
                                 s->split.parts[i].name, (unsigned long long)counts->parts[i]);
    progress_duration(took, clock_seconds() - s->started);
    talk_note(PROGRAM, "%llu in, %llu out%s%s, %llu skipped, %d classes, %s",
              (unsigned long long)counts->in, (unsigned long long)counts->out, parts,
              used ? ")" : "", (unsigned long long)counts->skipped, counts->classes, took);
}

static int prepare(struct session *s, const char *const *paths, size_t count, int64_t draw,
                   struct error *err) {
    const struct options *o = s->options;
    struct prepare_config config = {
        .inputs = inputs_of(o, paths, count),
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
        .outputs = {o->output, &s->split, sink_of(o), o->max_count},
        .classes = o->classes ? &s->classes : NULL,
        .stop_on_error = !strcmp(o->on_error, "stop"),
        .threads = (int)o->threads,
        .seed = (uint64_t)o->seed,
        .context = s,
        .rejected = on_rejected,
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

static int need_output(const struct options *o, const char *command, struct error *err) {
    return o->output ? STATUS_OK
                     : error_set(err, STATUS_USAGE,
                                 "%s%sno output; say where with -o ('-' is standard output)",
                                 command, *command ? ": " : "");
}

static int run_prepare(struct session *s, char **operands, int count, struct error *err) {
    const char *const *paths = (const char *const *)operands;
    struct inputs_config inputs = inputs_of(s->options, paths, (size_t)count);
    int status = check_inputs(&inputs, PROGRAM, err);
    if (!status && !s->options->output && count == 1 && strcmp(paths[0], "-") != 0 &&
        access(paths[0], F_OK))
        status = error_set(err, STATUS_USAGE,
                           "'%s' is neither an input nor a subcommand (stat, sheet, draw); "
                           "'" PROGRAM " --help' tells more",
                           paths[0]);
    if (!status)
        status = need_output(s->options, "", err);
    return status ? status : prepare(s, paths, (size_t)count, 0, err);
}

static int run_draw(struct session *s, char **operands, int count, struct error *err) {
    int64_t draw;
    if (count != 1)
        return error_set(err, STATUS_USAGE, "draw: needs one number, how many pictures to draw");
    if (!text_integer(operands[0], strlen(operands[0]), &draw) || draw < 1 || draw > 1000000000)
        return error_set(err, STATUS_USAGE, "draw: '%s' is not a number from 1 to 1000000000",
                         operands[0]);
    int status = need_output(s->options, "draw", err);
    return status ? status : prepare(s, NULL, 0, draw, err);
}

// ---- adam-prep stat ----

static int print_statistics(const struct statistics *statistics, const struct options *o,
                            struct error *err) {
    char *text;
    int status = o->json ? stat_table_json(&text, statistics, o->mean, err)
                         : stat_table_text(&text, statistics, o->mean, err);
    if (status)
        return status;
    fputs(text, stdout);
    free(text);
    return STATUS_OK;
}

static int run_stat(struct session *s, char **operands, int count, struct error *err) {
    const struct options *o = s->options;
    struct statistics_config config = {
        .inputs = inputs_of(o, (const char *const *)operands, (size_t)count),
        .classes = o->classes ? &s->classes : NULL,
        .pixel_mean = o->mean != NULL,
        .threads = (int)o->threads,
        .context = s,
        .rejected = on_rejected,
        .progress = on_measured,
        .stopped = stop_requested,
    };
    int status = check_inputs(&config.inputs, PROGRAM " stat", err);
    if (!status && o->mean && (strpbrk(o->mean, " \t;") || !strcmp(o->mean, "-")))
        status = error_set(err, STATUS_USAGE,
                           "--mean: '%s' cannot stand in a chain of operations; choose a file name "
                           "without blanks and ';'",
                           o->mean);
    if (status)
        return status;
    struct statistics statistics;
    status = statistics_run(&config, &statistics, err);
    progress_clear(&s->progress);
    if (!status && o->mean)
        status = stat_table_mean(o->mean, &statistics, o->force, err);
    if (!status)
        status = print_statistics(&statistics, o, err);
    statistics_free(&statistics);
    return status;
}

// ---- adam-prep sheet ----

// "16x16": columns, rows.
static bool parse_grid(const char *text, int *columns, int *rows) {
    const char *x = strchr(text, 'x');
    int64_t c, r;
    if (!x || !text_integer(text, (size_t)(x - text), &c) ||
        !text_integer(x + 1, strlen(x + 1), &r) || c < 1 || r < 1 || c > SHEET_MAX_CELLS ||
        r > SHEET_MAX_CELLS || c * r > SHEET_MAX_CELLS)
        return false;
    *columns = (int)c, *rows = (int)r;
    return true;
}

static int write_file(const char *path, bool force, const void *data, size_t size,
                      struct error *err) {
    struct output *output;
    int status = output_open(&output, path, force, err);
    if (status)
        return status;
    status = output_write(output, data, size, err);
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

static int write_png(const struct image *image, const char *path, bool force, struct error *err) {
    void *data;
    size_t size;
    int status = image_encode(&data, &size, image, CODEC_PNG, 0, err);
    if (status)
        return status;
    status = write_file(path, force, data, size, err);
    free(data);
    return status;
}

static int run_sheet(struct session *s, char **operands, int count, struct error *err) {
    const struct options *o = s->options;
    struct sheet_config config = {
        .columns = 16,
        .rows = 16,
        .cell = (int)o->cell,
        .by_class = o->by_class,
        .random = o->random,
        .seed = (uint64_t)o->seed,
        .classes = o->classes ? &s->classes : NULL,
        .context = s,
        .rejected = on_rejected,
        .stopped = stop_requested,
    };
    if (count + (o->files_from != NULL) > 1 &&
        parse_grid(operands[count - 1], &config.columns, &config.rows))
        count--;
    config.inputs = inputs_of(o, (const char *const *)operands, (size_t)count);
    int status = check_inputs(&config.inputs, PROGRAM " sheet", err), shown;
    if (!status)
        status = need_output(o, "sheet", err);
    if (!status)
        status = talk_refuse_terminal(o->output, err);
    if (status)
        return status;
    struct image sheet = {0};
    status = sheet_draw(&sheet, &config, &shown, err);
    if (!status)
        status = write_png(&sheet, o->output, o->force, err);
    if (!status && !o->quiet)
        talk_note(PROGRAM, "%d pictures, %dx%d pixels", shown, sheet.width, sheet.height);
    image_free(&sheet);
    return status;
}

// ---- options ----

static const char *const kinds[] = {
    "folder",          "list", "tar", "idx",   "cifar10", "cifar100",
    "cifar100-coarse", "pnm",  "npy", "image", "arec",    NULL};
static const char *const outs[] = {"arec", "tar", "folder", "idx", "pnm", "npy", NULL};
static const char *const label_froms[] = {"parent", "column", "none", NULL};
static const char *const codecs[] = {"png", "jpeg", "pnm", "raw", NULL};
static const char *const channels[] = {"gray", "rgb", NULL};
static const char *const conducts[] = {"stop", "skip", NULL};

// clang-format off
#define INPUT_ROWS(o) \
    HEADING("Input"), \
    CHOICE(0, "from", "KIND", &(o)->from, kinds, "by content", "kind of the inputs"), \
    TEXT(0, "files-from", "FILE", &(o)->files_from, NULL, "read paths from FILE, one a line; - is standard input"), \
    FLAG('0', "null", &(o)->null, "paths of --files-from end with a zero byte"), \
    TEXT(0, "labels", "FILE", &(o)->labels, NULL, "labels of IDX or .npy, in a file of their own"), \
    CHOICE(0, "label-from", "WHERE", &(o)->label_from, label_froms, NULL, "class from the parent folder, or the column behind a tab"), \
    TEXT(0, "classes", "FILE", &(o)->classes, NULL, "class names in the order of labels, one a line"), \
    LIST(0, "only", "CLASS", &(o)->only, "read only samples of this class"), \
    INT(0, "limit", "N", &(o)->limit, 1, 1e15, NULL, "read no more than N samples"), \
    CHOICE(0, "channels", "COLOURS", &(o)->channels, channels, "as they are", "make all pictures"), \
    INT(0, "max-pixels", "N", &(o)->max_pixels, 1, 4e9, "100000000", "refuse pictures with more pixels"), \
    BYTES(0, "max-bytes", "SIZE", &(o)->max_bytes, "256M", "refuse pictures with more bytes")

#define CHANGE_ROWS(o) \
    HEADING("Change"), \
    TEXT_OF(0, "ops", "OPS", &(o)->ops, ops_name, NULL, "operations, as in 'resize 36; crop 32 random; hflip p=0.5'"), \
    INT(0, "copies", "N", &(o)->copies, 1, 1e6, "1", "changed copies of each sample"), \
    FLAG(0, "balance", &(o)->balance, "more copies for smaller classes, until all are equal"), \
    TEXT(0, "name", "PATTERN", &(o)->name, "{key}, {key}-2, ...", "keys, with {key}, {copy}, {number}, {class}"), \
    TEXT(0, "split", "PARTS", &(o)->split, NULL, "hold parts out by the hash of the key, as in test=0.1"), \
    FLAG(0, "stratify", &(o)->stratify, "each part of --split gets its share of every class"), \
    TEXT_OF(0, "test-ops", "OPS", &(o)->test_ops, ops_name, "as --ops", "operations for the parts held out"), \
    FLAG(0, "shuffle", &(o)->shuffle, "write in random order"), \
    BYTES(0, "memory", "SIZE", &(o)->memory, "1G", "memory for --shuffle; the rest goes to a file in TMPDIR"), \
    INT('s', "seed", "N", &(o)->seed, 0, 9e15, "0", "seed of all random numbers")

#define OUTPUT_ROWS(o) \
    HEADING("Output"), \
    TEXT('o', "output", "FILE", &(o)->output, NULL, "where to; the name tells the kind, - is standard output"), \
    CHOICE(0, "to", "KIND", &(o)->to, outs, "by the name", "kind of the output"), \
    CHOICE(0, "codec", "CODEC", &(o)->codec, codecs, "png, records raw", "how changed pictures are stored"), \
    INT(0, "quality", "N", &(o)->quality, 1, 100, "92", "quality of JPEG"), \
    TEXT(0, "labels-out", "FILE", &(o)->labels_out, NULL, "file for the labels of IDX or .npy"), \
    INT(0, "max-count", "N", &(o)->max_count, 1, 1e15, NULL, "samples in a shard; %06d in the name is its number"), \
    FLAG('f', "force", &(o)->force, "overwrite what exists")

#define THREADS_ROW(o) INT('t', "threads", "N", &(o)->threads, 1, 1024, "processors", "threads that decode, change and encode")
#define REJECT_ROW(o) TEXT(0, "reject", "FILE", &(o)->reject, NULL, "list skipped samples: path and reason")
#define QUIET_ROW(o) FLAG('q', "quiet", &(o)->quiet, "say nothing but errors")
// clang-format on

// The operations, as --help shows them below the options.
static char *operations_text(void) {
    char *text = NULL;
    size_t size, count;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    const struct op_info *table = ops_table(&count);
    fputs("Operations for --ops, separated by ';' (adam-ops(7) tells more):\n", to);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "  %s\n", table[i].synopsis);
    fprintf(to, "  Each takes p=P, %s.", ops_probability()->what);
    if (fclose(to)) {
        free(text);
        return NULL;
    }
    return text;
}

typedef int run_function(struct session *session, char **operands, int count, struct error *err);

static int run(int argc, char **argv, struct options *o, const char *operations,
               struct error *err) {
    const struct option_row prepare_rows[] = {
        INPUT_ROWS(o),
        CHANGE_ROWS(o),
        OUTPUT_ROWS(o),
        HEADING("Behaviour"),
        CHOICE(0, "on-error", "ACTION", &o->on_error, conducts, "skip",
               "what to do at a damaged picture"),
        REJECT_ROW(o),
        THREADS_ROW(o),
        QUIET_ROW(o),
    };
    const struct option_row draw_rows[] = {
        INT(0, "size", "PIXELS", &o->size, DIGITS_MIN_SIZE, DIGITS_MAX_SIZE, "28",
            "width and height of the pictures"),
        CHANGE_ROWS(o),
        OUTPUT_ROWS(o),
        HEADING("Behaviour"),
        THREADS_ROW(o),
        QUIET_ROW(o),
    };
    const struct option_row stat_rows[] = {
        FLAG(0, "json", &o->json, "print one JSON object"),
        TEXT(0, "mean", "FILE", &o->mean, NULL, "write the mean of each pixel, a .npy picture"),
        FLAG('f', "force", &o->force, "overwrite FILE of --mean"),
        INPUT_ROWS(o),
        HEADING("Behaviour"),
        REJECT_ROW(o),
        THREADS_ROW(o),
        QUIET_ROW(o),
    };
    const struct option_row sheet_rows[] = {
        TEXT('o', "output", "FILE", &o->output, NULL, "the PNG picture; - is standard output"),
        FLAG('f', "force", &o->force, "overwrite what exists"),
        FLAG(0, "by-class", &o->by_class, "a row for each class"),
        FLAG(0, "random", &o->random, "choose at random, not the first ones"),
        INT('s', "seed", "N", &o->seed, 0, 9e15, "0", "seed of the choice"),
        INT(0, "cell", "PIXELS", &o->cell, 8, SHEET_MAX_CELL, "16 to 128, by the first",
            "side of a cell"),
        INPUT_ROWS(o),
        HEADING("Behaviour"),
        REJECT_ROW(o),
        QUIET_ROW(o),
    };
    const struct command commands[] = {
        {.name = PROGRAM " stat",
         .synopsis = "[OPTION ...] INPUT ...",
         .operand = "FILE",
         .about = "count samples and classes, and measure mean and deviation",
         .rows = stat_rows,
         .row_count = COUNT(stat_rows)},
        {.name = PROGRAM " sheet",
         .synopsis = "[OPTION ...] INPUT ... [COLUMNSxROWS] -o FILE",
         .about = "draw a contact sheet",
         .operand = "FILE",
         .rows = sheet_rows,
         .row_count = COUNT(sheet_rows)},
        {.name = PROGRAM " draw",
         .synopsis = "[OPTION ...] N -o OUTPUT",
         .about = "draw N labelled pictures of digits, to try things out with",
         .rows = draw_rows,
         .row_count = COUNT(draw_rows),
         .more = operations},
    };
    const struct command program = {
        .name = PROGRAM,
        .synopsis = "[OPTION ...] INPUT ... -o OUTPUT\nSUBCOMMAND ...",
        .about = "read pictures from anywhere, change them, and pack them for training",
        .more = operations,
        .rows = prepare_rows,
        .row_count = COUNT(prepare_rows),
        .operand = "FILE"};
    run_function *const runs[] = {run_stat, run_sheet, run_draw};
    const struct command *chosen;
    int operand;
    switch (cli_parse_program(&program, commands, COUNT(commands), argc, argv, &chosen, &operand,
                              err)) {
    case CLI_DONE:
        return STATUS_OK;
    case CLI_FAIL:
        return STATUS_USAGE;
    case CLI_RUN:
        break;
    }
    struct session session = {.options = o};
    run_function *function = chosen == &program ? run_prepare : runs[chosen - commands];
    int status = start_session(&session, err);
    if (!status)
        status = function(&session, argv + operand, argc - operand, err);
    return end_session(&session, status, err);
}

int main(int argc, char **argv) {
    struct options options = {
        .copies = 1, .memory = 1 << 30, .on_error = "skip", .size = 28, .threads = cpu_count()};
    struct error err = {0};
    talk_begin();
    char *operations = operations_text();
    int status = run(argc, argv, &options, operations, &err);
    if (status > STATUS_SKIPPED)
        talk_error(PROGRAM, &err);
    free(options.only.items);
    free(operations);
    return talk_finish(PROGRAM, status);
}
