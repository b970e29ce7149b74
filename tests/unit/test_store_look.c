// What a parameter server says that its store has, before it joins a run.
#include <stdlib.h>

#include "../helper/store_rig.h"
#include "role/paramserver/store_look.h"

static struct sim_disk disk;

// The run that rig_owner names.
static struct proto_id run_of_rig(void) {
    struct proto_id run;
    memcpy(run.bytes, rig_owner.run, sizeof run.bytes);
    return run;
}

static void make_store(struct tap *tap) {
    sim_begin(&disk);
    struct persist *persist = rig_open_store(tap, &disk);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_INT(tap, rig_write_one(persist, (uint32_t[]){4, 0, 63}[i], 1 + i, NULL), STATUS_OK);
    persist_close(persist);
}

// Nothing tells any more whose record the second was: of shard 4, too, there may have been a newer
// one.
static void damage_second(void) {
    struct sim_file *file = &disk.file[0];
    int records = 0;
    for (uint64_t at = PERSIST_BLOCK; at < file->size; at += PERSIST_BLOCK) {
        uint8_t *block = file->now + at;
        bool heads = !memcmp(block, "adamlog1", 8);
        records += heads && block[12] == 1;
        if (heads && records == 2)
            block[20] ^= 0x10;
    }
}

static void check_list(struct tap *tap, const struct proto_id *run, const uint32_t *wanted,
                       uint32_t count) {
    struct proto_held *held;
    uint32_t got;
    CHECK_INT(tap, store_list(&disk.files, run, &held, &got, NULL), STATUS_OK);
    CHECK_INT(tap, got, count);
    for (uint32_t i = 0; i < got && i < count; i++)
        CHECK_INT(tap, held[i].shard, wanted[i]);
    free(held);
}

int main(void) {
    struct tap tap = {0};
    const struct proto_id run = run_of_rig(), other = {{9}};
    TEST(&tap, "all shards of the run that its store has", {
        make_store(&tap);
        check_list(&tap, &run, (const uint32_t[]){0, 4, 63}, 3);
        CHECK(&tap, !store_is_of_another_run(&disk.files, &run));
        sim_end(&disk);
    });
    TEST(&tap, "none of what is damaged", {
        make_store(&tap);
        damage_second();
        check_list(&tap, &run, (const uint32_t[]){63}, 1);
        sim_end(&disk);
    });
    TEST(&tap, "none of another run, and none where there is no store", {
        make_store(&tap);
        check_list(&tap, &other, NULL, 0);
        CHECK(&tap, store_is_of_another_run(&disk.files, &other));
        sim_end(&disk);
        sim_begin(&disk);
        check_list(&tap, &run, NULL, 0);
        CHECK(&tap, !store_is_of_another_run(&disk.files, &run));
        sim_end(&disk);
    });
    TEST(&tap, "none that cannot be read: the opening says why", {
        make_store(&tap);
        disk.dead = true;
        check_list(&tap, &run, NULL, 0);
        sim_end(&disk);
    });
    return tap_done(&tap);
}
