// Where programs listen when they are told, when only half told, and when not at all.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "member/place.h"
#include "net/keys.h"
#include "net/link.h"

static void check_local(struct tap *tap, const char *folder) {
    char address[PROTO_ADDRESS_MAX], wanted[PROTO_ADDRESS_MAX];
    struct error err = {0};
    struct stat made;
    CHECK_INT(tap, place_address(address, "ps-admin", NULL, NULL, &err), STATUS_OK);
    snprintf(wanted, sizeof wanted, "ipc://%s/ps-admin-%ld", folder, (long)getpid());
    CHECK_TEXT(tap, address, wanted);
    CHECK_INT(tap, stat(folder, &made), 0);
    CHECK_INT(tap, made.st_mode & 0777, 0700);
}

// A child that dies leaves its socket behind; one that lives keeps it.
static void check_orphans(struct tap *tap) {
    char dead[PROTO_ADDRESS_MAX], mine[PROTO_ADDRESS_MAX];
    struct error err = {0};
    struct listener *listener;
    const struct link_options options = {.pool = NULL};
    CHECK_INT(tap, place_address(mine, "here", NULL, NULL, &err), STATUS_OK);
    CHECK_INT(tap, listener_open(&listener, mine, &options, NULL, &err), STATUS_OK);
    snprintf(dead, sizeof dead, "%s", mine);
    // 4194304 is the greatest number that a process can have, and one more.
    snprintf(strrchr(dead, '-'), 16, "-%d", 4194305);
    CHECK_INT(tap, link(mine + strlen("ipc://"), dead + strlen("ipc://")), 0);
    CHECK_INT(tap, place_address(mine, "there", NULL, NULL, &err), STATUS_OK);
    CHECK_INT(tap, access(dead + strlen("ipc://"), F_OK), 0);
    listener_close(listener);
    if (access(dead + strlen("ipc://"), F_OK) == 0) {
        CHECK_INT(tap, place_address(mine, "there", NULL, NULL, &err), STATUS_OK);
        CHECK_INT(tap, access(dead + strlen("ipc://"), F_OK), -1);
    }
}

int main(void) {
    struct tap tap = {0};
    struct error err = {0};
    char address[PROTO_ADDRESS_MAX], long_path[160], folder[64], own[64];
    char temporary[] = "/tmp/adam-place-XXXXXX";
    if (!mkdtemp(temporary))
        return 1;
    TEST(&tap, "an address that was told is taken as it is", {
        CHECK_INT(&tap, place_address(address, "ps", "tcp://n7:7001", NULL, &err), STATUS_OK);
        CHECK_TEXT(&tap, address, "tcp://n7:7001");
    });
    TEST(&tap, "others stand beside the first one", {
        CHECK_INT(&tap, place_address(address, "ps-admin", NULL, "tls+tcp://[::1]:7001", &err), 0);
        CHECK_TEXT(&tap, address, "tls+tcp://[::1]:0");
        CHECK_INT(&tap, place_address(address, "ps-admin", NULL, "ipc:///run/x", &err), 0);
        CHECK_TEXT(&tap, address, "ipc:///run/x-admin");
        CHECK_INT(&tap, place_address(address, "ps-admin", NULL, "x:1", &err), STATUS_USAGE);
    });
    TEST(&tap, "paths that a socket cannot have are refused", {
        snprintf(long_path, sizeof long_path, "ipc:///%0120d", 1);
        CHECK_INT(&tap, place_address(address, "ps", long_path, NULL, &err), STATUS_CANTCREATE);
    });
    TEST(&tap, "controllers know which of them they are", {
        struct words all;
        uint32_t id = 9;
        const char *list = "tcp://a:1,tls+tcp://b:1,ipc:///c";
        CHECK_INT(&tap, place_quorum(&all, list, "ipc:///c", &id, &err), STATUS_OK);
        CHECK_INT(&tap, id, 2);
        CHECK_INT(&tap, all.count, 3);
        CHECK_TEXT(&tap, all.items[1], "tls+tcp://b:1");
        words_free(&all);
    });
    TEST(&tap, "lists that are no quorum, or that others cannot dial, are refused", {
        static const char *const lists[] = {
            "tcp://a:1,tcp://b:1",
            "tcp://a:1,tcp://b:1,tcp://a:1",
            "tcp://a:1,tcp://b:0,ipc:///c",
            "tcp://a:1,tcp://0.0.0.0:1,ipc:///c",
            "tcp://d:1,tcp://b:1,ipc:///c",
            "tcp://a:1,b:1,ipc:///c",
            "",
        };
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            struct words all;
            uint32_t id;
            CHECK_INT(&tap, place_quorum(&all, lists[i], "tcp://a:1", &id, &err), STATUS_USAGE);
            words_free(&all);
        }
    });
    setenv("XDG_RUNTIME_DIR", temporary, 1);
    snprintf(folder, sizeof folder, "%s/adam", temporary);
    TEST(&tap, "else it is a Unix socket in the user's own runtime folder",
         { check_local(&tap, folder); });
    TEST(&tap, "sockets of programs that are no more go, and others stay",
         { check_orphans(&tap); });
    unsetenv("XDG_RUNTIME_DIR");
    setenv("TMPDIR", temporary, 1);
    snprintf(own, sizeof own, "%s/adam-%ld", temporary, (long)geteuid());
    TEST(&tap, "or in a folder for temporary files", { check_local(&tap, own); });
    TEST(&tap, "a folder that others can enter is not used", {
        CHECK_INT(&tap, chmod(own, 0755), 0);
        CHECK_INT(&tap, place_address(address, "ps", NULL, NULL, &err), STATUS_CANTCREATE);
    });
    TEST(&tap, "keys are named by the certificate", {
        struct secrets *keys;
        CHECK_INT(&tap, place_keys(&keys, NULL, &err), STATUS_OK);
        CHECK(&tap, !keys);
        CHECK_INT(&tap, place_keys(&keys, "keys/", &err), STATUS_USAGE);
        CHECK_INT(&tap, place_keys(&keys, "/none/n7.pem", &err), STATUS_NOINPUT);
        const char *names[] = {"n7"};
        CHECK_INT(&tap, keys_make(temporary, names, 1, 1, &err), STATUS_OK);
        snprintf(long_path, sizeof long_path, "%s/n7.pem", temporary);
        CHECK_INT(&tap, place_keys(&keys, long_path, &err), STATUS_OK);
        secrets_close(keys);
    });
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", temporary);
    return system(command) ? 1 : tap_done(&tap);
}
