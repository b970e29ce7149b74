// The parts of a prediction service: who calls, what they ask, what they get.
#ifndef ADAM_ANSWER_SERVICE_INTERNAL_H
#define ADAM_ANSWER_SERVICE_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "answer/batcher.h"
#include "answer/body.h"
#include "answer/figures.h"
#include "answer/service.h"
#include "core/allowance.h"
#include "net/places.h"

enum {
    CALLERS = 256,         // of which newcomers displace those who have asked nothing yet
    CALLERS_BESIDE = 64,   // while the displaced leave
    SAMPLES_MOST = 1024,   // of a request
    SCORES_MOST = 1 << 24, // of all its classes
    TURN = 100,            // milliseconds between two looks at callers, and whether to stop
    HELD_BODIES = 8,       // of the largest size, in memory at a time
    TALKERS = 16,          // at most
    SHORT_BODY = 1 << 14,  // bytes whose pictures are soon decoded
};

struct talker;

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
void caller_refuse(struct talker *talker, struct caller *caller, int code, const char *why);
// Of MHD_OPTION_NOTIFY_CONNECTION; `self` is the talker.
void callers_notify(void *self, struct MHD_Connection *connection, void **socket_context,
                    enum MHD_ConnectionNotificationCode code);
// Every TURN: ends those who went, those whose time is over, the silent ones after `silence`
// seconds, and those who are too many.
void callers_sweep(struct talker *talker, double silence);

// --- requests -------------------------------------------------------------------------

struct request {
    struct ask ask; // for the batcher; `samples` and what follows are its own until it is done
    struct talker *talker;
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

// Of MHD_start_daemon; `self` is the talker, as in the others of the daemon.
enum MHD_Result request_handle(void *self, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **context);
// Of MHD_OPTION_NOTIFY_COMPLETED.
void request_completed(void *self, struct MHD_Connection *connection, void **context,
                       enum MHD_RequestTerminationCode code);

// MHD_HTTP_OK when it is plain where the request ends and which host is meant; else another status,
// and why.
int framing_check(struct MHD_Connection *connection, const char *url, const char *version,
                  const char **why);

// What the samples of a request say, or what is wrong with it: `open` and `done` of its ask.
bool prediction_open(struct ask *ask);
void prediction_done(struct ask *ask);

// {"error": why}, to be freed with free(); NULL when out of memory.
char *error_text(const char *why);
// What is told instead then.
extern const char error_memory[];

// --- talkers --------------------------------------------------------------------------

// One thread, and the callers that it has. Each caller is accepted by who has the fewest.
struct talker {
    struct service *service;
    struct MHD_Daemon *daemon;
    struct batcher *batcher; // without threads, of short requests; NULL: no request is short
    bool works;              // that has more to do
    bool rests;              // from accepting, which failed, until it has looked at its callers
    bool closes;         // the socket, once nobody is in line: it is the last to hear of the end
    double closed_by;    // clock_seconds, at the latest
    atomic_bool lacks;   // accepting failed, of some talker: silent callers make room
    int wake;            // an eventfd, written when there is news for it
    atomic_bool resumed; // connections go on, and it may not have heard of it
    struct caller *callers[CALLERS + CALLERS_BESIDE];
    atomic_size_t count;
    uint64_t swept; // milliseconds, when
    pthread_t thread;
    int status; // how it ended
    struct error err;
};

// `predicts`: short requests, itself. The talker is closed also after a failure. STATUS_IO.
int talker_open(struct talker *talker, struct service *service, bool predicts, struct error *err);
void talker_close(struct talker *talker);
// Talks until the service ends, and to who has begun to ask by then.
void talker_run(struct talker *talker);
// By any thread: it has a turn soon.
void talker_wake(struct talker *talker);
// Callers that it may keep.
size_t talker_places(const struct talker *talker);

// --- the service ----------------------------------------------------------------------

struct service {
    struct service_config config;
    struct body_limits limits;
    struct allowance documents; // values of JSON that threads read at a time
    int fd;                     // listens; -1: no more
    struct predictor *predictor;
    struct batcher *batcher; // of requests that are not short
    struct figures figures;
    struct talker talkers[TALKERS];
    int talker_count;
    atomic_size_t held;   // bytes of all bodies
    atomic_bool ends;     // nobody is accepted any more
    atomic_int listening; // talkers that have not heard so
};

#endif
