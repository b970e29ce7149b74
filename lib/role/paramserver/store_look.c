#include "role/paramserver/store_look.h"

#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "persist/persist.h"

static bool is_of_run(const struct persist *persist, const struct proto_id *run) {
    return memcmp(persist_owner(persist)->run, run->bytes, sizeof run->bytes) == 0;
}

bool store_is_of_another_run(const struct files *files, const struct proto_id *run) {
    struct persist *persist;
    if (persist_look(&persist, files, NULL))
        return false;
    bool other = !is_of_run(persist, run);
    persist_close(persist);
    return other;
}

static int list_shards(const struct persist *persist, struct proto_held **shards, uint32_t *count,
                       struct error *err) {
    size_t all;
    const struct persist_entry *entries = persist_entries(persist, &all);
    struct proto_held *list = mem_zeroed(all + 1, sizeof *list);
    if (!list)
        return error_nomem(err);
    for (size_t i = 0; i < all && *count < PROTO_HELD_MAX; i++)
        if (!entries[i].damaged && entries[i].version > 0)
            list[(*count)++].shard = entries[i].shard;
    *shards = list;
    return STATUS_OK;
}

int store_list(const struct files *files, const struct proto_id *run, struct proto_held **shards,
               uint32_t *count, struct error *err) {
    struct persist *persist;
    *shards = NULL;
    *count = 0;
    if (persist_look(&persist, files, NULL))
        return STATUS_OK;
    int status = is_of_run(persist, run) ? list_shards(persist, shards, count, err) : STATUS_OK;
    persist_close(persist);
    return status;
}
