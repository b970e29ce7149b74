// Asking for batches. Answers are taken by threads of the network, which only note what
// came, and where.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "proto/samples.h"
#include "remote/data_client_internal.h"

#define BUSY_MOST 1000   // milliseconds that a data server's word is believed
#define REFUSED_PAUSE 1. // seconds until one that refused is asked again

void client_end_fetch(struct data_client *client, struct fetch *fetch) {
    client->under_way -= (int)(fetch->batches - fetch->taken);
    fetch->used = false;
}

// --- answers, by threads of the network -----------------------------------------------

static void batch_refused(struct data_client *client, struct data_peer *server,
                          const struct proto_refused *refused) {
    double now = clock_seconds();
    switch (refused->code) {
    case PROTO_REFUSAL_BUSY:
    case PROTO_REFUSAL_NOT_READY:
        client->figures.busy++;
        server->busy = true;
        server->ending = refused->code == PROTO_REFUSAL_NOT_READY;
        server->not_before = now + fmin((double)refused->detail, BUSY_MOST) / 1000;
        return;
    case PROTO_REFUSAL_EPOCH_OVER:
        server->over = refused->detail >= UINT32_MAX;
        if (!server->over && refused->detail > server->epoch) {
            server->epoch = (uint32_t)refused->detail;
            server->position = 0;
        }
        return;
    default:
        server->not_before = now + REFUSED_PAUSE;
        snprintf(server->why, sizeof server->why, "%s: %s: %.*s", server->address,
                 proto_refusal_name(refused->code), (int)refused->text.length, refused->text.at);
    }
}

// Floats of targets that each sample must have, by the length of the payload.
static uint32_t count_targets(const struct data_peer *server, uint32_t samples, size_t received) {
    size_t without = proto_samples_bytes(samples, 0, server->sample_bytes);
    return received < without ? 0 : (uint32_t)((received - without) / samples / sizeof(float));
}

static int check_batch(const struct fetch *fetch, const struct proto_batch *batch, size_t received,
                       struct error *err) {
    const struct data_peer *server = fetch->server;
    uint32_t outputs = (uint32_t)server->client->options.input.targets;
    if (batch->samples > 0 && batch->samples <= fetch->asked.samples &&
        (fetch->targets == 0 || fetch->targets == outputs) &&
        received == proto_samples_bytes(batch->samples, fetch->targets, server->sample_bytes) &&
        batch->samples <= server->data.samples &&
        batch->first <= server->data.samples - batch->samples)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "data server %s: a batch of %u samples in %zu bytes, where a sample has %zu, "
                     "and as targets %u numbers or none",
                     server->address, batch->samples, received,
                     proto_samples_bytes(1, 0, server->sample_bytes), outputs);
}

static int accept_batch(struct data_client *client, struct fetch *fetch,
                        const struct proto_batch *batch, struct error *err) {
    uint32_t size = (uint32_t)client->options.batch, asked = fetch->batches;
    size_t received = fetch->request.received;
    fetch->targets =
        batch->samples > 0 ? count_targets(fetch->server, batch->samples, received) : 0;
    if (check_batch(fetch, batch, received, err))
        return err->status;
    fetch->answer = *batch;
    fetch->batches = (batch->samples + size - 1) / size;
    client->under_way -= (int)(asked - fetch->batches);
    fetch->lease = client_add_lease(client, fetch);
    return fetch->lease ? STATUS_OK : error_nomem(err);
}

static void batch_came(struct data_client *client, struct fetch *fetch,
                       const struct proto_batch *batch) {
    struct data_peer *server = fetch->server;
    struct error err = {0};
    if (client->options.rounds && batch->samples == 0) {
        server->idle_at = fetch->asked.step;
        server->why[0] = '\0';
        client_end_fetch(client, fetch);
        return;
    }
    if (accept_batch(client, fetch, batch, &err)) {
        client_end_fetch(client, fetch);
        client_fail(client, &err);
        return;
    }
    if (batch->epoch > server->epoch)
        server->position = 0;
    server->epoch = batch->epoch;
    server->position += batch->samples;
    server->busy = server->ending = false;
    server->over = false;
    server->why[0] = '\0';
    STAILQ_INSERT_TAIL(&client->arrived, fetch, behind);
}

// No answer. One that was larger than it may be would be so again.
static void batch_failed(struct data_client *client, const struct data_peer *server,
                         const struct link_request *request) {
    struct error err = {0};
    if (request->status != STATUS_DATA)
        return;
    error_set(&err, STATUS_DATA, "data server %s: %s", server->address, request->why);
    client_fail(client, &err);
}

static void lease_done(struct link_request *request) {
    struct fetch *fetch = request->context;
    struct data_peer *server = fetch->server;
    struct data_client *client = server->client;
    pthread_mutex_lock(&client->lock);
    server->in_flight--;
    server->samples_asked -= fetch->asked.samples;
    if (request->status == STATUS_OK && request->answer_type == PROTO_TYPE_BATCH) {
        batch_came(client, fetch, &request->answer->batch);
    } else {
        if (request->status == STATUS_OK)
            batch_refused(client, server, &request->answer->refused);
        else
            batch_failed(client, server, request);
        client_end_fetch(client, fetch);
    }
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
}

// --- requests -------------------------------------------------------------------------

static struct fetch *free_fetch(const struct data_client *client) {
    for (int i = 0; i < client->fetch_count; i++)
        if (!client->fetches[i].used)
            return &client->fetches[i];
    return NULL;
}

static int reserve_payload(struct fetch *fetch, size_t bytes, struct error *err) {
    if (bytes <= fetch->raw_room)
        return STATUS_OK;
    free(fetch->raw);
    fetch->raw = malloc(bytes);
    fetch->raw_room = fetch->raw ? bytes : 0;
    return fetch->raw ? STATUS_OK : error_nomem(err);
}

static void send_lease_request(struct data_client *client, struct data_peer *server,
                               struct fetch *fetch) {
    struct error err = {0};
    uint32_t targets = (uint32_t)client->options.input.targets;
    size_t sample = proto_samples_bytes(1, targets, server->sample_bytes);
    size_t most = PROTO_PAYLOAD_MAX / sample;
    size_t wanted = (size_t)client->options.batch * client_together(client, server);
    size_t n = wanted < most ? wanted : most;
    if (reserve_payload(fetch, n * sample, &err)) {
        client_fail(client, &err);
        return;
    }
    fetch->used = true;
    fetch->server = server;
    fetch->taken = 0;
    fetch->batches = client_together(client, server);
    fetch->asked = (struct proto_lease){
        .session = client->options.hello.session,
        .epoch = server->epoch,
        .samples = (uint32_t)n,
        .step = client->step,
        .clock = client->clock,
    };
    fetch->request = (struct link_request){
        .type = PROTO_TYPE_LEASE,
        .message = &fetch->asked,
        .into = fetch->raw,
        .room = fetch->raw_room,
        .done = lease_done,
        .context = fetch,
    };
    server->in_flight++;
    server->samples_asked += n;
    client->under_way += (int)fetch->batches;
    struct link *link = server->link;
    link_hold(link);
    pthread_mutex_unlock(&client->lock);
    int status = link_ask(link, &fetch->request, &err);
    link_drop(link);
    pthread_mutex_lock(&client->lock);
    if (status) {
        server->in_flight--;
        server->samples_asked -= n;
        server->broken = true;
        client_end_fetch(client, fetch);
        client_wake(client);
    }
}

bool client_ask(struct data_client *client, double now, double *soon) {
    if (client->err.status || client->cancelled)
        return false;
    struct data_peer *server = client_choose(client, now, soon);
    struct fetch *fetch = server ? free_fetch(client) : NULL;
    if (!fetch)
        return false;
    client->figures.epoch = server->epoch;
    client->began = true;
    send_lease_request(client, server, fetch);
    return true;
}
