// adam-prep: pictures from anywhere, changed, and packed for training. Without a
// subcommand it prepares. Its parts are in cmd/adam-prep/.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "adam-prep/session.h"
#include "core/cpu.h"
#include "core/error.h"
#include "ops/ops.h"
#include "prep/digits.h"
#include "prep/sheet.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

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
    INT(0, "quality", "N", &(o)->quality, 1, 100, "92", "quality of --codec jpeg"), \
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
    int status = session_start(&session, argv + operand, argc - operand, err);
    if (!status)
        status = function(&session, argv + operand, argc - operand, err);
    return session_end(&session, status, err);
}

int main(int argc, char **argv) {
    struct options options = {
        .copies = 1, .memory = 1 << 30, .on_error = "skip", .size = 28, .threads = cpu_count()};
    struct error err = {0};
    talk_begin(_exit);
    char *operations = operations_text();
    int status = run(argc, argv, &options, operations, &err);
    if (status > STATUS_SKIPPED)
        talk_error(PROGRAM, &err);
    free(options.only.items);
    free(operations);
    return talk_finish(PROGRAM, status);
}
