// A checkpoint in parts, each a safetensors file with whole tensors that another process writes,
// and an index: RUN/ckpt-00012000/{model-00001-of-00003.safetensors...,
// model.safetensors.index.json, manifest.json} (adam-checkpoint(5)). So no process holds the model.
//
// The parts are in the checkpoint's folder, or each on the disk of the server that wrote it: then
// the manifest says which, and remote/part_gather.h brings them together.
//
// Whoever saves makes the folder, has the parts written there, and gives the folder its name:
// whole, or not at all. That the others see the same folder is shown by its token, a file with a
// number that they are told.
#ifndef ADAM_RUN_CHECKPOINT_PARTS_H
#define ADAM_RUN_CHECKPOINT_PARTS_H

#include "run/checkpoint.h"
#include "run/checkpoint_tensors.h"

struct error;

// --- of who saves -----------------------------------------------------------------

enum { CHECKPOINT_TOKEN = 16, CHECKPOINT_PART_NAME = 48 };

struct checkpoint_draft { // a folder in the making
    char *folder;         // its path
    char *path;           // from the root of the file system: for others
    const char *run;      // the caller's
    uint64_t clock;       // with which it was begun
    const char *run_id; // the caller's, in hexadecimal digits: parts are not in the folder; or NULL
    uint8_t token[CHECKPOINT_TOKEN];
};

struct checkpoint_part {
    struct file_sum sum;     // as who wrote it says
    const char *server;      // name of who has it; NULL: it is in the folder
    const uint32_t *tensors; // numbers of named_parameters, ascending; with each its state
    size_t count;
};

// "model-00001-of-00003.safetensors", of parts from 1 on.
void checkpoint_part_name(char name[CHECKPOINT_PART_NAME], uint32_t part, uint32_t parts);

// Begins one, in memory of the caller. STATUS_CANTCREATE, STATUS_IO; nothing is left then.
int checkpoint_draft_open(struct checkpoint_draft *draft, const char *run, uint64_t clock,
                          struct error *err);
// All parts are written: writes index and manifest, and gives the folder the name RUN/ckpt-CLOCK,
// of the checkpoint's clock; the rest as checkpoint_save. `checkpoint` needs neither parameters nor
// state. STATUS_DATA: a part is not there, or of another size than its sum says.
int checkpoint_draft_save(const struct checkpoint_draft *draft, const struct checkpoint *checkpoint,
                          const struct checkpoint_part *parts, uint32_t count, int keep,
                          struct error *err);
// Frees it; after a failure removes the folder and says what could not be saved. Returns `status`.
int checkpoint_draft_end(struct checkpoint_draft *draft, int status, struct error *err);

// Of which run, and which of its checkpoints, the parts are that the manifest's servers have.
// False: it names none.
bool checkpoint_manifest_token(const json_t *manifest, uint8_t run[CHECKPOINT_TOKEN],
                               uint8_t token[CHECKPOINT_TOKEN]);
// Of a checkpoint whose parts are not in its folder: who has them knows them by this.
struct checkpoint_own {
    uint8_t run[CHECKPOINT_TOKEN], token[CHECKPOINT_TOKEN];
};
// Such checkpoints in the run's folder, at most `most`, the newest: their parts must stay. Returns
// their number.
size_t checkpoint_own_list(const char *run, struct checkpoint_own *own, size_t most);

// --- of who writes a part ---------------------------------------------------------

enum { CHECKPOINT_TOKEN_TEXT = 2 * CHECKPOINT_TOKEN + 1 };
void checkpoint_token_text(char text[CHECKPOINT_TOKEN_TEXT], const uint8_t token[CHECKPOINT_TOKEN]);

// The folder for the parts of one checkpoint, DIR/RUN/TOKEN, of who keeps them on its own disk;
// free it with free(), NULL when out of memory.
char *checkpoint_own_folder(const char *dir, const uint8_t run[CHECKPOINT_TOKEN],
                            const uint8_t token[CHECKPOINT_TOKEN]);
// Makes it, with its token in it. STATUS_CANTCREATE, STATUS_IO.
int checkpoint_own_make(const char *folder, const uint8_t token[CHECKPOINT_TOKEN],
                        struct error *err);
// Removes the folder of one checkpoint, and that of its run when it was the last.
void checkpoint_own_remove(const char *dir, const struct checkpoint_own *own);
// Removes the folders of all other checkpoints of the run than these.
void checkpoint_own_prune(const char *dir, const uint8_t run[CHECKPOINT_TOKEN],
                          const uint8_t (*kept)[CHECKPOINT_TOKEN], size_t count);

struct checkpoint_part_file {
    char *path;
    int fd;
    struct file_sum sum;
};

// Begins part `part` of `parts`, with these tensors (whose data is not looked at), in a folder that
// has this token. STATUS_CANTCREATE: it has not, or the file is there; STATUS_IO. Nothing is left
// then.
int checkpoint_part_open(struct checkpoint_part_file *file, const char *folder,
                         const uint8_t token[CHECKPOINT_TOKEN], uint32_t part, uint32_t parts,
                         const struct tensor *tensors, size_t count, struct error *err);
// The next values of the tensors, in their order. STATUS_IO.
int checkpoint_part_write(struct checkpoint_part_file *file, const float *values, size_t n,
                          struct error *err);
// Ends it: synced, or after a failure removed. Returns `status`, or STATUS_IO.
int checkpoint_part_end(struct checkpoint_part_file *file, int status, struct error *err);

#endif
