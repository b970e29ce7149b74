#include "proto/kept.h"

#include <stdlib.h>

#include "core/error.h"

int kept_make(struct kept **kept, uint16_t type, const void *message, struct error *err) {
    size_t size;
    *kept = NULL;
    int status = proto_measure(type, message, &size, err);
    if (status)
        return status;
    struct kept *copy = calloc(1, sizeof *copy + size);
    if (!copy)
        return error_nomem(err);
    copy->type = type;
    atomic_init(&copy->references, 1);
    proto_encode(type, message, copy->body);
    status = proto_decode(type, copy->body, size, &copy->message, &copy->room, err);
    if (status)
        kept_drop(copy);
    else
        *kept = copy;
    return status;
}

void kept_hold(struct kept *kept) {
    if (kept)
        atomic_fetch_add(&kept->references, 1);
}

void kept_drop(struct kept *kept) {
    if (!kept || atomic_fetch_sub(&kept->references, 1) > 1)
        return;
    proto_room_free(&kept->room);
    free(kept);
}

bool kept_renew(struct kept **mine, struct kept *newest) {
    bool changed = newest != *mine;
    kept_drop(*mine);
    *mine = newest;
    return changed;
}
