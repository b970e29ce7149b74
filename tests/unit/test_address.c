// Which addresses there are, and which of them may be used without TLS.
#include "../helper/tap.h"
#include "core/error.h"
#include "net/address.h"

static void check_refused(struct tap *tap, const char *address, bool keys, bool insecure,
                          const char *words) {
    struct error err = {0};
    int status = address_check(address, keys, insecure, &err);
    if (status != STATUS_USAGE || !strstr(err.text, words))
        FAIL(tap, "%s: status %d, %s", address, status, err.text);
}

static void check_allowed(struct tap *tap, const char *address, bool keys, bool insecure) {
    struct error err = {0};
    if (address_check(address, keys, insecure, &err))
        FAIL(tap, "%s", err.text);
}

int main(void) {
    struct tap tap = {0};
    static const char *const local[] = {
        "inproc://ps0",
        "ipc:///run/adam/ps0",
        "tcp://127.0.0.1:0",
        "tcp://127.9.8.7:65535",
        "tcp://localhost:7001",
        "tcp://[::1]:7001",
        "tls+tcp://127.0.0.1:7001",
    };
    static const char *const far[] = {
        "tcp://0.0.0.0:7001",        "tcp://10.0.0.1:7001", "tcp://n07:7001",
        "tcp://[::]:7001",           "tcp://128.0.0.1:1",   "tcp://localhost.example.org:1",
        "tcp://127.0.0.1.example:1", "tcp://[fe80::1]:1",
    };
    static const char *const none[] = {
        "",
        "127.0.0.1:7001",
        "tcp://127.0.0.1",
        "tcp://:7001",
        "tcp://::1:7001",
        "tcp://a:70000",
        "tcp://a:-1",
        "tcp://a:http",
        "tcp://[]:1",
        "ipc://",
        "inproc://",
        "http://a:1",
        "TCP://127.0.0.1:1",
    };
    TEST(&tap, "what stays on this machine needs no keys, but what says TLS does", {
        for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
            CHECK(&tap, address_is_local(local[i]));
            check_allowed(&tap, local[i], true, false);
            if (strncmp(local[i], "tls", 3) == 0)
                check_refused(&tap, local[i], false, true, "needs keys");
            else
                check_allowed(&tap, local[i], false, false);
        }
    });
    TEST(&tap, "beyond it plain TCP must be asked for by name", {
        for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
            CHECK(&tap, !address_is_local(far[i]));
            check_refused(&tap, far[i], false, false, "--insecure");
            check_refused(&tap, far[i], true, false, "tls+tcp://");
            check_allowed(&tap, far[i], false, true);
        }
        check_allowed(&tap, "tls+tcp://n07:7001", true, false);
        check_refused(&tap, "tls+tcp://n07:7001", false, false, "needs keys");
    });
    TEST(&tap, "all addresses of a machine are known as such, however they are written", {
        static const char *const any[] = {"0.0.0.0", "*", "::", "[::]", "0:0::0", "[0::]"};
        static const char *const one[] = {"", "[", "[]", "0.0.0.1", "::1", "[::1]", "n07", "**"};
        for (size_t i = 0; i < sizeof any / sizeof *any; i++)
            CHECK(&tap, address_is_any(any[i]));
        for (size_t i = 0; i < sizeof one / sizeof *one; i++)
            CHECK(&tap, !address_is_any(one[i]));
    });
    TEST(&tap, "what is no address is refused, whatever else is said", {
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            CHECK(&tap, !address_is_local(none[i]) || strstr(none[i], "://")[3] == 0);
            check_refused(&tap, none[i], true, true, "'");
        }
        char text[400];
        memset(text, 'a', sizeof text);
        memcpy(text, "ipc://", 6);
        text[sizeof text - 1] = 0;
        check_refused(&tap, text, false, false, "too long");
    });
    return tap_done(&tap);
}
