// What the parts of saving and loading checkpoints share.
//
//   checkpoint.c             saves one whose tensors all are here
//   checkpoint_parts.c       saves one whose tensors others write (checkpoint_parts.h)
//   checkpoint_part_file.c   writes one of these
//   checkpoint_own.c         and where it is on the disk of the server that wrote it
//   checkpoint_load.c        finds one, and loads it from one file
//   checkpoint_load_parts.c  or from parts
//   checkpoint_portion.c     what a partition of its model has of it
//   checkpoint_folder.c      a folder appears whole or not at all
//   checkpoint_manifest.c    sizes and checksums of its files
//   checkpoint_metadata.c    texts beside the numbers
//   checkpoint_tensors.c     names of tensors, and their values in a file
#ifndef ADAM_RUN_CHECKPOINT_INTERNAL_H
#define ADAM_RUN_CHECKPOINT_INTERNAL_H

#include "run/checkpoint.h"
#include "run/checkpoint_parts.h"
#include "run/checkpoint_tensors.h"
#include "store/content.h"

#define CHECKPOINT_FILE "model.safetensors"
#define CHECKPOINT_INDEX "model.safetensors.index.json"
#define CHECKPOINT_MANIFEST "manifest.json"
#define CHECKPOINT_TOKEN_FILE "token"
#define CHECKPOINT_FORMAT "adam"

// Versions of the manifest: those before this one have no checksum of their own.
enum { CHECKPOINT_SEALED = 2 };

// --- the folder -----------------------------------------------------------------

// Makes a folder to fill before RUN/ckpt-CLOCK is complete. *folder is for checkpoint_end_folder,
// whatever happened. STATUS_CANTCREATE.
int checkpoint_begin_folder(char **folder, const char *run, uint64_t clock, struct error *err);
// A new file in it, to be closed with checkpoint_sync. STATUS_CANTCREATE.
int checkpoint_create(const char *folder, const char *name, int *fd, struct error *err);
// Closes a file, and syncs it when `status` is STATUS_OK. Returns `status`, or STATUS_IO.
int checkpoint_sync(int fd, int status, struct error *err);
// A whole file, synced. STATUS_CANTCREATE, STATUS_IO.
int checkpoint_write_text(const char *folder, const char *name, const char *text,
                          struct file_sum *sum, struct error *err);
// The folder is complete: gives it its name, points RUN/latest at it and RUN/best at the best, and
// removes all but that and the newest `keep` checkpoints. STATUS_CANTCREATE, STATUS_IO.
int checkpoint_publish(const char *folder, const char *run, const struct checkpoint *checkpoint,
                       int keep, struct error *err);
// Frees it; after a failure removes it first, and says what could not be saved. Returns `status`.
int checkpoint_end_folder(char *folder, const char *run, uint64_t clock, int status,
                          struct error *err);

// --- the manifest ---------------------------------------------------------------

struct checkpoint_file { // of the checkpoint
    const char *name;
    struct file_sum sum;
    const char *server; // of which it is on the disk; NULL: it is in the folder
};

// `parts`: of whose files that are not in the folder the manifest tells; NULL: all are.
int checkpoint_write_manifest(const struct checkpoint *checkpoint, const char *folder,
                              const struct checkpoint_file *files, size_t count,
                              const struct checkpoint_draft *parts, struct error *err);
// The server that the manifest names for this file; NULL: none.
const char *checkpoint_server_of(const json_t *manifest, const char *name);

// Whether these are the bytes of the file `name` as the manifest has it. STATUS_DATA, STATUS_IO.
int checkpoint_check_sum(const json_t *manifest, const char *name, const struct content *file,
                         struct error *err);

// --- texts and tensors ----------------------------------------------------------

// What is wanted of a checkpoint.
enum checkpoint_values {
    VALUES_NONE,       // all but its tensors
    VALUES_PARAMETERS, // what predicts
    VALUES_STATE,      // and the optimizer's state
    VALUES_PORTION,    // of a checkpoint whose model is there, a partition's parameters
};
struct checkpoint_wanted {
    enum checkpoint_values values;
    const char *const *sets; // as in checkpoint_load
    size_t set_count;
    const char *scratch;   // of the checkpoint
    const struct cut *cut; // VALUES_PORTION
    int partition;
    float *own; // the partition's parameters
};

// An object of texts; NULL when out of memory.
json_t *checkpoint_metadata(const struct checkpoint *checkpoint);
// Takes everything from it but the values of tensors. STATUS_DATA.
int checkpoint_read_metadata(struct checkpoint *checkpoint, const json_t *metadata,
                             const struct checkpoint_wanted *wanted, struct error *err);
// The lists of all tensors that it has, to be freed with named_lists_free, also after a failure: of
// states only where its memory for them is; and where the values of one belong. STATUS_IO.
int checkpoint_lists(struct named_lists *lists, const struct checkpoint *checkpoint,
                     struct error *err);
float *checkpoint_values(const struct checkpoint *checkpoint, const struct named_lists *lists,
                         size_t list);
// A tensor of the file: it must be there, and of the right shape; and what is said of one whose
// values are not all finite. STATUS_DATA.
int checkpoint_find_tensor(const struct tensor **out, const struct safetensors *file,
                           const struct named_parameter *named, struct error *err);
int checkpoint_refuse_values(const char *tensor, struct error *err);
// Puts the values of a tensor where they belong among all of the model's: it must be there, of the
// right shape, and finite. STATUS_DATA, STATUS_IO.
int checkpoint_get_tensor(const struct safetensors *file, const struct content *content,
                          const struct named_parameter *named, float *values, struct error *err);
// The same of those tensors that predict whose `here` is true, for the partition that is wanted.
int checkpoint_get_portion(const struct safetensors *file, const struct content *content,
                           const struct named_lists *lists, const bool *here,
                           const struct checkpoint_wanted *wanted, struct error *err);

// Whether memory for values is wanted: not of nothing, and not of VALUES_PORTION, whose is there.
bool checkpoint_wants_room(const struct checkpoint_wanted *wanted);
// The lists of all tensors that are wanted, as checkpoint_lists, before there is memory for them.
int checkpoint_wanted_lists(struct named_lists *lists, const struct checkpoint *checkpoint,
                            const struct checkpoint_wanted *wanted, struct error *err);
// Memory for the values that are wanted of it, once it is known that they are there. STATUS_IO.
int checkpoint_wanted_room(struct checkpoint *checkpoint, const struct checkpoint_wanted *wanted,
                           struct error *err);

// Loads from the parts that the index in the file `path` lists. `manifest` is that of the folder,
// NULL: there is none. STATUS_NOINPUT, STATUS_DATA.
int checkpoint_load_parts(struct checkpoint *checkpoint, const char *path, const json_t *manifest,
                          const struct checkpoint_wanted *wanted, struct error *err);

#endif
