// What a run's command line and its file come to, for all that start a run or look at it before.
#ifndef ADAM_CTL_REQUEST_H
#define ADAM_CTL_REQUEST_H

#include "adam-ctl/subcommand.h"
#include "cli/option.h"
#include "launch/hosts.h"
#include "launch/launch.h"
#include "run/run_file.h"

struct error;

// What every way of starting a run takes.
#define LAUNCH_ROWS(o)                                                                             \
    TEXT('o', "out", "DIR", &(o)->out, "RUN.conf without .conf", "the run's folder"),              \
        INT(0, "serve", "N", &(o)->serve, 1, 1024, "1, or as RUN.conf says", "data servers"),      \
        INT(0, "ps", "N", &(o)->ps, 1, 1024, "1, or as RUN.conf says", "parameter servers"),       \
        COPIES_ROW(&(o)->copies),                                                                  \
        INT(0, "partitions", "N", &(o)->partitions, 1, 64, "1, or as RUN.conf says",               \
            "cut the model over N workers, which are one replica of it"),                          \
        INT(0, "controllers", "N", &(o)->controllers, 1, 5, "1", "controllers: 1, or 3 or 5"),     \
        LIST_OF(0, "set", "KEY=VALUE", &(o)->set, settings_key, "override a line of RUN.conf"),    \
        FLAG(0, "resume", &(o)->resume, "go on with the run in DIR")
// Not of units, which are started again and again and would replace the run each time.
#define FORCE_ROW(o) FLAG('f', "force", &(o)->force, "replace a run in DIR")
#define STORE_ROWS(o)                                                                              \
    MAYBE("store", "DIR", &(o)->store, "none; without DIR in the run's folder",                    \
          "parameter servers keep what changes on the disk"),                                      \
        TIME(0, "flush", "TIME", &(o)->flush, "1s", "how old a change gets before it is written")
// What up and doctor have in common.
#define UP_ROWS(o)                                                                                 \
    LAUNCH_ROWS(o), FORCE_ROW(o),                                                                  \
        INT(0, "workers", "N", &(o)->workers, 1, 4096,                                             \
            "1, or as RUN.conf says, or slots of --hosts",                                         \
            "workers, or replicas of a model that is cut"),                                        \
        INT('t', "threads", "N", &(o)->threads, 1, 4096,                                           \
            "as RUN.conf says, or processors / workers", "of each worker"),                        \
        TEXT(0, "hosts", "FILE", &(o)->hosts, NULL,                                                \
             "machines for all but the controller, by ssh"),                                       \
        TEXT(0, "ssh", "COMMAND", &(o)->ssh, "ssh", "what reaches the machines of --hosts"),       \
        TEXT('l', "listen", "ADDR", &(o)->listen, "a Unix socket", "address of each controller"),  \
        STORE_ROWS(o)
#define NETWORK_KEYS(o)                                                                            \
    TEXT(0, "keys", "FILE", &(o)->keys, NULL, "TLS: a NAME.pem of adam-ctl keys, as all have it"), \
        FLAG(0, "insecure", &(o)->insecure, "allow connections beyond this machine without TLS")

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

// Whether stores of any other run may be set aside: those in the run's own folder, and others when
// a run is replaced or gone on with from its checkpoint.
bool request_may_set_aside(const struct launch *launch);
// Of one machine: the workers share its processors.
void request_share_processors(struct launch *launch);
// Programs that are not in $PATH are found where this one is.
int request_find_programs(struct error *err);

#endif
