// The members of a tar whose base names are the same up to the first dot. In the words of
// WebDataset they are one sample, with "png" and "seg.png" for parts. Where no member has a single
// dot, as "photo.1.png" and "photo.2.png" have not, they are samples of their own, named up to the
// last dot. Which of the two it is may turn out behind the first pictures; they wait here.
#ifndef ADAM_SAMPLE_TAR_GROUP_H
#define ADAM_SAMPLE_TAR_GROUP_H

#include <stdbool.h>

#include "sample/sample.h"

enum tar_member_kind { MEMBER_OTHER, MEMBER_PICTURE, MEMBER_CLASS, MEMBER_ORIGINAL, MEMBER_KINDS };

enum { TAR_CLASS_MAX = CLASS_NAME_MAX + 2, TAR_GROUP_WAITING = 16 };

// A sample, or what of it is read already.
struct tar_sample {
    char *key;
    struct sample sample;
    char class[TAR_CLASS_MAX];
    bool have[MEMBER_KINDS];
    bool class_good, class_empty;
};

enum tar_group_reading {
    GROUP_OPEN,  // all so far have further dots
    GROUP_PARTS, // those with further dots are parts of one sample
    GROUP_OWN,   // each is a sample of its own
};

// {0} is none yet.
struct tar_group {
    char *name; // up to the first dot
    enum tar_group_reading reading;
    struct tar_sample waiting[TAR_GROUP_WAITING]; // complete samples, from `first` on in a circle
    int first, count;
    char *beside;      // group of the last member that is neither a picture nor belongs to one
    uint64_t left_out; // pictures that are parts of a sample with another picture
    char *example;     // the path of the first of them
};

// Whether a key, the name of a member up to its last dot, is of the group that is being read.
bool tar_group_has(const struct tar_group *group, const char *key);
// Begins the group of a key. None may wait.
int tar_group_begin(struct tar_group *group, const char *key, struct error *err);
// A group that may begin later has a member with this key and a single dot.
int tar_group_see(struct tar_group *group, const char *key, struct error *err);

// Takes a sample that is complete, and leaves an empty one without a key. More than may wait are
// samples of their own, so that memory is bounded.
void tar_group_put(struct tar_group *group, struct tar_sample *sample);
// The next sample that need not wait any longer; NULL: none. Valid until the next call of another
// function.
struct tar_sample *tar_group_take(struct tar_group *group);
// Behind the last member of the group: none need wait. Whether there are any.
bool tar_group_end(struct tar_group *group);

// Samples with further dots are parts of another: those that wait are left out.
int tar_group_join(struct tar_group *group, struct error *err);
// Counts a picture with this path (struct sample) as left out.
int tar_group_leave_out(struct tar_group *group, const char *path, struct error *err);

void tar_sample_free(struct tar_sample *sample);
void tar_group_free(struct tar_group *group);

#endif
