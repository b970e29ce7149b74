// The parts of a worker, as the run's settings want them, and how they call each other.
#include <string.h>

#include "role/worker/worker_internal.h"

#define PATIENCE 0.05 // seconds that softsync's threads wait for samples before the home hears

static void say_line(void *self, const char *text) {
    worker_say(self, text);
}

static void look_up_routes(void *self, uint64_t epoch) {
    struct worker *worker = self;
    (void)epoch;
    member_look(worker->member);
}

struct proto_hello worker_hello(const struct worker *worker) {
    struct member_identity identity = {0};
    member_identity(worker->member, &identity);
    return (struct proto_hello){
        .role = PROTO_ROLE_WORKER,
        .run = identity.run,
        .model = identity.model,
        .session = identity.session,
        .name = proto_text(worker->options.name ? worker->options.name : ""),
    };
}

int worker_open_servers(struct worker *worker, struct error *err) {
    const struct servers_options options = {
        .hello = worker_hello(worker),
        .parameters = worker->model->parameter_count,
        .keys = worker->options.keys,
        .insecure = worker->options.insecure,
        .self = worker,
        .stale = look_up_routes,
        .say = say_line,
    };
    return servers_open(&worker->servers, &options, err);
}

static void on_idle(void *self) {
    home_servers_hurry(((struct worker *)self)->home);
}

static bool is_hardsync(const struct worker *worker) {
    return worker->protocol.kind == PROTOCOL_HARDSYNC;
}

int worker_open_data(struct worker *worker, struct error *err) {
    if (!worker_leads(worker))
        return STATUS_OK;
    const struct shape shape = model_input(worker->model)->out;
    enum goal goal = model_goal(worker->model);
    int outputs = model_classes(worker->model);
    int takers = home_servers_sync(worker->home) ? 1 : worker->threads;
    const struct data_client_options options = {
        .hello = worker_hello(worker),
        .input = {.input = worker->input,
                  .channels = shape.c,
                  .height = shape.h,
                  .width = shape.w,
                  .classes = goal == GOAL_NUMBERS ? 0 : outputs,
                  .targets = outputs,
                  .hot = goal == GOAL_CLASSES,
                  .label = goal == GOAL_CLASS,
                  .seed = (uint64_t)worker->settings.seed},
        .batch = (int)worker->settings.batch,
        .ahead = 2 * takers + 2,
        .rounds = is_hardsync(worker),
        .together = !is_hardsync(worker),
        .takers = takers,
        .keys = worker->options.keys,
        .insecure = worker->options.insecure,
        .self = worker,
        .idle = on_idle,
        .say = say_line,
    };
    return data_client_open(&worker->data, &options, err);
}

// The home and the data client call each other: the client is closed first, and the home
// may be at work until it is closed, too.
static uint64_t trained_mark(void *self) {
    struct worker *worker = self;
    pthread_mutex_lock(&worker->data_lock);
    uint64_t mark = worker->data ? data_client_trained(worker->data) : 0;
    pthread_mutex_unlock(&worker->data_lock);
    return mark;
}

static void finish_trained(void *self, uint64_t mark) {
    struct worker *worker = self;
    pthread_mutex_lock(&worker->data_lock);
    if (worker->data)
        data_client_finish(worker->data, mark);
    pthread_mutex_unlock(&worker->data_lock);
}

static void lose_trained(void *self, uint64_t from, uint64_t mark) {
    struct worker *worker = self;
    pthread_mutex_lock(&worker->data_lock);
    if (worker->data)
        data_client_lose(worker->data, from, mark);
    pthread_mutex_unlock(&worker->data_lock);
}

static void set_step(void *self, uint64_t clock) {
    struct worker *worker = self;
    pthread_mutex_lock(&worker->data_lock);
    if (worker->data)
        data_client_step(worker->data, clock);
    pthread_mutex_unlock(&worker->data_lock);
}

void worker_close_data(struct worker *worker) {
    struct data_client *data = worker->data;
    pthread_mutex_lock(&worker->data_lock);
    worker->data = NULL;
    pthread_mutex_unlock(&worker->data_lock);
    data_client_close(data);
}

bool worker_is_sync(const struct worker *worker) {
    return worker->protocol.kind != PROTOCOL_ASYNC || worker->push != PUSH_DELTA;
}

int worker_open_home(struct worker *worker, struct error *err) {
    const struct settings *settings = &worker->settings;
    const struct home_servers_config config = {
        .model = worker_model(worker),
        .portion = worker->cut ? &worker->portion : NULL,
        .optimizer = &worker->optimizer,
        .kernels = worker->kernels,
        .servers = worker->servers,
        .threads = worker->threads,
        .batch = (int)settings->batch,
        .push_every = (uint64_t)settings->push_every,
        .pull_every = (uint64_t)settings->pull_every,
        .protocol = &worker->protocol,
        .overlap = settings_overlap(settings, &worker->protocol),
        .factors = settings_factors(settings, &worker->optimizer, &worker->protocol),
        .self = worker,
        .mark = trained_mark,
        .applied = finish_trained,
        .lost = lose_trained,
        .turn = set_step,
    };
    return (worker_is_sync(worker) ? home_gradient_open : home_delta_open)(&worker->home, &config,
                                                                           err);
}

static void step_home(void *self, int samples, float rate) {
    home_servers_step(self, samples, rate);
}

int worker_open_loop(struct worker *worker, struct error *err) {
    bool sync = home_servers_sync(worker->home);
    const struct loop_config config = {
        .model = worker->model,
        .kernels = worker->kernels,
        .optimizer = &worker->optimizer,
        .schedule = &worker->schedule,
        .home = home_servers_home(worker->home),
        .supply = worker->data ? data_client_supply(worker->data) : NULL,
        .patience = sync && !is_hardsync(worker) ? PATIENCE : SUPPLY_PATIENT,
        .step = step_home,
        .step_self = worker->home,
        .pace = worker->pace,
        .threads = worker->threads,
        .batch = (int)worker->settings.batch,
        .sync = sync,
        .seed = (uint64_t)worker->settings.seed,
        .mix = mix_of(&worker->settings, worker->model),
        .cut = worker->cut,
        .in_flight = (int)worker->settings.in_flight,
        .neighbours = worker->cut ? neighbour_links_neighbours(worker->links) : NULL,
    };
    return loop_open(&worker->loop, &config, err);
}
