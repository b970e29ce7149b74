#include "cli/network.h"

#include <stdio.h>
#include <unistd.h>

void network_default(struct network *network) {
    *network = (struct network){.ready_fd = NETWORK_NO_FD};
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
