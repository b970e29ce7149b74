// Lines of metrics of a member: made as adam-metrics(5) has them, sent to the controller.
#ifndef ADAM_MEMBER_EVENT_H
#define ADAM_MEMBER_EVENT_H

#include "core/json.h"
#include "member/member.h"
#include "proto/proto.h"

struct error;

// Its rank is the member's number; nothing is sent before it has joined. Takes over the
// reference to `fields`, also on failure. Any thread may call. As member_report.
int event_report(struct member *member, enum proto_role role, const char *event, json_t *fields,
                 struct error *err);

#endif
