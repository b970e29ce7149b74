// The data client as the training loop's supply (data/supply.h).
#include <stddef.h>

#include "core/clock.h"
#include "core/error.h"
#include "remote/data_client_internal.h"

static struct data_client *client_of(struct supply *supply) {
    return (struct data_client *)supply;
}

static bool is_ended(const struct data_client *client) {
    return client->cancelled || client->closing || client->err.status ||
           (client->over && STAILQ_EMPTY(&client->ready));
}

static struct batch *take_ready(struct data_client *client) {
    struct batch_slot *slot = STAILQ_FIRST(&client->ready);
    STAILQ_REMOVE_HEAD(&client->ready, behind);
    slot->state = BATCH_TAKEN;
    client->ready_count--;
    client->under_way--;
    client->figures.batches++;
    client->figures.samples += (uint64_t)slot->batch.n;
    client->step += client->step > 0;
    // One waking of the other thread for several batches.
    if (client->options.rounds || client->ready_count <= (uint32_t)client->options.ahead / 2)
        pthread_cond_signal(&client->to_fetch);
    return &slot->batch;
}

static struct batch *take_empty(struct data_client *client) {
    client->step += client->step > 0;
    pthread_cond_signal(&client->to_fetch);
    return &client->supply.empty;
}

static struct batch *take_batch(struct supply *supply, double patience, double *waited) {
    struct data_client *client = client_of(supply);
    double start = clock_seconds(), now = start;
    pthread_mutex_lock(&client->lock);
    client->waiting++;
    while (!is_ended(client) && STAILQ_EMPTY(&client->ready) && !client_is_idle(client) &&
           now < start + patience) {
        pthread_cond_signal(&client->to_fetch);
        client_wait_changed(client, start + patience);
        now = clock_seconds();
    }
    client->waiting--;
    struct batch *batch = is_ended(client)                ? NULL
                          : !STAILQ_EMPTY(&client->ready) ? take_ready(client)
                                                          : take_empty(client);
    pthread_mutex_unlock(&client->lock);
    if (waited)
        *waited += now - start;
    return batch;
}

static struct batch_slot *slot_of(struct batch *batch) {
    return (struct batch_slot *)((char *)batch - offsetof(struct batch_slot, batch));
}

static void give_batch_back(struct supply *supply, struct batch *batch) {
    struct data_client *client = client_of(supply);
    pthread_mutex_lock(&client->lock);
    uint64_t ordinal = client->given_back++;
    if (batch != &supply->empty) {
        struct batch_slot *slot = slot_of(batch);
        client_add_trained(client, (struct trained){ordinal, slot->lease});
        slot->state = BATCH_FREE;
    }
    pthread_mutex_unlock(&client->lock);
}

static void lose_batch(struct supply *supply, struct batch *batch) {
    struct data_client *client = client_of(supply);
    if (batch == &supply->empty)
        return;
    pthread_mutex_lock(&client->lock);
    struct batch_slot *slot = slot_of(batch);
    client_lose_batch(client, slot->lease);
    slot->state = BATCH_FREE;
    pthread_mutex_unlock(&client->lock);
}

static void cancel_supply(struct supply *supply) {
    struct data_client *client = client_of(supply);
    pthread_mutex_lock(&client->lock);
    client->cancelled = true;
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
}

static int status_of(const struct supply *supply, struct error *err) {
    struct data_client *client = client_of((struct supply *)supply);
    pthread_mutex_lock(&client->lock);
    int status = client->err.status;
    if (status && err)
        *err = client->err;
    pthread_mutex_unlock(&client->lock);
    return status;
}

const struct supply_ops client_supply_ops = {take_batch, give_batch_back, lose_batch, cancel_supply,
                                             status_of};

struct supply *data_client_supply(struct data_client *client) {
    return &client->supply;
}

bool data_client_over(struct data_client *client) {
    pthread_mutex_lock(&client->lock);
    bool over = client->over;
    pthread_mutex_unlock(&client->lock);
    return over;
}
