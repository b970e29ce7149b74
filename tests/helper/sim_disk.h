// A disk in memory for tests of a store (persist/files.h). It counts operations, lets the Nth one
// fail, misreads, fills up, and can lose its power: then of what was not synced each sector of 512
// bytes came to the disk or not, and each name that was made or removed is there or not.
#ifndef ADAM_TESTS_SIM_DISK_H
#define ADAM_TESTS_SIM_DISK_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "persist/files.h"

enum { SIM_FILES = 512, SIM_SECTOR = 512, SIM_NAME = 32 };

struct sim_file {
    char name[SIM_NAME];
    bool there, durably_there; // its name
    uint64_t size, durable_size;
    uint8_t *now, *durable; // `size` bytes
    bool *unsynced;         // of each sector
};

enum sim_loss { SIM_LOSES_ALL, SIM_LOSES_NOTHING, SIM_LOSES_SOME }; // at a power cut

struct sim_disk {
    struct files files;
    struct sim_file file[SIM_FILES];
    int file_count;
    uint64_t operations; // that change something, and syncs
    uint64_t fail_at;    // this one fails, with this error; 0: none
    uint64_t fail_until; // and all up to this one
    int failure;
    _Atomic bool broken; // all fail with it; any thread may mend it
    uint64_t cut_at;     // the power goes during this one: nothing works until sim_power; 0: never
    bool dead;
    uint64_t room; // bytes of all files together
    uint64_t seed;
    uint64_t syncs;
    uint64_t reads;
    uint64_t misread_at; // this one comes back with a wrong bit; 0: none
};

static inline uint64_t sim_random(struct sim_disk *disk) {
    disk->seed = disk->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return disk->seed >> 33;
}

// 0, or how this operation fails.
static inline int sim_operation(struct sim_disk *disk) {
    if (disk->dead)
        return EIO;
    uint64_t n = ++disk->operations;
    if (n == disk->cut_at) {
        disk->dead = true;
        return EIO;
    }
    if (atomic_load(&disk->broken))
        return disk->failure;
    return disk->fail_at && n >= disk->fail_at && n <= disk->fail_until ? disk->failure : 0;
}

static inline struct sim_file *sim_find(struct sim_disk *disk, const char *name) {
    for (int i = 0; i < disk->file_count; i++)
        if (disk->file[i].there && !strcmp(disk->file[i].name, name))
            return &disk->file[i];
    return NULL;
}

static inline int sim_list(void *self, files_each *each, void *context) {
    struct sim_disk *disk = self;
    for (int i = 0; i < disk->file_count; i++)
        if (disk->file[i].there)
            each(context, disk->file[i].name);
    return disk->dead ? EIO : 0;
}

static inline void sim_free_file(struct sim_file *file) {
    free(file->now);
    free(file->durable);
    free(file->unsynced);
    *file = (struct sim_file){.there = false};
}

static inline int sim_create(void *self, const char *name, int *file) {
    struct sim_disk *disk = self;
    int why = sim_operation(disk), i = 0;
    if (why || sim_find(disk, name))
        return why ? why : EEXIST;
    while (i < disk->file_count && (disk->file[i].there || disk->file[i].durably_there))
        i++;
    if (i == SIM_FILES)
        return EMFILE;
    struct sim_file *made = &disk->file[ *file = i];
    disk->file_count += i == disk->file_count;
    sim_free_file(made);
    made->there = true;
    snprintf(made->name, sizeof made->name, "%s", name);
    return 0;
}

static inline int sim_open(void *self, const char *name, int *file, uint64_t *size) {
    struct sim_disk *disk = self;
    struct sim_file *found = sim_find(disk, name);
    if (disk->dead || !found)
        return disk->dead ? EIO : ENOENT;
    *file = (int)(found - disk->file);
    *size = found->size;
    return 0;
}

static inline int sim_open_to_write(void *self, const char *name, int *file) {
    uint64_t size;
    return sim_open(self, name, file, &size);
}

static inline void sim_close(void *self, int file) {
    (void)self;
    (void)file;
}

static inline int sim_allocate(void *self, int file, uint64_t size) {
    struct sim_disk *disk = self;
    struct sim_file *f = &disk->file[file];
    int why = sim_operation(disk);
    if (why || size > disk->room)
        return why ? why : ENOSPC;
    disk->room -= size;
    f->size = size;
    f->now = calloc(size, 1);
    f->durable = calloc(size, 1);
    f->unsynced = calloc(size / SIM_SECTOR, sizeof *f->unsynced);
    return 0;
}

static inline void sim_put(struct sim_file *file, uint64_t at, const void *from, size_t size) {
    if (!size)
        return;
    memcpy(file->now + at, from, size);
    for (uint64_t s = at / SIM_SECTOR; s <= (at + size - 1) / SIM_SECTOR; s++)
        file->unsynced[s] = true;
}

// Of a write that fails a part may have been done.
static inline int sim_write(void *self, int file, uint64_t at, const struct files_part *parts,
                            int count) {
    struct sim_disk *disk = self;
    struct sim_file *f = &disk->file[file];
    bool dead = disk->dead;
    int why = sim_operation(disk);
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += parts[i].size;
    size_t most = why ? sim_random(disk) % (size + 1) : size;
    if (dead || at + size > f->size)
        return EIO;
    for (int i = 0; i < count && most; i++) {
        size_t n = parts[i].size < most ? parts[i].size : most;
        sim_put(f, at, parts[i].at, n);
        at += n;
        most -= n;
    }
    return why;
}

static inline int sim_read(void *self, int file, uint64_t at, void *to, size_t size, size_t *got) {
    struct sim_disk *disk = self;
    struct sim_file *f = &disk->file[file];
    *got = at < f->size ? f->size - at < size ? f->size - at : size : 0;
    if (*got)
        memcpy(to, f->now + at, *got);
    if (++disk->reads == disk->misread_at && *got)
        ((uint8_t *)to)[sim_random(disk) % *got] ^= 1;
    return disk->dead ? EIO : 0;
}

// What is on the way to the disk gets there or not, sector by sector.
static inline void sim_settle(struct sim_disk *disk, struct sim_file *file, enum sim_loss loss) {
    for (uint64_t s = 0; s < file->size / SIM_SECTOR; s++) {
        bool kept = loss == SIM_LOSES_NOTHING || (loss == SIM_LOSES_SOME && sim_random(disk) & 1);
        if (file->unsynced[s] && kept)
            memcpy(file->durable + s * SIM_SECTOR, file->now + s * SIM_SECTOR, SIM_SECTOR);
        file->unsynced[s] = false;
    }
    file->durable_size = file->size;
}

// After one that fails the pages count as clean, whether they came to the disk or not.
static inline int sim_sync(void *self, int file) {
    struct sim_disk *disk = self;
    int why = sim_operation(disk);
    if (!disk->dead)
        sim_settle(disk, &disk->file[file], why ? SIM_LOSES_SOME : SIM_LOSES_NOTHING);
    disk->syncs += !why;
    return why;
}

static inline int sim_sync_names(void *self) {
    struct sim_disk *disk = self;
    int why = sim_operation(disk);
    for (int i = 0; i < disk->file_count && !why; i++)
        disk->file[i].durably_there = disk->file[i].there;
    return why;
}

static inline int sim_remove(void *self, const char *name) {
    struct sim_disk *disk = self;
    struct sim_file *file = sim_find(disk, name);
    int why = sim_operation(disk);
    if (why || !file)
        return why ? why : ENOENT;
    file->there = false;
    disk->room += file->size;
    return 0;
}

static inline void sim_begin(struct sim_disk *disk) {
    *disk = (struct sim_disk){.room = UINT64_MAX / 2, .seed = 1, .failure = EIO};
    disk->files = (struct files){
        disk,         sim_list,  sim_create, sim_open, sim_open_to_write, sim_close,
        sim_allocate, sim_write, sim_read,   sim_sync, sim_sync_names,    sim_remove};
}

static inline bool sim_kept(struct sim_disk *disk, enum sim_loss loss) {
    return loss == SIM_LOSES_NOTHING || (loss == SIM_LOSES_SOME && sim_random(disk) & 1);
}

// The power comes back after a cut.
static inline void sim_power(struct sim_disk *disk, enum sim_loss loss) {
    disk->dead = false;
    disk->cut_at = disk->fail_at = 0;
    for (int i = 0; i < disk->file_count; i++) {
        struct sim_file *file = &disk->file[i];
        if (file->there != file->durably_there)
            file->there = file->durably_there =
                sim_kept(disk, loss) ? file->there : file->durably_there;
        if (!file->there || !file->size) {
            file->there = file->there && file->size;
            continue;
        }
        sim_settle(disk, file, loss);
        memcpy(file->now, file->durable, file->size);
    }
}

static inline void sim_end(struct sim_disk *disk) {
    for (int i = 0; i < disk->file_count; i++)
        sim_free_file(&disk->file[i]);
}

#endif
