// Turning what arrived into what the model reads.
#include <string.h>

#include "core/error.h"
#include "data/order.h"
#include "proto/samples.h"
#include "remote/data_client_internal.h"

// Sample i of what arrived, as it lies in the payload.
static struct image picture_of(const struct proto_data *data, const struct proto_samples *samples,
                               uint32_t i) {
    return (struct image){
        .width = (int)data->width,
        .height = (int)data->height,
        .channels = (int)data->channels,
        .type = data->value == PROTO_VALUE_BYTE ? PIXEL_U8 : PIXEL_F32,
        .data = proto_sample_values(samples, i),
    };
}

// Where it stands in the run: epochs, then the share of this server's places. Of one
// server it is the number that a loader would have given.
static uint64_t number_of(const struct data_client *client, const struct fetch *fetch,
                          uint64_t place) {
    const struct proto_data *data = &fetch->server->data;
    uint64_t batch = (uint64_t)client->options.batch;
    uint64_t per_epoch = (data->whole + batch - 1) / batch;
    double share = (double)place / (double)data->samples;
    return fetch->answer.epoch * per_epoch + (uint64_t)(share * (double)per_epoch);
}

static void take_targets(struct batch_slot *slot, const struct proto_samples *samples) {
    slot->batch.target = samples->target_count > 0 ? slot->targets : NULL;
    if (slot->batch.target)
        memcpy(slot->targets, samples->targets,
               (size_t)samples->count * samples->target_count * sizeof *slot->targets);
}

// The next batch of the fetch.
static int convert_batch(struct data_client *client, const struct fetch *fetch,
                         struct batch_slot *slot, struct error *err) {
    const struct proto_batch *answer = &fetch->answer;
    const struct data_peer *server = fetch->server;
    struct batch *batch = &slot->batch;
    const uint64_t seed = client->options.input.seed;
    uint32_t size = (uint32_t)client->options.batch, first = fetch->taken * size;
    uint32_t left = answer->samples - first;
    const struct proto_samples all =
        proto_samples_in(fetch->raw, answer->samples, fetch->targets, server->sample_bytes);
    const struct proto_samples samples = proto_samples_part(&all, first, left < size ? left : size);
    struct order order = order_of(seed, answer->epoch, (uint32_t)server->data.samples);
    int status = STATUS_OK;
    batch->n = (int)samples.count;
    batch->epoch = answer->epoch;
    batch->number = number_of(client, fetch, answer->first + first);
    memcpy(batch->label, samples.labels, samples.count * sizeof *batch->label);
    take_targets(slot, &samples);
    for (uint32_t i = 0; !status && i < samples.count; i++) {
        uint32_t place = (uint32_t)(answer->first + first + i);
        const struct image picture = picture_of(&server->data, &samples, i);
        batch->index[i] = (uint32_t)server->data.first + order_at(&order, place);
        status = input_put(&client->input, &picture, samples.keys[i], batch, (int)i, err);
    }
    return status ? error_context(err, "data server %s", server->address) : STATUS_OK;
}

static struct batch_slot *free_slot(const struct data_client *client) {
    for (int i = 0; i < client->slot_count; i++)
        if (client->slots[i].state == BATCH_FREE)
            return &client->slots[i];
    return NULL;
}

// The first fetch that arrived is this thread's until its last batch is a slot's.
static void convert_fetch(struct data_client *client, struct batch_slot *slot) {
    struct fetch *fetch = STAILQ_FIRST(&client->arrived);
    struct error err = {0};
    slot->state = BATCH_FILLED;
    slot->lease = fetch->lease;
    pthread_mutex_unlock(&client->lock);
    int status = convert_batch(client, fetch, slot, &err);
    pthread_mutex_lock(&client->lock);
    fetch->taken += !status;
    if (status || fetch->taken == fetch->batches) {
        STAILQ_REMOVE_HEAD(&client->arrived, behind);
        client_end_fetch(client, fetch);
    }
    if (status) {
        slot->state = BATCH_FREE;
        client_fail(client, &err);
        return;
    }
    slot->state = BATCH_READY;
    client->ready_count++;
    STAILQ_INSERT_TAIL(&client->ready, slot, behind);
    if (client->waiting > 0)
        pthread_cond_broadcast(&client->changed);
}

bool client_convert(struct data_client *client) {
    struct batch_slot *slot = STAILQ_EMPTY(&client->arrived) ? NULL : free_slot(client);
    if (slot)
        convert_fetch(client, slot);
    return slot != NULL;
}
