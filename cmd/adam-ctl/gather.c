// adam-ctl gather: parts of a checkpoint that parameter servers keep come to its folder.
#include <stdio.h>
#include <stdlib.h>

#include "adam-ctl/asking.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"
#include "member/place.h"
#include "remote/part_gather.h"
#include "run/checkpoint.h"

// The parameter servers that are there, with their names; free(*holders).
static int list_holders(struct part_holder **holders, size_t *count,
                        const struct proto_status *status, struct error *err) {
    const struct proto_member *members = status->members.at;
    *count = 0;
    *holders = mem_zeroed(status->members.count + 1, sizeof **holders);
    for (uint32_t i = 0; *holders && i < status->members.count; i++) {
        const struct proto_member *m = &members[i];
        struct part_holder *holder = &(*holders)[*count];
        if (m->role != PROTO_ROLE_PARAMETER_SERVER || m->state == PROTO_STATE_GONE)
            continue;
        printable_copy(holder->name, sizeof holder->name, m->name.at, m->name.length);
        printable_copy(holder->address, sizeof holder->address, m->address.at, m->address.length);
        ++*count;
    }
    return *holders ? STATUS_OK : error_nomem(err);
}

static int fetch(const struct admin_options *o, const struct proto_status *members,
                 const json_t *manifest, const char *folder, struct error *err) {
    static const struct proto_hello hello = {.role = PROTO_ROLE_ADMINISTRATOR, .name = {"ctl", 3}};
    struct part_holder *holders = NULL;
    struct secrets *keys;
    struct part_gather gather = {.hello = &hello, .insecure = o->network.insecure};
    int status = place_keys(&keys, o->network.keys, err);
    if (status)
        return status;
    status = list_holders(&holders, &gather.count, members, err);
    gather.holders = holders;
    gather.keys = keys;
    if (!status)
        status = part_gather(&gather, manifest, folder, err);
    free(holders);
    secrets_close(keys);
    return status;
}

static int gather_folder(const struct admin_options *o, const char *run, const char *folder,
                         struct error *err) {
    json_t *manifest;
    struct kept *answer;
    int status = checkpoint_manifest(&manifest, folder, err);
    if (status)
        return status;
    status = ask_status(o, run, &answer, err);
    if (!status) {
        status = fetch(o, &answer->message.status, manifest, folder, err);
        kept_drop(answer);
    }
    json_decref(manifest);
    return status;
}

// RUN/latest may lead elsewhere in a moment.
static int find_folder(char **folder, const char *path, struct error *err) {
    char *named = checkpoint_folder(path);
    *folder = named ? realpath(named, NULL) : NULL;
    int status = *folder ? STATUS_OK : error_errno(err, STATUS_NOINPUT, "%s", named ? named : path);
    free(named);
    return status;
}

static int run_gather(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    char *run = run_folder_of(operands[0]), *folder;
    (void)count;
    int status = run ? find_folder(&folder, operands[0], err) : error_nomem(err);
    if (!status) {
        status = gather_folder(subcommand->options, run, folder, err);
        if (!status)
            puts(folder);
        free(folder);
    }
    free(run);
    return status;
}

size_t gather_subcommands(struct subcommand *subcommands, struct admin_options *o) {
    const struct option_row rows[] = {SECRET_ROWS(&o->network)};
    const struct command command = {
        .name = PROGRAM " gather",
        .synopsis = "RUN",
        .about = "fetch the parts of a checkpoint that parameter servers keep",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "DIR",
    };
    subcommand_set(&subcommands[0], &command, o, run_gather, 1, 1);
    return 1;
}
