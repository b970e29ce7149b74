#include "remote/admin.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "member/place.h"
#include "net/link.h"
#include "net/ready.h"

enum {
    PATIENCE = 5000, // milliseconds for a dial, and for calls while the controller hangs up
    AGAIN = 50,      // milliseconds between these
};

static int find_controller(const char *place, char address[PROTO_ADDRESS_MAX], struct error *err) {
    char *text;
    int status = place_controller(&text, place, err);
    if (status)
        return status;
    status = ready_find(text, address, err);
    free(text);
    return status;
}

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

// *hung_up: who was welcomed and has no answer yet can still lose its place to other callers.
static int call_once(const char *address, const struct link_options *options,
                     struct link_request *request, struct kept **answer, bool *hung_up,
                     struct error *err) {
    const struct proto_hello hello = {.role = PROTO_ROLE_ADMINISTRATOR, .name = proto_text("ctl")};
    struct link *link;
    *hung_up = false;
    int status = link_dial(&link, address, options, &hello, PATIENCE, NULL, err);
    if (status)
        return status == STATUS_UNAVAILABLE ? error_context(err, "controller") : status;
    status = link_call_kept(link, request, answer, err);
    *hung_up = status && link_hung_up(link);
    link_close(link);
    return status;
}

int admin_ask(const struct admin *admin, uint16_t type, const void *message, uint16_t wanted,
              struct kept **answer, struct error *err) {
    const struct link_options options = {.keys = admin->keys, .insecure = admin->insecure};
    char address[PROTO_ADDRESS_MAX];
    int status = find_controller(admin->place, address, err);
    if (status)
        return status;
    double until = clock_seconds() + PATIENCE / 1e3;
    for (bool hung_up;; usleep(AGAIN * 1000)) {
        struct link_request request = {.type = type, .message = message};
        struct error why = {0};
        status = call_once(address, &options, &request, answer, &hung_up, &why);
        if (hung_up && clock_seconds() < until)
            continue;
        if (status && err)
            *err = why;
        break;
    }
    if (!status && (status = check_answer(*answer, wanted, address, err)))
        kept_drop(*answer);
    return status;
}
