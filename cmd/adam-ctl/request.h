// What a run's command line and its file come to, for all that start a run or look at it before.
#ifndef ADAM_CTL_REQUEST_H
#define ADAM_CTL_REQUEST_H

#include "adam-ctl/subcommand.h"
#include "launch/hosts.h"
#include "launch/launch.h"
#include "run/run_file.h"

struct error;

// Texts of `launch` point into the rest, and into the options.
struct request {
    struct launch launch;
    struct run_file file;
    struct hosts hosts;
    char *folder, *member, *here;
    char *stores;         // folder of the stores
    char *quorum, *first; // of several controllers: their addresses, and one of these
    char *own;            // and each one's as launch.h has it
    struct words paths;   // of what commands take, where they begin with a dash
};

// Reads RUN.conf and --hosts. request_free also after a failure.
int request_open(struct request *request, const struct launch_options *options, const char *conf,
                 struct error *err);
void request_free(struct request *request);

// With ack = durable all parameter servers must have a store. STATUS_USAGE.
int request_check_store(const struct request *request, struct error *err);
// Whether stores of any other run may be set aside: those in the run's own folder, and others when
// a run is replaced or gone on with from its checkpoint.
bool request_may_set_aside(const struct launch *launch);
// Of one machine: the workers share its processors.
void request_share_processors(struct launch *launch);
// Programs that are not in $PATH are found where this one is.
int request_find_programs(struct error *err);

#endif
