#include "role/serving.h"

#include <stdio.h>

#include "member/member.h"

static const char *reason_of(int status, const struct error *err) {
    switch (status) {
    case STATUS_OK:
        return "as ordered";
    case STATUS_STOPPED:
        return "stopped by a signal or an administrator";
    default:
        return err->text;
    }
}

void serving_leave(struct member *member, int status, const struct error *err) {
    char reason[PROTO_ADDRESS_MAX];
    snprintf(reason, sizeof reason, "%.*s", PROTO_ADDRESS_MAX - 1, reason_of(status, err));
    member_close(member, reason);
}
