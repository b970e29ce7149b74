// How a program says that it is there, and where.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "net/ready.h"

static void read_all(const char *path, char text[256]) {
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, 255, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
}

int main(void) {
    struct tap tap = {0};
    uint32_t count = 0;
    struct error err = {0};
    char text[256], wanted[64], address[PROTO_ADDRESS_MAX];
    char folder[] = "/tmp/adam-ready-XXXXXX";
    int told[2];
    if (!mkdtemp(folder) || chdir(folder) || pipe(told))
        return 1;
    struct ready ready = {.port_file = "ps.port", .pid_file = "ps.pid", .fd = told[1]};
    static const char *const addresses[] = {"tcp://127.0.0.1:7001", "ipc:///run/ps"};
    TEST(&tap, "files and descriptor tell where the program is", {
        CHECK_INT(&tap, ready_tell(&ready, addresses, 2, &err), STATUS_OK);
        read_all("ps.port", text);
        CHECK_TEXT(&tap, text, "tcp://127.0.0.1:7001\nipc:///run/ps\n");
        read_all("ps.pid", text);
        snprintf(wanted, sizeof wanted, "%ld\n", (long)getpid());
        CHECK_TEXT(&tap, text, wanted);
        CHECK_INT(&tap, read(told[0], text, sizeof text), 1);
        CHECK_INT(&tap, read(told[0], text, sizeof text), 0);
    });
    TEST(&tap, "others find it by the file, or by the address itself", {
        CHECK_INT(&tap, ready_find("@ps.port", 0, address, &count, &err), STATUS_OK);
        CHECK_TEXT(&tap, address, "tcp://127.0.0.1:7001");
        CHECK_INT(&tap, ready_find("ipc:///run/x", 7, address, &count, &err), STATUS_OK);
        CHECK_TEXT(&tap, address, "ipc:///run/x");
        CHECK_INT(&tap, count, 1);
    });
    TEST(&tap, "of several each has its turn, in a list as in a file", {
        static const char *const list[] = {"ipc:///c1", "ipc:///c2", "ipc:///c3", "ipc:///c1"};
        struct ready all = {.port_file = "all.port", .fd = -1};
        CHECK_INT(&tap, ready_tell(&all, list, 3, &err), STATUS_OK);
        for (uint32_t turn = 0; turn < 4; turn++) {
            CHECK_INT(&tap,
                      ready_find("ipc:///c1,ipc:///c2,ipc:///c3", turn, address, &count, &err),
                      STATUS_OK);
            CHECK_TEXT(&tap, address, list[turn]);
            CHECK_INT(&tap, ready_find("@all.port", turn, address, &count, &err), STATUS_OK);
            CHECK_TEXT(&tap, address, list[turn]);
            CHECK_INT(&tap, count, 3);
        }
        ready_forget(&all);
    });
    TEST(&tap, "what is not there, or is no address, is said", {
        CHECK_INT(&tap, ready_find("@none.port", 0, address, &count, &err), STATUS_NOINPUT);
        CHECK_INT(&tap, ready_find("@ps.pid", 0, address, &count, &err), STATUS_USAGE);
        CHECK_INT(&tap, ready_find("ps.port", 0, address, &count, &err), STATUS_USAGE);
        struct ready nowhere = {.port_file = "no/such/folder/x", .fd = -1};
        CHECK_INT(&tap, ready_tell(&nowhere, addresses, 1, &err), STATUS_CANTCREATE);
    });
    TEST(&tap, "at the end those of a successor stay, which say the same", {
        struct ready before = {.port_file = "x.port", .fd = -1};
        struct ready after = before;
        CHECK_INT(&tap, ready_tell(&before, addresses, 1, &err), STATUS_OK);
        CHECK_INT(&tap, ready_tell(&after, addresses, 1, &err), STATUS_OK);
        ready_forget(&before);
        CHECK_INT(&tap, access("x.port", F_OK), 0);
        ready_forget(&after);
        CHECK_INT(&tap, access("x.port", F_OK), -1);
        CHECK(&tap, !mkfifo("x.port", 0600));
        ready_forget(&after);
        CHECK_INT(&tap, unlink("x.port"), 0);
    });
    TEST(&tap, "at the end the files go", {
        ready_forget(&ready);
        CHECK(&tap, access("ps.port", F_OK) && access("ps.pid", F_OK));
    });
    if (chdir("/") || rmdir(folder))
        return 1;
    return tap_done(&tap);
}
