// Leases while batches of them are with the takers or their home; and what of them is
// finished, of which data servers are told.
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "role/data_client_internal.h"

enum { FINISH_MOST = 4096 }; // leases in one message

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

void data_client_lose(struct data_client *client, uint64_t from, uint64_t mark) {
    pthread_mutex_lock(&client->lock);
    for (size_t i = 0; i < client->trained_count; i++) {
        size_t place = (client->trained_first + i) % client->trained_room;
        struct trained *trained = &client->trained[place];
        if (trained->ordinal >= from && trained->ordinal < mark)
            trained->grant->lost = true;
    }
    pthread_mutex_unlock(&client->lock);
}

void data_client_finish(struct data_client *client, uint64_t mark) {
    pthread_mutex_lock(&client->lock);
    if (mark > client->finished)
        client->finished = mark;
    pthread_cond_signal(&client->to_fetch);
    pthread_mutex_unlock(&client->lock);
}

// --- telling what is finished ---------------------------------------------------------

static bool add_done(struct source *source, uint64_t lease) {
    if (source->done_count == source->done_room) {
        size_t room = source->done_room ? 2 * source->done_room : 64;
        struct proto_lease_id *done = mem_resize(source->done, room, sizeof *done);
        if (!done)
            return false;
        source->done = done;
        source->done_room = room;
    }
    source->done[source->done_count++].lease = lease;
    return true;
}

// What the mark has reached goes to its data server. (What finds no memory is not
// finished: it is trained on again.)
static void sort_finished(struct data_client *client) {
    while (client->trained_count > 0) {
        struct trained *trained = &client->trained[client->trained_first];
        if (trained->ordinal >= client->finished)
            return;
        struct grant *grant = trained->grant;
        if (--grant->left == 0) {
            if (!grant->lost && grant->source->listed &&
                grant->session == client->options.hello.session)
                add_done(grant->source, grant->number);
            else
                client->figures.over += !grant->lost;
            free_grant(grant);
        }
        client->trained_first = (client->trained_first + 1) % client->trained_room;
        client->trained_count--;
        if (client->flushing) // which no answer tells, unless the lease was over
            pthread_cond_broadcast(&client->changed);
    }
}

// Refused or not, the data server has heard of them.
static void finish_done(struct link_request *request) {
    struct source *source = request->context;
    struct data_client *client = source->client;
    pthread_mutex_lock(&client->lock);
    if (request->status == STATUS_OK) {
        if (request->answer_type == PROTO_TYPE_REFUSED)
            client->figures.over += source->telling;
        source->done_count -= source->telling;
        memmove(source->done, source->done + source->telling,
                source->done_count * sizeof *source->done);
    }
    source->telling = 0;
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
}

bool client_tell_finished(struct data_client *client) {
    sort_finished(client);
    struct source *source = client->sources;
    while (source &&
           (source->done_count == 0 || source->telling > 0 || !source->link || source->broken))
        source = source->next;
    if (!source)
        return false;
    source->telling = source->done_count < FINISH_MOST ? source->done_count : FINISH_MOST;
    source->finish = (struct proto_finish){client->options.hello.session,
                                           proto_list(source->done, (uint32_t)source->telling)};
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
    // The list is this thread's until it is done: others only cut off what was told.
    int status = link_ask(link, &source->finish_request, &err);
    link_drop(link);
    pthread_mutex_lock(&client->lock);
    if (status) {
        source->telling = 0;
        source->broken = true;
        client_wake(client);
    }
    return true;
}

// What the mark has reached and no data server has heard of.
static bool untold(const struct data_client *client) {
    if (client->trained_count > 0 &&
        client->trained[client->trained_first].ordinal < client->finished)
        return true;
    for (const struct source *source = client->sources; source; source = source->next)
        if (source->listed && source->done_count > 0)
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
