// The links of a data client: made, asked what is served there, and made anew.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "remote/data_client_internal.h"

#define DIAL_MS 2000     // for a connection and its hello
#define PAUSE_LEAST 0.05 // seconds, after the first failure; twice as long after each more
#define PAUSE_MOST 2.0

static void link_closed(void *context, struct link *link, const char *why) {
    struct source *source = context;
    struct data_client *client = source->client;
    pthread_mutex_lock(&client->lock);
    source->broken = true;
    snprintf(source->why, sizeof source->why, "%s: %s", link_address(link), why);
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
}

// --- one link --------------------------------------------------------------------

// Whether what is said to be served there can be: sizes are believed from here on.
static int check_data(struct source *source, const struct proto_data *data, struct error *err) {
    size_t size = data->value == PROTO_VALUE_BYTE ? 1 : sizeof(float), bytes;
    if (__builtin_mul_overflow((size_t)data->channels, (size_t)data->height, &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)data->width, &bytes) ||
        __builtin_mul_overflow(bytes, size, &bytes) || bytes == 0 ||
        bytes > PROTO_PAYLOAD_MAX / 2 || data->channels > IMAGE_MAX_CHANNELS ||
        data->height > IMAGE_MAX_SIDE || data->width > IMAGE_MAX_SIDE || data->samples == 0 ||
        data->whole > UINT32_MAX || data->whole < data->samples ||
        data->first > data->whole - data->samples)
        return error_set(err, STATUS_DATA,
                         "data server %s: %llu pictures of %ux%ux%u are not what can be served",
                         source->address, (unsigned long long)data->samples, data->channels,
                         data->height, data->width);
    source->sample_bytes = bytes;
    return STATUS_OK;
}

static int ask_data(struct source *source, struct link *link, struct error *err) {
    const struct proto_get_data get_data = {.names = UINT32_MAX};
    struct link_request request = {.type = PROTO_TYPE_GET_DATA, .message = &get_data};
    union proto_message answer;
    struct data_client *client = source->client;
    int status = link_call(link, &request, &answer, err);
    if (status)
        return status;
    pthread_mutex_lock(&client->lock);
    status = check_data(source, &answer.data, err);
    if (status) {
        client_fail(client, err);
    } else {
        bool further = !source->known || answer.data.epoch != source->epoch;
        source->data = answer.data;
        source->epoch = answer.data.epoch;
        source->position = further ? 0 : source->position;
        source->known = true;
        client->figures.total = answer.data.whole;
    }
    pthread_mutex_unlock(&client->lock);
    return status;
}

static void linked(struct source *source, struct link *link) {
    source->client->figures.redials += source->dialled;
    source->dialled = true;
    source->link = link;
    source->pause = source->not_before = 0;
    source->busy = source->ending = false;
    source->why[0] = '\0';
    client_wake(source->client);
}

static void not_linked(struct source *source, const struct error *err) {
    source->pause = fmin(fmax(2 * source->pause, PAUSE_LEAST), PAUSE_MOST);
    source->next_dial = clock_seconds() + source->pause;
    snprintf(source->why, sizeof source->why, "%.*s", (int)sizeof source->why - 1, err->text);
}

static void dial(struct source *source) {
    struct data_client *client = source->client;
    struct error err = {0};
    struct link *link = NULL;
    pthread_mutex_lock(&client->lock);
    source->broken = false;
    struct proto_hello hello = client->options.hello;
    char address[PROTO_ADDRESS_MAX + 1];
    snprintf(address, sizeof address, "%s", source->address);
    pthread_mutex_unlock(&client->lock);
    const struct link_options options = {
        .handlers = {.context = source, .closed = link_closed},
        .keys = client->options.keys,
        .insecure = client->options.insecure,
    };
    int status = link_dial(&link, address, &options, &hello, DIAL_MS, NULL, &err);
    if (!status) {
        status = ask_data(source, link, &err);
        if (status)
            link_close(link);
    }
    pthread_mutex_lock(&client->lock);
    if (status)
        not_linked(source, &err);
    else
        linked(source, link);
    pthread_mutex_unlock(&client->lock);
}

static void drop(struct source *source) {
    struct data_client *client = source->client;
    uint64_t received, sent;
    pthread_mutex_lock(&client->lock);
    struct link *link = source->link;
    source->link = NULL;
    pthread_mutex_unlock(&client->lock);
    link_traffic(link, &received, &sent);
    link_close(link);
    pthread_mutex_lock(&client->lock);
    source->received += received;
    source->sent += sent;
    pthread_mutex_unlock(&client->lock);
}

// --- the thread ------------------------------------------------------------------

// What is to be done about it now, under the lock; else *next may come sooner.
enum duty { DUTY_NONE, DUTY_DROP, DUTY_DIAL };

static enum duty duty_of(const struct source *source, double now, double *next) {
    if (source->link && (source->broken || !source->listed))
        return DUTY_DROP;
    if (source->link || !source->listed)
        return DUTY_NONE;
    if (source->next_dial <= now)
        return DUTY_DIAL;
    *next = fmin(*next, source->next_dial);
    return DUTY_NONE;
}

static struct source *find_duty(struct data_client *client, enum duty *duty, double *next) {
    double now = clock_seconds();
    *next = now + PAUSE_MOST;
    for (struct source *source = client->sources; source; source = source->next)
        if ((*duty = duty_of(source, now, next)) != DUTY_NONE)
            return source;
    return NULL;
}

// Leaves, so that nobody waits for the leases that are not finished.
static void leave(struct data_client *client) {
    const struct proto_leave message = {client->options.hello.session,
                                        proto_text("the worker ends")};
    for (struct source *source = client->sources; source; source = source->next) {
        struct link_request request = {.type = PROTO_TYPE_LEAVE, .message = &message};
        if (source->link && !source->broken)
            link_call(source->link, &request, NULL, NULL);
        if (source->link)
            drop(source);
    }
}

void *client_dial(void *self) {
    struct data_client *client = self;
    double next;
    pthread_mutex_lock(&client->lock);
    while (!client->closing) {
        enum duty duty;
        struct source *source = find_duty(client, &duty, &next);
        if (!source) {
            struct timespec until = {(time_t)next, (long)((next - floor(next)) * 1e9)};
            pthread_cond_timedwait(&client->to_dial, &client->lock, &until);
            continue;
        }
        pthread_mutex_unlock(&client->lock);
        if (duty == DUTY_DROP)
            drop(source);
        else
            dial(source);
        pthread_mutex_lock(&client->lock);
    }
    pthread_mutex_unlock(&client->lock);
    leave(client);
    return NULL;
}
