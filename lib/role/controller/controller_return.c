// A controller that comes back to a run whose members may be gone, as after a power cut.
#include "core/clock.h"
#include "core/error.h"
#include "role/controller/controller_internal.h"

#define DIAL 2000 // milliseconds that a server has to welcome

// A process that is gone is refused at once; one that says nothing may stand still, and has as long
// as all servers have to come back.
bool controller_member_lives(const struct controller *c, const struct cluster_member *member) {
    const struct link_options options = {.keys = c->config->keys, .insecure = c->config->insecure};
    const struct proto_hello hello = {
        .role = PROTO_ROLE_CONTROLLER,
        .run = c->cluster->run,
        .name = proto_text("controller"),
    };
    struct proto_welcome welcome;
    struct link *link;
    double begun = clock_seconds();
    if (link_dial(&link, member->training, &options, &hello, DIAL, &welcome, NULL))
        return clock_seconds() - begun > DIAL / 4e3;
    link_close(link);
    return true;
}

// Whether none of those that listen is there any more. One that lives ends the search.
static bool all_died(const struct controller *c) {
    size_t died = 0;
    for (size_t i = 0; i < c->cluster->member_count; i++) {
        const struct cluster_member *member = &c->cluster->members[i];
        if (member->gone || !*member->training)
            continue;
        if (controller_member_lives(c, member))
            return false;
        died++;
    }
    return died > 0;
}

static void forget_members(struct controller *c) {
    for (size_t i = 0; i < c->cluster->member_count; i++)
        vitals_forget(&c->vitals, c->cluster->members[i].number);
}

// Nobody is to blame: what is lost is lost to all, and on-peer-loss is not for this.
int controller_let_dead_go(struct controller *c, struct error *err) {
    struct cluster *next;
    if (!all_died(c))
        return STATUS_OK;
    int status = controller_draft(c, &next, err);
    for (size_t i = 0; !status && i < c->cluster->member_count; i++)
        cluster_leave(next, c->cluster->members[i].number);
    status = controller_commit(c, next, status, err);
    if (status)
        return status;
    forget_members(c);
    controller_say(c, "none of its members is there any more: those that come back join anew");
    return STATUS_OK;
}
