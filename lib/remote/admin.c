#include "remote/admin.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "member/place.h"
#include "net/link.h"
#include "net/ready.h"

enum {
    PATIENCE = 5000, // milliseconds for a dial, and for each round of controllers
    AGAIN = 50,      // milliseconds between these
    LATER = 1000,    // milliseconds, the most that an answer may want
};

static int check_answer(struct kept *answer, uint16_t wanted, const char *address,
                        struct error *err) {
    const struct proto_refused *refused = &answer->message.refused;
    if (answer->type == wanted)
        return STATUS_OK;
    if (answer->type != PROTO_TYPE_REFUSED)
        return error_set(err, STATUS_UNAVAILABLE, "%s: answered with '%s'", address,
                         proto_message_name(answer->type));
    if (refused->code == PROTO_REFUSAL_BAD_SETTING)
        return error_set(err, STATUS_USAGE, "%.*s", (int)refused->text.length, refused->text.at);
    return error_set(err, STATUS_UNAVAILABLE, "%s: %s%s%.*s", address,
                     proto_refusal_name(refused->code), refused->text.length ? ": " : "",
                     (int)refused->text.length, refused->text.at);
}

// A process that trains alone answers a stop last of all, and ends. A controller answers before.
static int process_that_ends(const struct link *link, uint16_t type,
                             const struct proto_welcome *welcome) {
    uint64_t process = link_process(link);
    bool ends = type == PROTO_TYPE_STOP && welcome->role == PROTO_ROLE_WORKER && process > 0;
    return ends ? pidfd_open((pid_t)process, 0) : -1;
}

static void await_end(int process) {
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (process >= 0)
        poll(&end, 1, PATIENCE);
}

// Whether this is no answer yet: what does not lead knows nothing, and what ends or leads no more
// puts off. *later: milliseconds after which it wants to be asked again; 0: it does not say.
static bool is_put_off(const struct kept *answer, uint32_t *later) {
    const struct proto_refused *refused = &answer->message.refused;
    if (answer->type != PROTO_TYPE_REFUSED)
        return false;
    if (refused->code == PROTO_REFUSAL_BUSY || refused->code == PROTO_REFUSAL_NOT_READY)
        *later = refused->detail < LATER ? (uint32_t)refused->detail : LATER;
    return *later > 0 || refused->code == PROTO_REFUSAL_NOT_LEADER;
}

// *again: who was welcomed and has no answer yet can still lose its place to other callers, or is
// put off. *later: as above.
static int call_once(const char *address, uint32_t patience, const struct link_options *options,
                     struct link_request *request, struct kept **answer, bool *again,
                     uint32_t *later, struct error *err) {
    const struct proto_hello hello = {.role = PROTO_ROLE_ADMINISTRATOR, .name = proto_text("ctl")};
    struct proto_welcome welcome;
    struct link *link;
    *again = false;
    int status = link_dial(&link, address, options, &hello, patience, &welcome, err);
    if (status)
        return status == STATUS_UNAVAILABLE ? error_context(err, "controller") : status;
    int process = process_that_ends(link, request->type, &welcome);
    status = link_call_kept(link, request, answer, err);
    *again = status ? link_hung_up(link) : is_put_off(*answer, later);
    if (!status && (*answer)->type == PROTO_TYPE_DONE)
        await_end(process);
    if (process >= 0)
        close(process);
    link_close(link);
    return status;
}

struct errand {
    const char *text; // as ready_find takes it
    const struct link_options *options;
    struct link_request request;
    uint16_t wanted;
    uint32_t turn, count; // how many were asked; how many controllers there are
    uint32_t later;       // milliseconds after which the last one wants to be asked again; 0
};

// Milliseconds for the next one. It may stand still with its sockets open, as a machine that hangs
// does: at first all are asked in the time that one would have alone.
static uint32_t patience_of(const struct errand *errand) {
    return errand->turn < errand->count ? PATIENCE / errand->count : PATIENCE;
}

// *again: whether it is worth another try, with the next controller where there are several.
static int ask_next(struct errand *errand, struct kept **answer, bool *again, struct error *err) {
    char address[PROTO_ADDRESS_MAX];
    struct link_request request = errand->request;
    *again = false;
    errand->later = 0;
    int status = ready_find(errand->text, errand->turn, address, &errand->count, err);
    if (status)
        return status;
    status = call_once(address, patience_of(errand), errand->options, &request, answer, again,
                       &errand->later, err);
    errand->turn++;
    *again |= status == STATUS_UNAVAILABLE && errand->count > 1;
    if (!status && (status = check_answer(*answer, errand->wanted, address, err)))
        kept_drop(*answer);
    return status;
}

// Seconds for all tries.
static double time_for(const struct errand *errand) {
    return (errand->count > 1 ? 2 : 1) * PATIENCE / 1e3;
}

// A controller that ends meanwhile takes its address along: then the last answer counts.
static int ask_in_turn(struct errand *errand, struct kept **answer, struct error *err) {
    double begun = clock_seconds();
    struct error last = {0};
    for (bool again = true; again;) {
        struct error why = {0};
        int status = ask_next(errand, answer, &again, &why);
        if (!status)
            return STATUS_OK;
        if (status != STATUS_NOINPUT || !last.status)
            last = why;
        again &= clock_seconds() < begun + time_for(errand);
        if (again && (errand->later || errand->turn % errand->count == 0))
            usleep((errand->later ? errand->later : AGAIN) * 1000);
    }
    if (err)
        *err = last;
    return last.status;
}

int admin_ask(const struct admin *admin, uint16_t type, const void *message, uint16_t wanted,
              struct kept **answer, struct error *err) {
    const struct link_options options = {.keys = admin->keys, .insecure = admin->insecure};
    char *text;
    int status = place_controller(&text, admin->place, err);
    struct errand errand = {
        .text = text,
        .options = &options,
        .request = {.type = type, .message = message},
        .wanted = wanted,
        .count = 1,
    };
    if (!status)
        status = ask_in_turn(&errand, answer, err);
    free(text);
    return status;
}
