#ifndef ADAM_NET_SECRETS_INTERNAL_H
#define ADAM_NET_SECRETS_INTERNAL_H

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

struct secrets {
    nng_tls_config *server, *client;
};

#endif
