#include <inttypes.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "persist/crc32c.h"
#include "persist/persist_internal.h"

// The record's bytes as they are now; what the file does not have is zero.
static int read_bytes(const struct persist *persist, const struct persist_entry *entry,
                      const char *name, uint8_t *memory, struct error *err) {
    const struct files *files = persist->files;
    uint64_t size;
    size_t got;
    int file;
    int why = files->open(files->self, name, &file, &size);
    if (why)
        return files_error(why, "open", name, err);
    why = files->read(files->self, file, entry->at, memory, entry->size, &got);
    files->close(files->self, file);
    return why ? files_error(why, "read", name, err) : STATUS_OK;
}

static bool is_as_written(const struct persist *persist, const struct persist_entry *entry,
                          enum block_kind kind, struct block *block, const uint8_t *memory) {
    return block_decode(block, memory) && block->kind == kind && block->log == entry->log &&
           block->shard == entry->shard && owner_same(&block->owner, &persist->owner) &&
           block_size(block) == entry->size &&
           crc32c_of(0, memory + PERSIST_BLOCK, block_payload(block)) == block->payload_crc;
}

int read_record(struct persist *persist, const struct persist_entry *entry, enum block_kind kind,
                struct block *block, uint8_t **memory, struct error *err) {
    char name[SEGMENT_NAME_MAX];
    segment_name(entry->segment, name);
    *memory = mem_zeroed(entry->size, 1);
    int status = *memory ? read_bytes(persist, entry, name, *memory, err) : error_nomem(err);
    if (!status && !is_as_written(persist, entry, kind, block, *memory))
        status = error_set(err, STATUS_DATA, "%s: shard %" PRIu32 " is damaged at byte %" PRIu64,
                           name, entry->shard, entry->at);
    if (status) {
        free(*memory);
        *memory = NULL;
    }
    return status;
}

static int fill_copy(struct persist_copy *copy, const struct block *block, uint8_t *memory,
                     struct error *err) {
    const float *floats = (const float *)(const void *)(memory + PERSIST_BLOCK);
    const uint8_t *pushes =
        memory + PERSIST_BLOCK + ((size_t)block->floats + block->state_floats) * sizeof(float);
    copy->pushes = mem_array(block->push_count ? block->push_count : 1, sizeof *copy->pushes);
    if (!copy->pushes)
        return error_nomem(err);
    for (uint32_t i = 0; i < block->push_count; i++)
        copy->pushes[i] = push_decode(pushes + (size_t)i * PUSH_BYTES);
    copy->record = (struct persist_record){
        .shard = block->shard,
        .bucket = block->bucket,
        .epoch = block->epoch,
        .version = block->version,
        .floats = block->floats,
        .states = block->floats ? block->state_floats / block->floats : 0,
        .weights = floats,
        .pushes = copy->pushes,
        .push_count = block->push_count,
    };
    for (uint32_t i = 0; i < copy->record.states; i++)
        copy->record.state[i] = floats + (size_t)(i + 1) * block->floats;
    return STATUS_OK;
}

int persist_read(struct persist *persist, uint32_t shard, struct persist_copy *copy,
                 struct error *err) {
    struct persist_entry *entry = index_find(&persist->index, shard);
    struct block block;
    uint8_t *memory;
    *copy = (struct persist_copy){0};
    if (!entry)
        return error_set(err, STATUS_NOINPUT, "the store has nothing of shard %" PRIu32, shard);
    if (entry->damaged)
        return error_set(err, STATUS_DATA, "shard %" PRIu32 " is damaged in the store", shard);
    int status = read_record(persist, entry, BLOCK_SHARD, &block, &memory, err);
    entry->damaged = status == STATUS_DATA;
    if (status)
        return status;
    copy->memory = memory;
    status = fill_copy(copy, &block, memory, err);
    if (status)
        persist_copy_free(copy);
    return status;
}

void persist_copy_free(struct persist_copy *copy) {
    free(copy->memory);
    free(copy->pushes);
    *copy = (struct persist_copy){0};
}

int persist_check(struct persist *persist, struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; i < persist->index.count && !status; i++) {
        struct persist_copy copy;
        struct error damage = {0};
        int read = persist_read(persist, persist->index.entries[i].shard, &copy, &damage);
        persist_copy_free(&copy);
        if (read && read != STATUS_DATA)
            status = error_set(err, read, "%s", damage.text);
    }
    return status;
}
