#include "adam-ctl/subcommand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

void subcommand_set(struct subcommand *subcommand, const struct command *command,
                    const void *options, subcommand_run *run, int least, int most) {
    *subcommand = (struct subcommand){
        .command = *command, .options = options, .run = run, .least = least, .most = most};
    memcpy(subcommand->rows, command->rows, command->row_count * sizeof *command->rows);
    subcommand->command.rows = subcommand->rows;
}

int print_text(char *text, struct error *err) {
    if (!text)
        return error_nomem(err);
    fputs(text, stdout);
    free(text);
    return STATUS_OK;
}

int print_json(json_t *value, struct error *err) {
    if (!value)
        return error_nomem(err);
    char *line = json_line(value);
    json_decref(value);
    int status = print_text(line, err);
    if (status == STATUS_OK)
        putchar('\n');
    return status;
}
