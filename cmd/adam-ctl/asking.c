#include "adam-ctl/asking.h"

#include "member/place.h"
#include "remote/admin.h"

int ask(const struct admin_options *o, const char *place, uint16_t type, const void *message,
        uint16_t wanted, struct kept **answer, struct error *err) {
    struct secrets *keys;
    int status = place_keys(&keys, o->network.keys, err);
    if (status)
        return status;
    const struct admin admin = {place, keys, o->network.insecure};
    status = admin_ask(&admin, type, message, wanted, answer, err);
    secrets_close(keys);
    return status;
}

int ask_status(const struct admin_options *o, const char *place, struct kept **answer,
               struct error *err) {
    const struct proto_get_status get = {.known = 0};
    return ask(o, place, PROTO_TYPE_GET_STATUS, &get, PROTO_TYPE_STATUS, answer, err);
}

int ask_places(const struct admin_options *o, const char *place, struct kept **answer,
               struct error *err) {
    const struct proto_get_places get = {.known = 0};
    return ask(o, place, PROTO_TYPE_GET_PLACES, &get, PROTO_TYPE_PLACES, answer, err);
}
