#include "adam-ctl/request.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"
#include "member/place.h"
#include "net/address.h"
#include "run/checkpoint_parts.h"

void request_free(struct request *request) {
    run_file_free(&request->file);
    hosts_free(&request->hosts);
    free(request->folder);
    free(request->member);
    free(request->here);
    free(request->stores);
    free(request->quorum);
    free(request->first);
    free(request->own);
    words_free(&request->paths);
}

// A path that begins with a dash would be an option where a command takes it.
static const char *plain_path(struct request *r, const char *path) {
    if (!path || *path != '-')
        return path;
    words_format(&r->paths, "./%s", path);
    return r->paths.failed ? path : r->paths.items[r->paths.count - 1];
}

// Without the slashes at its end: paths are shown.
static void put_bare(struct grow *out, const char *folder) {
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    grow_put(out, folder, length);
}

// RUN.conf without its ending, unless the user names a folder.
static char *run_folder(struct request *r, const struct launch_options *options, const char *conf) {
    struct grow folder = {0};
    size_t length = strlen(conf), ending = strlen(".conf");
    if (options->out) {
        put_bare(&folder, plain_path(r, options->out));
    } else if (length > ending && !strcmp(conf + length - ending, ".conf")) {
        grow_put(&folder, conf, length - ending);
    } else {
        grow_format(&folder, "%s.run", conf);
    }
    return grow_take(&folder);
}

static int read_file(struct request *r, const struct launch_options *options, const char *conf,
                     struct error *err) {
    int status = run_file_read(&r->file, conf, err);
    if (status == STATUS_OK)
        status = run_file_set(&r->file, options->set.items, options->set.count, err);
    const char *data = r->file.settings.data;
    if (status == STATUS_OK && !data)
        status = error_set(err, STATUS_DATA, "%s: error: no data = FILE: the training set", conf);
    else if (status == STATUS_OK && !strcmp(data, "-"))
        status =
            error_set(err, STATUS_DATA, "%s: error: data servers cannot read standard input", conf);
    r->launch.data = plain_path(r, data);
    r->launch.labels = plain_path(r, r->file.settings.labels);
    r->launch.targets = plain_path(r, r->file.settings.targets);
    r->launch.from = r->file.settings.from;
    r->launch.workers_wanted = r->file.settings.workers > 0;
    return status;
}

// Paths of Unix sockets have 107 bytes, of which ssh(1) wants 17 for itself.
enum { SSH_PATH_MAX = 90 };

// Where the connections to the hosts are shared, a path for each that ssh can still put
// something behind. A host without one does without.
static int find_sockets(struct hosts *hosts, struct error *err) {
    static const char scheme[] = "ipc://";
    for (size_t i = 0; i < hosts->count; i++) {
        char what[32], address[PROTO_ADDRESS_MAX];
        snprintf(what, sizeof what, "ssh-%zu", i + 1);
        int status = place_address(address, what, NULL, NULL, err);
        if (status != STATUS_OK)
            return status;
        const char *path = address + strlen(scheme);
        if (strlen(path) <= SSH_PATH_MAX && !(hosts->items[i].socket = strdup(path)))
            return error_nomem(err);
    }
    return STATUS_OK;
}

// By those who are told the address as it is.
static bool can_be_found(const char *address, enum address_kind kind) {
    const char *port = strrchr(address, ':'), *host = strstr(address, "://") + strlen("://");
    char name[PROTO_ADDRESS_MAX];
    if (address_is_socket(kind) || !strcmp(port, ":0"))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(port - host), host);
    return !address_is_any(name);
}

// In the run's folder.
static int name_sockets(struct request *r, struct error *err) {
    const char *slash = *r->folder == '/' ? "" : "/", *here = *r->folder == '/' ? "" : r->here;
    struct grow own = {0};
    grow_format(&own, "ipc://%s%s%s/controller-%c.socket", here, slash, r->folder, LAUNCH_NUMBER);
    r->own = grow_take(&own);
    r->launch.own = r->own;
    if (r->own && strchr(r->own, ','))
        return error_set(err, STATUS_USAGE,
                         "a comma in %s%s%s: addresses of several controllers are made of it, with "
                         "commas between; set --out",
                         here, slash, r->folder);
    return r->own ? STATUS_OK : error_nomem(err);
}

static void put_sockets(struct grow *list, const struct request *r, int64_t controllers) {
    char digits[24];
    for (int64_t i = 1; i <= controllers; i++) {
        snprintf(digits, sizeof digits, "%" PRId64, i);
        grow_format(list, "%s", i > 1 ? "," : "");
        launch_fill(list, r->own, digits, NULL);
    }
}

// On the first hosts that take one.
static void put_hosts(struct grow *list, const struct request *r, const char *scheme,
                      int64_t controllers) {
    for (size_t i = 0; i < r->hosts.count && controllers > 0; i++) {
        const struct host *host = &r->hosts.items[i];
        if (!host->takes[PROTO_ROLE_CONTROLLER])
            continue;
        bool six = strchr(host->address, ':') && *host->address != '[';
        grow_format(list, "%s%s://%s%s%s:%d", list->length ? "," : "", scheme, six ? "[" : "",
                    host->address, six ? "]" : "", LAUNCH_PORT);
        controllers--;
    }
}

// Where the controllers listen, unless the user tells.
static char *quorum_addresses(const struct request *r, const struct launch_options *options) {
    struct grow list = {0};
    grow_put(&list, "", 0);
    if (options->listen)
        grow_format(&list, "%s", options->listen);
    else if (options->hosts)
        put_hosts(&list, r, options->keys ? "tls+tcp" : "tcp", options->controllers);
    else
        put_sockets(&list, r, options->controllers);
    return grow_take(&list);
}

static int check_controllers(const struct launch_options *options, struct error *err) {
    if (options->controllers < 2 || options->controllers % 2)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "--controllers %" PRId64 ": 3 survive the loss of one, 5 of two, and an even "
                     "number gains nothing",
                     options->controllers);
}

static int count_addresses(const struct launch_options *options, size_t addresses,
                           struct error *err) {
    if (addresses == (size_t)options->controllers)
        return STATUS_OK;
    if (!options->listen && options->hosts)
        return error_set(err, STATUS_USAGE,
                         "--controllers %" PRId64 ": as many hosts must take the role controller, "
                         "and %zu do; say roles=controller, or --listen",
                         options->controllers, addresses);
    return error_set(err, STATUS_USAGE,
                     "--controllers %" PRId64 ": --listen has %zu addresses; it needs one "
                     "for each, with commas between",
                     options->controllers, addresses);
}

static bool any_is_remote(const struct request *r, const struct words *addresses) {
    char host[PROTO_ADDRESS_MAX];
    for (size_t i = 0; i < addresses->count; i++)
        if (address_host(addresses->items[i], host) && hosts_controller(&r->hosts, host))
            return true;
    return false;
}

// They must know each other's addresses before one of them begins.
static int name_quorum(struct request *r, const struct launch_options *options, struct error *err) {
    struct words addresses;
    uint32_t id;
    bool sockets = !options->listen && !options->hosts;
    if (sockets && name_sockets(r, err))
        return err->status;
    r->quorum = quorum_addresses(r, options);
    r->first = r->quorum ? mem_text(r->quorum, strcspn(r->quorum, ",")) : NULL;
    if (!r->first)
        return error_nomem(err);
    size_t commas = 0;
    for (const char *c = r->quorum; *c; c++)
        commas += *c == ',';
    int status = count_addresses(options, *r->quorum ? commas + 1 : 0, err);
    if (status)
        return status;
    status = place_quorum(&addresses, r->quorum, r->first, &id, err);
    for (size_t i = 0; status == STATUS_OK && i < addresses.count; i++)
        status = address_check(addresses.items[i], options->keys, options->insecure, err);
    r->launch.remote_controllers = status == STATUS_OK && any_is_remote(r, &addresses);
    words_free(&addresses);
    r->launch.quorum = r->quorum;
    return status;
}

// With machines to use, all servers are reached by TCP, or TLS where there are keys; and
// the controller by the address that the user told.
static int use_hosts(struct request *r, const struct launch_options *options, struct error *err) {
    struct grow member = {0};
    enum address_kind kind;
    const char *listen = r->first ? r->first : options->listen;
    if (!listen)
        return error_set(err, STATUS_USAGE,
                         "--hosts needs --listen tcp://HOST:PORT: where the hosts find the "
                         "controller, which runs here");
    int status = address_kind(listen, &kind, err);
    if (status != STATUS_OK)
        return status;
    if (!can_be_found(listen, kind))
        return error_set(err, STATUS_USAGE,
                         "--listen %s cannot be found by other hosts; say the name that they know "
                         "this one by, and a port",
                         listen);
    grow_format(&member, "%s://%c:0", kind == ADDRESS_TLS ? "tls+tcp" : "tcp", LAUNCH_HOST);
    r->member = grow_take(&member);
    r->launch.dial = r->quorum ? r->quorum : options->listen;
    r->launch.member = r->member;
    return r->member ? find_sockets(&r->hosts, err) : error_nomem(err);
}

// As many as the command line says, or else the file.
static void count_servers(struct request *r, const struct launch_options *options) {
    const struct settings *settings = &r->file.settings;
    int64_t data = options->serve ? options->serve : settings->data_servers;
    int64_t parameters = options->ps ? options->ps : settings->servers;
    r->launch.data_servers = (int)data;
    r->launch.parameter_servers = (int)parameters;
    r->launch.threads = (int)(options->threads ? options->threads : settings->threads);
}

// One server cannot have two copies of anything.
static int count_copies(struct request *r, const struct launch_options *options,
                        struct error *err) {
    int64_t copies = options->copies ? options->copies : r->file.settings.copies;
    int servers = r->launch.parameter_servers;
    r->launch.copies = (int)options->copies;
    if (copies <= servers)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s%" PRId64 ": as many parameter servers must be there, and --ps starts %d",
                     options->copies ? "--copies " : "copies=", copies, servers);
}

// The folder of the stores: in the run's, unless the user names another.
static int name_stores(struct request *r, const struct launch_options *options, struct error *err) {
    struct grow folder = {0};
    if (!options->store)
        return options->flush > 0 ? error_set(err, STATUS_USAGE, "--flush is of a --store")
                                  : STATUS_OK;
    if (*options->store)
        put_bare(&folder, plain_path(r, options->store));
    else
        grow_format(&folder, "%s/" LAUNCH_STORES, r->folder);
    r->stores = grow_take(&folder);
    r->launch.store = r->stores;
    r->launch.remote_stores = options->hosts != NULL;
    r->launch.flush = options->flush > 0 ? options->flush : 1;
    return r->stores ? STATUS_OK : error_nomem(err);
}

// Also where RUN.conf could not be read.
static int count_partitions(const struct request *r, const struct launch_options *options) {
    int64_t partitions = options->partitions ? options->partitions : r->file.settings.partitions;
    return partitions > 0 ? (int)partitions : 1;
}

// Each replica of the model has as many as the model has partitions. As many replicas as the
// command line says; or else as the hosts have slots for, but no fewer than the file waits for.
static int count_workers(const struct request *r, const struct launch_options *options,
                         int partitions) {
    int wanted = (int)r->file.settings.workers, slots = hosts_slots(&r->hosts);
    if (options->workers)
        return (int)options->workers * partitions;
    int usual = !r->hosts.count || (partitions > 1 && slots < partitions) ? 1 : slots / partitions;
    return (wanted > usual ? wanted : usual) * partitions;
}

// Also where the run goes on from parts that its servers have, whatever it saves from now on.
static bool keeps_parts(const struct request *r, const struct launch_options *options) {
    struct checkpoint_own own;
    return !strcmp(r->file.settings.checkpoint_parts, "local") ||
           (options->resume && checkpoint_own_list(r->folder, &own, 1) > 0);
}

int request_open(struct request *r, const struct launch_options *options, const char *conf,
                 struct error *err) {
    *r = (struct request){0};
    conf = plain_path(r, conf);
    int status = read_file(r, options, conf, err);
    r->folder = run_folder(r, options, conf);
    r->here = getcwd(NULL, 0);
    if (status == STATUS_OK && (!r->folder || !r->here))
        status = error_nomem(err);
    if (status == STATUS_OK && options->hosts)
        status = hosts_read(&r->hosts, options->hosts, err);
    if (status == STATUS_OK)
        status = check_controllers(options, err);
    if (status == STATUS_OK && options->controllers > 1 && !options->job)
        status = name_quorum(r, options, err);
    if (status == STATUS_OK)
        status = name_stores(r, options, err);
    count_servers(r, options);
    if (status == STATUS_OK)
        status = count_copies(r, options, err);
    if (status == STATUS_OK && options->hosts)
        status = use_hosts(r, options, err);
    struct launch *launch = &r->launch;
    launch->conf = conf;
    launch->folder = r->folder;
    launch->here = r->here;
    launch->own_parts = status == STATUS_OK && keeps_parts(r, options);
    launch->set = options->set.items;
    launch->set_count = options->set.count;
    launch->controllers = (int)options->controllers;
    launch->partitions = count_partitions(r, options);
    launch->workers = count_workers(r, options, launch->partitions);
    launch->keys = plain_path(r, options->keys);
    launch->insecure = options->insecure;
    launch->resume = options->resume;
    launch->force = options->force;
    launch->listen = r->first ? r->first : options->listen;
    launch->ssh = options->ssh;
    if (status == STATUS_OK && r->paths.failed)
        status = error_nomem(err);
    if (status == STATUS_OK && launch->partitions > 1 && launch->threads)
        status = error_set(err, STATUS_USAGE,
                           "each of the %d partitions has a thread of its own; leave out %sthreads",
                           launch->partitions, options->threads ? "--" : "");
    if (status == STATUS_OK && launch->resume && launch->force)
        status = error_set(err, STATUS_USAGE, "--resume goes on with a run, --force replaces it");
    return status == STATUS_OK ? launch_check(launch, r->hosts.count ? &r->hosts : NULL, err)
                               : status;
}

bool request_may_set_aside(const struct launch *launch) {
    return launch->store && !launch->revive &&
           (launch_stores_inside(launch) || launch->resume || launch->force);
}

void request_share_processors(struct launch *launch) {
    int share = cpu_count() / (launch->workers > 0 ? launch->workers : 1);
    if (!launch->threads)
        launch->threads = share > 1 ? share : 1;
}

int request_find_programs(struct error *err) {
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *path = getenv("PATH");
    struct grow all = {0};
    if (length <= 0)
        return STATUS_OK;
    self[length] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    grow_format(&all, "%s%s%s", path ? path : "", path && *path ? ":" : "", self);
    char *text = grow_take(&all);
    int status = text && setenv("PATH", text, 1) == 0 ? STATUS_OK : error_nomem(err);
    free(text);
    return status;
}
