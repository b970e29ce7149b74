// Turning what arrived into what the model reads.
#include <string.h>

#include "data/input.h"
#include "data/order.h"
#include "remote/data_client_internal.h"

static int put_sample(struct data_client *client, const struct parcel *parcel, struct slot *slot,
                      int i, const char *values, uint64_t key, struct error *err) {
    const struct data_client_options *options = &client->options;
    const struct source *source = parcel->source;
    const struct proto_data *data = &source->data;
    // As it lies in the payload; the operations work on a copy.
    struct image view = {
        .width = (int)data->width,
        .height = (int)data->height,
        .channels = (int)data->channels,
        .type = data->value == PROTO_VALUE_BYTE ? PIXEL_U8 : PIXEL_F32,
        .data = (void *)values,
    };
    struct image *image = &view;
    int status = input_label(slot->batch.label[i], options->classes, err);
    if (!status && options->input) {
        image = &client->image;
        status = image_copy(image, &view, err);
        if (!status)
            status = ops_apply(options->input, client->scratch, image,
                               (struct ops_draw){options->seed, parcel->answer.epoch, key}, err);
    }
    if (!status)
        status = input_fill(slot->batch.input + (size_t)i * client->values, options->channels,
                            options->height, options->width, image, err);
    return status;
}

// Where it stands in the run: epochs, then the share of this server's places. Of one
// server it is the number that a loader would have given.
static uint64_t number_of(const struct data_client *client, const struct parcel *parcel,
                          uint64_t place) {
    const struct proto_data *data = &parcel->source->data;
    uint64_t batch = (uint64_t)client->options.batch;
    uint64_t per_epoch = (data->whole + batch - 1) / batch;
    double share = (double)place / (double)data->samples;
    return parcel->answer.epoch * per_epoch + (uint64_t)(share * (double)per_epoch);
}

// The next batch of the parcel.
static int convert(struct data_client *client, const struct parcel *parcel, struct slot *slot,
                   struct error *err) {
    const struct proto_batch *answer = &parcel->answer;
    const struct source *source = parcel->source;
    struct batch *batch = &slot->batch;
    const uint64_t seed = client->options.seed;
    uint32_t size = (uint32_t)client->options.batch, first = parcel->taken * size;
    uint32_t left = answer->samples - first;
    const uint64_t *keys = (const uint64_t *)(const void *)parcel->raw;
    const char *labels = parcel->raw + answer->samples * sizeof *keys;
    const char *values = labels + answer->samples * sizeof *batch->label;
    struct order order = order_of(seed, answer->epoch, (uint32_t)source->data.samples);
    int status = STATUS_OK;
    batch->n = (int)(left < size ? left : size);
    batch->epoch = answer->epoch;
    batch->number = number_of(client, parcel, answer->first + first);
    memcpy(batch->label, labels + first * sizeof *batch->label,
           (size_t)batch->n * sizeof *batch->label);
    for (int i = 0; !status && i < batch->n; i++) {
        size_t at = first + (size_t)i;
        batch->index[i] =
            (uint32_t)source->data.first + order_at(&order, (uint32_t)(answer->first + at));
        batch->draw[i] = input_draw(seed, answer->epoch, keys[at]);
        status =
            put_sample(client, parcel, slot, i, values + at * source->sample_bytes, keys[at], err);
    }
    return status ? error_context(err, "data server %s", source->address) : STATUS_OK;
}

static struct slot *free_slot(const struct data_client *client) {
    for (int i = 0; i < client->slot_count; i++)
        if (client->slots[i].state == SLOT_FREE)
            return &client->slots[i];
    return NULL;
}

// The first parcel that arrived is this thread's until its last batch is a slot's.
static void convert_one(struct data_client *client, struct slot *slot) {
    struct parcel *parcel = STAILQ_FIRST(&client->arrived);
    struct error err = {0};
    slot->state = SLOT_FILLED;
    slot->grant = parcel->grant;
    pthread_mutex_unlock(&client->lock);
    int status = convert(client, parcel, slot, &err);
    pthread_mutex_lock(&client->lock);
    parcel->taken += !status;
    if (status || parcel->taken == parcel->batches) {
        STAILQ_REMOVE_HEAD(&client->arrived, behind);
        client_release(client, parcel);
    }
    if (status) {
        slot->state = SLOT_FREE;
        client_fail(client, &err);
        return;
    }
    slot->state = SLOT_READY;
    client->ready_count++;
    STAILQ_INSERT_TAIL(&client->ready, slot, behind);
    if (client->waiting > 0)
        pthread_cond_broadcast(&client->changed);
}

bool client_convert(struct data_client *client) {
    struct slot *slot = STAILQ_EMPTY(&client->arrived) ? NULL : free_slot(client);
    if (slot)
        convert_one(client, slot);
    return slot != NULL;
}
