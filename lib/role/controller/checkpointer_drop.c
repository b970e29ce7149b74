// Parts of checkpoints that the run's folder has no more: who has them on a disk removes them.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "remote/part_gather.h"
#include "role/controller/checkpointer_internal.h"

enum { MOST = 4096 }; // as in drop_parts

int checkpointer_list_own(const struct checkpointer *s, struct own_parts *own, struct error *err) {
    own->items = mem_array(MOST, sizeof *own->items);
    own->count = own->items ? checkpoint_own_list(s->config.folder, own->items, MOST) : 0;
    return own->items ? STATUS_OK : error_nomem(err);
}

static bool has(const struct own_parts *list, const struct checkpoint_own *one) {
    for (size_t i = 0; i < list->count; i++)
        if (!memcmp(&list->items[i], one, sizeof *one))
            return true;
    return false;
}

// Of those that were there, the ones that are no more.
static uint32_t list_dropped(struct proto_dropped *dropped, const struct own_parts *before,
                             const struct own_parts *now) {
    uint32_t count = 0;
    for (size_t i = 0; i < before->count; i++) {
        if (has(now, &before->items[i]))
            continue;
        memcpy(dropped[count].run.bytes, before->items[i].run, CHECKPOINT_TOKEN);
        memcpy(dropped[count++].token.bytes, before->items[i].token, CHECKPOINT_TOKEN);
    }
    return count;
}

// A server that is away keeps them.
static void tell_servers(struct checkpointer *s, const struct proto_drop_parts *message) {
    const struct proto_list *servers = &s->known->message.routes.servers;
    const struct proto_hello hello = checkpointer_hello(s);
    const struct part_gather how = {
        .hello = &hello, .keys = s->config.keys, .insecure = s->config.insecure};
    for (uint32_t i = 0; i < servers->count && !atomic_load(&s->stopping); i++) {
        struct error err = {0};
        if (part_drop(&how, &((const struct proto_server *)servers->at)[i], message, &err))
            checkpointer_say(s, "warning: parts of removed checkpoints stay on a disk: %s",
                             err.text);
    }
}

void checkpointer_drop_parts(struct checkpointer *s, const struct own_parts *before) {
    struct own_parts now = {0};
    struct proto_dropped *dropped = mem_zeroed(before->count + 1, sizeof *dropped);
    if (dropped && !checkpointer_list_own(s, &now, NULL)) {
        uint32_t count = list_dropped(dropped, before, &now);
        const struct proto_drop_parts message = {.checkpoints = proto_list(dropped, count)};
        if (count)
            tell_servers(s, &message);
    }
    free(now.items);
    free(dropped);
}
