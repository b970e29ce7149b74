// The members of a tar whose base names are the same up to the first dot. In the words of
// WebDataset they are one sample, with "png" and "seg.png" for parts. Where no member has a single
// dot, as "photo.1.png" and "photo.2.png" have not, they are samples of their own, named up to the
// last dot. Which of the two it is may turn out behind the first pictures; they wait here. What
// turns out when the group is left already is refused: half of a sample would be taken for one.
#ifndef ADAM_SAMPLE_TAR_GROUP_H
#define ADAM_SAMPLE_TAR_GROUP_H

#include <stdbool.h>

#include "sample/keyset.h"
#include "sample/sample.h"

enum tar_member_kind { MEMBER_OTHER, MEMBER_PICTURE, MEMBER_CLASS, MEMBER_ORIGINAL, MEMBER_KINDS };

enum { TAR_CLASS_MAX = CLASS_NAME_MAX + 5, TAR_GROUP_WAITING = 16, TAR_FAULT = 96 };

// A sample, or what of it is read already.
struct tar_sample {
    char *key;
    struct sample sample;
    char class[TAR_CLASS_MAX];
    bool have[MEMBER_KINDS];
    bool class_good, class_empty;
    char fault[MEMBER_KINDS][TAR_FAULT]; // why a member cannot be read; empty: it can
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
    bool pictured;        // a picture was met that is no part, be it good or bad
    bool part, described; // a picture that is one; a class or an original
    bool lacks;           // it was left without a picture, and nobody was told
    char *beside;         // group of the last member that is neither a picture nor belongs to one
    uint64_t left_out;    // pictures that are parts of a sample with another picture
    char *example;        // the path of the first of them
    struct keyset dotted; // groups with members that have further dots
    struct keyset others; // and those with members that are none of a sample's, without
};

// Whether a key, the name of a member up to its last dot, is of the group that is being read.
bool tar_group_has(const struct tar_group *group, const char *key);
// Begins the group of a key, unless it is *scattered: the group was left already, and what is known
// by this key says that it is one sample. `keys` are those of the samples so far. None may wait.
int tar_group_begin(struct tar_group *group, const char *key, const struct keyset *keys,
                    bool *scattered, struct error *err);
// A group, this one or one that may begin later, has a member with this key and a single dot that
// is none of a sample's. *scattered as above.
int tar_group_see(struct tar_group *group, const char *key, const struct keyset *keys,
                  bool *scattered, struct error *err);
// A member of a sample is met in the group.
void tar_group_meet(struct tar_group *group, enum tar_member_kind kind);

// Takes a sample that is complete, and leaves an empty one without a key. More than may wait are
// samples of their own, so that memory is bounded.
void tar_group_put(struct tar_group *group, struct tar_sample *sample);
// The next sample that need not wait any longer; NULL: none. Valid until the next call of another
// function.
struct tar_sample *tar_group_take(struct tar_group *group);
// Behind the last member of the group: none need wait. Whether there are any, or the group lacks a
// picture.
bool tar_group_end(struct tar_group *group);
// Whether the group ended without a picture of its sample; once.
bool tar_group_lacks(struct tar_group *group);

// Samples with further dots are parts of another: those that wait are left out.
int tar_group_join(struct tar_group *group, struct error *err);
// Counts a picture with this path (struct sample) as left out.
int tar_group_leave_out(struct tar_group *group, const char *path, struct error *err);

void tar_sample_free(struct tar_sample *sample);
void tar_group_free(struct tar_group *group);

#endif
