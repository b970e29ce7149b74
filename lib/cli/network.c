#include "cli/network.h"

#include <stdio.h>
#include <unistd.h>

#include "core/error.h"

void network_default(struct network *network) {
    *network = (struct network){.ready_fd = NETWORK_NO_FD};
}

bool network_parse(const struct network *network, const struct command *command, int argc,
                   char **argv, int *operands, int *status, struct error *err) {
    enum cli_next next = cli_parse(command, argc, argv, operands, err);
    *status = next == CLI_FAIL ? STATUS_USAGE : STATUS_OK;
    if (next == CLI_RUN && !network->controller)
        *status = error_set(err, STATUS_USAGE, "--controller is missing");
    return next == CLI_RUN && *status == STATUS_OK;
}

const char *network_name(const struct network *network, char room[NETWORK_NAME_MAX]) {
    char host[NETWORK_NAME_MAX / 2];
    if (network->name)
        return network->name;
    if (gethostname(host, sizeof host))
        host[0] = 0;
    host[sizeof host - 1] = 0;
    snprintf(room, NETWORK_NAME_MAX, "%s-%ld", host, (long)getpid());
    return room;
}
