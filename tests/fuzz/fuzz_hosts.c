// The machines of a run as a file has them: hosts that processes can be dealt to.
#include "core/error.h"
#include "launch/hosts.h"
#include "source_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    struct hosts hosts = {0};
    struct error err = {0};
    input_file(path, data, size);
    int status = hosts_read(&hosts, path, &err);
    if (status && !*err.text)
        abort();
    if (!status && hosts_slots(&hosts) > 0 && hosts_place(&hosts, PROTO_ROLE_WORKER, 1, &err))
        abort();
    hosts_free(&hosts);
    return 0;
}
