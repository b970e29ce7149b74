// How a program says that it is there, and where.
#include <fcntl.h>
#include <stdlib.h>
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
        CHECK_INT(&tap, ready_find("@ps.port", address, &err), STATUS_OK);
        CHECK_TEXT(&tap, address, "tcp://127.0.0.1:7001");
        CHECK_INT(&tap, ready_find("ipc:///run/x", address, &err), STATUS_OK);
        CHECK_TEXT(&tap, address, "ipc:///run/x");
    });
    TEST(&tap, "what is not there, or is no address, is said", {
        CHECK_INT(&tap, ready_find("@none.port", address, &err), STATUS_NOINPUT);
        CHECK_INT(&tap, ready_find("@ps.pid", address, &err), STATUS_USAGE);
        CHECK_INT(&tap, ready_find("ps.port", address, &err), STATUS_USAGE);
        struct ready nowhere = {.port_file = "no/such/folder/x", .fd = -1};
        CHECK_INT(&tap, ready_tell(&nowhere, addresses, 1, &err), STATUS_CANTCREATE);
    });
    TEST(&tap, "at the end the files go", {
        ready_forget(&ready);
        CHECK(&tap, access("ps.port", F_OK) && access("ps.pid", F_OK));
    });
    if (chdir("/") || rmdir(folder))
        return 1;
    return tap_done(&tap);
}
