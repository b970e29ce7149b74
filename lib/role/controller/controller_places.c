// Who has which copies: what parameter servers ask and propose, and what follows from servers that
// come, go, or are to go.
//
// "The PS controller hands out bucket assignments (primary role via a lease, secondary roles with
//  primary lease information) to parameter servers and persists the lease information in its
//  replicated state." (Adam 3.3.3)
#include <inttypes.h>
#include <stdlib.h>

#include "core/clock.h"
#include "role/controller/controller_internal.h"

static const double lease = CONTROLLER_LEASE / 1000.0;
static const double again = 1; // seconds after which places are looked at again
// Seconds for which a server is not given as joiner to a primary that did not reach it.
static const double parted = 30;
// Seconds for which one that has just begun to lead moves nothing: it hears first who lives, and
// who is to be replaced.
static const double settling = 2 * CONTROLLER_LEASE / 1000.0;

// --- leases -------------------------------------------------------------------------------------

// Whether the server may still answer as a primary. One that has just begun to lead does not know
// what was granted before, but when that ended. Safety never rests on this: it only spares readers
// a stale primary.
static bool has_lease(const struct controller *c, uint32_t server) {
    const struct vital *vital = vitals_of(&c->vitals, server);
    double now = c->stepped;
    return now < c->inherited + lease || now < c->asked_again || (vital && now < vital->leased);
}

static void give_lease(struct controller *c, uint32_t server, struct proto_places *places) {
    double left = quorum_lease(c->doors->quorum, lease);
    if (left <= 0)
        return;
    places->lease = (uint32_t)(left * 1000);
    vitals_lease(&c->vitals, server, clock_seconds() + left);
}

void controller_places(struct controller *c, const struct cluster_member *server, uint64_t known,
                       struct proto_places *places) {
    const struct cluster *cluster = c->cluster;
    *places = (struct proto_places){.epoch = cluster->routes_epoch};
    if (server)
        give_lease(c, server->number, places);
    if (known != cluster->routes_epoch)
        places->places = proto_list(cluster->places, (uint32_t)cluster->place_count);
}

// --- proposals ----------------------------------------------------------------------------------

struct changes { // that were carried out
    uint32_t taken_over, completed, dropped;
};

static void count_change(struct changes *changes, uint32_t change) {
    changes->taken_over += change == PROTO_CHANGE_TAKE_OVER;
    changes->completed += change == PROTO_CHANGE_COMPLETE;
    changes->dropped += change == PROTO_CHANGE_DROP;
}

static bool is_granted(const struct controller *c, const struct proto_proposal *proposal) {
    return proposal->change != PROTO_CHANGE_TAKE_OVER || !has_lease(c, proposal->primary);
}

// Of one that nobody hears that says nothing.
static void note_parting(struct controller *c, const struct proto_proposal *proposal) {
    const struct cluster_member *dropped = cluster_numbered(c->cluster, proposal->member);
    if (proposal->change == PROTO_CHANGE_DROP && dropped && !controller_is_unheard(c, dropped))
        partings_add(&c->partings, proposal->primary, proposal->member, clock_seconds() + parted);
}

static int try_proposals(struct controller *c, struct cluster *next,
                         const struct proto_list *proposals, struct changes *changes,
                         struct error *err) {
    const struct proto_proposal *at = proposals->at;
    int status = STATUS_OK;
    for (uint32_t i = 0; !status && i < proposals->count; i++) {
        bool changed = false;
        if (is_granted(c, &at[i]))
            status = cluster_propose(next, &at[i], &changed, err);
        if (!changed)
            continue;
        count_change(changes, at[i].change);
        note_parting(c, &at[i]);
    }
    return status;
}

static void tell_changes(struct controller *c, const struct changes *changes,
                         const char *takeovers) {
    if (changes->taken_over)
        controller_say(c, "%s", takeovers ? takeovers : "primaries were silent, and are replaced");
    if (changes->dropped)
        controller_say(c, "%" PRIu32 " buckets have a copy less now: it did not answer",
                       changes->dropped);
    controller_report(c, "places",
                      json_pack("{s:I, s:I, s:I}", "taken_over", (json_int_t)changes->taken_over,
                                "completed", (json_int_t)changes->completed, "dropped",
                                (json_int_t)changes->dropped));
}

// Nothing is moved while a bucket has nobody: whoever comes may be the one that has its values.
int controller_fill(const struct controller *c, struct cluster *next, struct error *err) {
    bool filled, settles = clock_seconds() < c->began + settling;
    return settles || cluster_lost(next)
               ? STATUS_OK
               : cluster_fill(next, controller_is_unheard, c, &c->partings, &filled, err);
}

// What follows from the changes is agreed on with them: each agreement takes its time.
static int carry_out(struct controller *c, struct changes *changes, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    for (const struct queued_request *at = c->proposals; !status && at; at = at->next)
        status = try_proposals(c, next, &at->message->message.propose.proposals, changes, err);
    bool any = changes->taken_over || changes->completed || changes->dropped;
    char *takeovers =
        !status && changes->taken_over ? controller_takeovers(c->cluster, next) : NULL;
    if (!status && any)
        status = controller_fill(c, next, err);
    status = controller_commit(c, next, status || any ? status : STATUS_SKIPPED, err);
    if (!status)
        tell_changes(c, changes, takeovers);
    free(takeovers);
    return status == STATUS_SKIPPED ? STATUS_OK : status;
}

static int answer_proposals(struct controller *c, struct error *err) {
    struct changes changes = {0};
    if (!c->proposals)
        return STATUS_OK;
    int status = carry_out(c, &changes, err);
    for (struct queued_request *queued; !status && (queued = c->proposals);) {
        c->proposals = queued->next;
        link_answer(queued->link, queued->request, PROTO_TYPE_DONE, NULL, NULL, NULL);
        queued_request_free(queued);
    }
    return status;
}

// --- servers that come and go -------------------------------------------------------------------

int controller_may_lose(const struct controller *c, uint32_t server, bool *may, struct error *err) {
    return cluster_may_lose(c->cluster, server, controller_is_unheard, c, may, err);
}

bool controller_lacks_servers(const struct controller *c) {
    const struct cluster *cluster = c->cluster;
    for (size_t i = 0; i < cluster->member_count; i++)
        if (cluster->members[i].gone && cluster_serves(cluster, cluster->members[i].number))
            return true;
    return false;
}

// When members or routes change, and now and then: servers that were silent may be heard again.
static bool is_time_to_place(const struct controller *c, double now) {
    return c->placed_members != c->cluster->members_epoch ||
           c->placed_routes != c->cluster->routes_epoch || now >= c->placed_at + again;
}

static int give_copies(struct controller *c, struct error *err) {
    struct cluster *next;
    int status = controller_draft(c, &next, err);
    if (!status)
        status = controller_fill(c, next, err);
    bool changed = !status && next->routes_epoch != c->cluster->routes_epoch;
    status = controller_commit(c, next, status || changed ? status : STATUS_SKIPPED, err);
    return status == STATUS_SKIPPED ? STATUS_OK : status;
}

static int look_at_places(struct controller *c, struct error *err) {
    double now = clock_seconds();
    if (!is_time_to_place(c, now))
        return STATUS_OK;
    int status = give_copies(c, err);
    c->placed_at = now;
    c->placed_members = c->cluster->members_epoch;
    c->placed_routes = c->cluster->routes_epoch;
    return status;
}

int controller_place(struct controller *c, struct error *err) {
    uint64_t before = c->agreements;
    partings_expire(&c->partings, clock_seconds());
    bool trains = c->cluster->stage > CLUSTER_STARTING && c->cluster->stage < CLUSTER_STOPPING;
    int status = trains ? controller_lose_gone(c, err) : STATUS_OK;
    if (!status && c->agreements == before)
        status = answer_proposals(c, err);
    if (!status && trains && c->agreements == before)
        status = look_at_places(c, err);
    return status;
}
