// What processes tell each other lies in memory that they share: a lane has the mini-batch that is
// passed, each process's answer to it, and the scores. Pieces of the pass go by shared_post.h.
#include "train/partition_processes.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "train/shared_post.h"

struct answer {                                  // of a process, in a lane
    _Alignas(MEM_ALIGN) _Atomic uint64_t number; // of the last one
    double loss;
};

struct lane {
    _Atomic uint64_t announced; // what is to be answered so far: to be ready, then mini-batches
    int n;
    int32_t *labels;
    float *targets; // NULL: there are none
    float *scores;  // batch x classes, each process its own columns
    struct answer *answers;
};

struct common {                  // to all processes
    _Atomic int failing, failed; // the first one that fails, but for 0: has begun to say so; has
    struct error err;
};

struct partition_processes {
    struct partition_processes_config config;
    struct cut *cut;
    struct shared_post *post;
    struct arena memory; // shared: the next two
    struct common *common;
    struct lane *lanes;
    pid_t opener, *process; // 0: it is none, or gone
    float *own;             // parameters of partition 0
    struct net **nets;      // and a net for each lane
    _Atomic int taken;      // lanes
    pthread_mutex_t watching;
    struct error end; // why one is gone
};

enum {
    READY = 1,        // what is answered first
    LOOKS_TOLD = 100, // in vain, before it is said who is waited for: ten seconds
};
static const double look = 0.1; // seconds between two looks at the processes

static size_t classes_of(const struct partition_processes *p) {
    return (size_t)model_classes(p->config.model);
}

static struct gate *gate_of(const struct partition_processes *p, int partition, int lane) {
    return shared_post_gate(p->post, partition, lane);
}

// --- a pass, in each process -------------------------------------------------------------

static int open_net(struct partition_processes *p, int partition, int lane, struct net **net,
                    struct error *err) {
    int status = net_open(net, cut_model(p->cut, partition), p->config.kernels, p->config.batch,
                          NET_PREDICT, err);
    if (!status)
        net_wired(*net, shared_post_wire(p->post, partition, lane));
    return status;
}

static float *open_parameters(const struct partition_processes *p, int partition,
                              struct error *err) {
    const struct model *model = cut_model(p->cut, partition);
    float *own = mem_floats(model->parameter_count);
    int status =
        own ? p->config.read(p->config.self, p->cut, partition, own, err)
            : error_set(err, STATUS_IO, "out of memory for %zu parameters", model->parameter_count);
    if (!status)
        return own;
    free(own);
    return NULL;
}

// Of the classes, or numbers, that a partition gives: the first, and how many.
static int first_of(const struct partition_processes *p, int partition, int *count) {
    const struct layer *output = model_output(p->config.model);
    const struct region own = cut_layer(p->cut, output, partition).own;
    *count = region_empty(&own) ? 0 : own.c1 - own.c0;
    return own.c0;
}

static double answer_loss(const struct partition_processes *p, const struct lane *lane,
                          struct net *net, int partition) {
    int count, first = first_of(p, partition, &count);
    if (count == 0)
        return 0;
    const float *scores = net_scores(net);
    for (int i = 0; i < lane->n; i++)
        memcpy(lane->scores + (size_t)i * classes_of(p) + first, scores + (size_t)i * (size_t)count,
               (size_t)count * sizeof *scores);
    net_targets(net, lane->targets);
    return net_loss(net, lane->labels);
}

// --- the other processes -----------------------------------------------------------------

struct child { // what one of them has
    struct partition_processes *all;
    int partition;
    float *own;
    _Atomic int lanes; // that threads have taken
};

// Says why, and stays until who has the samples has heard of it.
static _Noreturn void give_up(struct partition_processes *p, int partition,
                              const struct error *err) {
    if (!atomic_exchange(&p->common->failing, 1)) {
        p->common->err = *err;
        atomic_store(&p->common->failed, partition);
        for (int l = 0; l < p->config.lanes; l++)
            gate_open(gate_of(p, 0, l));
    }
    for (;;)
        pause();
}

static void answer(struct partition_processes *p, int partition, int l, uint64_t number) {
    atomic_store(&p->lanes[l].answers[partition].number, number);
    gate_open(gate_of(p, 0, l));
}

static void wait_for_batch(struct partition_processes *p, int partition, int l, uint64_t number) {
    const struct lane *lane = &p->lanes[l];
    struct gate *gate = gate_of(p, partition, l);
    for (uint32_t seen = gate_look(gate); atomic_load(&lane->announced) < number;
         seen = gate_look(gate))
        gate_wait(gate, seen, -1);
}

static void go_on(struct partition_processes *p, int partition, int l, struct net *net) {
    struct gate *gate = gate_of(p, partition, l);
    for (uint32_t seen = gate_look(gate); !net_go(net); seen = gate_look(gate))
        gate_wait(gate, seen, -1);
}

static _Noreturn void answer_passes(const struct child *child, int l, struct net *net) {
    struct partition_processes *p = child->all;
    int partition = child->partition;
    const struct lane *lane = &p->lanes[l];
    answer(p, partition, l, READY);
    for (uint64_t number = READY + 1;; number++) {
        wait_for_batch(p, partition, l, number);
        net_begin_forward(net, child->own, NULL, lane->n, NULL, 0);
        go_on(p, partition, l, net);
        lane->answers[partition].loss = answer_loss(p, lane, net, partition);
        answer(p, partition, l, number);
    }
}

static void *work_lane(void *self) {
    struct child *child = self;
    struct error err = {0};
    struct net *net;
    int l = atomic_fetch_add(&child->lanes, 1);
    if (open_net(child->all, child->partition, l, &net, &err))
        give_up(child->all, child->partition, &err);
    answer_passes(child, l, net);
}

static _Noreturn void run_child(struct partition_processes *p, int partition) {
    struct child child = {.all = p, .partition = partition};
    struct error err = {0};
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->opener)
        raise(SIGKILL); // that has gone already
    child.own = open_parameters(p, partition, &err);
    for (int l = 1; child.own && !err.status && l < p->config.lanes; l++) {
        errno = pthread_create(&thread, NULL, work_lane, &child);
        if (errno)
            error_errno(&err, STATUS_IO, "cannot start a thread");
    }
    if (!err.status)
        work_lane(&child);
    give_up(p, partition, &err);
}

// --- who has the samples -----------------------------------------------------------------

static int say_end(struct error *end, int partition, pid_t process, int how) {
    if (WIFSIGNALED(how))
        return error_set(end, STATUS_UNAVAILABLE,
                         "partition %d of the model (process %d) was killed by signal %d (%s)",
                         partition, (int)process, WTERMSIG(how), strsignal(WTERMSIG(how)));
    return error_set(end, STATUS_UNAVAILABLE,
                     "partition %d of the model (process %d) ended with status %d", partition,
                     (int)process, WEXITSTATUS(how));
}

static void watch(struct partition_processes *p) {
    int how, failed = atomic_load(&p->common->failed);
    if (failed) {
        p->end = p->common->err;
        error_context(&p->end, "partition %d of the model", failed);
    }
    for (int i = 1; !p->end.status && i < p->config.partitions; i++)
        if (p->process[i] > 0 && waitpid(p->process[i], &how, WNOHANG) == p->process[i]) {
            say_end(&p->end, i, p->process[i], how);
            p->process[i] = 0;
        }
}

// Whether all processes live, as far as can be seen.
static int check(struct partition_processes *p, struct error *err) {
    pthread_mutex_lock(&p->watching);
    if (!p->end.status)
        watch(p);
    struct error end = p->end;
    pthread_mutex_unlock(&p->watching);
    return end.status ? error_set(err, end.status, "%s", end.text) : STATUS_OK;
}

// The first process whose answer is not there; 0: all are.
static int missing_answer(const struct partition_processes *p, const struct lane *lane) {
    uint64_t number = atomic_load(&lane->announced);
    for (int i = 1; i < p->config.partitions; i++)
        if (atomic_load(&lane->answers[i].number) < number)
            return i;
    return 0;
}

// Its own part of the pass, and the answers of all others.
typedef bool lane_done(struct partition_processes *p, int l);
static bool has_passed(struct partition_processes *p, int l) {
    return net_go(p->nets[l]);
}
static bool has_answers(struct partition_processes *p, int l) {
    return !missing_answer(p, &p->lanes[l]);
}

static void say_waiting(const struct partition_processes *p, int l) {
    const struct partition_processes_config *config = &p->config;
    int late = missing_answer(p, &p->lanes[l]);
    if (late && config->waits)
        config->waits(config->self, late, (int)p->process[late]);
}

static int await(struct partition_processes *p, int l, lane_done *done, struct error *err) {
    struct gate *gate = gate_of(p, 0, l);
    int status = STATUS_OK, looks = 0; // since anything came
    for (uint32_t seen = gate_look(gate); !status && !done(p, l); seen = gate_look(gate)) {
        gate_wait(gate, seen, look);
        looks = gate_look(gate) == seen ? looks + 1 : 0;
        if (looks > 0)
            status = check(p, err);
        if (!status && looks > 0 && looks % LOOKS_TOLD == 0)
            say_waiting(p, l);
    }
    return status;
}

static void announce(struct partition_processes *p, int l, const struct batch *batch) {
    struct lane *lane = &p->lanes[l];
    size_t n = (size_t)batch->n;
    lane->n = batch->n;
    memcpy(lane->labels, batch->label, n * sizeof *lane->labels);
    if (lane->targets)
        memcpy(lane->targets, batch->target, n * (size_t)p->config.targets * sizeof *lane->targets);
    atomic_fetch_add(&lane->announced, 1);
    for (int i = 1; i < p->config.partitions; i++)
        gate_open(gate_of(p, i, l));
}

int partition_processes_pass(struct partition_processes *p, int l, const struct batch *batch,
                             const float **scores, double *loss, struct error *err) {
    const struct lane *lane = &p->lanes[l];
    announce(p, l, batch);
    net_begin_forward(p->nets[l], p->own, batch->input, batch->n, NULL, 0);
    int status = await(p, l, has_passed, err);
    if (!status) {
        lane->answers[0].loss = answer_loss(p, lane, p->nets[l], 0);
        status = await(p, l, has_answers, err);
    }
    *loss = 0;
    for (int i = 0; !status && i < p->config.partitions; i++)
        *loss += lane->answers[i].loss;
    *scores = lane->scores;
    return status;
}

int partition_processes_lane(struct partition_processes *p) {
    return atomic_fetch_add(&p->taken, 1);
}

// --- life --------------------------------------------------------------------------------

static void take_lane(struct partition_processes *p, struct lane *lane) {
    size_t batch = (size_t)p->config.batch, targets = (size_t)p->config.targets;
    struct arena *memory = &p->memory;
    int32_t *labels = arena_take(memory, batch, sizeof *labels);
    float *wanted = targets ? arena_take(memory, batch * targets, sizeof *wanted) : NULL;
    float *scores = arena_take(memory, batch * classes_of(p), sizeof *scores);
    struct answer *answers = arena_take(memory, (size_t)p->config.partitions, sizeof *answers);
    if (lane)
        *lane = (struct lane){READY, 0, labels, wanted, scores, answers};
}

static void take_shared(struct partition_processes *p) {
    size_t lanes = (size_t)p->config.lanes;
    p->common = arena_take(&p->memory, 1, sizeof *p->common);
    p->lanes = arena_take(&p->memory, lanes, sizeof *p->lanes);
    for (size_t l = 0; l < lanes; l++)
        take_lane(p, p->lanes ? &p->lanes[l] : NULL);
}

static int take_memory(struct partition_processes *p, struct error *err) {
    p->process = mem_zeroed((size_t)p->config.partitions, sizeof *p->process);
    p->nets = mem_zeroed((size_t)p->config.lanes, sizeof *p->nets);
    if (!p->process || !p->nets)
        return error_nomem(err);
    take_shared(p);
    if (!arena_open_shared(&p->memory))
        return error_nomem(err);
    take_shared(p);
    return STATUS_OK;
}

static int start_processes(struct partition_processes *p, struct error *err) {
    p->opener = getpid();
    for (int i = 1; i < p->config.partitions; i++) {
        p->process[i] = fork();
        if (p->process[i] < 0)
            return error_errno(err, STATUS_IO, "cannot start a process for partition %d", i);
        if (p->process[i] == 0)
            run_child(p, i);
    }
    return STATUS_OK;
}

static int open_own(struct partition_processes *p, struct error *err) {
    p->own = open_parameters(p, 0, err);
    int status = p->own ? STATUS_OK : err->status;
    for (int l = 0; !status && l < p->config.lanes; l++)
        status = open_net(p, 0, l, &p->nets[l], err);
    return status;
}

static int open_all(struct partition_processes *p, struct error *err) {
    const struct partition_processes_config *config = &p->config;
    int status = cut_open(&p->cut, config->model, config->partitions, config->batch, err);
    if (!status)
        status = shared_post_open(&p->post, p->cut, config->lanes, config->batch, err);
    if (!status)
        status = take_memory(p, err);
    if (!status)
        status = start_processes(p, err);
    if (!status)
        status = open_own(p, err);
    for (int l = 0; !status && l < config->lanes; l++)
        status = await(p, l, has_answers, err);
    return status;
}

int partition_processes_open(struct partition_processes **out,
                             const struct partition_processes_config *config, struct error *err) {
    struct partition_processes *p = mem_zeroed(1, sizeof *p);
    if (!p)
        return error_nomem(err);
    p->config = *config;
    pthread_mutex_init(&p->watching, NULL);
    int status = open_all(p, err);
    if (status)
        partition_processes_close(p);
    else
        *out = p;
    return status;
}

// They hold nothing that must be kept.
static void end_processes(const struct partition_processes *p) {
    for (int i = 1; p->process && i < p->config.partitions; i++)
        if (p->process[i] > 0)
            kill(p->process[i], SIGKILL);
    for (int i = 1; p->process && i < p->config.partitions; i++)
        if (p->process[i] > 0)
            waitpid(p->process[i], NULL, 0);
}

void partition_processes_close(struct partition_processes *p) {
    if (!p)
        return;
    end_processes(p);
    for (int l = 0; p->nets && l < p->config.lanes; l++)
        net_close(p->nets[l]);
    pthread_mutex_destroy(&p->watching);
    arena_close_shared(&p->memory);
    shared_post_close(p->post);
    cut_close(p->cut);
    free(p->process), free(p->nets), free(p->own);
    free(p);
}
