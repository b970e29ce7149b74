// A worker that has a partition of the model: how it meets the other workers of its replica.
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "role/worker/worker_internal.h"

#define SILENCE 10.0   // "A wait says whom it waits for: after 10 s"
#define LOST_GRACE 2.0 // seconds in which the controller may say that the run is over

static bool is_cut(const struct worker *worker) {
    return worker->settings.partitions > 1;
}

bool worker_leads(const struct worker *worker) {
    return worker->partition == 0;
}

const struct model *worker_model(const struct worker *worker) {
    return worker->cut ? cut_model(worker->cut, worker->partition) : worker->model;
}

// --- who they are -----------------------------------------------------------------------

static void copy_text(char *to, size_t room, struct proto_text text) {
    snprintf(to, room, "%.*s", (int)text.length, text.at);
}

// The workers of this one's replica; false: some are missing yet.
static bool find_workers(const struct worker *worker, const struct proto_status *status,
                         uint32_t replica, struct neighbour *workers) {
    const struct proto_member *members = status->members.at;
    int64_t partitions = worker->settings.partitions, found = 0;
    memset(workers, 0, (size_t)partitions * sizeof *workers);
    for (uint32_t i = 0; i < status->members.count; i++) {
        const struct proto_member *m = &members[i];
        if (m->role != PROTO_ROLE_WORKER || m->state == PROTO_STATE_GONE || m->replica != replica ||
            m->partition >= partitions)
            continue;
        struct neighbour *at = &workers[m->partition];
        found += at->session == 0;
        at->session = m->session;
        copy_text(at->name, sizeof at->name, m->name);
        copy_text(at->address, sizeof at->address, m->neighbours);
    }
    return found == partitions;
}

static int form_replica(struct worker *worker, const struct neighbour *workers,
                        const struct proto_hello *hello, struct error *err) {
    int places = (int)worker->settings.in_flight;
    const struct neighbour_replica replica = {
        .hello = *hello,
        .partition = worker->partition,
        .partitions = (int)worker->settings.partitions,
        .workers = workers,
        .places = places,
        .flights = worker_is_sync(worker) ? 1 : places,
        .exchanges = cut_exchanges(worker->cut) + 1,
        .batch = (int)worker->settings.batch,
        .outputs = model_classes(worker->model),
        .labels = model_goal(worker->model) != GOAL_NUMBERS,
    };
    return neighbour_links_form(worker->links, &replica, err);
}

// --- until they are there ---------------------------------------------------------------

static void say_waits_for(struct worker *worker, const char *text) {
    pthread_mutex_lock(&worker->lock);
    snprintf(worker->waits_for, sizeof worker->waits_for, "%s", text);
    pthread_mutex_unlock(&worker->lock);
}

// The workers are known, and the links begin to be made.
static int meet_workers(struct worker *worker, const struct member_identity *identity, bool *formed,
                        struct error *err) {
    struct neighbour workers[CUT_PARTITIONS_MAX];
    struct kept *members = member_members(worker->member);
    *formed = members && find_workers(worker, &members->message.status, identity->replica, workers);
    kept_drop(members);
    const struct proto_hello hello = worker_hello(worker);
    return *formed ? form_replica(worker, workers, &hello, err) : STATUS_OK;
}

// Whom it waits for; the user is told once.
static void note_wait(struct worker *worker, bool formed, double begun, bool *said) {
    char text[PROTO_ADDRESS_MAX] = "workers for the other partitions of its replica";
    char line[PROTO_ADDRESS_MAX + 16];
    if (formed)
        neighbour_links_waits_for(worker->links, text);
    say_waits_for(worker, text);
    if (*said || clock_seconds() - begun < SILENCE)
        return;
    snprintf(line, sizeof line, "waiting for %s", text);
    worker_say(worker, line);
    *said = true;
}

static int await_replica(struct worker *worker, struct error *err) {
    struct member_identity identity = {0};
    double begun = clock_seconds();
    bool formed = false, said = false;
    int status;
    member_identity(worker->member, &identity);
    for (;;) {
        uint32_t seen = member_news(worker->member);
        status = worker_wait_more(worker, "its replica was there", err);
        if (!status && !formed)
            status = meet_workers(worker, &identity, &formed, err);
        if (!status && formed)
            status = neighbour_links_status(worker->links, err);
        bool whole = formed && neighbour_links_whole(worker->links);
        if (status || whole || worker_is_ending(worker))
            break;
        note_wait(worker, formed, begun, &said);
        member_wait(worker->member, seen, WORKER_POLL);
    }
    say_waits_for(worker, "");
    return status;
}

int worker_open_replica(struct worker *worker, struct error *err) {
    struct member_identity identity = {0};
    int partitions = (int)worker->settings.partitions;
    if (!is_cut(worker))
        return STATUS_OK;
    member_identity(worker->member, &identity);
    if (!worker->links || identity.partition >= (uint32_t)partitions)
        return error_set(err, STATUS_DATA,
                         "the run cuts its model over %d workers, and has no place for one that "
                         "does not listen",
                         partitions);
    worker->partition = (int)identity.partition;
    worker->threads = 1;
    int status =
        cut_open(&worker->cut, worker->model, partitions, (int)worker->settings.batch, err);
    if (!status)
        status = portion_open(&worker->portion, worker->cut, worker->partition, err);
    return status ? status : await_replica(worker, err);
}

void worker_close_replica(struct worker *worker) {
    neighbour_links_close(worker->links);
    portion_free(&worker->portion);
    cut_close(worker->cut);
}

// --- while it trains --------------------------------------------------------------------

// At the end of a run the others may leave before this one hears of it.
void worker_watch_replica(struct worker *worker) {
    struct error err = {0};
    if (!worker->links || !neighbour_links_status(worker->links, &err))
        return;
    double now = clock_seconds();
    if (worker->lost_at == 0) {
        worker->lost_at = now;
        member_look(worker->member);
    } else if (now - worker->lost_at > LOST_GRACE) {
        worker_fail(worker, &err);
    }
}

// The first one ends when what is in flight has landed, and the others when it has left.
bool worker_may_pause(struct worker *worker) {
    if (!is_cut(worker) || worker_leads(worker) || atomic_load(&worker->end) != WORKER_OVER)
        return true;
    return neighbour_links_status(worker->links, NULL) != STATUS_OK;
}
