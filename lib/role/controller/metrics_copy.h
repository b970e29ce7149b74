// A copy of the run's metrics at each controller that stands by, so that they outlive the machine
// on which the leading controller ran.
//
// The leader writes RUN/metrics.jsonl in its own folder. Who stands by asks it for what is new and
// keeps it as RUN/controller-N.metrics; of a new leader it takes all from the beginning. Before it
// leads itself, the copy takes the place of its metrics.jsonl, unless that begins with all of the
// copy: the folders of the controllers are one, or nothing was written since. Lost with a machine
// are the lines of the last half of a second.
//
// Threads: the controller's own; answers come by those of the network.
#ifndef ADAM_ROLE_CONTROLLER_METRICS_COPY_H
#define ADAM_ROLE_CONTROLLER_METRICS_COPY_H

#include "role/controller/quorum.h"
#include "role/request_queue.h"

struct error;

struct metrics_copy;

// Of controller `id`, in this folder: both outlive it. STATUS_IO: out of memory.
int metrics_copy_open(struct metrics_copy **out, const char *folder, uint32_t id, struct gate *gate,
                      struct error *err);
// While this controller stands by, often: writes what has come, and asks the leader for more.
// Opens the gate when something came. Does not wait. An error is told once, until it is over.
int metrics_copy_look(struct metrics_copy *copy, struct quorum *quorum, struct error *err);
// After quorum_close: answers may come until then.
void metrics_copy_close(struct metrics_copy *copy);

// Before this controller leads and opens its metrics. STATUS_IO, STATUS_CANTCREATE.
int metrics_copy_adopt(const char *folder, uint32_t id, struct error *err);

// For the leader: answers a GET_METRICS with lines of RUN/metrics.jsonl.
void metrics_copy_answer(const char *folder, const struct queued_request *queued);

#endif
