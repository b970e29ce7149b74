// The three addresses of a parameter server: who is welcome at which, what may be asked
// there, and the way of requests to lib/ps and back.
//
// Payloads are not copied here: a push's buffer goes to lib/ps as it came, and a pull is
// answered from where the weights lie ("one copy of a tensor between the wire and the
// weights"). Weights race with updates meanwhile, on purpose (ps/ps.h).
//
// Threads: paths_open and paths_close belong to one thread, which may call everything
// else, too. Requests are handled by threads of the network and answered by those of
// lib/ps; the hooks are called by any of them, and must not wait.
#ifndef ADAM_ROLE_PARAMSERVER_PARAMETER_PATHS_H
#define ADAM_ROLE_PARAMSERVER_PARAMETER_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "ps/ps.h"

struct link;
struct paths;
struct secrets;

enum path_kind { PATH_TRAINING, PATH_REPLICATION, PATH_ADMIN, PATH_COUNT };

struct paths_hooks {
    void *self;
    // A session that nobody told of yet: the members should be looked up.
    void (*look)(void *self);
    // How this server is doing: of the only member in its `status`. Its texts must last.
    void (*status)(void *self, struct proto_member *member);
    // Somebody at the administration's address asks for the end.
    void (*stop)(void *self);
    // An order of the controller to write a part of a checkpoint (save_part). Once there is
    // something to serve.
    void (*save)(void *self, struct link *link, uint64_t request, uint16_t type,
                 const union proto_message *message);
    // A link of the administration's address is closed.
    void (*left)(void *self, const struct link *link);
    // A request of another parameter server, by its session: as in struct link_handlers. Once there
    // is something to serve.
    void (*replicate)(void *self, struct link *link, uint64_t session, uint64_t request,
                      uint16_t type, const union proto_message *message, struct buffer *payload);
};

struct paths_options {                 // texts belong to the caller
    const char *addresses[PATH_COUNT]; // where to listen
    const char *name;                  // of this server, for people
    const struct secrets *keys;
    bool insecure;
    uint64_t memory; // bytes of payloads that may be here at once, of workers and of other servers
    struct paths_hooks hooks;
};

// Listens, but welcomes nobody before paths_start. STATUS_UNAVAILABLE, STATUS_USAGE.
int paths_open(struct paths **paths, const struct paths_options *options, struct error *err);
// Where it listens, with the port that it got.
const char *paths_address(const struct paths *paths, enum path_kind kind);

// Hooks may be called from now on: there is `status`, while others are told to wait.
void paths_start(struct paths *paths);
// From now on requests are carried out by `ps`, of this run and this model only. Once.
void paths_serve(struct paths *paths, struct ps *ps, struct proto_id run, uint64_t model);

// Bytes on the wire so far, on all three.
void paths_traffic(struct paths *paths, uint64_t *received, uint64_t *sent);

// Requests that should never have come (not finite, of another shape, run, model or session).
struct complaint {
    enum proto_refusal code;
    uint64_t session; // of who asked; 0: none, or of many
    uint64_t count;   // since it was told of last
    char text[ERROR_TEXT];
};
// One of these, when it is time to tell of it: the first of a session and a kind at once,
// then when they have doubled. False: nothing to say.
bool paths_complaint(struct paths *paths, struct complaint *complaint);
// How many hellos were refused, and requests that did not come to lib/ps, which counts others.
uint64_t paths_unwelcome(const struct paths *paths);

// Ends all links. After it `ps` may be closed, and then paths_free be called, since
// answers may be on their way until then.
void paths_close(struct paths *paths);
void paths_free(struct paths *paths);

#endif
