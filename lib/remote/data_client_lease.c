// Leases while batches of them are with the takers or their home; and those that are
// finished, or given back, of which data servers are told.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "remote/data_client_internal.h"

enum { TELL_MOST = 4096 }; // leases of either kind in one message

struct grant *client_add_grant(struct data_client *client, const struct parcel *parcel) {
    struct grant *grant = mem_zeroed(1, sizeof *grant);
    if (!grant)
        return NULL;
    *grant = (struct grant){.source = parcel->source,
                            .session = parcel->asked.session,
                            .number = parcel->answer.lease,
                            .left = parcel->batches};
    LIST_INSERT_HEAD(&client->grants, grant, others);
    return grant;
}

static void free_grant(struct grant *grant) {
    LIST_REMOVE(grant, others);
    free(grant);
}

void client_free_leases(struct data_client *client) {
    for (struct grant *grant = LIST_FIRST(&client->grants), *next; grant; grant = next) {
        next = LIST_NEXT(grant, others);
        free(grant);
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

static void settle(struct data_client *client, uint64_t mark) {
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
            trained->grant->lost = true;
    }
    settle(client, mark);
    pthread_mutex_unlock(&client->lock);
}

void data_client_finish(struct data_client *client, uint64_t mark) {
    pthread_mutex_lock(&client->lock);
    settle(client, mark);
    pthread_mutex_unlock(&client->lock);
}

// --- telling data servers -------------------------------------------------------------

static void add(struct tidings *tidings, uint64_t lease) {
    if (tidings->count == tidings->room) {
        size_t room = tidings->room ? 2 * tidings->room : 64;
        struct proto_lease_id *leases = mem_resize(tidings->leases, room, sizeof *leases);
        if (!leases)
            return;
        tidings->leases = leases;
        tidings->room = room;
    }
    tidings->leases[tidings->count++].lease = lease;
}

// What finds no memory runs out, and is trained on again.
static void close_grant(struct data_client *client, struct grant *grant) {
    struct source *source = grant->source;
    if (source->listed && grant->session == client->options.hello.session)
        add(grant->lost ? &source->returned : &source->finished, grant->number);
    else
        client->figures.over += !grant->lost;
    free_grant(grant);
}

// What the mark has reached is to be told.
static void sort_settled(struct data_client *client) {
    while (client->trained_count > 0) {
        struct trained *trained = &client->trained[client->trained_first];
        if (trained->ordinal >= client->settled)
            return;
        if (--trained->grant->left == 0)
            close_grant(client, trained->grant);
        client->trained_first = (client->trained_first + 1) % client->trained_room;
        client->trained_count--;
        if (client->flushing) // which no answer tells, unless the lease was over
            pthread_cond_broadcast(&client->changed);
    }
}

static struct proto_list tell(struct tidings *tidings) {
    tidings->telling = tidings->count < TELL_MOST ? tidings->count : TELL_MOST;
    return proto_list(tidings->leases, (uint32_t)tidings->telling);
}

static void told(struct tidings *tidings) {
    tidings->count -= tidings->telling;
    if (tidings->count > 0)
        memmove(tidings->leases, tidings->leases + tidings->telling,
                tidings->count * sizeof *tidings->leases);
}

static void end_telling(struct source *source) {
    source->telling = false;
    source->finished.telling = source->returned.telling = 0;
    client_wake(source->client);
}

uint64_t client_cut_tidings(struct source *source) {
    uint64_t cut = source->finished.count - source->finished.telling;
    source->finished.count = source->finished.telling;
    source->returned.count = source->returned.telling;
    return cut;
}

// Refused or not, the data server has heard of them.
static void finish_done(struct link_request *request) {
    struct source *source = request->context;
    struct data_client *client = source->client;
    pthread_mutex_lock(&client->lock);
    if (request->status == STATUS_OK) {
        if (request->answer_type == PROTO_TYPE_REFUSED)
            client->figures.over += source->finished.telling;
        told(&source->finished);
        told(&source->returned);
    }
    end_telling(source);
    pthread_mutex_unlock(&client->lock);
}

static bool has_tidings(const struct source *source) {
    return source->finished.count > 0 || source->returned.count > 0;
}

bool client_tell(struct data_client *client) {
    sort_settled(client);
    struct source *source = client->sources;
    while (source && (!has_tidings(source) || source->telling || !source->link || source->broken))
        source = source->next;
    if (!source)
        return false;
    source->telling = true;
    source->finish = (struct proto_finish){client->options.hello.session, tell(&source->finished),
                                           tell(&source->returned)};
    source->finish_request = (struct link_request){
        .type = PROTO_TYPE_FINISH,
        .message = &source->finish,
        .done = finish_done,
        .context = source,
    };
    struct error err = {0};
    struct link *link = source->link;
    link_hold(link);
    pthread_mutex_unlock(&client->lock);
    // The lists are this thread's until it is done: others only cut off what was told.
    int status = link_ask(link, &source->finish_request, &err);
    link_drop(link);
    pthread_mutex_lock(&client->lock);
    if (status) {
        source->broken = true;
        end_telling(source);
    }
    return true;
}

// What the mark has reached and no data server has heard of.
static bool untold(const struct data_client *client) {
    if (client->trained_count > 0 &&
        client->trained[client->trained_first].ordinal < client->settled)
        return true;
    for (const struct source *source = client->sources; source; source = source->next)
        if (source->listed && has_tidings(source))
            return true;
    return false;
}

bool data_client_flush(struct data_client *client, double seconds) {
    double until = clock_seconds() + seconds;
    pthread_mutex_lock(&client->lock);
    client->flushing++;
    while (untold(client) && clock_seconds() < until) {
        pthread_cond_signal(&client->to_fetch);
        client_wait_changed(client, until);
    }
    client->flushing--;
    bool told = !untold(client);
    pthread_mutex_unlock(&client->lock);
    return told;
}
