#include "store/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

enum { BLOCK_SIZE = 1 << 16 };

struct tar_reader {
    struct archive *archive;
    struct stream *stream;
    uint8_t block[BLOCK_SIZE];
    uint64_t zeros;     // at the end of what was read so far
    bool ended;         // more was wanted than there is
    struct error error; // what reading for libarchive met
};

static la_ssize_t read_block(struct archive *archive, void *context, const void **data) {
    struct tar_reader *tar = context;
    size_t got;
    if (stream_read(tar->stream, tar->block, BLOCK_SIZE, &got, &tar->error)) {
        archive_set_error(archive, EIO, "%s", tar->error.text);
        return ARCHIVE_FATAL;
    }
    size_t zeros = 0;
    tar->ended = got == 0;
    while (zeros < got && tar->block[got - 1 - zeros] == 0)
        zeros++;
    tar->zeros = zeros + (zeros == got ? tar->zeros : 0);
    *data = tar->block;
    return (la_ssize_t)got;
}

// Where the last header is. libarchive counts from the bytes that it was given, and goes below 0
// where what it was given ends within a header.
static uint64_t header_offset(const struct tar_reader *tar) {
    int64_t offset = archive_read_header_position(tar->archive);
    return offset < 0 ? 0 : (uint64_t)offset;
}

static int reading_failed(struct tar_reader *tar, struct error *err) {
    if (tar->error.status)
        return error_set(err, tar->error.status, "%s", tar->error.text);
    const char *why = archive_error_string(tar->archive);
    return error_set(err, STATUS_DATA, "%s: offset %llu: %s", stream_name(tar->stream),
                     (unsigned long long)header_offset(tar), why ? why : "not a tar archive");
}

int tar_reader_open(struct tar_reader **out, struct stream *stream, struct error *err) {
    struct tar_reader *tar = mem_zeroed(1, sizeof *tar);
    if (!tar)
        return error_nomem(err);
    tar->stream = stream;
    struct archive *a = tar->archive = archive_read_new();
    int status = STATUS_OK;
    if (!a)
        status = error_nomem(err);
    else if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
             archive_read_set_format_option(a, "tar", "read_concatenated_archives", "1") !=
                 ARCHIVE_OK ||
             archive_read_open(a, tar, NULL, read_block, NULL) != ARCHIVE_OK)
        status = reading_failed(tar, err);
    if (status) {
        tar_reader_close(tar);
        return status;
    }
    *out = tar;
    return STATUS_OK;
}

void tar_reader_close(struct tar_reader *tar) {
    if (!tar)
        return;
    archive_read_free(tar->archive);
    free(tar);
}

// What a member is that holds no bytes of its own, or NULL for a plain file.
static const char *other_type(struct archive_entry *entry) {
    if (archive_entry_hardlink(entry))
        return "a hard link";
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return NULL;
    case AE_IFLNK:
        return "a symbolic link";
    case AE_IFCHR:
    case AE_IFBLK:
        return "a device";
    case AE_IFIFO:
        return "a named pipe";
    case AE_IFDIR:
        return "a folder";
    default:
        return "no plain file";
    }
}

int tar_reader_next(struct tar_reader *tar, struct tar_member *member, bool *more,
                    struct error *err) {
    struct archive_entry *entry;
    int result = archive_read_next_header(tar->archive, &entry);
    *more = result != ARCHIVE_EOF;
    if (result == ARCHIVE_EOF)
        return STATUS_OK;
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
        return reading_failed(tar, err);
    // A name in UTF-8 that the C locale cannot express has only the second form.
    const char *name = archive_entry_pathname(entry);
    if (!name)
        name = archive_entry_pathname_utf8(entry);
    uint64_t offset = header_offset(tar);
    int64_t size = archive_entry_size(entry);
    if (!name || size < 0)
        return error_set(err, STATUS_DATA, "%s: offset %llu: a member %s", stream_name(tar->stream),
                         (unsigned long long)offset, name ? "of negative size" : "without a name");
    *member = (struct tar_member){
        .name = name,
        .other = other_type(entry),
        .folder = archive_entry_filetype(entry) == AE_IFDIR,
        .size = (uint64_t)size,
        .offset = offset,
    };
    return STATUS_OK;
}

bool tar_reader_cut(const struct tar_reader *tar) {
    return tar->ended && !tar->error.status;
}

bool tar_reader_whole(const struct tar_reader *tar) {
    enum { TAR_BLOCK = 512 };
    return tar->zeros >= TAR_BLOCK;
}

int tar_reader_read(struct tar_reader *tar, void *data, size_t n, size_t *got, struct error *err) {
    *got = 0;
    while (*got < n) {
        la_ssize_t some = archive_read_data(tar->archive, (uint8_t *)data + *got, n - *got);
        if (some < 0)
            return reading_failed(tar, err);
        if (some == 0)
            break;
        *got += (size_t)some;
    }
    return STATUS_OK;
}

struct tar_writer {
    struct archive *archive;
    struct archive_entry *entry;
    struct output *output;
    struct error error; // what writing for libarchive met
};

// As in output.c, a failure is not told to libarchive, but kept in tar->error.
static la_ssize_t write_block(struct archive *archive, void *context, const void *data, size_t n) {
    struct tar_writer *tar = context;
    (void)archive;
    if (!tar->error.status)
        output_write(tar->output, data, n, &tar->error);
    return (la_ssize_t)n;
}

static int writing_failed(struct tar_writer *tar, struct error *err) {
    if (tar->error.status)
        return error_set(err, tar->error.status, "%s", tar->error.text);
    const char *why = archive_error_string(tar->archive);
    return error_set(err, STATUS_IO, "cannot write %s: %s", output_name(tar->output),
                     why ? why : "unknown reason");
}

int tar_writer_open(struct tar_writer **out, struct output *output, struct error *err) {
    struct tar_writer *tar = mem_zeroed(1, sizeof *tar);
    if (!tar)
        return error_nomem(err);
    tar->output = output;
    tar->archive = archive_write_new();
    tar->entry = archive_entry_new();
    int status = STATUS_OK;
    // The GNU format keeps names as bytes of any length, whatever the locale.
    if (!tar->archive || !tar->entry)
        status = error_nomem(err);
    else if (archive_write_set_format_gnutar(tar->archive) != ARCHIVE_OK ||
             archive_write_open(tar->archive, tar, NULL, write_block, NULL) != ARCHIVE_OK)
        status = writing_failed(tar, err);
    if (status) {
        tar_writer_abort(tar);
        return status;
    }
    *out = tar;
    return STATUS_OK;
}

int tar_writer_put(struct tar_writer *tar, const char *name, const void *data, size_t size,
                   struct error *err) {
    struct archive_entry *entry = archive_entry_clear(tar->entry);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_mtime(entry, 0, 0);
    if (archive_write_header(tar->archive, entry) != ARCHIVE_OK)
        return writing_failed(tar, err);
    const uint8_t *bytes = data;
    while (size > 0) {
        la_ssize_t n = archive_write_data(tar->archive, bytes, size);
        if (n <= 0 || tar->error.status)
            return writing_failed(tar, err);
        bytes += n;
        size -= (size_t)n;
    }
    return STATUS_OK;
}

int tar_writer_close(struct tar_writer *tar, struct error *err) {
    bool closed = archive_write_close(tar->archive) == ARCHIVE_OK && !tar->error.status;
    int status = closed ? STATUS_OK : writing_failed(tar, err);
    tar_writer_abort(tar);
    return status;
}

void tar_writer_abort(struct tar_writer *tar) {
    if (!tar)
        return;
    // What libarchive still holds goes nowhere.
    tar->error.status = STATUS_STOPPED;
    archive_entry_free(tar->entry);
    archive_write_free(tar->archive);
    free(tar);
}
