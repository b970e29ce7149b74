// The parts of a prediction service: who calls, what they ask, what they get.
#ifndef ADAM_ANSWER_SERVICE_INTERNAL_H
#define ADAM_ANSWER_SERVICE_INTERNAL_H

#include <microhttpd.h>
#include <stdint.h>

#include "answer/batcher.h"
#include "answer/body.h"
#include "answer/figures.h"
#include "answer/service.h"
#include "net/places.h"

enum {
    CALLERS = 256,         // of which newcomers displace those who have asked nothing yet
    CALLERS_BESIDE = 64,   // while the displaced leave
    SAMPLES_MOST = 1024,   // of a request
    SCORES_MOST = 1 << 24, // of all its classes
    TURN = 100,            // milliseconds between two looks at callers, and whether to stop
    HELD_BODIES = 8,       // of the largest size, in memory at a time
};

// --- callers --------------------------------------------------------------------------

// What a connection is at.
enum caller_state {
    CALLER_SILENT,  // nothing of a request is known
    CALLER_SENDS,   // the body arrives
    CALLER_WAITS,   // for scores
    CALLER_TAKES,   // the answer
    CALLER_REFUSED, // was told so; what else it sends is dropped
};

struct caller {
    int fd;
    enum caller_state state;
    struct place place; // .since: when that state began
};

// One event: the caller is in that state from now on.
void caller_turns(struct caller *caller, enum caller_state state);
// Tells a caller that does not listen yet why it is not served, past the daemon that still reads.
void caller_refuse(struct service *service, struct caller *caller, int code, const char *why);
// Of MHD_OPTION_NOTIFY_CONNECTION.
void callers_notify(void *self, struct MHD_Connection *connection, void **socket_context,
                    enum MHD_ConnectionNotificationCode code);
// Every TURN: ends those who went, those whose time is over, the silent ones after `silence`
// seconds, and those who are too many.
void callers_sweep(struct service *service, double silence);

// --- requests -------------------------------------------------------------------------

struct request {
    struct ask ask; // for the batcher; `samples` and what follows are its own until it is done
    struct service *service;
    struct caller *caller;
    struct MHD_Connection *connection;
    char *data; // the body, as far as it has come
    size_t size, room;
    struct body body;
    float *scores;
    double began; // to be predicted
    bool answered;
    int code; // of the answer, below
    char *text;
};

// Of MHD_start_daemon; `self` is the service, as in the others of the daemon.
enum MHD_Result request_handle(void *self, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **context);
// Of MHD_OPTION_NOTIFY_COMPLETED.
void request_completed(void *self, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code);

// What the samples of a request say, or what is wrong with it: `open` and `done` of its ask.
bool prediction_open(struct ask *ask);
void prediction_done(struct ask *ask);

// {"error": why}, to be freed with free(); NULL when out of memory.
char *error_text(const char *why);

// --- the service ----------------------------------------------------------------------

struct service {
    struct service_config config;
    struct body_limits limits;
    int fd;   // listens; -1: no more
    int wake; // an eventfd, written when connections go on
    struct MHD_Daemon *daemon;
    struct predictor *predictor;
    struct batcher *batcher;
    struct figures figures;
    struct caller *callers[CALLERS + CALLERS_BESIDE];
    size_t count;
    uint64_t swept; // milliseconds, when
    size_t held;    // bytes of all bodies
    bool ends;
};

#endif
