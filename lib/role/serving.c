#include "role/serving.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/error.h"
#include "member/member.h"
#include "net/ready.h"

static const double turn = 0.1; // seconds between two looks at hooks.stop

void serving_say(const struct serving_hooks *hooks, const char *format, ...) {
    char text[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    hooks->say(hooks->self, text);
}

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

// STATUS_SKIPPED: go on.
static int whether_to_end(const struct serving_role *role, void *self, struct member *member,
                          const struct serving_hooks *hooks, struct error *err) {
    struct member_order order;
    int status = member_status(member, err);
    if (status)
        return status;
    if (member_take_order(member, &order) && order.order == PROTO_ORDER_STOP)
        return STATUS_OK;
    if (role->stop_wanted(self) || hooks->stop(hooks->self))
        return error_set(err, STATUS_STOPPED, "stopped on request");
    return STATUS_SKIPPED;
}

static int serve_until_end(const struct serving_role *role, void *self, struct member *member,
                           const struct serving_hooks *hooks, struct error *err) {
    for (;;) {
        uint32_t seen = member_news(member);
        int status = whether_to_end(role, self, member, hooks, err);
        if (status != STATUS_SKIPPED)
            return status;
        status = role->turn(self, err);
        if (status)
            return status;
        member_wait(member, seen, turn);
    }
}

int serving_run(const struct serving_role *role, void *self, const struct serving_hooks *hooks,
                const struct ready *ready, struct error *err) {
    struct ready told = *ready;
    struct member *member;
    struct error own = {0};
    int status = role->open(self, &member, &own);
    bool open = !status;
    if (open)
        status = role->tell(self, &told, &own);
    if (!status)
        status = serve_until_end(role, self, member, hooks, &own);
    role->end(self, status, &own);
    if (open)
        ready_forget(&told);
    if (err && own.status)
        *err = own;
    return status;
}
