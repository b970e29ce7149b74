// The thread that fetches: it turns what has arrived into what the model reads, asks for
// more, tells which leases are finished, and whom it waits for.
#include <math.h>
#include <stdio.h>

#include "core/clock.h"
#include "remote/data_client_internal.h"

#define ROUND 1.0  // seconds after which the thread looks anyway
#define HURRY 0.02 // between two calls of the hook `idle`

static bool takers_starve(const struct data_client *client) {
    return client->waiting > 0 && STAILQ_EMPTY(&client->ready) && STAILQ_EMPTY(&client->arrived);
}

// --- whom it waits for ----------------------------------------------------------------

// How likely it is that the takers wait for this data server: one that is of no use, one that has
// not answered, one that serves the epoch.
static int blame_of(const struct data_peer *server, uint32_t epoch) {
    if (!server->listed)
        return 0;
    if (server->why[0])
        return 4;
    if (!server->known || !server->link)
        return 3;
    return server->over ? 0 : server->epoch <= epoch ? 2 : 1;
}

static const struct data_peer *most_blamed(const struct data_client *client) {
    const struct data_peer *worst = NULL;
    uint32_t epoch;
    client_epoch(client, &epoch);
    for (const struct data_peer *server = client->servers; server; server = server->next)
        if (blame_of(server, epoch) > (worst ? blame_of(worst, epoch) : 0))
            worst = server;
    return worst;
}

// Also between two waits of an impatient taker (supply_take), as long as no batch came.
static bool is_waiting(const struct data_client *client) {
    return takers_starve(client) ||
           (client->patience.since > 0 && client->figures.batches == client->wait_batches);
}

static void describe_wait(const struct data_client *client, char text[PROTO_ADDRESS_MAX]) {
    const struct data_peer *server = most_blamed(client);
    text[0] = '\0';
    if (!is_waiting(client))
        return;
    if (!server)
        snprintf(text, PROTO_ADDRESS_MAX, "data servers: the controller names none");
    else if (server->why[0])
        snprintf(text, PROTO_ADDRESS_MAX, "data server %.*s", PROTO_ADDRESS_MAX - 16, server->why);
    else
        snprintf(text, PROTO_ADDRESS_MAX, "data server %.*s", PROTO_ADDRESS_MAX - 16,
                 server->address);
}

void data_client_waits_for(struct data_client *client, char text[PROTO_ADDRESS_MAX]) {
    pthread_mutex_lock(&client->lock);
    describe_wait(client, text);
    pthread_mutex_unlock(&client->lock);
}

// "A wait says whom it waits for." Lets go of the lock while it says so.
static void say_wait(struct data_client *client) {
    char text[PROTO_ADDRESS_MAX], line[PROTO_ADDRESS_MAX + 16];
    if (client->patience.since == 0)
        client->wait_batches = client->figures.batches;
    bool lost = is_waiting(client) && patience_lost(&client->patience);
    bool found = !is_waiting(client) && patience_found(&client->patience);
    if (!client->options.say || (!lost && !found))
        return;
    describe_wait(client, text);
    snprintf(line, sizeof line, lost ? "waiting for %s" : "batches come again%s", text);
    pthread_mutex_unlock(&client->lock);
    client->options.say(client->options.self, line);
    pthread_mutex_lock(&client->lock);
}

// --- the thread -----------------------------------------------------------------------

static bool any_ending(const struct data_client *client) {
    const struct data_peer *server = client->servers;
    while (server && !(server->listed && server->ending))
        server = server->next;
    return server != NULL;
}

// Data servers that wait for what the takers' home holds. (Where batches are only late, or a
// taker still has one, a push would come earlier than its distance says.)
static bool hurry_due(struct data_client *client, double now, double *soon) {
    if (!client->options.idle || !takers_starve(client) || client->trained_count == 0 ||
        client->waiting < client->options.takers || !any_ending(client))
        return false;
    if (now - client->hurried < HURRY) {
        *soon = fmin(*soon, client->hurried + HURRY);
        return false;
    }
    client->hurried = now;
    return true;
}

static void judge_end(struct data_client *client) {
    uint32_t epoch;
    bool any = client_epoch(client, &epoch);
    client->figures.epoch = any && epoch != UINT32_MAX ? epoch : client->figures.epoch;
    bool over = !any && client->servers && client->under_way == 0;
    if (over && !client->over)
        pthread_cond_broadcast(&client->changed);
    client->over = over;
}

// One thing that can be done now. False: there is nothing until `soon`.
static bool fetch_once(struct data_client *client, double *soon) {
    double now = clock_seconds();
    if (client_report(client) || client_convert(client) || client_ask(client, now, soon))
        return true;
    judge_end(client);
    if (hurry_due(client, now, soon)) {
        pthread_mutex_unlock(&client->lock);
        client->options.idle(client->options.self);
        pthread_mutex_lock(&client->lock);
    }
    return false;
}

void *client_fetch(void *self) {
    struct data_client *client = self;
    pthread_mutex_lock(&client->lock);
    while (!client->closing) {
        double soon = clock_seconds() + ROUND;
        if (fetch_once(client, &soon))
            continue;
        say_wait(client);
        struct timespec until = {(time_t)soon, (long)((soon - floor(soon)) * 1e9)};
        pthread_cond_timedwait(&client->to_fetch, &client->lock, &until);
    }
    pthread_mutex_unlock(&client->lock);
    return NULL;
}
