// The run itself: what its file names is there and fits together.
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/mem.h"
#include "data/dataset.h"
#include "doctor/doctor_internal.h"
#include "member/place.h"
#include "model/model.h"
#include "net/address.h"
#include "role/controller/controller.h"
#include "rule/optimizer.h"
#include "run/checkpoint.h"
#include "run/model_ops.h"
#include "train/class_weights.h"
#include "train/inherit.h"

// --- model and settings -----------------------------------------------------------------

static struct model *check_model(const struct doctor *doctor, struct findings *findings) {
    const struct settings *settings = &doctor->file->settings;
    struct model *model = NULL;
    struct error err = {0};
    if (!settings->model) {
        findings_problem(findings, STATUS_USAGE, DOCTOR_HERE, "model",
                         "the run has no model: set model = FILE");
        return NULL;
    }
    if (model_ops_read(&model, settings->model, doctor->file->sets, doctor->file->set_count,
                       &err) ||
        model_check_learns(model, &err))
        findings_error(findings, DOCTOR_HERE, "model", &err);
    else
        findings_ok(findings, DOCTOR_HERE, "model", "%s: %zu parameters, %d classes",
                    settings->model, model->parameter_count, model_classes(model));
    return model;
}

static void check_settings(const struct doctor *doctor, struct findings *findings) {
    struct settings settings = doctor->file->settings;
    struct error err = {0};
    settings.partitions = doctor->launch->partitions;
    if (controller_check_settings(&settings, &err) ||
        launch_check_store(doctor->launch, &settings, &err))
        findings_error(findings, DOCTOR_HERE, "settings", &err);
    else
        findings_ok(findings, DOCTOR_HERE, "settings", "protocol %s, mini-batches of %lld",
                    settings.protocol, (long long)settings.batch);
}

// A run that was to go on, and has saved nothing, begins anew.
static bool is_resumed(const struct launch *launch) {
    return launch->resume && run_folder_saved(launch->folder);
}

// What of it is taken over is said last.
static void keep_line(void *self, const char *text) {
    char *last = self;
    snprintf(last, ERROR_TEXT, "%s", text);
}

// What a fresh run would begin with. A model that is cut need not fit into memory.
static void check_init_from(const struct doctor *doctor, struct model *model, const char *nearest,
                            struct findings *findings) {
    const char *from = doctor->file->settings.init_from;
    struct checkpoint to = {.model = model,
                            .scratch = doctor->launch->partitions > 1 ? nearest : NULL};
    char taken[ERROR_TEXT] = "";
    struct error err = {0};
    if (!from || !model || is_resumed(doctor->launch))
        return;
    if (inherit_check(&to, from, keep_line, taken, &err))
        findings_error(findings, DOCTOR_HERE, "init-from", &err);
    else
        findings_ok(findings, DOCTOR_HERE, "init-from", "%s", taken);
}

// Whether a checkpoint in the run's folder is what it would go on with, and all of that is here:
// stores, and parts that servers keep, may be elsewhere.
static bool goes_on(const struct doctor *doctor) {
    const struct launch *launch = doctor->launch;
    return is_resumed(launch) && !launch->store &&
           strcmp(doctor->file->settings.checkpoint_parts, "local") != 0;
}

static void check_resume(const struct doctor *doctor, const char *nearest,
                         struct findings *findings) {
    const char *folder = doctor->launch->folder;
    const char *scratch = doctor->launch->partitions > 1 ? nearest : NULL;
    struct checkpoint from = {0};
    struct error err = {0};
    if (doctor->launch->resume && !doctor->launch->remote_controllers && access(folder, F_OK))
        findings_problem(findings, STATUS_NOINPUT, DOCTOR_HERE, "resume",
                         "no run to go on with: %s: %s", folder, strerror(errno));
    if (!goes_on(doctor))
        return;
    if (checkpoint_load_into(&from, folder, scratch, true, &err))
        findings_error(findings, DOCTOR_HERE, "resume", &err);
    else
        findings_ok(findings, DOCTOR_HERE, "resume",
                    "%s: a checkpoint of epoch %.4g, %zu parameters", folder, from.epoch,
                    from.model->parameter_count);
    checkpoint_free(&from);
}

// The controller finds them in the training set, also where that is served elsewhere.
static void check_class_weights(const struct settings *settings, struct model **model,
                                struct findings *findings) {
    const struct source_hooks hooks = {0};
    struct error err = {0};
    if (!settings->class_weights || !*model)
        return;
    if (class_weights_apply(model, settings, &hooks, &err))
        findings_error(findings, DOCTOR_HERE, "class-weights", &err);
    else
        findings_ok(findings, DOCTOR_HERE, "class-weights", "%s", settings->class_weights);
}

// --- data -------------------------------------------------------------------------------

static void judge_data(const struct model *model, const struct dataset *set, const char *path,
                       const char *check, struct findings *findings) {
    int classes = dataset_classes(set)->count, outputs = model ? model_classes(model) : classes;
    if (dataset_count(set) == 0)
        findings_problem(findings, STATUS_DATA, DOCTOR_HERE, check, "%s holds no samples", path);
    else if (classes > outputs)
        findings_problem(findings, STATUS_DATA, DOCTOR_HERE, check,
                         "%s has %d classes, but the model has %d outputs", path, classes, outputs);
    else
        findings_ok(findings, DOCTOR_HERE, check, "%s: %u samples of %d classes", path,
                    dataset_count(set), classes);
}

static void check_data_set(const struct model *model, const struct source_options *source,
                           const char *path, const char *check, struct findings *findings) {
    struct dataset *set = NULL;
    struct error err = {0};
    if (dataset_open(&set, path, source, true, NULL, &err))
        findings_error(findings, DOCTOR_HERE, check, &err);
    else
        judge_data(model, set, path, check, findings);
    dataset_close(set);
}

// The controller, which runs here, tests; data servers may be elsewhere, and then their machine
// is asked for the file.
static void check_sets(const struct doctor *doctor, const struct model *model,
                       struct findings *findings) {
    const struct settings *settings = &doctor->file->settings;
    const char *own = settings->test_targets;
    double held_out = 0; // which the settings are told of
    const struct source_options train = {
        .from = settings->from, .labels = settings->labels, .targets = settings->targets};
    const struct source_options test = {.labels = settings->test_labels,
                                        .targets = own ? own : settings->targets};
    if (!doctor->hosts)
        check_data_set(model, &train, settings->data, "data", findings);
    bool file = settings->test && !settings_holdout(settings, &held_out, NULL) && held_out <= 0;
    if (file)
        check_data_set(model, &test, settings->test, "test", findings);
}

// --- the folder -------------------------------------------------------------------------

// The folder itself, or the nearest above it that is there; to be freed with free().
static char *nearest_folder(const char *folder) {
    char *path = mem_string(folder);
    while (path && access(path, F_OK)) {
        char *slash = strrchr(path, '/');
        if (!slash) {
            free(path);
            return mem_string(".");
        }
        slash[slash == path] = 0;
    }
    return path;
}

static void check_run_folder(const struct doctor *doctor, const char *nearest,
                             struct findings *findings) {
    const struct launch *launch = doctor->launch;
    struct error err = {0};
    if (access(nearest, W_OK | X_OK))
        findings_problem(findings, STATUS_CANTCREATE, DOCTOR_HERE, "folder",
                         "cannot write in %s: %s", nearest, strerror(errno));
    else if (launch_check_folder(launch, &err))
        findings_error(findings, DOCTOR_HERE, "folder", &err);
    else
        findings_ok(findings, DOCTOR_HERE, "folder", "%s/ can be written", launch->folder);
}

// Bytes of the weights, with what the optimizer keeps of each.
static double model_bytes(const struct doctor *doctor, const struct model *model) {
    struct optimizer optimizer = {0};
    int states = settings_optimizer(&doctor->file->settings, &optimizer, NULL)
                     ? 0
                     : optimizer_kept(&optimizer);
    return (double)model->parameter_count * sizeof(float) * (1 + states);
}

// A new checkpoint is whole before an old one goes.
static void check_checkpoint_space(const struct doctor *doctor, const struct model *model,
                                   const char *nearest, struct findings *findings) {
    struct statvfs file_system;
    long long kept = doctor->file->settings.keep_last;
    char free_text[DOCTOR_BYTES], each[DOCTOR_BYTES];
    if (!model || statvfs(nearest, &file_system))
        return;
    double room = (double)file_system.f_bavail * (double)file_system.f_frsize;
    double bytes = model_bytes(doctor, model);
    doctor_bytes(free_text, room);
    doctor_bytes(each, bytes);
    if (room < 2 * bytes)
        findings_problem(
            findings, STATUS_IO, DOCTOR_HERE, "disk",
            "%s free in %s, and a checkpoint has %s: make room, or set --out elsewhere", free_text,
            nearest, each);
    else if (kept > 0 && room < (double)(kept + 1) * bytes)
        findings_warn(findings, DOCTOR_HERE, "disk",
                      "%s free in %s: not enough for keep-last = %lld checkpoints of %s", free_text,
                      nearest, kept, each);
    else
        findings_ok(findings, DOCTOR_HERE, "disk", "%s free, a checkpoint has %s", free_text, each);
}

// Bytes of what the workers of one replica hold of the weights.
static double worker_bytes(const struct doctor *doctor, const struct model *model) {
    const struct settings *settings = &doctor->file->settings;
    double weights = (double)model->parameter_count * sizeof(float);
    struct protocol protocol;
    enum protocol_push push;
    if (settings_protocol(settings, &protocol, &push, NULL))
        return weights;
    bool deltas = protocol.kind == PROTOCOL_ASYNC && push == PUSH_DELTA;
    int copies = protocol_copies(&protocol, push, settings_overlap(settings, &protocol));
    return weights * copies + (deltas ? model_bytes(doctor, model) - weights : 0);
}

// What processes on this machine hold at least: the servers, the controller's copy of a model that
// is not cut, and workers.
static void check_memory(const struct doctor *doctor, const struct model *model,
                         struct findings *findings) {
    char needs[DOCTOR_BYTES], has[DOCTOR_BYTES];
    if (!model)
        return;
    int partitions = doctor->launch->partitions;
    double bytes = partitions > 1 ? 0 : model_bytes(doctor, model);
    if (!doctor->hosts)
        bytes += model_bytes(doctor, model) +
                 worker_bytes(doctor, model) * doctor->launch->workers / partitions;
    doctor_bytes(needs, bytes);
    doctor_bytes(has, (double)cpu_memory());
    if (bytes > (double)cpu_memory())
        findings_warn(findings, DOCTOR_HERE, "memory",
                      "weights alone need %s, and this machine has %s: use fewer workers, or "
                      "--hosts",
                      needs, has);
    else
        findings_ok(findings, DOCTOR_HERE, "memory", "weights need %s of %s", needs, has);
}

// --- addresses --------------------------------------------------------------------------

static int can_listen(const struct addrinfo *at) {
    const int on = 1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
                    bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, SOMAXCONN))) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static int check_port(const char *address, struct findings *findings) {
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[PROTO_ADDRESS_MAX];
    if (!address_host(address, host))
        return -1;
    int code =
        getaddrinfo(strcmp(host, "*") ? host : NULL, strrchr(address, ':') + 1, &wanted, &found);
    int fd = code ? -1 : can_listen(found);
    if (code)
        findings_problem(findings, STATUS_UNAVAILABLE, DOCTOR_HERE, "listen",
                         "%s: the host name '%s' is not known here: %s", address, host,
                         gai_strerror(code));
    else if (fd < 0)
        findings_problem(findings, STATUS_UNAVAILABLE, DOCTOR_HERE, "listen",
                         "cannot listen on %s: %s", address, strerror(errno));
    else
        findings_ok(findings, DOCTOR_HERE, "listen", "%s is free", address);
    freeaddrinfo(found);
    return fd;
}

// Of several controllers, those that run here.
static void check_quorum(const struct doctor *doctor, struct findings *findings) {
    char host[PROTO_ADDRESS_MAX], *rest, *list = mem_string(doctor->launch->quorum);
    findings->failed |= !list;
    for (char *one = list ? strtok_r(list, ",", &rest) : NULL; one;
         one = strtok_r(NULL, ",", &rest)) {
        bool beyond = address_host(one, host);
        if (beyond && doctor->hosts && hosts_controller(doctor->hosts, host))
            continue;
        int fd = beyond ? check_port(one, findings) : -1;
        if (!beyond)
            findings_ok(findings, DOCTOR_HERE, "listen", "%s", one);
        if (fd >= 0)
            close(fd);
    }
    free(list);
}

static int check_listen(const struct doctor *doctor, struct findings *findings) {
    char address[PROTO_ADDRESS_MAX];
    struct error err = {0};
    const char *told = doctor->launch->listen;
    if (doctor->launch->quorum) {
        check_quorum(doctor, findings);
        return -1;
    }
    if (place_address(address, "ctl", told, NULL, &err)) {
        findings_error(findings, DOCTOR_HERE, "listen", &err);
        return -1;
    }
    if (told)
        return check_port(address, findings);
    findings_ok(findings, DOCTOR_HERE, "listen", "Unix sockets in %.*s",
                (int)(strrchr(address, '/') - address - (int)strlen("ipc://")),
                address + strlen("ipc://"));
    return -1;
}

// ----------------------------------------------------------------------------------------

void doctor_run(const struct doctor *doctor, struct findings *findings, int *listener) {
    struct model *model = check_model(doctor, findings);
    char *nearest = nearest_folder(doctor->launch->folder);
    check_settings(doctor, findings);
    check_sets(doctor, model, findings);
    check_init_from(doctor, model, nearest, findings);
    check_resume(doctor, nearest, findings);
    check_class_weights(&doctor->file->settings, &model, findings);
    findings->failed |= !nearest;
    if (nearest) {
        check_run_folder(doctor, nearest, findings);
        check_checkpoint_space(doctor, model, nearest, findings);
    }
    check_memory(doctor, model, findings);
    *listener = check_listen(doctor, findings);
    free(nearest);
    model_free(model);
}
