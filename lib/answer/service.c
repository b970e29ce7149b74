#include "answer/service.h"

#include <stdlib.h>
#include <unistd.h>

#include "answer/service_internal.h"
#include "core/error.h"
#include "core/mem.h"

// Multiply-adds of a picture; to wake a thread for less takes its time.
enum {
    SHARED_WORK = 1 << 26, // that several threads share, if it comes alone
    HANDED_WORK = 1 << 25, // that who talks to callers leaves to the others
};

static uint64_t work_of(const struct model *model) {
    uint64_t work = 0;
    for (int i = 0; i < model->layer_count; i++)
        work += model->layers[i].useful;
    return work;
}

// Connections that were suspended go on.
static void wake_talkers(void *self) {
    struct service *service = self;
    for (int i = 0; i < service->talker_count; i++)
        if (atomic_exchange(&service->talkers[i].resumed, false))
            talker_wake(&service->talkers[i]);
}

// `predict`: short requests, themselves.
static int open_talkers(struct service *service, bool predict, struct error *err) {
    int threads = service->config.threads, status = STATUS_OK;
    service->talker_count = !predict ? 1 : threads < TALKERS ? threads : TALKERS;
    atomic_store(&service->listening, service->talker_count);
    for (int i = 0; i < service->talker_count; i++)
        service->talkers[i].wake = -1;
    for (int i = 0; i < service->talker_count && !status; i++)
        status = talker_open(&service->talkers[i], service, predict, err);
    return status;
}

static int open_parts(struct service *service, struct error *err) {
    const struct service_config *config = &service->config;
    uint64_t work = work_of(config->scoring.model);
    int sharing = work >= SHARED_WORK ? config->threads : 1;
    int status = predictor_open(&service->predictor, &config->scoring, sharing, err);
    if (!status)
        status = batcher_open(&service->batcher, service->predictor, config->threads, wake_talkers,
                              service, err);
    return status ? status : open_talkers(service, work < HANDED_WORK, err);
}

int service_open(struct service **out, const struct service_config *config, int fd,
                 struct error *err) {
    struct service *service = mem_zeroed(1, sizeof *service);
    if (!service) {
        close(fd);
        return error_nomem(err);
    }
    service->config = *config;
    service->fd = fd;
    allowance_open(&service->documents, BODY_VALUES_MOST);
    service->limits.documents = &service->documents;
    figures_open(&service->figures);
    int status = open_parts(service, err);
    if (status) {
        service_close(service);
        return status;
    }
    int samples = SCORES_MOST / config->classes;
    service->limits.values = predictor_values(service->predictor);
    service->limits.samples = samples < 1 ? 1 : samples < SAMPLES_MOST ? samples : SAMPLES_MOST;
    *out = service;
    return STATUS_OK;
}

void service_close(struct service *service) {
    if (!service)
        return;
    batcher_close(service->batcher); // no connection is suspended any more, but by talkers
    for (int i = 0; i < service->talker_count; i++)
        talker_close(&service->talkers[i]);
    if (service->fd >= 0)
        close(service->fd);
    predictor_close(service->predictor);
    figures_close(&service->figures);
    allowance_close(&service->documents);
    free(service);
}

static void *run_talker(void *talker) {
    talker_run(talker);
    return NULL;
}

// The first one talks in the caller's thread.
int service_run(struct service *service, struct error *err) {
    struct talker *talkers = service->talkers;
    int started = 1, status = STATUS_OK;
    while (started < service->talker_count &&
           pthread_create(&talkers[started].thread, NULL, run_talker, &talkers[started]) == 0)
        started++;
    if (started < service->talker_count) {
        status = error_set(err, STATUS_IO, "cannot start a thread");
        atomic_fetch_sub(&service->listening, service->talker_count - started);
        atomic_store(&service->ends, true);
    }
    talker_run(&talkers[0]);
    for (int i = 1; i < started; i++)
        pthread_join(talkers[i].thread, NULL);
    for (int i = 0; i < started && !status; i++) {
        status = talkers[i].status;
        *err = talkers[i].err;
    }
    return status;
}
