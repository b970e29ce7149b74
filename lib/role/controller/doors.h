// What a controller has whether it leads or not: its address, the requests that come there, its
// page for Prometheus, and the other controllers (role/controller/quorum.h).
//
// Messages of other controllers go to the quorum at once. All other requests are queued for the
// thread that leads; who does not lead refuses them, and names who does.
//
// Threads: those of the network fill the queue. The rest is the controller's thread's own, but
// for doors_say.
#ifndef ADAM_ROLE_CONTROLLER_DOORS_H
#define ADAM_ROLE_CONTROLLER_DOORS_H

#include <pthread.h>

#include "net/http.h"
#include "net/link.h"
#include "role/controller/controller.h"
#include "role/controller/quorum.h"
#include "role/request_queue.h"

struct error;

struct doors {
    const struct controller_config *config;
    struct gate gate;     // opened when something came, or a job is over
    pthread_mutex_t talk; // of the hooks say and progress: the checkpointer calls say, too
    struct request_queue queue;
    struct quorum *quorum;
    struct listener *listener;
    struct http *http;       // NULL: none
    struct ready port, told; // RUN/controller.port, and where the user wants the address
    char *port_file;
    struct ready page; // RUN/controller.http, or of several controllers RUN/controller-N.http
    char *page_file;
    pthread_mutex_t lock; // of what follows, which threads of the network read
    struct proto_id run;  // zeros while it does not lead
    uint64_t model_hash;  //
};

int doors_init(struct doors *doors, const struct controller_config *config, struct error *err);
// Opens the quorum and, unless this controller is the only one, all that follows: it stands by.
int doors_open(struct doors *doors, struct error *err);
// Listens, and tells so; does nothing when it does already.
int doors_listen(struct doors *doors, struct error *err);
// Nobody is answered any more. The places where it can be found stay when the run goes on with
// other controllers.
void doors_close(struct doors *doors, bool over);
void doors_free(struct doors *doors);

// It leads this run from now on; zeros: it does not, and of several has no figures to tell.
void doors_lead(struct doors *doors, struct proto_id run, uint64_t model_hash);
// Refuses all requests that are queued: another leads.
void doors_send_away(struct doors *doors);

// A line for the user. Any thread.
void doors_say(struct doors *doors, const char *text);
// The address of controller `id`, as the others know it.
const char *doors_address(const struct doors *doors, uint32_t id);

#endif
