// Leases while batches of them are with the takers or their home; and those that are
// finished, or given back, of which data servers are told.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "remote/data_client_internal.h"

enum { REPORT_MOST = 4096 }; // leases of either kind in one message

struct held_lease *client_add_lease(struct data_client *client, const struct fetch *fetch) {
    struct held_lease *lease = mem_zeroed(1, sizeof *lease);
    if (!lease)
        return NULL;
    *lease = (struct held_lease){
        .server = fetch->server, .number = fetch->answer.lease, .left = fetch->batches};
    LIST_INSERT_HEAD(&client->leases, lease, others);
    return lease;
}

static void free_lease(struct held_lease *lease) {
    LIST_REMOVE(lease, others);
    free(lease);
}

void client_free_leases(struct data_client *client) {
    for (struct held_lease *lease = LIST_FIRST(&client->leases), *next; lease; lease = next) {
        next = LIST_NEXT(lease, others);
        free(lease);
    }
    free(client->trained);
}

// --- batches that were given back -----------------------------------------------------

bool client_add_trained(struct data_client *client, struct trained trained) {
    if (client->trained_count == client->trained_room) {
        size_t room = client->trained_room ? 2 * client->trained_room : 64;
        struct trained *all = mem_array(room, sizeof *all);
        if (!all)
            return false;
        for (size_t i = 0; i < client->trained_count; i++)
            all[i] = client->trained[(client->trained_first + i) % client->trained_room];
        free(client->trained);
        client->trained = all;
        client->trained_first = 0;
        client->trained_room = room;
    }
    size_t end = (client->trained_first + client->trained_count++) % client->trained_room;
    client->trained[end] = trained;
    return true;
}

uint64_t data_client_trained(const struct data_client *client) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&client->lock;
    pthread_mutex_lock(lock);
    uint64_t trained = client->given_back;
    pthread_mutex_unlock(lock);
    return trained;
}

static void raise_mark(struct data_client *client, uint64_t mark) {
    if (mark > client->settled)
        client->settled = mark;
    pthread_cond_signal(&client->to_fetch);
}

void data_client_lose(struct data_client *client, uint64_t from, uint64_t mark) {
    pthread_mutex_lock(&client->lock);
    for (size_t i = 0; i < client->trained_count; i++) {
        size_t place = (client->trained_first + i) % client->trained_room;
        struct trained *trained = &client->trained[place];
        if (trained->ordinal >= from && trained->ordinal < mark)
            trained->lease->lost = true;
    }
    raise_mark(client, mark);
    pthread_mutex_unlock(&client->lock);
}

void data_client_finish(struct data_client *client, uint64_t mark) {
    pthread_mutex_lock(&client->lock);
    raise_mark(client, mark);
    pthread_mutex_unlock(&client->lock);
}

// --- reporting data servers -------------------------------------------------------------

static void add_to_report(struct lease_report *report, uint64_t lease) {
    if (report->count == report->room) {
        size_t room = report->room ? 2 * report->room : 64;
        struct proto_lease_id *leases = mem_resize(report->leases, room, sizeof *leases);
        if (!leases)
            return;
        report->leases = leases;
        report->room = room;
    }
    report->leases[report->count++].lease = lease;
}

// What finds no memory runs out, and is trained on again.
static void close_lease(struct data_client *client, struct held_lease *lease) {
    struct data_peer *server = lease->server;
    if (server->listed)
        add_to_report(lease->lost ? &server->returned : &server->finished, lease->number);
    else
        client->figures.over += !lease->lost;
    free_lease(lease);
}

// A batch of it is with nobody any more.
static void end_batch(struct data_client *client, struct held_lease *lease) {
    if (--lease->left == 0)
        close_lease(client, lease);
}

void client_lose_batch(struct data_client *client, struct held_lease *lease) {
    lease->lost = true;
    end_batch(client, lease);
    pthread_cond_signal(&client->to_fetch);
}

// What the mark has reached is to be told.
static void sort_finished(struct data_client *client) {
    while (client->trained_count > 0) {
        struct trained *trained = &client->trained[client->trained_first];
        if (trained->ordinal >= client->settled)
            return;
        end_batch(client, trained->lease);
        client->trained_first = (client->trained_first + 1) % client->trained_room;
        client->trained_count--;
        if (client->flushing) // which no answer tells, unless the lease was over
            pthread_cond_broadcast(&client->changed);
    }
}

static struct proto_list begin_report(struct lease_report *report) {
    report->reporting = report->count < REPORT_MOST ? report->count : REPORT_MOST;
    return proto_list(report->leases, (uint32_t)report->reporting);
}

static void remove_reported(struct lease_report *report) {
    report->count -= report->reporting;
    if (report->count > 0)
        memmove(report->leases, report->leases + report->reporting,
                report->count * sizeof *report->leases);
}

static void end_report(struct data_peer *server) {
    server->reporting = false;
    server->finished.reporting = server->returned.reporting = 0;
    client_wake(server->client);
}

uint64_t client_cut_reports(struct data_peer *server) {
    uint64_t cut = server->finished.count - server->finished.reporting;
    server->finished.count = server->finished.reporting;
    server->returned.count = server->returned.reporting;
    return cut;
}

static size_t copy_report(struct proto_lease_id *to, const struct lease_report *report) {
    if (report->count > 0)
        memcpy(to, report->leases, report->count * sizeof *to);
    return report->count;
}

struct proto_lease_id *client_held(const struct data_client *client, const struct data_peer *server,
                                   size_t *count) {
    size_t most = server->finished.count + server->returned.count, n = 0;
    const struct held_lease *lease;
    LIST_FOREACH(lease, &client->leases, others) {
        most++;
    }
    struct proto_lease_id *held = mem_array(most + 1, sizeof *held);
    if (!held)
        return NULL;
    LIST_FOREACH(lease, &client->leases, others) {
        if (lease->server == server)
            held[n++].lease = lease->number;
    }
    n += copy_report(held + n, &server->finished);
    n += copy_report(held + n, &server->returned);
    *count = n;
    return held;
}

// Refused or not, the data server has heard of them.
static void finish_done(struct link_request *request) {
    struct data_peer *server = request->context;
    struct data_client *client = server->client;
    pthread_mutex_lock(&client->lock);
    if (request->status == STATUS_OK) {
        if (request->answer_type == PROTO_TYPE_REFUSED)
            client->figures.over += server->finished.reporting;
        remove_reported(&server->finished);
        remove_reported(&server->returned);
    }
    end_report(server);
    pthread_mutex_unlock(&client->lock);
}

static bool has_reports(const struct data_peer *server) {
    return server->finished.count > 0 || server->returned.count > 0;
}

bool client_report(struct data_client *client) {
    sort_finished(client);
    struct data_peer *server = client->servers;
    while (server && (!has_reports(server) || server->reporting || !server->link || server->broken))
        server = server->next;
    if (!server)
        return false;
    server->reporting = true;
    server->finish =
        (struct proto_finish){client->options.hello.session, begin_report(&server->finished),
                              begin_report(&server->returned)};
    server->finish_request = (struct link_request){
        .type = PROTO_TYPE_FINISH,
        .message = &server->finish,
        .done = finish_done,
        .context = server,
    };
    struct error err = {0};
    struct link *link = server->link;
    link_hold(link);
    pthread_mutex_unlock(&client->lock);
    // The lists are this thread's until it is done: others only cut off what was told.
    int status = link_ask(link, &server->finish_request, &err);
    link_drop(link);
    pthread_mutex_lock(&client->lock);
    if (status) {
        server->broken = true;
        end_report(server);
    }
    return true;
}

// What the mark has reached and no data server has heard of.
static bool has_unreported(const struct data_client *client) {
    if (client->trained_count > 0 &&
        client->trained[client->trained_first].ordinal < client->settled)
        return true;
    for (const struct data_peer *server = client->servers; server; server = server->next)
        if (server->listed && has_reports(server))
            return true;
    return false;
}

bool data_client_flush(struct data_client *client, double seconds) {
    double until = clock_seconds() + seconds;
    pthread_mutex_lock(&client->lock);
    client->flushing++;
    while (has_unreported(client) && clock_seconds() < until) {
        pthread_cond_signal(&client->to_fetch);
        client_wait_changed(client, until);
    }
    client->flushing--;
    bool reported = !has_unreported(client);
    pthread_mutex_unlock(&client->lock);
    return reported;
}
