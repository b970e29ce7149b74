// The picture files that are met in a folder, by device and inode, so that none is read twice: a
// link beside the file that it leads to would give the same picture under another key.
#ifndef ADAM_SAMPLE_FILES_MET_H
#define ADAM_SAMPLE_FILES_MET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct error;

struct file_met {
    dev_t device;
    ino_t inode;
    size_t link; // which of the links it is, from 1; 0: the file itself
};

// {0}: none yet.
struct files_met {
    struct file_met *items;
    size_t count, room;
};

// A file; or link number `link`, from 1, which leads to it. `of` is the file's in both cases.
int files_met_add(struct files_met *met, const struct stat *of, size_t link, struct error *err);
// Sets again[i - 1] for each link i that leads to a file, or to where a link with a smaller number
// leads. The order of what was met is lost by that.
void files_met_again(struct files_met *met, bool *again);
// Forgets them, and keeps their room.
void files_met_forget(struct files_met *met);
void files_met_free(struct files_met *met);

#endif
