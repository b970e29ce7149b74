// A run as units of systemd.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/random.h"
#include "launch/schedulers.h"

// As systemd reads a word: in quotes, with its specifiers and
// variables doubled. The hole for the number is that of the instance.
static void put_word(struct grow *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@+=:,./-\001";
    bool quote = !*word || word[strspn(word, plain)];
    if (quote)
        grow_put(out, "\"", 1);
    for (; *word; word++) {
        const char one[] = {*word, 0};
        if (strchr("\\\"", *word))
            grow_put(out, "\\", 1);
        else if (strchr("%$", *word))
            grow_put(out, one, 1);
        launch_fill(out, one, "%i", "%H");
    }
    if (quote)
        grow_put(out, "\"", 1);
}

// A unit's name as systemd-escape(1) makes it, but that dashes stay. In the name of a folder below
// %t a backslash and a colon would mean something else.
static void put_unit_name(struct grow *out, const char *name) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:.-";
    for (; *name; name++)
        if (strchr(plain, *name))
            grow_put(out, name, 1);
        else
            grow_format(out, "\\x%02x", (unsigned char)*name);
}

// The paths of sockets in it have room for so many bytes: a longer name is cut, and told from
// others by a hash.
static void put_runtime_folder(struct grow *out, const char *name) {
    enum { MOST = 40, CUT = 31 };
    struct grow unit = {0};
    put_unit_name(&unit, name);
    size_t length = unit.length <= MOST ? unit.length : CUT;
    bool cut = length < unit.length;
    char *text = grow_take(&unit);
    out->failed |= !text;
    for (size_t i = 0; text && i < length; i++)
        grow_put(out, strchr("\\:", text[i]) ? "_" : &text[i], 1);
    if (cut && text)
        grow_format(out, "-%08x", (unsigned)hash_bytes(name, strlen(name)));
    free(text);
}

// The rest of a line, without specifiers. One that ends with a backslash would go on in the next
// line, and a blank at its end is lost: `behind` follows them.
static void put_rest(struct grow *out, const char *text, const char *behind) {
    for (const char *c = text; *c; c++)
        grow_put(out, *c == '%' ? "%%" : c, *c == '%' ? 2 : 1);
    if (*text && strchr("\\ ", text[strlen(text) - 1]))
        grow_format(out, "%s", behind);
}

static void put_description(struct grow *out, const char *what, const char *folder) {
    grow_format(out, "[Unit]\nDescription=%s in ", what);
    put_rest(out, folder, "/");
    grow_format(out, "\n");
}

static bool has_several_controllers(const struct launch *launch) {
    return launch_count(launch, PROTO_ROLE_CONTROLLER) > 1;
}

// "adam-run-ps@.service"; of an instance with its number.
static void put_service(struct grow *out, const struct launch *launch,
                        const struct systemd *systemd, enum proto_role role, int number) {
    put_unit_name(out, systemd->name);
    grow_format(out, "-%s", launch_short(role));
    if (role != PROTO_ROLE_CONTROLLER || has_several_controllers(launch)) {
        grow_format(out, "@");
        if (number)
            grow_format(out, "%d", number);
    }
    grow_format(out, ".service");
}

// All processes of the roles from `first` on, behind a key.
static void put_services(struct grow *out, const char *key, const struct launch *launch,
                         const struct systemd *systemd, size_t first) {
    grow_format(out, "%s=", key);
    for (size_t i = first; i < LAUNCH_ROLES; i++)
        for (int n = 1; n <= launch_count(launch, launch_roles[i]); n++) {
            if (i > first || n > 1)
                grow_format(out, " ");
            put_service(out, launch, systemd, launch_roles[i], n);
        }
    grow_format(out, "\n");
}

static void put_part_of(struct grow *out, const struct systemd *systemd) {
    grow_format(out, "PartOf=");
    put_unit_name(out, systemd->name);
    grow_format(out, ".target\n");
}

static void put_target(struct grow *out, const struct launch *launch,
                       const struct systemd *systemd) {
    put_description(out, "The run", launch->folder);
    put_services(out, "Wants", launch, systemd, 0);
    if (has_several_controllers(launch)) {
        grow_format(out, "Wants=");
        put_unit_name(out, systemd->name);
        grow_format(out, "-end.service\n");
    }
    grow_format(out, "\n[Install]\nWantedBy=%s\n",
                systemd->user ? "multi-user.target" : "default.target");
}

static void put_unit(struct grow *out, const struct launch *launch, const struct systemd *systemd,
                     enum proto_role role) {
    char what[64];
    snprintf(what, sizeof what, "The %s of the run", launch_short(role));
    put_description(out, what, launch->folder);
    put_part_of(out, systemd);
    grow_format(out, "StartLimitIntervalSec=2min\nStartLimitBurst=10\n");
    if (role != PROTO_ROLE_CONTROLLER)
        return;
    grow_format(out, "# Who is started last is stopped first: the controller saves while the "
                     "others are there.\n");
    put_services(out, "After", launch, systemd, 1);
}

// Nothing is started again that ended by itself or cannot work: 1 is a parameter server that was
// drained, 2 and 65 to 73 are the command line, the model, the data or a file. 75 is a controller
// that has stopped and saved; a member has lost its session. When a parameter server is lost the
// controller ends with 69; started again, it goes on from the last checkpoint.
static const char policy[] = //
    "Restart=on-failure\n"
    "RestartSec=2\n"
    "SuccessExitStatus=1 75\n"
    "RestartPreventExitStatus=1 2 3 65 66 73\n";
static const char policy_of_members[] = "RestartForceExitStatus=75\n";

static void put_path(struct grow *out, const struct systemd *systemd, const char *folder) {
    struct grow path = {0};
    if (folder[0] != '/')
        grow_format(&path, "%s/", systemd->folder);
    grow_format(&path, "%s", folder);
    out->failed |= path.failed;
    put_word(out, path.text ? path.text : "");
    free(path.text);
}

// What these programs never need. A manager of a user's own can only hide files behind a
// user namespace.
static void put_hardening(struct grow *out, const struct launch *launch,
                          const struct systemd *systemd, enum proto_role role) {
    if (!systemd->user)
        grow_format(out, "PrivateUsers=yes\n");
    grow_format(out, "NoNewPrivileges=yes\n"
                     "CapabilityBoundingSet=\n"
                     "ProtectSystem=strict\n"
                     "ProtectHome=read-only\n"
                     "ReadWritePaths=");
    put_path(out, systemd, launch->folder);
    if (launch->store && role == PROTO_ROLE_PARAMETER_SERVER && !launch_stores_inside(launch)) {
        grow_format(out, " ");
        put_path(out, systemd, launch->store);
    }
    grow_format(out, "\n"
                     "PrivateTmp=yes\n"
                     "PrivateDevices=yes\n"
                     "ProtectKernelTunables=yes\n"
                     "ProtectKernelModules=yes\n"
                     "ProtectKernelLogs=yes\n"
                     "ProtectControlGroups=yes\n"
                     "ProtectClock=yes\n"
                     "ProtectHostname=yes\n"
                     "RestrictNamespaces=yes\n"
                     "RestrictRealtime=yes\n"
                     "RestrictSUIDSGID=yes\n"
                     "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n"
                     "LockPersonality=yes\n"
                     "MemoryDenyWriteExecute=yes\n"
                     "SystemCallArchitectures=native\n"
                     "SystemCallFilter=@system-service\n"
                     "UMask=0077\n");
}

// With the program's whole path: systemd-analyze(1) knows no other.
static void put_exec_start(struct grow *out, const struct systemd *systemd,
                           const struct words *command) {
    struct grow program = {0};
    grow_format(&program, "%s/%s", systemd->path, command->items[0]);
    char *text = grow_take(&program);
    out->failed |= !text;
    if (text)
        put_word(out, text);
    free(text);
    for (size_t i = 1; i < command->count; i++) {
        grow_put(out, " ", 1);
        put_word(out, command->items[i]);
    }
}

// Whose process it is, and where it works.
static void put_place(struct grow *out, const struct systemd *systemd) {
    if (systemd->user)
        grow_format(out, "User=%s\n", systemd->user);
    grow_format(out, "WorkingDirectory=");
    put_rest(out, systemd->folder, "/");
    // The sockets of all are in it: it goes with none of them.
    grow_format(out, "\nRuntimeDirectory=");
    put_runtime_folder(out, systemd->name);
    grow_format(out, "\nRuntimeDirectoryMode=0700\nRuntimeDirectoryPreserve=yes\n"
                     "Environment=XDG_RUNTIME_DIR=%%t/");
    put_runtime_folder(out, systemd->name);
    grow_format(out, "\n");
}

static void put_service_body(struct grow *out, const struct launch *launch,
                             const struct systemd *systemd, enum proto_role role) {
    struct words command = {0};
    launch_command(launch, role, &command);
    out->failed |= command.failed;
    grow_format(out, "\n[Service]\nType=exec\n");
    put_place(out, systemd);
    grow_format(out, "ExecStart=");
    put_exec_start(out, systemd, &command);
    grow_format(out, "\n");
    if (role == PROTO_ROLE_CONTROLLER)
        grow_format(out, "TimeoutStopSec=10min\n");
    grow_put(out, policy, sizeof policy - 1);
    if (role != PROTO_ROLE_CONTROLLER)
        grow_put(out, policy_of_members, sizeof policy_of_members - 1);
    put_hardening(out, launch, systemd, role);
    words_free(&command);
}

// Until no controller is there any more (66): the one that was told may die before it has saved.
static char *end_script(const struct launch *launch, const struct systemd *systemd) {
    struct words down = {0}, whole = {0};
    launch_down(launch, &down);
    words_format(&whole, "%s/%s", systemd->path, down.failed ? "" : down.items[0]);
    for (size_t i = 1; i < down.count; i++)
        words_add(&whole, down.items[i]);
    char *line = down.failed || whole.failed ? NULL : words_line(whole.items, whole.count);
    struct grow script = {.failed = !line};
    grow_format(&script, "until %s; [ $? = 66 ]; do sleep 1; done", line ? line : "");
    free(line);
    words_free(&down);
    words_free(&whole);
    return grow_take(&script);
}

// Of several controllers only the one that leads can save, and only with the others: before any is
// stopped the run ends by its order.
static void put_end(struct grow *out, const struct launch *launch, const struct systemd *systemd) {
    char *script = end_script(launch, systemd);
    out->failed |= !script;
    put_description(out, "The end of the run", launch->folder);
    put_part_of(out, systemd);
    grow_format(out, "# Who is started last is stopped first: it saves the run while all are "
                     "there.\n");
    put_services(out, "After", launch, systemd, 0);
    grow_format(out, "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
    put_place(out, systemd);
    grow_format(out, "ExecStop=/bin/sh -c ");
    put_word(out, script ? script : "");
    grow_format(out, "\nTimeoutStopSec=10min\n");
    put_hardening(out, launch, systemd, PROTO_ROLE_CONTROLLER);
    free(script);
}

size_t schedulers_units(const struct launch *launch) {
    return 1 + LAUNCH_ROLES + has_several_controllers(launch);
}

// Of a run with so many processes of the role.
static int check_name(const struct launch *launch, const struct systemd *systemd,
                      enum proto_role role, struct error *err) {
    enum { UNIT_MOST = 255 }; // bytes of the name of a unit
    struct grow name = {0};
    put_service(&name, launch, systemd, role, launch_count(launch, role));
    size_t length = name.length;
    char *text = grow_take(&name);
    int status = !text                 ? error_nomem(err)
                 : length <= UNIT_MOST ? STATUS_OK
                                       : error_set(err, STATUS_USAGE,
                                                   "%s: longer than the %d bytes of a unit's "
                                                   "name; choose a shorter name with --out",
                                                   text, UNIT_MOST);
    free(text);
    return status;
}

int schedulers_check_units(const struct launch *launch, const struct systemd *systemd,
                           struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < LAUNCH_ROLES; i++)
        status = check_name(launch, systemd, launch_roles[i], err);
    return status;
}

char *schedulers_unit(const struct launch *launch, const struct systemd *systemd, size_t which,
                      char **name) {
    struct grow out = {0}, file = {0};
    if (which == 0) {
        put_unit_name(&file, systemd->name);
        grow_format(&file, ".target");
        put_target(&out, launch, systemd);
    } else if (which > LAUNCH_ROLES) {
        put_unit_name(&file, systemd->name);
        grow_format(&file, "-end.service");
        put_end(&out, launch, systemd);
    } else {
        enum proto_role role = launch_roles[which - 1];
        put_service(&file, launch, systemd, role, 0);
        put_unit(&out, launch, systemd, role);
        put_service_body(&out, launch, systemd, role);
    }
    char *text = grow_take(&out);
    *name = grow_take(&file);
    if (!text || !*name) {
        free(text);
        free(*name);
        return NULL;
    }
    return text;
}
