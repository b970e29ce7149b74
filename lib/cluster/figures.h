// The state of a run for people and programs: a table, JSON, and the text format of
// Prometheus, all made from the controller's answer `status`.
#ifndef ADAM_CLUSTER_FIGURES_H
#define ADAM_CLUSTER_FIGURES_H

#include "core/json.h"
#include "proto/proto.h"

// Free the text with free(); NULL when out of memory. Below the table stand, on a line each, how
// long nothing was trained and why, and the share of the data that is left out.
char *figures_table(const struct proto_status *status);
char *figures_prometheus(const struct proto_status *status);
// One line for each member that waits: "worker-2 waits for ...".
char *figures_waits(const struct proto_status *status);
// Why a worker trains nothing: whom it waits for, or how long it has been silent.
enum { FIGURES_WAIT = PROTO_ADDRESS_MAX + 1 };
void figures_wait(char text[FIGURES_WAIT], const struct proto_member *worker);
// The same for all connected workers: "worker 4 (w): ...; worker 5 (v): ...; and 3 more".
// Free it with free(); NULL when out of memory.
char *figures_idle(const struct proto_status *status);
// {"run", "stage", "epoch", "idle", "left_out", "members": [...]}; NULL when out of memory.
json_t *figures_json(const struct proto_status *status);

// The progress of the whole run: "epoch 1.50 of 6  loss 0.0600  4 workers  39119 images/s
// wait 25%". `epochs` is how many are wanted, 0 if unknown. Empty while no worker trains.
enum { FIGURES_LINE = 160 };
void figures_line(char text[FIGURES_LINE], const struct proto_status *status, double epochs);

#endif
