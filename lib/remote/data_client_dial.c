// The links of a data client: made, asked what is served there, and made anew.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "remote/data_client_internal.h"
#include "remote/redial.h"

static void link_closed(void *context, struct link *link, const char *why) {
    struct data_peer *server = context;
    struct data_client *client = server->client;
    pthread_mutex_lock(&client->lock);
    server->broken = true;
    snprintf(server->why, sizeof server->why, "%s: %s", link_address(link), why);
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
}

// --- one link --------------------------------------------------------------------

// Of a picture's values; 0: more than there can be.
static size_t sample_bytes_of(const struct proto_data *data) {
    size_t size = data->value == PROTO_VALUE_BYTE ? 1 : sizeof(float), bytes;
    bool huge = __builtin_mul_overflow((size_t)data->channels, (size_t)data->height, &bytes) ||
                __builtin_mul_overflow(bytes, (size_t)data->width, &bytes) ||
                __builtin_mul_overflow(bytes, size, &bytes);
    return huge ? 0 : bytes;
}

// Whether what is said to be served there can be.
static int check_data(const struct data_peer *server, const struct proto_data *data,
                      struct error *err) {
    size_t bytes = sample_bytes_of(data);
    if (bytes == 0 || bytes > PROTO_PAYLOAD_MAX / 2 || data->channels > IMAGE_MAX_CHANNELS ||
        data->height > IMAGE_MAX_SIDE || data->width > IMAGE_MAX_SIDE || data->samples == 0 ||
        data->whole > UINT32_MAX || data->whole < data->samples ||
        data->first > data->whole - data->samples)
        return error_set(err, STATUS_DATA,
                         "data server %s: %llu pictures of %ux%ux%u are not what can be served",
                         server->address, (unsigned long long)data->samples, data->channels,
                         data->height, data->width);
    return STATUS_OK;
}

static bool same_set(const struct proto_data *a, const struct proto_data *b) {
    return a->whole == b->whole && a->digest == b->digest && a->classes == b->classes &&
           a->channels == b->channels && a->height == b->height && a->width == b->width;
}

static bool same_part(const struct proto_data *a, const struct proto_data *b) {
    return a->first == b->first && a->samples == b->samples && a->value == b->value;
}

static void describe_data(const struct proto_data *data, char text[160]) {
    snprintf(text, 160,
             "samples %" PRIu64 "..%" PRIu64 " of %" PRIu64 " (%ux%ux%u %ss, %u classes, digest "
             "%08" PRIx32 ")",
             data->first, data->first + data->samples - 1, data->whole, data->channels,
             data->height, data->width, data->value == PROTO_VALUE_BYTE ? "byte" : "float",
             data->classes, data->digest);
}

// Batches that have come, and those that others serve, are of what was told first: a data server of
// something else gives none.
static int check_settled(const struct data_peer *server, const struct proto_data *data,
                         struct error *err) {
    const struct data_client *client = server->client;
    const struct proto_data *settled = server->known ? &server->data : &client->data;
    char here[160], there[160];
    if (client->data.whole == 0 ||
        (same_set(data, settled) && (!server->known || same_part(data, settled))))
        return STATUS_OK;
    describe_data(data, here);
    describe_data(settled, there);
    return error_set(err, STATUS_DATA, "%s: it serves %s, and batches are of %s", server->address,
                     here, there);
}

// What it serves is believed from here on.
static void take_data(struct data_peer *server, const struct proto_data *data) {
    struct data_client *client = server->client;
    bool further = !server->known || data->epoch != server->epoch;
    server->data = *data;
    server->epoch = data->epoch;
    server->position = further ? 0 : server->position;
    server->known = true;
    server->sample_bytes = sample_bytes_of(data);
    client->figures.total = data->whole;
    if (client->data.whole == 0)
        client->data = *data;
}

static int ask_data(struct data_peer *server, struct link *link, struct error *err) {
    const struct proto_get_data get_data = {.names = UINT32_MAX};
    struct link_request request = {.type = PROTO_TYPE_GET_DATA, .message = &get_data};
    union proto_message answer;
    struct data_client *client = server->client;
    int status = link_call(link, &request, &answer, err);
    if (status)
        return status;
    pthread_mutex_lock(&client->lock);
    status = check_data(server, &answer.data, err);
    if (status)
        client_fail(client, err);
    else
        status = check_settled(server, &answer.data, err);
    if (!status)
        take_data(server, &answer.data);
    pthread_mutex_unlock(&client->lock);
    return status;
}

// What was on its way over the link before is lost, and nothing of this server comes until there is
// a link again: what is held now is all. Where that is more than can be said, or there is no memory
// to say it, lost leases run out.
static int tell_held(struct data_peer *server, struct link *link, struct error *err) {
    struct data_client *client = server->client;
    size_t count = 0;
    pthread_mutex_lock(&client->lock);
    struct proto_lease_id *held = server->dialled ? client_held(client, server, &count) : NULL;
    pthread_mutex_unlock(&client->lock);
    if (!held || count > PROTO_LEASES_MAX) {
        free(held);
        return STATUS_OK;
    }
    const struct proto_hold hold = {client->options.hello.session,
                                    proto_list(held, (uint32_t)count)};
    struct link_request request = {.type = PROTO_TYPE_HOLD, .message = &hold};
    int status = link_call(link, &request, NULL, err);
    free(held);
    return status;
}

static void mark_linked(struct data_peer *server, struct link *link) {
    server->client->figures.redials += server->dialled;
    server->dialled = true;
    server->link = link;
    server->pause = server->not_before = 0;
    server->busy = server->ending = false;
    server->why[0] = '\0';
    client_wake(server->client);
}

static void mark_unreachable(struct data_peer *server, const struct error *err) {
    server->pause = redial_pause(server->pause);
    server->next_dial = clock_seconds() + server->pause;
    snprintf(server->why, sizeof server->why, "%.*s", (int)sizeof server->why - 1, err->text);
}

static void dial_server(struct data_peer *server) {
    struct data_client *client = server->client;
    struct error err = {0};
    struct link *link = NULL;
    pthread_mutex_lock(&client->lock);
    server->broken = false;
    struct proto_hello hello = client->options.hello;
    char address[PROTO_ADDRESS_MAX + 1];
    snprintf(address, sizeof address, "%s", server->address);
    pthread_mutex_unlock(&client->lock);
    const struct link_options options = {
        .handlers = {.context = server, .closed = link_closed},
        .keys = client->options.keys,
        .insecure = client->options.insecure,
    };
    int status = link_dial(&link, address, &options, &hello, REDIAL_MS, NULL, &err);
    if (!status) {
        status = ask_data(server, link, &err);
        if (!status)
            status = tell_held(server, link, &err);
        if (status)
            link_close(link);
    }
    pthread_mutex_lock(&client->lock);
    if (status)
        mark_unreachable(server, &err);
    else
        mark_linked(server, link);
    pthread_mutex_unlock(&client->lock);
}

static void drop_link(struct data_peer *server) {
    struct data_client *client = server->client;
    uint64_t received, sent;
    pthread_mutex_lock(&client->lock);
    struct link *link = server->link;
    server->link = NULL;
    pthread_mutex_unlock(&client->lock);
    link_traffic(link, &received, &sent);
    link_close(link);
    pthread_mutex_lock(&client->lock);
    server->received += received;
    server->sent += sent;
    pthread_mutex_unlock(&client->lock);
}

// --- the thread ------------------------------------------------------------------

// What is to be done about it now, under the lock; else *next may come sooner.
enum duty { DUTY_NONE, DUTY_DROP, DUTY_DIAL };

static enum duty choose_duty(const struct data_peer *server, double now, double *next) {
    if (server->link && (server->broken || !server->listed))
        return DUTY_DROP;
    if (server->link || !server->listed)
        return DUTY_NONE;
    if (server->next_dial <= now)
        return DUTY_DIAL;
    *next = fmin(*next, server->next_dial);
    return DUTY_NONE;
}

static struct data_peer *find_duty(struct data_client *client, enum duty *duty, double *next) {
    double now = clock_seconds();
    *next = now + REDIAL_PAUSE_MOST;
    for (struct data_peer *server = client->servers; server; server = server->next)
        if ((*duty = choose_duty(server, now, next)) != DUTY_NONE)
            return server;
    return NULL;
}

// Leaves, so that nobody waits for the leases that are not finished.
static void leave_servers(struct data_client *client) {
    const struct proto_leave message = {client->options.hello.session,
                                        proto_text("the worker ends")};
    for (struct data_peer *server = client->servers; server; server = server->next) {
        struct link_request request = {.type = PROTO_TYPE_LEAVE, .message = &message};
        if (server->link && !server->broken)
            link_call(server->link, &request, NULL, NULL);
        if (server->link)
            drop_link(server);
    }
}

void *client_dial(void *self) {
    struct data_client *client = self;
    double next;
    pthread_mutex_lock(&client->lock);
    while (!client->closing) {
        enum duty duty;
        struct data_peer *server = find_duty(client, &duty, &next);
        if (!server) {
            struct timespec until = {(time_t)next, (long)((next - floor(next)) * 1e9)};
            pthread_cond_timedwait(&client->to_dial, &client->lock, &until);
            continue;
        }
        pthread_mutex_unlock(&client->lock);
        if (duty == DUTY_DROP)
            drop_link(server);
        else
            dial_server(server);
        pthread_mutex_lock(&client->lock);
    }
    pthread_mutex_unlock(&client->lock);
    leave_servers(client);
    return NULL;
}
