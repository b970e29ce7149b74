#include "member/place.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/mem.h"
#include "core/text.h"
#include "net/address.h"

enum { FOLDER_ROOM = PLACE_PATH_MAX };

// Makes the folder, or believes the one that is there when nobody else can enter it.
static int own_folder(const char *path, struct error *err) {
    struct stat folder;
    if (mkdir(path, S_IRWXU) && errno != EEXIST)
        return error_errno(err, STATUS_CANTCREATE, "%s", path);
    if (lstat(path, &folder))
        return error_errno(err, STATUS_CANTCREATE, "%s", path);
    if (!S_ISDIR(folder.st_mode) || folder.st_uid != geteuid() ||
        (folder.st_mode & (S_IRWXG | S_IRWXO)))
        return error_set(err, STATUS_CANTCREATE,
                         "%s: it must be a folder that only you can enter; move it away, or set "
                         "TMPDIR or --listen",
                         path);
    return STATUS_OK;
}

static int name_folder(char folder[FOLDER_ROOM], struct error *err) {
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    int length;
    if (runtime && *runtime && access(runtime, W_OK | X_OK) == 0)
        length = snprintf(folder, FOLDER_ROOM, "%s/adam", runtime);
    else
        length = snprintf(folder, FOLDER_ROOM, "%s/adam-%ld",
                          temporary && *temporary ? temporary : "/tmp", (long)geteuid());
    if (length >= FOLDER_ROOM)
        return error_set(err, STATUS_CANTCREATE, "%s...: too long for the path of a socket",
                         folder);
    return STATUS_OK;
}

// Whether nobody listens there. (A process may be of another name space, so that its
// number alone says little.)
static bool is_deaf(const char *folder, const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool deaf = fd >= 0 && length < (int)sizeof address.sun_path &&
                connect(fd, (struct sockaddr *)&address, sizeof address) && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return deaf;
}

// Whether it is named NAME-PID, and there is no such process any more.
static bool is_orphan(const char *folder, const char *name) {
    const char *dash = strrchr(name, '-');
    int64_t pid;
    return dash && text_integer(dash + 1, strlen(dash + 1), &pid) && pid > 0 &&
           kill((pid_t)pid, 0) && errno == ESRCH && is_deaf(folder, name);
}

static void remove_orphans(const char *path) {
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_type == DT_SOCK && is_orphan(path, entry->d_name))
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

void place_tidy(void) {
    char folder[FOLDER_ROOM];
    if (!name_folder(folder, NULL) && access(folder, F_OK) == 0 && !own_folder(folder, NULL))
        remove_orphans(folder);
}

static int place_local(char address[PROTO_ADDRESS_MAX], const char *what, struct error *err) {
    char folder[FOLDER_ROOM];
    int status = name_folder(folder, err);
    if (!status)
        status = own_folder(folder, err);
    if (status)
        return status;
    remove_orphans(folder);
    snprintf(address, PROTO_ADDRESS_MAX, "ipc://%s/%s-%ld", folder, what, (long)getpid());
    return STATUS_OK;
}

static int place_beside(char address[PROTO_ADDRESS_MAX], const char *what, const char *first,
                        struct error *err) {
    enum address_kind kind;
    const char *colon = strrchr(first, ':'), *dash = strrchr(what, '-');
    int status = address_kind(first, &kind, err);
    if (status)
        return status;
    if (kind == ADDRESS_IPC)
        snprintf(address, PROTO_ADDRESS_MAX, "%s%s", first, dash ? dash : "");
    else
        snprintf(address, PROTO_ADDRESS_MAX, "%.*s:0", (int)(colon - first), first);
    return STATUS_OK;
}

int place_address(char address[PROTO_ADDRESS_MAX], const char *what, const char *told,
                  const char *first, struct error *err) {
    static const char ipc[] = "ipc://";
    int status = STATUS_OK;
    if (told)
        snprintf(address, PROTO_ADDRESS_MAX, "%s", told);
    else if (first)
        status = place_beside(address, what, first, err);
    else
        status = place_local(address, what, err);
    if (!status && !strncmp(address, ipc, strlen(ipc)) &&
        strlen(address) - strlen(ipc) >= PLACE_PATH_MAX)
        return error_set(err, STATUS_CANTCREATE, "%s: too long for the path of a socket", address);
    return status;
}

static bool has_done(const char *folder, size_t length) {
    char *done = NULL;
    if (asprintf(&done, "%.*s/DONE", (int)length, folder) < 0)
        return false;
    bool there = access(done, F_OK) == 0;
    free(done);
    return there;
}

bool place_is_done(const char *controller) {
    const char *slash = strrchr(controller, '/');
    bool file = *controller == '@' && slash && access(controller + 1, F_OK) && errno == ENOENT;
    return file && has_done(controller + 1, (size_t)(slash - controller - 1));
}

static int no_controller(const char *folder, struct error *err) {
    bool over = has_done(folder, strlen(folder));
    return error_set(err, STATUS_NOINPUT, "%s: no controller runs there: %s", folder,
                     over ? "the run is done" : "it has no controller.port");
}

int place_controller(char **text, const char *place, struct error *err) {
    struct stat about;
    bool there = stat(place, &about) == 0;
    *text = NULL;
    if (!there && *place != '@' && !strstr(place, "://"))
        return error_set(err, STATUS_NOINPUT, "%s: neither a run's folder nor an address", place);
    if (!there || !S_ISDIR(about.st_mode))
        return (*text = mem_string(place)) ? STATUS_OK : error_nomem(err);
    struct grow file = {0};
    grow_format(&file, "@%s/controller.port", place);
    char *found = grow_take(&file);
    if (found && access(found + 1, R_OK) == 0) {
        *text = found;
        return STATUS_OK;
    }
    int status = found ? no_controller(place, err) : error_nomem(err);
    free(found);
    return status;
}

// Others know it by this text, so it must say where it is.
static bool can_be_dialled(const char *address) {
    char host[PROTO_ADDRESS_MAX];
    size_t length = strlen(address);
    bool any_port =
        address_host(address, host) && length > 2 && !strcmp(address + length - 2, ":0");
    return !any_port && !(address_host(address, host) && address_is_any(host));
}

static int add_controller(struct words *addresses, const char *address, struct error *err) {
    enum address_kind kind;
    int status = address_kind(address, &kind, err);
    if (!status && !can_be_dialled(address))
        status = error_set(err, STATUS_USAGE, "--quorum: others cannot dial %s", address);
    for (size_t i = 0; !status && i < addresses->count; i++)
        if (!strcmp(addresses->items[i], address))
            status = error_set(err, STATUS_USAGE, "--quorum: %s is named twice", address);
    words_add(addresses, address);
    return status ? status : addresses->failed ? error_nomem(err) : STATUS_OK;
}

static int find_own(const struct words *addresses, const char *own, uint32_t *id,
                    struct error *err) {
    for (*id = 0; own && *id < addresses->count; ++*id)
        if (!strcmp(addresses->items[*id], own))
            return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "--quorum: this controller's own address, --listen %s, is not "
                     "among them",
                     own ? own : "ADDR");
}

int place_quorum(struct words *addresses, const char *list, const char *own, uint32_t *id,
                 struct error *err) {
    char *text = mem_string(list), *rest = NULL;
    int status = text ? STATUS_OK : error_nomem(err);
    *addresses = (struct words){0};
    for (char *at = text ? strtok_r(text, ",", &rest) : NULL; !status && at;
         at = strtok_r(NULL, ",", &rest))
        status = add_controller(addresses, at, err);
    free(text);
    if (!status && addresses->count != 1 && addresses->count != 3 && addresses->count != 5)
        status = error_set(err, STATUS_USAGE,
                           "--quorum: %zu controllers; 3 survive the loss of one, 5 of two, and an "
                           "even number gains nothing",
                           addresses->count);
    return status ? status : find_own(addresses, own, id, err);
}

int place_keys(struct secrets **keys, const char *file, struct error *err) {
    *keys = NULL;
    if (!file)
        return STATUS_OK;
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    size_t length = strlen(name);
    if (length <= 4 || strcmp(name + length - 4, ".pem") != 0)
        return error_set(err, STATUS_USAGE, "--keys %s: it is not named NAME.pem", file);
    char *folder = slash ? mem_text(file, slash > file ? (size_t)(slash - file) : 1) : strdup(".");
    char *own = mem_text(name, length - 4);
    int status = folder && own ? secrets_open(keys, folder, own, err) : error_nomem(err);
    free(folder);
    free(own);
    return status;
}
