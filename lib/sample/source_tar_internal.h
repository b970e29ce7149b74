// Shared by source_tar.c and source_tar_member.c.
#ifndef ADAM_SAMPLE_SOURCE_TAR_INTERNAL_H
#define ADAM_SAMPLE_SOURCE_TAR_INTERNAL_H

#include "core/error.h"
#include "sample/keyset.h"
#include "sample/source_kind.h"
#include "sample/tar_group.h"
#include "store/tar.h"

enum { TAR_FAULT_ROOM = 64 };

struct tar_source {
    struct tar_reader *tar;
    struct keyset seen;
    struct tar_sample current; // whose members are being read
    struct tar_group group;
    // A report that comes behind the samples that wait, and why; of STATUS_OK there is none.
    struct sample report;
    struct error why;
    struct tar_member member;
    bool pending; // `member` is not looked at yet
    bool ended;
    bool cut;   // the archive ends within a member
    bool whole; // the end was looked at
    bool some;  // a sample was met, be it good or bad
};

// ---- source_tar_member.c ----

// The last part of a name.
const char *tar_source_base(const char *name);
// What a member is to its sample: by what follows the last dot of its base name.
enum tar_member_kind tar_source_kind(const char *name);

// Sets the path to that name in the archive; or to the member that is being looked at.
int tar_source_path(struct source *source, struct sample *sample, const char *name,
                    struct error *err);
int tar_source_member_path(struct source *source, struct sample *sample, struct error *err);
// Reports the member that is being looked at as bad (STATUS_SKIPPED), with its path in `sample`.
int tar_source_refuse(struct source *source, struct sample *sample, const char *why,
                      struct error *err);

// What is wrong with a member before it is read, or NULL; `room` is for the sentence.
const char *tar_source_fault(const struct tar_member *member, char room[TAR_FAULT_ROOM]);
// A member that is no picture cannot be read: the sample is spoilt by it.
void tar_source_note_fault(struct tar_sample *current, enum tar_member_kind kind,
                           const char *fault);

// Each reads the member that is being looked at into the current sample; a report on it is in
// `sample`.
int tar_source_picture(struct source *source, struct sample *sample, struct error *err);
int tar_source_class(struct source *source, struct sample *sample, struct error *err);
int tar_source_original(struct source *source, struct sample *sample, struct error *err);

#endif
