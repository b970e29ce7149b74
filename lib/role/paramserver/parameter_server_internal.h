// What the parts of a parameter server share. Inside lib/role/paramserver only.
//
//   parameter_server.c          its life, beginning and end
//   parameter_server_obey.c     what the controller says: the run, members, routes, places
//   parameter_server_figures.c  how it is doing
//
// Functions are of the thread that runs it, but where any may call them.
#ifndef ADAM_ROLE_PARAMSERVER_PARAMETER_SERVER_INTERNAL_H
#define ADAM_ROLE_PARAMSERVER_PARAMETER_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "member/member.h"
#include "persist/files_system.h"
#include "role/paramserver/flusher.h"
#include "role/paramserver/parameter_paths.h"
#include "role/paramserver/parameter_server.h"
#include "role/paramserver/part_saver.h"
#include "role/paramserver/replicator.h"
#include "run/settings.h"

struct error;

// What it has done, at some time; figures "of late" are differences of two.
struct ps_reading {
    double time;
    struct ps_figures figures;
};

struct parameter_server {
    const struct parameter_server_options *o;
    struct paths *paths;
    struct member *member;
    _Atomic bool stop; // somebody asked for it by the network

    // Of the thread that runs it.
    struct model *model;
    struct settings settings;
    char *settings_text;                          // that `settings` points into
    struct kept *run, *routes, *members, *places; // that were obeyed last
    struct ps_reading reported;                   // by the last line of metrics
    double lacking;            // clock_seconds; since when shards lack weights; 0: none do
    size_t held;               // parameters
    struct files_system store; // folder -1: none
    struct flusher *flusher;
    uint32_t damaged;              // shards that the store could not give back
    struct replicator *replicator; // NULL until it serves
    struct part_saver *saver;      // the same

    pthread_mutex_t lock; // of all that follows, which other threads ask for
    struct ps *ps;
    struct ps_reading looked;
    double rate, staleness; // of late
    bool idle;              // the places give it no shard of the model
    bool copies;            // they give it some, whoever is their primary
    struct flusher_figures risk;
};

// A line for its user. Any thread.
void parameter_server_say(void *self, const char *text);

// parameter_server_obey.c

// Takes over what is new of all that the controller says. From the first run on it serves.
int parameter_server_obey(struct parameter_server *server, struct error *err);
// Bytes that pushes under way may take, of so many in all; 0: of as many as there are.
uint64_t parameter_server_payloads(uint64_t memory);

// parameter_server_figures.c

// As the hooks of a member and of the paths want them. Any thread.
void parameter_server_figures(void *self, struct proto_heartbeat *figures);
void parameter_server_status(void *self, struct proto_member *member);
// Looks now and then how fast it is of late.
void parameter_server_note_rates(struct parameter_server *server, double now);
// A line of metrics, once it serves.
void parameter_server_report(struct parameter_server *server, double time);
// Its user and the controller hear who sent what no sound program sends.
void parameter_server_report_refused(struct parameter_server *server,
                                     const struct complaint *complaint);

#endif
