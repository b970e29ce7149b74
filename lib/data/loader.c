// The ring. Batch `number` lives in slot number % slots. A slot's `turn` says
// whose it is: 2 * number while it waits to be filled with that batch, one more
// while that batch waits to be taken or is in the taker's hands. Fillers and
// takers draw numbers from two counters; nobody else touches a slot whose turn
// is theirs, so its contents need no lock ("bounded MPMC queue", Vyukov).
#include "data/loader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/gate.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/turn.h"
#include "data/order.h"

struct ring_slot {
    _Alignas(MEM_ALIGN) _Atomic uint64_t turn;
    struct gate gate; // opened when the turn moves
    struct batch batch;
};

// What one loading thread uses again and again.
struct loader_thread {
    struct loader *loader;
    pthread_t id;
    struct input input;
    struct sample *samples; // of a source: one batch, still encoded
};

struct loader {
    struct supply supply; // first: a loader is one
    struct loader_config config;
    struct decode_options decode;
    uint64_t per_epoch; // batches of an epoch of the data set
    struct ring_slot *slots;
    uint64_t slot_count;
    struct arena arena; // of all batches
    struct loader_thread *threads;
    int started;
    struct turn reading; // of a source, in order of the batches
    pthread_mutex_t naming;
    struct classes names; // of the source, as of the last batch read

    _Alignas(MEM_ALIGN) _Atomic uint64_t next_fill;
    _Alignas(MEM_ALIGN) _Atomic uint64_t next_take;
    _Alignas(MEM_ALIGN) _Atomic uint64_t end; // the first number that will never come
    atomic_bool cancelled, failing, failed;
    struct error err; // of the thread that set `failing` first; valid behind `failed`
};

static struct ring_slot *slot_of_batch(const struct loader *loader, uint64_t number) {
    return &loader->slots[number % loader->slot_count];
}

static bool is_beyond_end(const struct loader *loader, uint64_t number) {
    return atomic_load(&loader->cancelled) || number >= atomic_load(&loader->end);
}

static void wake_all(struct loader *loader) {
    for (uint64_t i = 0; i < loader->slot_count; i++)
        gate_open(&loader->slots[i].gate);
}

void loader_cancel(struct loader *loader) {
    atomic_store(&loader->cancelled, true);
    wake_all(loader);
    turn_break(&loader->reading);
}

// Waits until the slot of batch `number` has reached `turn`; false: it never will.
static bool wait_turn(struct loader *loader, uint64_t number, uint64_t turn) {
    struct ring_slot *slot = slot_of_batch(loader, number);
    for (;;) {
        uint32_t seen = gate_look(&slot->gate);
        if (is_beyond_end(loader, number))
            return false;
        if (atomic_load(&slot->turn) >= turn)
            return true;
        gate_wait(&slot->gate, seen, -1);
    }
}

static void move_turn(struct ring_slot *slot, uint64_t turn) {
    atomic_store(&slot->turn, turn);
    gate_open(&slot->gate);
}

// Waits until batch `number` may be filled in. When the ring is full, a filler
// sleeps until half of it is free: one wake-up for many small batches.
static bool wait_room(struct loader *loader, uint64_t number) {
    uint64_t half = number + (loader->slot_count - 1) / 2;
    if (atomic_load(&slot_of_batch(loader, number)->turn) < 2 * number &&
        !is_beyond_end(loader, half) && !wait_turn(loader, half, 2 * half) &&
        atomic_load(&loader->cancelled))
        return false;
    return wait_turn(loader, number, 2 * number);
}

// --- a batch of a data set ----------------------------------------------------

// Room for them is there where samples have targets.
static void put_targets(const struct loader *loader, struct batch *batch, int i,
                        const float *targets) {
    size_t count = (size_t)loader->config.input.targets;
    if (batch->target)
        memcpy(batch->target + (size_t)i * count, targets, count * sizeof *targets);
}

static int put_indexed(struct loader_thread *thread, struct batch *batch, int i, uint32_t index,
                       struct error *err) {
    const struct loader_config *config = &thread->loader->config;
    const struct dataset *dataset = config->dataset;
    batch->index[i] = index;
    batch->label[i] = dataset_label(dataset, index);
    put_targets(thread->loader, batch, i, dataset_targets(dataset, index));
    if (config->known && config->known(config->known_self, index)) {
        input_draw(&thread->input, dataset_key_hash(dataset, index), batch, i);
        return STATUS_OK;
    }
    struct image *image = &thread->input.image;
    int status = dataset_image(dataset, index, &thread->loader->decode, image, err);
    if (status)
        return status;
    status = input_put(&thread->input, image, dataset_key_hash(dataset, index), batch, i, err);
    return status ? error_context(err, "sample '%s'", dataset_key(dataset, index)) : STATUS_OK;
}

static int fill_indexed(struct loader_thread *thread, struct batch *batch, struct error *err) {
    const struct loader *loader = thread->loader;
    const struct loader_config *config = &loader->config;
    uint32_t count = dataset_count(config->dataset);
    batch->epoch = batch->number / loader->per_epoch;
    uint64_t first = batch->number % loader->per_epoch * (uint64_t)config->batch;
    uint64_t left = count - first;
    batch->n = left < (uint64_t)config->batch ? (int)left : config->batch;
    struct order order = order_of(config->input.seed, batch->epoch, count);
    int status = STATUS_OK;
    for (int i = 0; !status && i < batch->n; i++) {
        uint32_t place = (uint32_t)first + (uint32_t)i;
        status =
            put_indexed(thread, batch, i, config->shuffle ? order_at(&order, place) : place, err);
    }
    return status;
}

// --- a batch of a source ------------------------------------------------------

static int add_class_names(struct classes *to, const struct classes *from, struct error *err) {
    int status = STATUS_OK, label;
    for (int i = to->count; !status && i < from->count; i++)
        status = classes_label(to, from->names[i], &label, err);
    return status;
}

// The source's own table changes while it is read: others see a copy.
static int copy_names(struct loader *loader, struct error *err) {
    if (!loader->config.names || loader->config.names->count == loader->names.count)
        return STATUS_OK;
    pthread_mutex_lock(&loader->naming);
    int status = add_class_names(&loader->names, loader->config.names, err);
    pthread_mutex_unlock(&loader->naming);
    return status;
}

int loader_names(struct loader *loader, struct classes *classes, struct error *err) {
    pthread_mutex_lock(&loader->naming);
    int status = add_class_names(classes, &loader->names, err);
    pthread_mutex_unlock(&loader->naming);
    return status;
}

// Reads the samples of one batch; a short batch is the last one.
static int read_samples(struct loader_thread *thread, struct batch *batch, struct error *err) {
    struct loader *loader = thread->loader;
    bool more = true;
    batch->n = 0;
    while (batch->n < loader->config.batch) {
        struct sample *sample = &thread->samples[batch->n];
        int status = source_next(loader->config.source, sample, &more, err);
        if (status == STATUS_SKIPPED)
            err->status = STATUS_DATA; // damaged input is not trained around
        if (status)
            return err->status;
        if (!more)
            break;
        batch->n++;
    }
    if (!more && batch->number == 0 && batch->n == 0)
        return error_set(err, STATUS_DATA, "the input holds no samples");
    if (!more) {
        atomic_store(&loader->end, batch->number + (batch->n > 0));
        wake_all(loader);
    }
    return copy_names(loader, err);
}

static int put_batch_sample(struct loader_thread *thread, struct batch *batch, int i,
                            struct error *err) {
    struct sample *sample = &thread->samples[i];
    uint64_t place = batch->number * (uint64_t)thread->loader->config.batch + (uint64_t)i;
    batch->index[i] = (uint32_t)place;
    batch->label[i] = sample->label;
    put_targets(thread->loader, batch, i, sample->targets);
    int status = sample_decode(sample, &thread->loader->decode, err);
    if (status)
        return status;
    uint64_t key = hash_bytes(sample->key, strlen(sample->key));
    image_swap(&sample->image, &thread->input.image);
    status = input_put(&thread->input, &thread->input.image, key, batch, i, err);
    return status ? error_context(err, "sample '%s'", sample->key) : STATUS_OK;
}

// Batches of a stream that a resumed run has seen are read and dropped.
static bool batch_is_wanted(const struct loader *loader, uint64_t number) {
    return number >= loader->config.first_number;
}

// Samples are read by one thread at a time, in order; decoded by all at once.
static int fill_streamed(struct loader_thread *thread, struct batch *batch, struct error *err) {
    struct loader *loader = thread->loader;
    batch->epoch = 0;
    if (!turn_begin(&loader->reading, batch->number))
        return STATUS_OK;
    int status =
        is_beyond_end(loader, batch->number) ? STATUS_OK : read_samples(thread, batch, err);
    if (!status)
        turn_end(&loader->reading);
    bool decode = batch_is_wanted(loader, batch->number) && !is_beyond_end(loader, batch->number);
    for (int i = 0; !status && decode && i < batch->n; i++)
        status = put_batch_sample(thread, batch, i, err);
    return status;
}

// --- threads ------------------------------------------------------------------

static void loader_fail(struct loader *loader, const struct error *err) {
    if (!atomic_exchange(&loader->failing, true)) {
        loader->err = *err;
        atomic_store(&loader->failed, true);
    }
    loader_cancel(loader);
}

static void *make_batches(void *self) {
    struct loader_thread *thread = self;
    struct loader *loader = thread->loader;
    struct error err = {0};
    for (;;) {
        uint64_t number = atomic_fetch_add(&loader->next_fill, 1);
        struct ring_slot *slot = slot_of_batch(loader, number);
        if (!wait_room(loader, number))
            return NULL;
        slot->batch.number = number;
        int status = loader->config.source ? fill_streamed(thread, &slot->batch, &err)
                                           : fill_indexed(thread, &slot->batch, &err);
        if (status) {
            loader_fail(loader, &err);
            return NULL;
        }
        if (is_beyond_end(loader, number))
            return NULL;
        move_turn(slot, batch_is_wanted(loader, number) ? 2 * number + 1
                                                        : 2 * (number + loader->slot_count));
    }
}

struct batch *loader_take(struct loader *loader, double *waited) {
    uint64_t number = atomic_fetch_add(&loader->next_take, 1);
    struct ring_slot *slot = slot_of_batch(loader, number);
    if (is_beyond_end(loader, number))
        return NULL;
    if (atomic_load(&slot->turn) >= 2 * number + 1)
        return &slot->batch;
    double before = clock_seconds();
    bool ready = wait_turn(loader, number, 2 * number + 1);
    if (waited)
        *waited += clock_seconds() - before;
    return ready ? &slot->batch : NULL;
}

void loader_give_back(struct loader *loader, struct batch *batch) {
    move_turn(slot_of_batch(loader, batch->number), 2 * (batch->number + loader->slot_count));
}

// --- as a supply --------------------------------------------------------------

static struct loader *loader_of(struct supply *supply) {
    return (struct loader *)supply;
}

// True: the next batch is ready, or will never come. False: not within `patience`.
static bool wait_next(struct loader *loader, double patience, double *waited) {
    double before = clock_seconds(), now = before;
    bool there;
    for (;;) {
        uint64_t number = atomic_load(&loader->next_take);
        struct ring_slot *slot = slot_of_batch(loader, number);
        uint32_t seen = gate_look(&slot->gate);
        there = is_beyond_end(loader, number) || atomic_load(&slot->turn) >= 2 * number + 1;
        if (there || now - before >= patience)
            break;
        gate_wait(&slot->gate, seen, patience - (now - before));
        now = clock_seconds();
    }
    if (waited)
        *waited += now - before;
    return there;
}

// Among impatient takers another may be faster: the batch behind is waited for then.
static struct batch *loader_supply_take(struct supply *supply, double patience, double *waited) {
    if (isfinite(patience) && !wait_next(loader_of(supply), patience, waited))
        return &supply->empty;
    return loader_take(loader_of(supply), waited);
}

static void loader_supply_give_back(struct supply *supply, struct batch *batch) {
    if (batch != &supply->empty)
        loader_give_back(loader_of(supply), batch);
}

static void loader_supply_cancel(struct supply *supply) {
    loader_cancel(loader_of(supply));
}

static int loader_supply_status(const struct supply *supply, struct error *err) {
    return loader_status((const struct loader *)supply, err);
}

struct supply *loader_supply(struct loader *loader) {
    return &loader->supply;
}

// --- beginning and end --------------------------------------------------------

// The arena runs twice over this: measuring, then handing out.
static void take_batches(struct loader *loader) {
    size_t n = (size_t)loader->config.batch, values = input_values(&loader->config.input);
    size_t targets = (size_t)loader->config.input.targets;
    for (uint64_t i = 0; i < loader->slot_count; i++) {
        struct batch *batch = &loader->slots[i].batch;
        batch->input = arena_take(&loader->arena, n, values * sizeof(float));
        batch->label = arena_take(&loader->arena, n, sizeof *batch->label);
        batch->target = targets ? arena_take(&loader->arena, n, targets * sizeof(float)) : NULL;
        batch->index = arena_take(&loader->arena, n, sizeof *batch->index);
        batch->draw = arena_take(&loader->arena, n, sizeof *batch->draw);
    }
}

static int make_batch_slots(struct loader *loader, struct error *err) {
    loader->slot_count = (uint64_t)loader->config.ahead;
    size_t bytes = loader->slot_count * sizeof *loader->slots;
    loader->slots = aligned_alloc(MEM_ALIGN, bytes);
    if (!loader->slots)
        return error_nomem(err);
    memset(loader->slots, 0, bytes);
    take_batches(loader);
    if (!arena_open(&loader->arena))
        return error_nomem(err);
    take_batches(loader);
    // The first number that each slot waits for, at or behind the first batch.
    for (uint64_t i = 0; i < loader->slot_count; i++) {
        uint64_t number = atomic_load(&loader->next_fill) + i;
        atomic_store(&slot_of_batch(loader, number)->turn, 2 * number);
    }
    return STATUS_OK;
}

static int start_thread(struct loader *loader, struct loader_thread *thread, struct error *err) {
    thread->loader = loader;
    if (loader->config.source)
        thread->samples = mem_zeroed((size_t)loader->config.batch, sizeof *thread->samples);
    if (loader->config.source && !thread->samples)
        return error_nomem(err);
    if (input_open(&thread->input, &loader->config.input, err))
        return STATUS_IO;
    if (pthread_create(&thread->id, NULL, make_batches, thread))
        return error_set(err, STATUS_IO, "cannot start a loading thread");
    loader->started++;
    return STATUS_OK;
}

static void free_thread(const struct loader *loader, struct loader_thread *thread) {
    for (int i = 0; thread->samples && i < loader->config.batch; i++)
        sample_free(&thread->samples[i]);
    free(thread->samples);
    input_close(&thread->input);
}

// Where numbers begin and end. A stream is read from its beginning, whatever the
// first batch that is wanted.
static void set_batch_range(struct loader *loader) {
    const struct loader_config *config = &loader->config;
    uint64_t end = UINT64_MAX;
    if (config->dataset) {
        uint64_t count = dataset_count(config->dataset), batch = (uint64_t)config->batch;
        loader->per_epoch = (count + batch - 1) / batch;
        if (__builtin_mul_overflow(loader->per_epoch, config->epochs, &end))
            end = UINT64_MAX;
    }
    atomic_store(&loader->next_fill, config->dataset ? config->first_number : 0);
    atomic_store(&loader->next_take, config->first_number);
    atomic_store(&loader->end, end);
}

int loader_start(struct loader **out, const struct loader_config *config, struct error *err) {
    struct loader *loader = aligned_alloc(MEM_ALIGN, sizeof *loader);
    if (!loader)
        return error_nomem(err);
    memset(loader, 0, sizeof *loader);
    // Who loses a batch of its own process ends.
    static const struct supply_ops ops = {loader_supply_take, loader_supply_give_back,
                                          loader_supply_give_back, loader_supply_cancel,
                                          loader_supply_status};
    loader->supply.ops = &ops;
    loader->config = *config;
    turn_init(&loader->reading);
    pthread_mutex_init(&loader->naming, NULL);
    set_batch_range(loader);
    input_decode_hint(&config->input, &loader->decode);
    int status = make_batch_slots(loader, err);
    loader->threads = mem_zeroed((size_t)config->threads, sizeof *loader->threads);
    if (!status && !loader->threads)
        status = error_nomem(err);
    for (int i = 0; !status && i < config->threads; i++)
        status = start_thread(loader, &loader->threads[i], err);
    if (status)
        loader_stop(loader, NULL);
    else
        *out = loader;
    return status;
}

int loader_status(const struct loader *loader, struct error *err) {
    if (!atomic_load(&loader->failed))
        return STATUS_OK;
    if (err)
        *err = loader->err;
    return loader->err.status;
}

void loader_abandon(struct loader *loader) {
    loader_cancel(loader);
    for (int i = 0; i < loader->started; i++)
        pthread_detach(loader->threads[i].id);
    mem_abandon(loader);
}

int loader_stop(struct loader *loader, struct error *err) {
    if (!loader)
        return STATUS_OK;
    if (loader->slots)
        loader_cancel(loader);
    for (int i = 0; i < loader->started; i++)
        pthread_join(loader->threads[i].id, NULL);
    for (int i = 0; loader->threads && i < loader->config.threads; i++)
        free_thread(loader, &loader->threads[i]);
    int status = loader_status(loader, err);
    turn_free(&loader->reading);
    pthread_mutex_destroy(&loader->naming);
    classes_free(&loader->names);
    arena_close(&loader->arena);
    free(loader->threads);
    free(loader->slots);
    free(loader);
    return status;
}
