#include "member/event.h"

#include <stdlib.h>

#include "core/error.h"
#include "run/metrics.h"

int event_report(struct member *member, enum proto_role role, const char *event, json_t *fields,
                 struct error *err) {
    struct member_identity identity;
    if (!member_identity(member, &identity)) {
        json_decref(fields);
        return STATUS_OK;
    }
    char *line = metrics_line(proto_role_name(role), (int)identity.member, event, fields);
    int status = line ? member_report(member, line, err) : error_nomem(err);
    free(line);
    return status;
}
