// What the parts of a parameter server's paths share. Inside lib/role/paramserver only.
//
//   parameter_paths.c            callers, who is welcome, opening and closing
//   parameter_paths_request.c    requests and answers
//   parameter_paths_complaint.c  who was refused what
#ifndef ADAM_ROLE_PARAMSERVER_PARAMETER_PATHS_INTERNAL_H
#define ADAM_ROLE_PARAMSERVER_PARAMETER_PATHS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/link.h"
#include "role/paramserver/parameter_paths.h"

enum { PATHS_OFFENCES = 64 }; // told apart; all others share the last

// What is served: set once.
struct served {
    struct ps *ps;
    struct proto_id run;
    uint64_t model;
};

struct path {
    struct paths *paths;
    enum path_kind kind;
    struct listener *listener;
};

// Who called. It lives as long as its link is open or a request of it is under way.
struct caller {
    struct path *path;
    struct link *link;
    enum proto_role role;
    uint64_t session;
    char name[PROTO_NAME_MAX + 1];
    _Atomic uint32_t references;
    struct caller *next, *previous; // of those whose links are open
};

// What one session was refused for one reason.
struct offence {
    enum proto_refusal code;
    uint64_t session;
    uint64_t count, told; // `told`: the count when it was said last
    char last[512];       // who asked what
};

struct paths {
    struct paths_options options;
    struct path path[PATH_COUNT];
    struct pool pool, replication; // of payloads
    struct served served;
    _Atomic(struct served *) serving; // NULL until there is something to serve
    _Atomic uint64_t unwelcome;
    _Atomic bool started;

    pthread_mutex_t lock; // of all that follows
    struct caller *callers;
    uint64_t received, sent; // by links that are no more
    struct offence offences[PATHS_OFFENCES];
    int offence_count;
};

// parameter_paths.c. Gives a reference up.
void paths_caller_drop(struct caller *caller);

// parameter_paths_request.c. As a link's handlers want it.
void paths_hear_request(void *context, struct link *link, uint64_t request, uint16_t type,
                        const union proto_message *message, struct buffer *payload);

// parameter_paths_complaint.c. Counts the refusal, if it is one for what no program of the run does
// when all is well.
void paths_note_offence(struct paths *paths, const struct caller *caller, uint16_t type,
                        enum proto_refusal code, uint64_t detail);

#endif
