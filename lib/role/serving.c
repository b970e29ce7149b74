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
    case STATUS_SKIPPED:
        return "it was drained";
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

// Whether it ends, with *status.
static bool is_to_end(const struct serving_role *role, void *self, struct member *member,
                      const struct serving_hooks *hooks, int *status, struct error *err) {
    struct member_order order;
    *status = member_status(member, err);
    if (*status)
        return true;
    bool ordered = member_take_order(member, &order);
    bool leaves = ordered && order.order == PROTO_ORDER_LEAVE;
    if (leaves) {
        serving_say(hooks, "it was drained, and leaves the run");
        *status = STATUS_SKIPPED;
    }
    if (leaves || (ordered && order.order == PROTO_ORDER_STOP))
        return true;
    if (!role->stop_wanted(self) && !hooks->stop(hooks->self))
        return false;
    *status = error_set(err, STATUS_STOPPED, "stopped on request");
    return true;
}

static int serve_until_end(const struct serving_role *role, void *self, struct member *member,
                           const struct serving_hooks *hooks, struct error *err) {
    for (;;) {
        uint32_t seen = member_news(member);
        int status;
        if (is_to_end(role, self, member, hooks, &status, err))
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
    status = role->end(self, status, &own);
    if (open)
        ready_forget(&told);
    if (err && own.status)
        *err = own;
    return status;
}
