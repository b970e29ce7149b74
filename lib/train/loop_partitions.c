// One round of a partition's thread.
#include <math.h>
#include <stdlib.h>

#include "train/flights.h"
#include "train/mix.h"

// --- thread 0 -------------------------------------------------------------------------------

static double loss_of(const struct flights *flights, const struct flight *flight) {
    double loss = 0;
    for (int p = 0; p < cut_partitions(flights->cut); p++)
        loss += flight->losses[p];
    return loss;
}

static void give_back(struct loop *loop, struct flight *flight) {
    supply_give_back(loop->config.supply, flight->batch);
    flight->batch = NULL;
}

// All partitions are done with it.
static void land(struct loop_thread *thread, struct flight *flight) {
    struct loop *loop = thread->loop;
    int samples = flight->batch->n;
    loop_thread_count(thread, samples, loss_of(loop->flights, flight));
    give_back(loop, flight);
    loop_end_step(loop, samples, flight->rate);
}

static bool land_flights(struct loop_thread *thread) {
    struct flights *flights = thread->loop->flights;
    bool landed = false;
    for (int i = 0; i < flights->count; i++) {
        struct flight *flight = &flights->flight[i];
        if (flight->batch && atomic_load(&flight->left) == 0) {
            land(thread, flight);
            landed = true;
        }
    }
    return landed;
}

void flights_wake(const struct flights *flights) {
    for (int p = 0; p < cut_partitions(flights->cut); p++)
        gate_open(post_gate(flights->post, p));
}

// Takes the next mini-batch, if its place is free. False: it is not, or none follows.
static bool announce(struct loop_thread *thread) {
    struct loop *loop = thread->loop;
    struct flights *flights = loop->flights;
    uint64_t number = atomic_load(&flights->announced);
    struct flight *flight = &flights->flight[number % (uint64_t)flights->count];
    if (atomic_load(&flights->over) || flight->batch)
        return false;
    thread->other = flight->other, thread->share = flight->share;
    flight->batch = loop_thread_take(thread);
    thread->other = NULL, thread->share = NULL;
    if (!flight->batch) {
        atomic_store(&flights->over, true);
    } else {
        flight->rate = loop_rate(loop, flight->batch->number);
        atomic_store(&flight->left, cut_partitions(flights->cut));
        atomic_store(&flights->announced, number + 1);
    }
    flights_wake(flights);
    return true;
}

static bool in_the_air(const struct flights *flights) {
    for (int i = 0; i < flights->count; i++)
        if (flights->flight[i].batch)
            return true;
    return false;
}

// --- all ------------------------------------------------------------------------------------

static bool is_over(const struct loop_thread *thread) {
    const struct flights *flights = thread->loop->flights;
    if (thread->index == 0)
        return atomic_load(&flights->over) && !in_the_air(flights);
    for (int i = 0; i < flights->count; i++)
        if (thread->legs[i].phase != LEG_WAITS ||
            thread->legs[i].number < atomic_load(&flights->announced))
            return false;
    return atomic_load(&flights->over);
}

// True: something came to its end, or began.
static bool go_on(struct loop_thread *thread) {
    bool moved = false;
    for (int i = 0; i < thread->loop->flights->count; i++)
        moved |= leg_go(&thread->legs[i]);
    if (thread->index > 0)
        return moved;
    moved |= land_flights(thread);
    return announce(thread) || moved;
}

static void fly(struct loop_thread *thread) {
    struct loop *loop = thread->loop;
    struct gate *gate = post_gate(loop->flights->post, thread->index);
    for (;;) {
        uint32_t seen = gate_look(gate);
        if (atomic_load(&loop->diverged))
            return;
        if (go_on(thread))
            continue;
        if (is_over(thread))
            return;
        gate_wait(gate, seen, -1);
    }
}

// Nobody reads mini-batches any more, not even of a training that ends here.
static void end_round(struct loop_thread *thread) {
    struct flights *flights = thread->loop->flights;
    struct gate *gate = post_gate(flights->post, 0);
    for (uint32_t seen = gate_look(gate); atomic_load(&flights->inside) > 0; seen = gate_look(gate))
        gate_wait(gate, seen, -1);
    for (int i = 0; i < flights->count; i++)
        if (flights->flight[i].batch)
            give_back(thread->loop, &flights->flight[i]);
    atomic_store(&flights->over, false);
    atomic_store(&flights->inside, cut_partitions(flights->cut) - 1);
}

void loop_partitions(struct loop_thread *thread) {
    struct flights *flights = thread->loop->flights;
    struct home *home = thread->loop->config.home;
    fly(thread);
    home->ops->settle(home, thread->index);
    if (thread->index == 0) {
        end_round(thread);
    } else {
        atomic_fetch_sub(&flights->inside, 1);
        gate_open(post_gate(flights->post, 0));
    }
}

// --- memory ---------------------------------------------------------------------------------

static bool open_flight(struct flight *flight, const struct loop_config *config) {
    size_t batch = (size_t)config->batch;
    bool mixed = mix_wanted(&config->mix);
    flight->losses = mem_zeroed((size_t)cut_partitions(config->cut), sizeof *flight->losses);
    flight->other = mixed ? mem_array(batch, sizeof *flight->other) : NULL;
    flight->share = mixed ? mem_array(batch, sizeof *flight->share) : NULL;
    return flight->losses && (!mixed || (flight->other && flight->share));
}

int flights_each(const struct flights *flights, const struct model *model, int n) {
    int each = (n + flights->chunks - 1) / flights->chunks, together = model_together(model);
    int some = (each + together - 1) / together * together;
    return some < n ? some : n;
}

// Samples that all nets pass at a time: those of one part of a synchronous mini-batch, or fewer,
// where all partitions' working sets are small then.
static int most_of(const struct loop_config *config, int each) {
    int some = net_part(cut_model(config->cut, 0), config->kernels, each);
    for (int p = 1; p < cut_partitions(config->cut); p++)
        if (net_part(cut_model(config->cut, p), config->kernels, each) != some)
            return each;
    return some;
}

int flights_open(struct flights **out, const struct loop_config *config, struct error *err) {
    struct flights *flights = mem_zeroed(1, sizeof *flights);
    int partitions = cut_partitions(config->cut), status = STATUS_OK;
    if (!flights)
        return error_nomem(err);
    *out = flights;
    flights->cut = config->cut;
    flights->count = config->sync ? 1 : config->in_flight;
    flights->chunks = config->sync ? config->in_flight : 1;
    flights->most = most_of(config, flights_each(flights, config->model, config->batch));
    atomic_store(&flights->inside, partitions - 1);
    flights->flight = mem_zeroed((size_t)flights->count, sizeof *flights->flight);
    bool room = flights->flight != NULL;
    for (int i = 0; room && i < flights->count; i++)
        room = open_flight(&flights->flight[i], config);
    status = room ? post_open(&flights->post, partitions, config->in_flight,
                              cut_exchanges(config->cut) + 1, err)
                  : error_nomem(err);
    return status;
}

void flights_close(struct flights *flights) {
    if (!flights)
        return;
    for (int i = 0; flights->flight && i < flights->count; i++) {
        free(flights->flight[i].losses);
        free(flights->flight[i].other), free(flights->flight[i].share);
    }
    free(flights->flight);
    post_close(flights->post);
    free(flights);
}
