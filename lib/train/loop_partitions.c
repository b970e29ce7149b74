// One round of a partition's thread.
#include <math.h>
#include <stdlib.h>

#include "train/flights.h"
#include "train/mix.h"

// Seconds after which it is looked whether the round is over, or samples are there, of which
// neighbours say nothing.
#define LOOK_AGAIN 0.02

// --- thread 0 -------------------------------------------------------------------------------

static double own_loss(const struct flights *flights, const struct flight *flight) {
    double loss = 0;
    for (int i = 0; i < flights->local; i++)
        loss += flight->losses[i];
    return loss;
}

// Whether this process only hears of mini-batches.
static bool follows(const struct flights *flights) {
    return flights->neighbours && flights->first > 0;
}

static void give_back(struct loop *loop, struct flight *flight) {
    const struct flights *flights = loop->flights;
    const struct neighbours *neighbours = flights->neighbours;
    if (follows(flights))
        neighbours->give_back(neighbours->self, flight->batch, own_loss(flights, flight),
                              atomic_load(&flight->refused));
    else
        supply_give_back(loop->config.supply, flight->batch);
    flight->batch = NULL;
}

// The training ends before it has landed. What this partition is done with, the first one's process
// may hear; what has not landed there nobody has trained on.
static void give_up(struct loop *loop, struct flight *flight) {
    const struct flights *flights = loop->flights;
    const struct neighbours *neighbours = flights->neighbours;
    if (follows(flights) && atomic_load(&flight->left) == 0) {
        give_back(loop, flight);
        return;
    }
    if (follows(flights))
        neighbours->forget(neighbours->self, flight->batch);
    else
        supply_lose(loop->config.supply, flight->batch);
    flight->batch = NULL;
}

// Whether all partitions are done with it; then *loss is theirs, of all that are known here.
static bool has_landed(struct loop_thread *thread, struct flight *flight, double *loss) {
    const struct flights *flights = thread->loop->flights;
    const struct neighbours *neighbours = flights->neighbours;
    bool refused = false;
    if (!flight->batch || atomic_load(&flight->left) > 0)
        return false;
    *loss = own_loss(flights, flight);
    if (!neighbours || follows(flights))
        return true;
    if (!neighbours->landed(neighbours->self, flight->number, loss, &refused))
        return false;
    if (refused)
        loop_diverge(thread, flight->batch, NAN);
    return true;
}

static void land(struct loop_thread *thread, struct flight *flight, double loss) {
    struct loop *loop = thread->loop;
    int samples = flight->batch->n;
    loop_thread_count(thread, samples, loss);
    give_back(loop, flight);
    loop_end_step(loop, samples, flight->rate);
}

static bool land_flights(struct loop_thread *thread) {
    struct flights *flights = thread->loop->flights;
    bool landed = false;
    double loss;
    for (int i = 0; i < flights->count; i++)
        if (has_landed(thread, &flights->flight[i], &loss)) {
            land(thread, &flights->flight[i], loss);
            landed = true;
        }
    return landed;
}

struct gate *flights_gate(const struct flights *flights, int thread) {
    return flights->neighbours ? flights->neighbours->gate : post_gate(flights->post, thread);
}

const struct net_wire *flights_wire(const struct flights *flights, int thread, int place) {
    const struct neighbours *neighbours = flights->neighbours;
    return neighbours ? neighbours->wire(neighbours->self, place)
                      : post_wire(flights->post, thread, place);
}

void flights_wake(const struct flights *flights) {
    for (int i = 0; i < flights->local; i++)
        gate_open(flights_gate(flights, i));
}

static bool in_the_air(const struct flights *flights) {
    for (int i = 0; i < flights->count; i++)
        if (flights->flight[i].batch)
            return true;
    return false;
}

// The mini-batch of a flight, which `*over` says does not come; NULL: none yet.
static struct batch *hear_batch(struct loop *loop, struct flight *flight, bool *over) {
    const struct neighbours *neighbours = loop->flights->neighbours;
    *over = !loop_claim(loop);
    if (*over)
        return NULL;
    struct batch *batch = neighbours->hear(neighbours->self, flight->number, &flight->rate);
    if (!batch || batch->n == 0)
        loop_unclaim(loop);
    return batch;
}

// Once; then the round is over.
static struct batch *take_turn(struct loop *loop) {
    int wanted = TURN_WANTED;
    bool taken = atomic_compare_exchange_strong(&loop->turn, &wanted, TURN_TAKEN);
    return taken ? &loop->config.supply->empty : NULL;
}

// While something is in the air nobody waits for samples.
static struct batch *try_batch(struct loop_thread *thread, struct flight *flight, bool *over) {
    struct loop *loop = thread->loop;
    bool flying = in_the_air(loop->flights);
    struct batch *batch = atomic_load(&loop->turn)
                              ? take_turn(loop)
                              : loop_thread_try(thread, flying ? 0 : loop->config.patience);
    *over = !batch;
    if (batch && batch->n == 0 && flying) {
        supply_give_back(loop->config.supply, batch);
        return NULL;
    }
    if (batch)
        flight->rate = batch->n > 0 ? loop_rate(loop, batch->number) : 0;
    return batch;
}

static struct batch *take_batch(struct loop_thread *thread, struct flight *flight, bool *over) {
    struct loop *loop = thread->loop;
    struct batch *batch = loop_thread_take(thread);
    *over = !batch;
    if (batch)
        flight->rate = loop_rate(loop, batch->number);
    return batch;
}

// Takes the next mini-batch, if its place is free. False: it is not, or none follows.
static bool announce(struct loop_thread *thread) {
    struct flights *flights = thread->loop->flights;
    const struct neighbours *neighbours = flights->neighbours;
    uint64_t number = atomic_load(&flights->announced);
    struct flight *flight = &flights->flight[number % (uint64_t)flights->count];
    bool over;
    if (atomic_load(&flights->over) || flight->batch)
        return false;
    flight->number = number;
    atomic_store(&flight->refused, false);
    thread->other = flight->other, thread->share = flight->share;
    flight->batch = follows(flights) ? hear_batch(thread->loop, flight, &over)
                    : neighbours     ? try_batch(thread, flight, &over)
                                     : take_batch(thread, flight, &over);
    thread->other = NULL, thread->share = NULL;
    if (!flight->batch && !over)
        return false;
    if (!flight->batch) {
        atomic_store(&flights->over, true);
    } else {
        if (neighbours && !follows(flights))
            neighbours->tell(neighbours->self, number, flight->batch, flight->rate);
        atomic_store(&flight->left, flights->local);
        atomic_store(&flights->announced, number + 1);
    }
    flights_wake(flights);
    return true;
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

// The leg of the flight that was announced first, of those that are not over.
static int oldest(const struct loop_thread *thread) {
    int first = 0;
    for (int i = 1; i < thread->loop->flights->count; i++)
        if (thread->legs[i].number < thread->legs[first].number)
            first = i;
    return first;
}

// The oldest flight that can: were all to go on by turns, they would wait for others together, too.
static bool go_oldest(struct loop_thread *thread) {
    int count = thread->loop->flights->count, first = oldest(thread);
    for (int i = 0; i < count; i++)
        if (leg_go(&thread->legs[(first + i) % count]))
            return true;
    return false;
}

// True: something came to its end, or began.
static bool go_on(struct loop_thread *thread) {
    bool moved = go_oldest(thread);
    if (thread->index > 0)
        return moved;
    moved |= land_flights(thread);
    return announce(thread) || moved;
}

// Whether what is in flight never lands. The loop has no more to do then.
static bool is_lost(struct loop *loop) {
    const struct neighbours *neighbours = loop->flights->neighbours;
    bool lost = neighbours && neighbours->lost(neighbours->self);
    if (lost)
        atomic_store(&loop->exhausted, true);
    return lost;
}

static void fly(struct loop_thread *thread) {
    struct loop *loop = thread->loop;
    struct gate *gate = flights_gate(loop->flights, thread->index);
    for (;;) {
        uint32_t seen = gate_look(gate);
        if (atomic_load(&loop->diverged) || is_lost(loop))
            return;
        if (go_on(thread))
            continue;
        if (is_over(thread))
            return;
        gate_wait(gate, seen, loop->flights->neighbours ? LOOK_AGAIN : -1);
    }
}

// Nobody reads mini-batches any more, not even of a training that ends here.
static void end_round(struct loop_thread *thread) {
    struct flights *flights = thread->loop->flights;
    struct gate *gate = flights_gate(flights, 0);
    for (uint32_t seen = gate_look(gate); atomic_load(&flights->inside) > 0; seen = gate_look(gate))
        gate_wait(gate, seen, -1);
    for (int i = 0; i < flights->count; i++)
        if (flights->flight[i].batch)
            give_up(thread->loop, &flights->flight[i]);
    atomic_store(&flights->over, false);
    atomic_store(&flights->inside, flights->local - 1);
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
        gate_open(flights_gate(flights, 0));
    }
}

// --- memory ---------------------------------------------------------------------------------

static bool open_flight(struct flight *flight, const struct loop_config *config) {
    size_t batch = (size_t)config->batch;
    bool mixed = mix_wanted(&config->mix);
    flight->losses = mem_zeroed((size_t)config->threads, sizeof *flight->losses);
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
    int status = STATUS_OK;
    if (!flights)
        return error_nomem(err);
    *out = flights;
    flights->cut = config->cut;
    flights->neighbours = config->neighbours;
    flights->first = config->neighbours ? config->neighbours->partition : 0;
    flights->local = config->threads;
    flights->count = config->sync ? 1 : config->in_flight;
    flights->chunks = config->sync ? config->in_flight : 1;
    flights->most = most_of(config, flights_each(flights, config->model, config->batch));
    atomic_store(&flights->inside, flights->local - 1);
    flights->flight = mem_zeroed((size_t)flights->count, sizeof *flights->flight);
    bool room = flights->flight != NULL;
    for (int i = 0; room && i < flights->count; i++)
        room = open_flight(&flights->flight[i], config);
    if (!room)
        return error_nomem(err);
    if (!flights->neighbours)
        status = post_open(&flights->post, flights->local, config->in_flight,
                           cut_exchanges(config->cut) + 1, err);
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
