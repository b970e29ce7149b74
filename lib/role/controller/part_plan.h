// Which parameter server writes which tensors of a checkpoint in parts. A tensor is whole in one
// part; so that all are done at about the same time, tensors go, largest first, to the server that
// has least to write so far, of equals to the one that is the primary of most of it.
#ifndef ADAM_ROLE_CONTROLLER_PART_PLAN_H
#define ADAM_ROLE_CONTROLLER_PART_PLAN_H

#include "model/model.h"
#include "proto/proto.h"

struct error;

struct planned_part {
    const struct proto_server *server; // of the routes
    uint32_t *tensors;                 // numbers of named_parameters, ascending
    size_t count;
};

struct part_plan {
    struct planned_part *parts; // none is empty
    uint32_t count;
};

// The routes outlive the plan. STATUS_UNAVAILABLE: no server has any; STATUS_IO.
int part_plan_make(struct part_plan *plan, const struct model *model,
                   const struct proto_routes *routes, struct error *err);
void part_plan_free(struct part_plan *plan);

#endif
