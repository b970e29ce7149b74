// adam-ctl drain: parameter servers give their buckets away, and may then be switched off.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adam-ctl/asking.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "cluster/buckets.h"
#include "core/error.h"
#include "core/grow.h"

static int begin_one(const struct admin_options *o, const char *place, const char *name,
                     struct error *err) {
    const struct proto_drain drain = {.name = proto_text(name)};
    struct kept *answer;
    if (strlen(name) > PROTO_NAME_MAX)
        return error_set(err, STATUS_USAGE, "%s: names have at most %d bytes", name,
                         PROTO_NAME_MAX);
    int status = ask(o, place, PROTO_TYPE_DRAIN, &drain, PROTO_TYPE_DONE, &answer, err);
    if (!status)
        kept_drop(answer);
    return status;
}

// Buckets that the servers of this name still have, or copy. *there: such a server has not left.
static uint32_t count_left(const struct proto_status *status, const struct proto_places *places,
                           const char *name, bool *there) {
    const struct proto_member *members = status->members.at;
    uint32_t left = 0;
    *there = false;
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *m = &members[i];
        if (m->role != PROTO_ROLE_PARAMETER_SERVER || m->state == PROTO_STATE_GONE ||
            m->name.length != strlen(name) || memcmp(m->name.at, name, m->name.length) != 0)
            continue;
        struct buckets_share share = buckets_share(places, m->member);
        left += share.primary + share.secondary + share.joiner;
        *there = true;
    }
    return left;
}

// "ps-2: 341 buckets to move; ps-3: to leave"; empty when all have left.
static char *list_left(const struct proto_status *status, const struct proto_places *places,
                       char **names, int count) {
    struct grow text = {0};
    grow_put(&text, "", 0);
    for (int i = 0; i < count; i++) {
        bool there;
        uint32_t left = count_left(status, places, names[i], &there);
        if (!there)
            continue;
        grow_format(&text, "%s%s: ", text.length ? "; " : "", names[i]);
        if (left)
            grow_format(&text, "%u bucket%s to move", left, left > 1 ? "s" : "");
        else
            grow_format(&text, "to leave");
    }
    return grow_take(&text);
}

// *over: all have left, and it was said.
static int look(const struct admin_options *o, char **operands, int count,
                struct progress *progress, bool *over, struct error *err) {
    struct kept *status_of, *places_of;
    int status = ask_status(o, operands[0], &status_of, err);
    if (status)
        return status;
    status = ask_places(o, operands[0], &places_of, err);
    if (status) {
        kept_drop(status_of);
        return status;
    }
    const struct proto_status *members = &status_of->message.status;
    const struct proto_places *places = &places_of->message.places;
    char *left = list_left(members, places, operands + 1, count - 1);
    *over = left && !*left;
    if (*over) {
        progress_clear(progress);
        for (int i = 1; i < count; i++)
            printf("%s has left, and may be switched off\n", operands[i]);
    } else if (left && progress_due(progress)) {
        progress_line(progress, "%s", left);
    }
    free(left);
    kept_drop(status_of);
    kept_drop(places_of);
    return left ? STATUS_OK : error_nomem(err);
}

static int wait_for_end(const struct admin_options *o, char **operands, int count,
                        struct error *err) {
    static const struct timespec pause = {.tv_nsec = 200000000};
    struct progress progress = {0};
    bool over = false;
    int status = STATUS_OK;
    progress_start(&progress, false);
    stop_on_signals(false);
    while (!status && !over && !stop_requested()) {
        status = look(o, operands, count, &progress, &over, err);
        if (!status && !over)
            nanosleep(&pause, NULL); // a signal ends it
    }
    progress_clear(&progress);
    if (!status && !over)
        status = error_set(err, STATUS_STOPPED, "not waiting any more; the buckets go on moving");
    return status;
}

static int run_drain(const struct subcommand *subcommand, char **operands, int count,
                     struct error *err) {
    const struct admin_options *o = subcommand->options;
    int status = STATUS_OK;
    for (int i = 1; !status && i < count; i++)
        status = begin_one(o, operands[0], operands[i], err);
    return status || o->no_wait ? status : wait_for_end(o, operands, count, err);
}

size_t drain_subcommands(struct subcommand *subcommands, struct admin_options *o) {
    const struct option_row rows[] = {
        FLAG(0, "no-wait", &o->no_wait, "do not wait until the buckets have moved"),
        SECRET_ROWS(&o->network),
    };
    const struct command command = {
        .name = PROGRAM " drain",
        .synopsis = "[--no-wait] RUN NAME ...",
        .about = "move the buckets of parameter servers to others, to switch them off",
        .rows = rows,
        .row_count = sizeof rows / sizeof *rows,
        .operand = "DIR",
    };
    subcommand_set(&subcommands[0], &command, o, run_drain, 2, INT_MAX);
    return 1;
}
