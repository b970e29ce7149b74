// The thread that fetches: it turns what has arrived into what the model reads, asks for
// more, and says what is finished. Answers are taken by threads of the network, which only
// move slots from one list to the next.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "data/dealer.h"
#include "data/input.h"
#include "data/order.h"
#include "role/data_client_internal.h"

enum {
    SAMPLE_HEAD = sizeof(uint64_t) + sizeof(int32_t), // key and label
    PARCELS_MORE = 2,   // that come together, beyond those of one batch each
    FINISH_MOST = 4096, // leases in one message
};
#define ROUND 1.0        // seconds after which the thread looks anyway
#define HURRY 0.02       // between two calls of the hook `idle`
#define BUSY_MOST 1000   // milliseconds that a data server's word is believed
#define REFUSED_PAUSE 1. // seconds until one that refused is asked again

// --- lists, under the lock -------------------------------------------------------

static void queue_put(struct slot_queue *queue, struct slot *slot) {
    slot->next = NULL;
    if (queue->last)
        queue->last->next = slot;
    else
        queue->first = slot;
    queue->last = slot;
}

static struct slot *queue_take(struct slot_queue *queue) {
    struct slot *slot = queue->first;
    if (!slot)
        return NULL;
    queue->first = slot->next;
    if (!queue->first)
        queue->last = NULL;
    return slot;
}

void client_wake(struct data_client *client) {
    pthread_cond_signal(&client->to_fetch);
    pthread_cond_signal(&client->to_dial);
    pthread_cond_broadcast(&client->changed);
}

void client_fail(struct data_client *client, const struct error *why) {
    if (client->err.status == STATUS_OK)
        client->err = *why;
    client_wake(client);
}

static void put_arrived(struct parcel_queue *queue, struct parcel *parcel) {
    parcel->next = NULL;
    if (queue->last)
        queue->last->next = parcel;
    else
        queue->first = parcel;
    queue->last = parcel;
}

static void drop_arrived(struct parcel_queue *queue) {
    queue->first = queue->first->next;
    if (!queue->first)
        queue->last = NULL;
}

static struct slot *free_slot(const struct data_client *client) {
    for (int i = 0; i < client->slot_count; i++)
        if (client->slots[i].state == SLOT_FREE)
            return &client->slots[i];
    return NULL;
}

static struct parcel *free_parcel(const struct data_client *client) {
    for (int i = 0; i < client->parcel_count; i++)
        if (!client->parcels[i].used)
            return &client->parcels[i];
    return NULL;
}

// Nothing of it comes, or no more.
static void release(struct data_client *client, struct parcel *parcel) {
    client->under_way -= (int)(parcel->batches - parcel->taken);
    parcel->used = false;
}

// --- leases, under the lock ------------------------------------------------------

static struct grant *add_grant(struct data_client *client, const struct parcel *parcel) {
    struct grant *grant = mem_zeroed(1, sizeof *grant);
    if (!grant)
        return NULL;
    *grant = (struct grant){.next = client->grants,
                            .at = &client->grants,
                            .source = parcel->source,
                            .session = parcel->asked.session,
                            .number = parcel->answer.lease,
                            .left = parcel->batches};
    if (grant->next)
        grant->next->at = &grant->next;
    return client->grants = grant;
}

// A batch less is open. True: that was the last.
static bool leave_grant(struct grant *grant) {
    return --grant->left == 0;
}

static void free_grant(struct grant *grant) {
    *grant->at = grant->next;
    if (grant->next)
        grant->next->at = grant->at;
    free(grant);
}

// --- answers, by threads of the network ------------------------------------------

static void batch_refused(struct data_client *client, struct source *source,
                          const struct proto_refused *refused) {
    double now = clock_seconds();
    switch (refused->code) {
    case PROTO_REFUSAL_BUSY:
    case PROTO_REFUSAL_NOT_READY:
        client->figures.busy++;
        source->busy = true;
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
        received == batch->samples * (SAMPLE_HEAD + source->sample_bytes) &&
        batch->first + batch->samples <= source->data.samples)
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
    parcel->grant = add_grant(client, parcel);
    return parcel->grant ? STATUS_OK : error_nomem(err);
}

static void batch_came(struct data_client *client, struct parcel *parcel,
                       const struct proto_batch *batch) {
    struct source *source = parcel->source;
    struct error err = {0};
    if (client->options.rounds && batch->samples == 0) {
        source->idle_at = parcel->asked.step;
        source->why[0] = '\0';
        release(client, parcel);
        return;
    }
    if (take_in(client, parcel, batch, &err)) {
        release(client, parcel);
        client_fail(client, &err);
        return;
    }
    if (batch->epoch > source->epoch)
        source->position = 0;
    source->epoch = batch->epoch;
    source->position += batch->samples;
    source->busy = false;
    source->over = false;
    source->why[0] = '\0';
    put_arrived(&client->arrived, parcel);
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
        release(client, parcel);
    }
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
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

// --- asking for batches ----------------------------------------------------------

static bool is_linked(const struct source *source) {
    return source->listed && source->known && source->link && !source->broken;
}

// Whether it is out of reach and another serves what it did: it was started again, and
// the routes name it twice until the controller has missed the one that died.
static bool is_replaced(const struct data_client *client, const struct source *source) {
    if (!source->known || is_linked(source))
        return false;
    for (const struct source *other = client->sources; other; other = other->next)
        if (is_linked(other) && other->data.first == source->data.first &&
            other->data.samples == source->data.samples)
            return true;
    return false;
}

// Epoch of the data server that is least far; false: all are through.
static bool present_epoch(const struct data_client *client, uint32_t *epoch) {
    bool any = false;
    *epoch = UINT32_MAX;
    for (const struct source *source = client->sources; source; source = source->next) {
        if (!source->listed || source->over || is_replaced(client, source))
            continue;
        any = true;
        if (source->known && source->epoch < *epoch)
            *epoch = source->epoch;
    }
    return any;
}

static double progress_of(const struct source *source) {
    return (double)(source->position + source->awaited) / (double)source->data.samples;
}

// The least far of those that can be asked now; *soon: when another can.
static struct source *choose(const struct data_client *client, double now, double *soon) {
    struct source *best = NULL;
    uint32_t epoch;
    if (!present_epoch(client, &epoch))
        return NULL;
    for (struct source *source = client->sources; source; source = source->next) {
        if (!is_linked(source) || source->over || source->epoch != epoch ||
            source->flying >= LINK_WINDOW / 2 || (source->busy && source->flying > 0))
            continue;
        if (source->not_before > now)
            *soon = fmin(*soon, source->not_before);
        else if (!best || progress_of(source) < progress_of(best))
            best = source;
    }
    return best;
}

// Batches that one request asks for.
static uint32_t together(const struct data_client *client, const struct source *source) {
    return client->options.together
               ? dealer_together(source->data.samples, (uint32_t)client->options.batch,
                                 source->sample_bytes)
               : 1;
}

static bool want_more(const struct data_client *client, const struct source *source) {
    if (client->options.rounds)
        return client->under_way == 0;
    return client->under_way < client->options.ahead + (int)together(client, source) - 1;
}

// --- rounds ----------------------------------------------------------------------

// Whether there is, or may be, something in the present step.
static bool may_have(const struct data_client *client, const struct source *source,
                     uint32_t epoch) {
    return source->listed && !source->over && !(source->known && source->epoch > epoch) &&
           source->idle_at != client->step && !is_replaced(client, source);
}

static bool is_asked(const struct data_client *client, const struct source *source,
                     uint32_t epoch) {
    return is_linked(source) && may_have(client, source, epoch);
}

// All workers ask the same data server in the same step, each as often as it has samples,
// so that they meet in its rounds: the steps, spread evenly (by the golden ratio), fall into
// its share. Where it has nothing the next one follows.
static struct source *source_of_step(const struct data_client *client, uint32_t epoch) {
    double all = 0, place = (double)(client->step * UINT64_C(0x9e3779b97f4a7c15)) / 0x1p64;
    for (struct source *source = client->sources; source; source = source->next)
        all += is_asked(client, source, epoch) ? (double)source->data.samples : 0;
    struct source *found = NULL;
    place *= all;
    for (struct source *source = client->sources; source && (!found || place >= 0);
         source = source->next)
        if (is_asked(client, source, epoch)) {
            found = source;
            place -= (double)source->data.samples;
        }
    return found;
}

static struct source *choose_in_round(const struct data_client *client, double now, double *soon) {
    uint32_t epoch;
    if (client->step == 0 || client->under_way > 0 || !present_epoch(client, &epoch))
        return NULL;
    struct source *source = source_of_step(client, epoch);
    if (!source || source->not_before <= now)
        return source;
    *soon = fmin(*soon, source->not_before);
    return NULL;
}

// Nobody has anything for us in this step: our turn is without samples.
static bool is_idle(const struct data_client *client) {
    uint32_t epoch;
    if (!client->options.rounds || client->step == 0 || client->under_way > 0 ||
        !present_epoch(client, &epoch))
        return false;
    for (const struct source *source = client->sources; source; source = source->next)
        if (may_have(client, source, epoch))
            return false;
    return true;
}

static int make_room(struct parcel *parcel, size_t bytes, struct error *err) {
    if (bytes <= parcel->raw_room)
        return STATUS_OK;
    free(parcel->raw);
    parcel->raw = malloc(bytes);
    parcel->raw_room = parcel->raw ? bytes : 0;
    return parcel->raw ? STATUS_OK : error_nomem(err);
}

// Lets go of the lock while it asks.
static void ask(struct data_client *client, struct source *source, struct parcel *parcel) {
    struct error err = {0};
    size_t sample = SAMPLE_HEAD + source->sample_bytes, most = PROTO_PAYLOAD_MAX / sample;
    size_t wanted = (size_t)client->options.batch * together(client, source);
    size_t n = wanted < most ? wanted : most;
    if (make_room(parcel, n * sample, &err)) {
        client_fail(client, &err);
        return;
    }
    parcel->used = true;
    parcel->source = source;
    parcel->taken = 0;
    parcel->batches = together(client, source);
    parcel->asked = (struct proto_lease){client->options.hello.session, source->epoch, (uint32_t)n,
                                         client->step};
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
        release(client, parcel);
        client_wake(client);
    }
}

// --- turning into what the model reads -------------------------------------------

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

// The first parcel that arrived is this thread's until its last batch is a slot's. Lets go
// of the lock while it converts.
static void convert_one(struct data_client *client, struct slot *slot) {
    struct parcel *parcel = client->arrived.first;
    struct error err = {0};
    slot->state = SLOT_FILLED;
    slot->grant = parcel->grant;
    pthread_mutex_unlock(&client->lock);
    int status = convert(client, parcel, slot, &err);
    pthread_mutex_lock(&client->lock);
    parcel->taken += !status;
    if (status || parcel->taken == parcel->batches) {
        drop_arrived(&client->arrived);
        release(client, parcel);
    }
    if (status) {
        slot->state = SLOT_FREE;
        client_fail(client, &err);
        return;
    }
    slot->state = SLOT_READY;
    client->ready_count++;
    queue_put(&client->ready, slot);
    if (client->waiting > 0)
        pthread_cond_broadcast(&client->changed);
}

// --- telling what is finished ----------------------------------------------------

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
        if (leave_grant(trained->grant)) {
            struct grant *grant = trained->grant;
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

// Lets go of the lock while it tells. False: there is nothing to tell.
static bool tell_finished(struct data_client *client) {
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

// --- the thread ------------------------------------------------------------------

static bool takers_starve(const struct data_client *client) {
    return client->waiting > 0 && !client->ready.first && !client->arrived.first;
}

// Data servers that wait for what the takers' home holds.
static bool hurry_due(struct data_client *client, double now, double *soon) {
    if (!client->options.idle || !takers_starve(client) || client->trained_count == 0)
        return false;
    if (now - client->hurried < HURRY) {
        *soon = fmin(*soon, client->hurried + HURRY);
        return false;
    }
    client->hurried = now;
    return true;
}

static const struct source *obstacle(const struct data_client *client) {
    for (const struct source *source = client->sources; source; source = source->next)
        if (source->listed && source->why[0])
            return source;
    for (const struct source *source = client->sources; source; source = source->next)
        if (source->listed && !source->over)
            return source;
    return NULL;
}

static void describe(const struct data_client *client, char text[PROTO_ADDRESS_MAX]) {
    const struct source *source = obstacle(client);
    text[0] = '\0';
    if (!takers_starve(client))
        return;
    if (!source)
        snprintf(text, PROTO_ADDRESS_MAX, "data servers: the controller names none");
    else if (source->why[0])
        snprintf(text, PROTO_ADDRESS_MAX, "data server %.*s", PROTO_ADDRESS_MAX - 16, source->why);
    else
        snprintf(text, PROTO_ADDRESS_MAX, "data server %.*s", PROTO_ADDRESS_MAX - 16,
                 source->address);
}

// "A wait says whom it waits for." Lets go of the lock while it says so.
static void say_wait(struct data_client *client) {
    char text[PROTO_ADDRESS_MAX], line[PROTO_ADDRESS_MAX + 16];
    bool lost = takers_starve(client) && patience_lost(&client->patience);
    bool found = !takers_starve(client) && patience_found(&client->patience);
    if (!client->options.say || (!lost && !found))
        return;
    describe(client, text);
    snprintf(line, sizeof line, lost ? "waiting for %s" : "batches come again%s", text);
    pthread_mutex_unlock(&client->lock);
    client->options.say(client->options.self, line);
    pthread_mutex_lock(&client->lock);
}

static void judge_end(struct data_client *client) {
    uint32_t epoch;
    bool any = present_epoch(client, &epoch);
    client->figures.epoch = any && epoch != UINT32_MAX ? epoch : client->figures.epoch;
    if (!any && client->sources && client->under_way == 0 && !client->over) {
        client->over = true;
        pthread_cond_broadcast(&client->changed);
    }
}

// One thing that can be done now. False: there is nothing until `soon`.
static bool do_one(struct data_client *client, double *soon) {
    double now = clock_seconds();
    sort_finished(client);
    if (tell_finished(client))
        return true;
    struct slot *slot = client->arrived.first ? free_slot(client) : NULL;
    if (slot) {
        convert_one(client, slot);
        return true;
    }
    bool may = !client->err.status && !client->cancelled;
    struct source *source = !may                     ? NULL
                            : client->options.rounds ? choose_in_round(client, now, soon)
                                                     : choose(client, now, soon);
    struct parcel *parcel = source && want_more(client, source) ? free_parcel(client) : NULL;
    if (parcel) {
        ask(client, source, parcel);
        return true;
    }
    judge_end(client);
    if (hurry_due(client, now, soon)) {
        pthread_mutex_unlock(&client->lock);
        client->options.idle(client->options.self);
        pthread_mutex_lock(&client->lock);
    }
    return false;
}

static void *fetch(void *self) {
    struct data_client *client = self;
    pthread_mutex_lock(&client->lock);
    while (!client->closing) {
        double soon = clock_seconds() + ROUND;
        if (do_one(client, &soon))
            continue;
        say_wait(client);
        struct timespec until = {(time_t)soon, (long)((soon - floor(soon)) * 1e9)};
        pthread_cond_timedwait(&client->to_fetch, &client->lock, &until);
    }
    pthread_mutex_unlock(&client->lock);
    return NULL;
}

// --- as a supply -----------------------------------------------------------------

static struct data_client *client_of(struct supply *supply) {
    return (struct data_client *)supply;
}

static bool ended(const struct data_client *client) {
    return client->cancelled || client->closing || client->err.status ||
           (client->over && !client->ready.first);
}

static void wait_changed(struct data_client *client, double until) {
    if (isinf(until)) {
        pthread_cond_wait(&client->changed, &client->lock);
        return;
    }
    struct timespec at = {(time_t)until, (long)((until - floor(until)) * 1e9)};
    pthread_cond_timedwait(&client->changed, &client->lock, &at);
}

static struct batch *take_ready(struct data_client *client) {
    struct slot *slot = queue_take(&client->ready);
    slot->state = SLOT_TAKEN;
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

static struct batch *take(struct supply *supply, double patience, double *waited) {
    struct data_client *client = client_of(supply);
    double start = clock_seconds(), now = start;
    pthread_mutex_lock(&client->lock);
    client->waiting++;
    while (!ended(client) && !client->ready.first && !is_idle(client) && now < start + patience) {
        pthread_cond_signal(&client->to_fetch);
        wait_changed(client, start + patience);
        now = clock_seconds();
    }
    client->waiting--;
    struct batch *batch = ended(client)         ? NULL
                          : client->ready.first ? take_ready(client)
                                                : take_empty(client);
    pthread_mutex_unlock(&client->lock);
    if (waited)
        *waited += now - start;
    return batch;
}

// A ring that grows; false: the batch's lease will run out.
static bool add_trained(struct data_client *client, struct trained trained) {
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

static void give_back(struct supply *supply, struct batch *batch) {
    struct data_client *client = client_of(supply);
    pthread_mutex_lock(&client->lock);
    uint64_t ordinal = client->given_back++;
    if (batch != &supply->empty) {
        struct slot *slot = (struct slot *)((char *)batch - offsetof(struct slot, batch));
        add_trained(client, (struct trained){ordinal, slot->grant});
        slot->state = SLOT_FREE;
    }
    pthread_mutex_unlock(&client->lock);
}

static void cancel(struct supply *supply) {
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

struct supply *data_client_supply(struct data_client *client) {
    return &client->supply;
}

// --- for the home ----------------------------------------------------------------

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
        wait_changed(client, until);
    }
    client->flushing--;
    bool told = !untold(client);
    pthread_mutex_unlock(&client->lock);
    return told;
}

// --- routes and sessions ---------------------------------------------------------

static struct source *find_source(struct data_client *client, uint32_t member) {
    struct source *source = client->sources;
    while (source && source->member != member)
        source = source->next;
    if (source)
        return source;
    source = mem_zeroed(1, sizeof *source);
    if (!source)
        return NULL;
    source->client = client;
    source->member = member;
    source->next = client->sources;
    return client->sources = source;
}

static void list_source(struct source *source, const struct proto_text *address) {
    char text[PROTO_ADDRESS_MAX + 1];
    snprintf(text, sizeof text, "%.*s", (int)address->length, address->at);
    source->listed = true;
    if (!strcmp(text, source->address))
        return;
    memcpy(source->address, text, sizeof text);
    source->next_dial = 0;
    source->broken = source->link != NULL;
}

// A data server that has left the routes does not come back as the same member: what it
// was not told of, others hand out again.
static void forget_finished(struct data_client *client) {
    for (struct source *source = client->sources; source; source = source->next)
        if (!source->listed && source->telling == 0) {
            client->figures.over += source->done_count;
            source->done_count = 0;
        }
}

void data_client_route(struct data_client *client, struct kept *routes) {
    const struct proto_routes *message = &routes->message.routes;
    const struct proto_server *servers = message->sources.at;
    struct error err = {0};
    pthread_mutex_lock(&client->lock);
    bool newer = !client->routes || client->routes->message.routes.epoch < message->epoch;
    if (newer) {
        kept_hold(routes);
        kept_drop(client->routes);
        client->routes = routes;
        for (struct source *source = client->sources; source; source = source->next)
            source->listed = false;
        for (uint32_t i = 0; i < message->sources.count; i++) {
            struct source *source = find_source(client, servers[i].member);
            if (source)
                list_source(source, &servers[i].training);
            else
                client_fail(client, (error_nomem(&err), &err));
        }
        forget_finished(client);
        client_wake(client);
    }
    pthread_mutex_unlock(&client->lock);
}

void data_client_session(struct data_client *client, uint64_t session) {
    pthread_mutex_lock(&client->lock);
    if (session != client->options.hello.session) {
        client->options.hello.session = session;
        for (struct source *source = client->sources; source; source = source->next) {
            source->done_count = source->telling;
            source->broken = source->link != NULL; // the new one says hello with the new session
        }
        client_wake(client);
    }
    pthread_mutex_unlock(&client->lock);
}

void data_client_step(struct data_client *client, uint64_t clock) {
    pthread_mutex_lock(&client->lock);
    if (clock > client->step) {
        client->step = clock;
        client_wake(client);
    }
    pthread_mutex_unlock(&client->lock);
}

// --- figures ---------------------------------------------------------------------

struct data_client_figures data_client_figures(struct data_client *client) {
    pthread_mutex_lock(&client->lock);
    struct data_client_figures figures = client->figures;
    figures.ready = client->ready_count;
    for (const struct source *source = client->sources; source; source = source->next) {
        uint64_t received = 0, sent = 0;
        if (source->link)
            link_traffic(source->link, &received, &sent);
        figures.received += source->received + received;
        figures.sent += source->sent + sent;
    }
    pthread_mutex_unlock(&client->lock);
    return figures;
}

void data_client_waits_for(struct data_client *client, char text[PROTO_ADDRESS_MAX]) {
    pthread_mutex_lock(&client->lock);
    describe(client, text);
    pthread_mutex_unlock(&client->lock);
}

// --- beginning and end -----------------------------------------------------------

static int make_slots(struct data_client *client, struct error *err) {
    const struct data_client_options *options = &client->options;
    size_t n = (size_t)options->batch;
    client->slot_count = (options->rounds ? 1 : options->ahead) + options->takers;
    client->slots = mem_zeroed((size_t)client->slot_count, sizeof *client->slots);
    if (!client->slots)
        return error_nomem(err);
    for (int i = 0; i < client->slot_count; i++) {
        struct batch *batch = &client->slots[i].batch;
        size_t floats;
        if (__builtin_mul_overflow(n, client->values, &floats))
            return error_nomem(err);
        batch->input = mem_floats(floats);
        batch->label = mem_array(n, sizeof *batch->label);
        batch->index = mem_array(n, sizeof *batch->index);
        batch->draw = mem_array(n, sizeof *batch->draw);
        if (!batch->input || !batch->label || !batch->index || !batch->draw)
            return error_nomem(err);
    }
    client->parcel_count =
        (options->rounds ? 1 : options->ahead) + (options->together ? PARCELS_MORE : 0);
    client->parcels = mem_zeroed((size_t)client->parcel_count, sizeof *client->parcels);
    return client->parcels ? STATUS_OK : error_nomem(err);
}

static int start_threads(struct data_client *client, struct error *err) {
    client->fetching = !pthread_create(&client->fetcher, NULL, fetch, client);
    client->dialling = !pthread_create(&client->dialler, NULL, client_dial, client);
    if (!client->fetching || !client->dialling)
        return error_set(err, STATUS_IO, "cannot start a thread");
    return STATUS_OK;
}

static void init_waits(struct data_client *client) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->to_fetch, &monotonic);
    pthread_cond_init(&client->to_dial, &monotonic);
    pthread_cond_init(&client->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int data_client_open(struct data_client **out, const struct data_client_options *options,
                     struct error *err) {
    static const struct supply_ops ops = {take, give_back, cancel, status_of};
    struct data_client *client = mem_zeroed(1, sizeof *client);
    if (!client)
        return error_nomem(err);
    client->supply.ops = &ops;
    client->options = *options;
    client->values = (size_t)options->channels * (size_t)options->height * (size_t)options->width;
    init_waits(client);
    client->scratch = ops_scratch_new();
    int status = client->scratch ? make_slots(client, err) : error_nomem(err);
    if (!status)
        status = start_threads(client, err);
    if (status)
        data_client_close(client);
    else
        *out = client;
    return status;
}

static void free_slots(struct data_client *client) {
    for (int i = 0; client->slots && i < client->slot_count; i++) {
        struct slot *slot = &client->slots[i];
        free(slot->batch.input);
        free(slot->batch.label);
        free(slot->batch.index);
        free(slot->batch.draw);
    }
    free(client->slots);
    for (int i = 0; client->parcels && i < client->parcel_count; i++)
        free(client->parcels[i].raw);
    free(client->parcels);
    for (struct grant *grant = client->grants, *next; grant; grant = next) {
        next = grant->next;
        free(grant);
    }
}

static void stop_threads(struct data_client *client) {
    pthread_mutex_lock(&client->lock);
    client->closing = true;
    client_wake(client);
    pthread_mutex_unlock(&client->lock);
    if (client->fetching)
        pthread_join(client->fetcher, NULL);
    if (client->dialling)
        pthread_join(client->dialler, NULL); // which has closed the links
}

void data_client_close(struct data_client *client) {
    if (!client)
        return;
    stop_threads(client);
    for (struct source *source = client->sources, *next; source; source = next) {
        next = source->next;
        free(source->done);
        free(source);
    }
    free_slots(client);
    kept_drop(client->routes);
    image_free(&client->image);
    ops_scratch_free(client->scratch);
    free(client->trained);
    pthread_cond_destroy(&client->to_fetch);
    pthread_cond_destroy(&client->to_dial);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->lock);
    free(client);
}
