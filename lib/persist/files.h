// The file operations that a store needs, as a table: the system's (files_system.h), or those of
// a test or a simulator that lets each of them fail, tears writes and loses what was not synced.
//
// All names are of files in one folder. Functions return 0 or an errno; a write or a read of
// fewer bytes than asked is such a failure, too, but a read that ends with the file is not.
// Call from one thread.
#ifndef ADAM_PERSIST_FILES_H
#define ADAM_PERSIST_FILES_H

#include <stddef.h>
#include <stdint.h>

struct files_part { // of what is written in one piece
    const void *at;
    size_t size;
};

// Called for each name in the folder, in any order.
typedef void files_each(void *context, const char *name);

struct files {
    void *self;
    int (*list)(void *self, files_each *each, void *context);
    // A new, empty file, for writing; EEXIST when there is one. *file is a number for the others.
    int (*create)(void *self, const char *name, int *file);
    // An existing one, for reading; `size` in bytes.
    int (*open)(void *self, const char *name, int *file, uint64_t *size);
    // An existing one, for reading and writing.
    int (*open_to_write)(void *self, const char *name, int *file);
    void (*close)(void *self, int file);
    // Gives the file this size, and blocks of the disk for all of it: ENOSPC comes here.
    int (*allocate)(void *self, int file, uint64_t size);
    int (*write)(void *self, int file, uint64_t at, const struct files_part *parts, int count);
    // *got is less than `size` only at the end of the file.
    int (*read)(void *self, int file, uint64_t at, void *to, size_t size, size_t *got);
    // What was written to this file is durable when it returns 0.
    int (*sync)(void *self, int file);
    // Names that were created or removed are so durably when it returns 0.
    int (*sync_names)(void *self);
    int (*remove)(void *self, const char *name);
};

#endif
