// The files of a folder of this machine, which one process at a time has.
#ifndef ADAM_PERSIST_FILES_SYSTEM_H
#define ADAM_PERSIST_FILES_SYSTEM_H

#include <stdbool.h>

#include "persist/files.h"

struct error;

struct files_system { // {.folder = -1} has none
    struct files files;
    int folder; // file descriptor
};

// Makes the folder where it is missing, and those around it, and locks it (flock) until the close
// or the end of the process. `files.self` points into *system, which must stay where it is.
// STATUS_CANTCREATE: it cannot be made or opened, or another process has it.
int files_system_open(struct files_system *system, const char *folder, struct error *err);

// The same for a folder that is only read: several may, while nobody writes.
// STATUS_NOINPUT: there is none; STATUS_UNAVAILABLE: a process writes there.
int files_system_look(struct files_system *system, const char *folder, struct error *err);

void files_system_close(struct files_system *system);

#endif
