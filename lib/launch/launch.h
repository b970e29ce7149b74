// Which processes make a run, and by which command each of them starts. adam-ctl up runs
// these commands, adam-ctl -n up prints them, and scripts for schedulers are made of them:
// there is no other way in which a run starts, and none that a person could not type.
//
// Threads: nothing is shared; what is passed belongs to one thread at a time.
#ifndef ADAM_LAUNCH_LAUNCH_H
#define ADAM_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/words.h"
#include "launch/hosts.h"
#include "proto/proto.h"

struct error;
struct settings; // run/settings.h

// Holes of a command that is meant for several processes: each fills in its own number,
// from 1, and the name of its host as others reach it.
#define LAUNCH_NUMBER '\001'
#define LAUNCH_HOST '\002'

// The files of a run's folder that its processes find each other by, or leave there.
#define LAUNCH_PORT_FILE "controller.port"
#define LAUNCH_STATE "controller.state"
#define LAUNCH_STATE_OF "controller-%d.state" // of one of several
#define LAUNCH_CONTROLLERS 5                  // at most
#define LAUNCH_LOGS "log"
#define LAUNCH_CURSOR ".cursor"
#define LAUNCH_PORT 7000 // of controllers on the machines of --hosts, unless the user says
#define LAUNCH_PARTS "parts"
#define LAUNCH_STORES "store" // unless the user names another folder for them

// What the user wants. Texts are the caller's.
struct launch {
    const char *conf;                           // RUN.conf (adam-run(5))
    const char *folder;                         // of the run
    const char *here;                           // where relative paths begin; NULL: not told
    const char *data, *labels, *targets, *from; // the training set, as the data servers open it
    const char *const *set;
    size_t set_count; // KEY=VALUE over those of RUN.conf
    int controllers;  // 1, 3 or 5; 0 is 1
    int data_servers, parameter_servers;
    int workers;         // processes
    int partitions;      // of the model, for which a replica has as many workers; 1: it is not cut
    int copies;          // of each part of the weights, 1 to 3; 0: as RUN.conf says
    bool workers_wanted; // RUN.conf says how many must be there before training starts
    int threads;         // of each worker; 0: as many as adam-worker thinks best
    const char *keys;    // NAME.pem (adam-ctl keys); NULL: none
    bool insecure;       // beyond this machine without TLS
    bool resume, force;  // a run that the folder holds already: go on with it, replace it
    bool revive;         // with resume: it goes on from its stores, and is still the same run
    const char *store;   // folder of the parameter servers' stores; NULL: they have none
    bool remote_stores;  // it is a folder of the hosts on which the servers run
    bool aside;          // servers set what another run left there aside themselves
    double flush;        // seconds until a change is on its way there
    bool own_parts;      // parameter servers keep their parts of checkpoints
    const char *ssh;     // how hosts are reached: words with blanks between them; NULL: "ssh"
    const char *listen;  // address of the controller; NULL: a Unix socket
    const char *quorum;  // of several controllers: their addresses with commas between
    const char *own;     // of each of them: its own with LAUNCH_NUMBER; NULL: as quorum has it
    bool remote_controllers; // some of these run on hosts, which have the run's folder then
    const char *dial;        // where the others find it; NULL: in its port file
    const char *member; // address of the servers, perhaps with LAUNCH_HOST; NULL: a Unix socket
};

// What a command begins with that is to run on a host.
void launch_ssh(const struct launch *launch, const struct host *host, struct words *out);

// Nothing in it that would make a command mean something else: STATUS_USAGE for texts with
// control characters, and for addresses that net/address.h forbids; of hosts (or NULL) too.
int launch_check(const struct launch *launch, const struct hosts *hosts, struct error *err);

// With ack = durable all parameter servers must have a store. STATUS_USAGE.
int launch_check_store(const struct launch *launch, const struct settings *settings,
                       struct error *err);

// STATUS_CANTCREATE when a run is under way in the folder, or one is there that is neither to go on
// nor to be replaced.
int launch_check_folder(const struct launch *launch, struct error *err);

// Makes the run's folder and clears it of what an earlier run left for its processes to
// find: a controller that finds its state would take the others for alive. A run that is to go on
// from its stores keeps it.
// STATUS_CANTCREATE, also as launch_check_folder.
int launch_prepare(const struct launch *launch, struct error *err);

// Whether what the controllers agreed on stays: the run goes on from its stores, or controllers on
// hosts find out whether it does.
bool launch_keeps_states(const struct launch *launch);

// The roles that a run has processes of, in the order in which they start.
#define LAUNCH_ROLES 4
extern const enum proto_role launch_roles[LAUNCH_ROLES];
int launch_count(const struct launch *launch, enum proto_role role);
// "controller", "serve", "ps", "worker": names of processes, with -NUMBER behind them but
// for a controller alone.
const char *launch_short(enum proto_role role);

// The command of a role, with holes.
void launch_command(const struct launch *launch, enum proto_role role, struct words *out);
// The command by which a person ends the run.
void launch_down(const struct launch *launch, struct words *out);
// The command of one process.
void launch_process(const struct launch *launch, enum proto_role role, int number, const char *host,
                    struct words *out);
// Whether the stores are in the run's own folder, where no other run's are.
bool launch_stores_inside(const struct launch *launch);
// The path of a parameter server's store, as a word; with number 0 with a hole for it.
void launch_store(const struct launch *launch, int number, struct words *out);
// The path of a process's log, as a word; with number 0 with a hole for it.
void launch_log(const struct launch *launch, enum proto_role role, int number, struct words *out);
// A text with its holes filled.
void launch_fill(struct grow *out, const char *text, const char *number, const char *host);

// What to do when a process ends that was not to. (Whether a parameter server can be replaced
// is for the controller to say, who knows whether training has begun.)
enum launch_policy {
    LAUNCH_AGAIN, // start it again, each time a little later
    LAUNCH_RETRY, // so many times, then do without
};
#define LAUNCH_RETRIES 5
enum launch_policy launch_policy(enum proto_role role);

// With controllers on hosts: writes where they are to the port file here. STATUS_CANTCREATE,
// STATUS_IO.
int launch_tell(const struct launch *launch, struct error *err);

// The processes of a run, its controllers first.
struct process {
    char *name; // "ps-2"
    char *who;  // the same for a person: on another machine "ps-2 on NAME"
    struct words command;
    enum proto_role role;
    bool remote; // by ssh
    // The connection to a machine, that all there share: its socket, and how many words of
    // the command say how it is reached. Of others NULL, and which of the plan they use, or 0.
    char *socket;
    size_t reach, through;
};
struct plan {
    struct process *processes;
    size_t count, controllers;
    struct words down; // of several controllers: the command by which a person ends the run
    // What is to be done on hosts of controllers before a new run: none may find the record of
    // another one.
    struct words *clears;
    size_t clear_count;
};

// Every process of the run. With hosts each of several controllers runs on the host that its
// address is of, or here; the others are dealt out to the hosts, those of a host through one
// connection. STATUS_USAGE when they have no place for some, or would not reach each other.
int plan_make(struct plan *plan, const struct launch *launch, struct hosts *hosts,
              struct error *err);
void plan_free(struct plan *plan);
// Carries out the clears. STATUS_UNAVAILABLE when one of them fails.
int plan_clear(const struct plan *plan, struct error *err);
// What a person would type, with all that must be done before, to be freed with free();
// NULL when memory ran out.
char *plan_text(const struct plan *plan, const struct launch *launch);

#endif
