// adam-ctl compare: runs side by side.
#include <limits.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "core/error.h"
#include "report/compare.h"

static int run_compare(const struct subcommand *subcommand, char **operands, int count,
                       struct error *err) {
    const struct compare_options *options = subcommand->options;
    size_t n = (size_t)count;
    struct talk talk = {PROGRAM, false};
    struct history *runs;
    int status = history_read_all(&runs, operands, &n, talk_say, &talk, err);
    if (status != STATUS_OK)
        return status;
    compare_sort(runs, n, options->sort);
    status = options->json ? print_json(compare_json(runs, n), err)
                           : print_text(compare_text(runs, n), err);
    history_free_all(runs, n);
    return status == STATUS_OK && n < (size_t)count ? STATUS_SKIPPED : status;
}

size_t compare_subcommands(struct subcommand *subcommands, struct compare_options *options) {
    const struct option_row rows[] = {
        CHOICE(0, "sort", "COLUMN", &options->sort, compare_keys, NULL,
               "the best in this column first"),
        FLAG(0, "json", &options->json, "print one JSON object"),
    };
    const struct command compare = {.name = PROGRAM " compare",
                                    .synopsis = "[--sort COLUMN] [--json] RUN ...",
                                    .about = "show runs side by side",
                                    .rows = rows,
                                    .row_count = sizeof rows / sizeof *rows,
                                    .operand = "RUN"};
    subcommand_set(&subcommands[0], &compare, options, run_compare, 1, INT_MAX);
    return 1;
}
