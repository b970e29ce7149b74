// Asking for batches. Answers are taken by threads of the network, which only note what
// came, and where.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "proto/samples.h"
#include "remote/data_client_internal.h"

#define BUSY_MOST 1000   // milliseconds that a data server's word is believed
#define REFUSED_PAUSE 1. // seconds until one that refused is asked again

void client_release(struct data_client *client, struct parcel *parcel) {
    client->under_way -= (int)(parcel->batches - parcel->taken);
    parcel->used = false;
}

// --- answers, by threads of the network -----------------------------------------------

static void batch_refused(struct data_client *client, struct source *source,
                          const struct proto_refused *refused) {
    double now = clock_seconds();
    switch (refused->code) {
    case PROTO_REFUSAL_BUSY:
    case PROTO_REFUSAL_NOT_READY:
        client->figures.busy++;
        source->busy = true;
        source->ending = refused->code == PROTO_REFUSAL_NOT_READY;
        source->not_before = now + fmin((double)refused->detail, BUSY_MOST) / 1000;
        return;
    case PROTO_REFUSAL_EPOCH_OVER:
        source->over = refused->detail >= UINT32_MAX;
        if (!source->over && refused->detail > source->epoch) {
            source->epoch = (uint32_t)refused->detail;
            source->position = 0;
        }
        return;
    default:
        source->not_before = now + REFUSED_PAUSE;
        snprintf(source->why, sizeof source->why, "%s: %s: %.*s", source->address,
                 proto_refusal_name(refused->code), (int)refused->text.length, refused->text.at);
    }
}

static int check_batch(const struct parcel *parcel, const struct proto_batch *batch,
                       size_t received, struct error *err) {
    const struct source *source = parcel->source;
    if (batch->samples > 0 && batch->samples <= parcel->asked.samples &&
        received == proto_samples_bytes(batch->samples, source->sample_bytes) &&
        batch->samples <= source->data.samples &&
        batch->first <= source->data.samples - batch->samples)
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "data server %s: a batch of %u samples in %zu bytes",
                     source->address, batch->samples, received);
}

static int take_in(struct data_client *client, struct parcel *parcel,
                   const struct proto_batch *batch, struct error *err) {
    uint32_t size = (uint32_t)client->options.batch, asked = parcel->batches;
    if (check_batch(parcel, batch, parcel->request.received, err))
        return err->status;
    parcel->answer = *batch;
    parcel->batches = (batch->samples + size - 1) / size;
    client->under_way -= (int)(asked - parcel->batches);
    parcel->grant = client_add_grant(client, parcel);
    return parcel->grant ? STATUS_OK : error_nomem(err);
}

static void batch_came(struct data_client *client, struct parcel *parcel,
                       const struct proto_batch *batch) {
    struct source *source = parcel->source;
    struct error err = {0};
    if (client->options.rounds && batch->samples == 0) {
        source->idle_at = parcel->asked.step;
        source->why[0] = '\0';
        client_release(client, parcel);
        return;
    }
    if (take_in(client, parcel, batch, &err)) {
        client_release(client, parcel);
        client_fail(client, &err);
        return;
    }
    if (batch->epoch > source->epoch)
        source->position = 0;
    source->epoch = batch->epoch;
    source->position += batch->samples;
    source->busy = source->ending = false;
    source->over = false;
    source->why[0] = '\0';
    STAILQ_INSERT_TAIL(&client->arrived, parcel, behind);
}

static void lease_done(struct link_request *request) {
    struct parcel *parcel = request->context;
    struct source *source = parcel->source;
    struct data_client *client = source->client;
    pthread_mutex_lock(&client->lock);
    source->flying--;
    source->awaited -= parcel->asked.samples;
    if (request->status == STATUS_OK && request->answer_type == PROTO_TYPE_BATCH) {
        batch_came(client, parcel, &request->answer->batch);
    } else {
        if (request->status == STATUS_OK)
            batch_refused(client, source, &request->answer->refused);
        client_release(client, parcel);
    }
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
}

// --- requests -------------------------------------------------------------------------

static struct parcel *free_parcel(const struct data_client *client) {
    for (int i = 0; i < client->parcel_count; i++)
        if (!client->parcels[i].used)
            return &client->parcels[i];
    return NULL;
}

static int make_room(struct parcel *parcel, size_t bytes, struct error *err) {
    if (bytes <= parcel->raw_room)
        return STATUS_OK;
    free(parcel->raw);
    parcel->raw = malloc(bytes);
    parcel->raw_room = parcel->raw ? bytes : 0;
    return parcel->raw ? STATUS_OK : error_nomem(err);
}

static void ask(struct data_client *client, struct source *source, struct parcel *parcel) {
    struct error err = {0};
    size_t sample = proto_samples_bytes(1, source->sample_bytes), most = PROTO_PAYLOAD_MAX / sample;
    size_t wanted = (size_t)client->options.batch * client_together(client, source);
    size_t n = wanted < most ? wanted : most;
    if (make_room(parcel, n * sample, &err)) {
        client_fail(client, &err);
        return;
    }
    parcel->used = true;
    parcel->source = source;
    parcel->taken = 0;
    parcel->batches = client_together(client, source);
    parcel->asked = (struct proto_lease){
        .session = client->options.hello.session,
        .epoch = source->epoch,
        .samples = (uint32_t)n,
        .step = client->step,
        .clock = client->clock,
    };
    parcel->request = (struct link_request){
        .type = PROTO_TYPE_LEASE,
        .message = &parcel->asked,
        .into = parcel->raw,
        .room = parcel->raw_room,
        .done = lease_done,
        .context = parcel,
    };
    source->flying++;
    source->awaited += n;
    client->under_way += (int)parcel->batches;
    struct link *link = source->link;
    link_hold(link);
    pthread_mutex_unlock(&client->lock);
    int status = link_ask(link, &parcel->request, &err);
    link_drop(link);
    pthread_mutex_lock(&client->lock);
    if (status) {
        source->flying--;
        source->awaited -= n;
        source->broken = true;
        client_release(client, parcel);
        client_wake(client);
    }
}

bool client_ask(struct data_client *client, double now, double *soon) {
    if (client->err.status || client->cancelled)
        return false;
    struct source *source = client_choose(client, now, soon);
    struct parcel *parcel = source ? free_parcel(client) : NULL;
    if (!parcel)
        return false;
    client->figures.epoch = source->epoch;
    client->began = true;
    ask(client, source, parcel);
    return true;
}
