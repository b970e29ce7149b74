// Tar archives in all their dialects, through libarchive. Nothing is ever
// created at a path that an archive names: members are bytes in memory.
#ifndef ADAM_STORE_TAR_H
#define ADAM_STORE_TAR_H

#include <stdbool.h>

#include "store/output.h"
#include "store/stream.h"

struct error;

struct tar_reader; // belongs to one thread

struct tar_member {
    const char *name;  // as the archive has it; valid until the next member
    const char *other; // NULL for a plain file, else what it is: "a symbolic link"
    bool folder;       // a folder, which holds no bytes of its own
    uint64_t size;
    uint64_t offset; // of its header, behind the decompression
};

// Reads from `stream`, which must outlive the reader.
int tar_reader_open(struct tar_reader **out, struct stream *stream, struct error *err);
void tar_reader_close(struct tar_reader *tar);

// The next member, or *more = false at the end. Archives that were joined with
// cat are read one behind the other. STATUS_DATA with the offset when the
// archive is damaged or ends too early; nothing can be read behind that.
int tar_reader_next(struct tar_reader *tar, struct tar_member *member, bool *more,
                    struct error *err);
// Bytes of the member; *got is less than n only when it ends there.
int tar_reader_read(struct tar_reader *tar, void *data, size_t n, size_t *got, struct error *err);

// Behind STATUS_DATA: whether the bytes ended within the archive, so that all before was sound.
bool tar_reader_cut(const struct tar_reader *tar);

// Behind the last member: whether the archive had its end mark, blocks of zeros.
// Without it, it was perhaps cut off between two members.
bool tar_reader_whole(const struct tar_reader *tar);

struct tar_writer; // belongs to one thread

// Writes to `output`, which must outlive the writer. Owner, time and mode are
// fixed, so that the same members give the same bytes. STATUS_IO.
int tar_writer_open(struct tar_writer **out, struct output *output, struct error *err);
int tar_writer_put(struct tar_writer *tar, const char *name, const void *data, size_t size,
                   struct error *err);
// Writes the end of the archive (not of the output). Frees the writer in any case.
int tar_writer_close(struct tar_writer *tar, struct error *err);
void tar_writer_abort(struct tar_writer *tar);

#endif
