#include "remote/admin.h"

#include <stdlib.h>

#include "member/place.h"
#include "net/link.h"
#include "net/ready.h"

enum { PATIENCE = 5000 }; // milliseconds for a dial

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

int admin_ask(const struct admin *admin, uint16_t type, const void *message, uint16_t wanted,
              struct kept **answer, struct error *err) {
    const struct link_options options = {.keys = admin->keys, .insecure = admin->insecure};
    const struct proto_hello hello = {.role = PROTO_ROLE_ADMINISTRATOR, .name = proto_text("ctl")};
    struct link_request request = {.type = type, .message = message};
    char address[PROTO_ADDRESS_MAX];
    struct link *link;
    int status = find_controller(admin->place, address, err);
    if (!status)
        status = link_dial(&link, address, &options, &hello, PATIENCE, NULL, err);
    if (status)
        return status == STATUS_UNAVAILABLE ? error_context(err, "controller") : status;
    status = link_call_kept(link, &request, answer, err);
    if (!status && (status = check_answer(*answer, wanted, address, err)))
        kept_drop(*answer);
    link_close(link);
    return status;
}
