// A prediction service: answers over HTTP what a model says of pictures (adam-eval(1), SERVICE).
//
//   POST /predict   the samples of the body (answer/body.h): {"predictions": [{"top": [...]}, ...]}
//   GET  /metrics   figures for Prometheus
//   GET  /healthz   "ok"
//   GET  /          a page on which one drops a picture
//
// Refusals are {"error": "..."} with a status of HTTP. Callers are bounded: in number, in bytes,
// and in the time that a request may take to arrive and its answer to be taken.
//
// Threads: that of service_run talks to callers, and a batcher's read bodies and predict. Where a
// pass is short, as many as predict talk, each to callers of its own, and predict small requests
// themselves: to hand one over would take as long.
#ifndef ADAM_ANSWER_SERVICE_H
#define ADAM_ANSWER_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "train/scoring.h"

struct error;

struct service_config {
    struct scoring_config scoring;
    const char *const *names; // of the classes
    int classes, top;         // of which `top` are told, the best first
    int threads;              // that predict
    size_t max_body;          // bytes of a request
    double patience;          // seconds for a request to arrive, and for its answer to be taken
    bool shared;              // others have the socket, too, and take who is left in line
    bool (*stop)(void);       // asked ten times a second, and after a signal
};

struct service;

// Listens already at the socket, which does not block and becomes the service's, also after a
// failure. The caller keeps what `config` points to. STATUS_IO.
int service_open(struct service **out, const struct service_config *config, int fd,
                 struct error *err);
// Answers until it is told to stop; requests that have begun are still answered. STATUS_IO.
int service_run(struct service *service, struct error *err);
void service_close(struct service *service);

#endif
