#include "control/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/link.h"
#include "net/ready.h"

enum { PATIENCE = 5000 }; // milliseconds for a dial

static int no_controller(const char *folder, struct error *err) {
    char *done = NULL;
    if (asprintf(&done, "%s/DONE", folder) < 0)
        return error_nomem(err);
    bool over = access(done, F_OK) == 0;
    free(done);
    return error_set(err, STATUS_NOINPUT, "%s: no controller runs there: %s", folder,
                     over ? "the run is done" : "it has no controller.port");
}

static int find(const char *place, char address[PROTO_ADDRESS_MAX], struct error *err) {
    struct stat about;
    char *file = NULL;
    bool there = stat(place, &about) == 0;
    if (!there && *place != '@' && !strstr(place, "://"))
        return error_set(err, STATUS_NOINPUT, "%s: neither a run's folder nor an address", place);
    if (!there || !S_ISDIR(about.st_mode))
        return ready_find(place, address, err);
    if (asprintf(&file, "@%s/controller.port", place) < 0)
        return error_nomem(err);
    int status =
        access(file + 1, R_OK) ? no_controller(place, err) : ready_find(file, address, err);
    free(file);
    return status;
}

static int check(struct kept *answer, uint16_t wanted, const char *address, struct error *err) {
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
    int status = find(admin->place, address, err);
    if (!status)
        status = link_dial(&link, address, &options, &hello, PATIENCE, NULL, err);
    if (status)
        return status == STATUS_UNAVAILABLE ? error_context(err, "controller") : status;
    status = link_call_kept(link, &request, answer, err);
    if (!status && (status = check(*answer, wanted, address, err)))
        kept_drop(*answer);
    link_close(link);
    return status;
}
