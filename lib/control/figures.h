// How the members of a run are doing, as people and other programs read it: a table, JSON,
// and the text format of Prometheus. All from the controller's answer `status`.
#ifndef ADAM_CONTROL_FIGURES_H
#define ADAM_CONTROL_FIGURES_H

#include "core/json.h"
#include "proto/proto.h"

// To be freed with free(); NULL when out of memory.
char *figures_table(const struct proto_status *status);
char *figures_prometheus(const struct proto_status *status);
// {"run", "stage", "epoch", "members": [...]}; NULL when out of memory.
json_t *figures_json(const struct proto_status *status);

#endif
