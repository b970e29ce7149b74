// adam-ctl keys: what TLS needs.
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "adam-ctl/subcommand.h"
#include "core/error.h"
#include "net/keys.h"

static bool is_there(const char *folder, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static int run_keys(const struct subcommand *subcommand, char **operands, int count,
                    struct error *err) {
    const struct key_options *options = subcommand->options;
    const char *folder = operands[0];
    bool old = is_there(folder, "ca.crt");
    int status = keys_make(folder, (const char *const *)operands + 1, (size_t)count - 1,
                           (int)options->days, err);
    if (status != STATUS_OK)
        return status;
    if (!old)
        printf("%s/ca.key\n%s/ca.crt\n", folder, folder);
    for (int i = 1; i < count; i++)
        printf("%s/%s.pem\n", folder, operands[i]);
    return STATUS_OK;
}

size_t key_subcommands(struct subcommand *subcommands, struct key_options *options) {
    const struct option_row rows[] = {
        INT(0, "days", "N", &options->days, 1, 36500, "365", "how long they are valid"),
    };
    const struct command command = {
        .name = PROGRAM " keys",
        .synopsis = "[--days N] DIR NAME ...",
        .about = "make keys and certificates for connections between machines",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "DIR"};
    subcommand_set(subcommands, &command, options, run_keys, 2, INT_MAX);
    return 1;
}
