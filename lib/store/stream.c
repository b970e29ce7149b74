#include "store/stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/error.h"
#include "core/mem.h"

enum { INPUT_SIZE = 1 << 16, AHEAD_SIZE = 1 << 16, MAGIC_SIZE = 6 };

// Bytes begin..end of data are there and not taken yet.
struct read_buffer {
    uint8_t *data;
    size_t begin, end, capacity;
};

struct stream {
    char *name;
    int fd;
    struct stream_wait wait; // of what is no regular file
    int64_t size;
    uint64_t taken;
    struct read_buffer input; // as it comes from the file
    struct read_buffer ahead; // as the reader gets it
    // Puts at least one byte behind ahead.end, or none at the end of the stream.
    int (*fill)(struct stream *stream, struct error *err);
    z_stream inflate;          // fill_gzip
    bool inflating;            // inside a member: the end of the input is a truncation
    struct archive *unpack;    // fill_unpack: zstd and xz
    struct error unpack_error; // what reading for libarchive met
};

static size_t window_held(const struct read_buffer *window) {
    return window->end - window->begin;
}

// Makes room for `n` bytes in all, from the first one that is not taken.
static int window_reserve(struct read_buffer *window, size_t n, struct error *err) {
    if (window->begin > 0) {
        memmove(window->data, window->data + window->begin, window_held(window));
        window->end -= window->begin;
        window->begin = 0;
    }
    if (n <= window->capacity)
        return STATUS_OK;
    uint8_t *data = mem_resize(window->data, n, 1);
    if (!data)
        return error_nomem(err);
    window->data = data;
    window->capacity = n;
    return STATUS_OK;
}

// Until there is something to read, or the end.
static int wait_for_data(const struct stream *stream, struct error *err) {
    enum { SLICE_MS = 100 };
    struct pollfd fd = {.fd = stream->fd, .events = POLLIN};
    for (;;) {
        if (stream->wait.stop(stream->wait.self))
            return error_set(err, STATUS_STOPPED, "stopped on request");
        // An error of poll is met again by read, which says it.
        int ready = poll(&fd, 1, SLICE_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return STATUS_OK;
    }
}

static int read_bytes(struct stream *stream, void *data, size_t size, size_t *got,
                      struct error *err) {
    ssize_t n;
    int status = stream->wait.stop ? wait_for_data(stream, err) : STATUS_OK;
    if (status)
        return status;
    do
        n = read(stream->fd, data, size);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_errno(err, STATUS_IO, "cannot read %s", stream->name);
    *got = (size_t)n;
    return STATUS_OK;
}

// Reads one more block behind what `input` holds.
static int input_more(struct stream *stream, size_t *got, struct error *err) {
    struct read_buffer *input = &stream->input;
    int status = window_reserve(input, INPUT_SIZE, err);
    if (!status)
        status =
            read_bytes(stream, input->data + input->end, input->capacity - input->end, got, err);
    if (!status)
        input->end += *got;
    return status;
}

static int fill_plain(struct stream *stream, struct error *err) {
    struct read_buffer *ahead = &stream->ahead, *input = &stream->input;
    size_t got = window_held(input);
    if (got == 0) {
        int status =
            read_bytes(stream, ahead->data + ahead->end, ahead->capacity - ahead->end, &got, err);
        ahead->end += status ? 0 : got;
        return status;
    }
    if (got > ahead->capacity - ahead->end)
        got = ahead->capacity - ahead->end;
    memcpy(ahead->data + ahead->end, input->data + input->begin, got);
    ahead->end += got;
    input->begin += got;
    return STATUS_OK;
}

// Between two members of a gzip file: another member may follow, or zeros that
// fill a block of tape. *more says whether a member follows.
static int gzip_next_member(struct stream *stream, bool *more, struct error *err) {
    struct read_buffer *input = &stream->input;
    size_t got = 1;
    while (got > 0 && window_held(input) < 2) {
        int status = input_more(stream, &got, err);
        if (status)
            return status;
    }
    *more = window_held(input) >= 2 && input->data[input->begin] == 0x1f &&
            input->data[input->begin + 1] == 0x8b;
    if (*more)
        return inflateReset(&stream->inflate) == Z_OK
                   ? STATUS_OK
                   : error_set(err, STATUS_BUG, "zlib cannot be reset");
    while (window_held(input) > 0) {
        for (; input->begin < input->end; input->begin++)
            if (input->data[input->begin] != 0)
                return error_set(err, STATUS_DATA, "%s: garbage behind the gzip data",
                                 stream->name);
        int status = input_more(stream, &got, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static int gzip_some(struct stream *stream, struct error *err) {
    struct read_buffer *input = &stream->input, *ahead = &stream->ahead;
    z_stream *z = &stream->inflate;
    size_t room = ahead->capacity - ahead->end;
    z->next_in = input->data + input->begin;
    z->avail_in = (uInt)window_held(input);
    z->next_out = ahead->data + ahead->end;
    z->avail_out = room > INT32_MAX ? INT32_MAX : (uInt)room;
    int result = inflate(z, Z_NO_FLUSH);
    input->begin = input->end - z->avail_in;
    ahead->end = (size_t)(z->next_out - ahead->data);
    if (result == Z_MEM_ERROR)
        return error_nomem(err);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return error_set(err, STATUS_DATA, "%s: damaged gzip data: %s", stream->name,
                         z->msg ? z->msg : "it needs a dictionary");
    stream->inflating = result != Z_STREAM_END;
    return STATUS_OK;
}

// libarchive would do, but does not compare the CRC-32 of gzip; zlib does.
static int fill_gzip(struct stream *stream, struct error *err) {
    size_t before = stream->ahead.end;
    while (stream->ahead.end == before) {
        int status;
        if (!stream->inflating) {
            bool more;
            if ((status = gzip_next_member(stream, &more, err)) || !more)
                return status;
            stream->inflating = true;
        }
        if (window_held(&stream->input) == 0) {
            size_t got;
            if ((status = input_more(stream, &got, err)))
                return status;
            if (got == 0)
                return error_set(err, STATUS_DATA, "%s: the gzip data ends too early",
                                 stream->name);
        }
        if ((status = gzip_some(stream, err)))
            return status;
    }
    return STATUS_OK;
}

static la_ssize_t unpack_input(struct archive *archive, void *context, const void **data) {
    struct stream *stream = context;
    struct read_buffer *input = &stream->input;
    (void)archive;
    size_t got = window_held(input);
    if (got == 0 && input_more(stream, &got, &stream->unpack_error))
        return ARCHIVE_FATAL;
    *data = input->data + input->begin;
    input->begin = input->end;
    return (la_ssize_t)got;
}

static int unpack_failed(struct stream *stream, struct error *err) {
    if (stream->unpack_error.status)
        return error_set(err, stream->unpack_error.status, "%s", stream->unpack_error.text);
    const char *why = archive_error_string(stream->unpack);
    return error_set(err, STATUS_DATA, "%s: damaged compressed data: %s", stream->name,
                     why ? why : "unknown reason");
}

static int fill_unpack(struct stream *stream, struct error *err) {
    struct read_buffer *ahead = &stream->ahead;
    la_ssize_t n =
        archive_read_data(stream->unpack, ahead->data + ahead->end, ahead->capacity - ahead->end);
    if (n < 0)
        return unpack_failed(stream, err);
    ahead->end += (size_t)n;
    return STATUS_OK;
}

static int fill_nothing(struct stream *stream, struct error *err) {
    (void)stream;
    (void)err;
    return STATUS_OK;
}

static int open_unpack(struct stream *stream, struct error *err) {
    struct archive *a = stream->unpack = archive_read_new();
    if (!a)
        return error_nomem(err);
    archive_read_support_filter_zstd(a);
    archive_read_support_filter_xz(a);
    archive_read_support_format_raw(a);
    archive_read_support_format_empty(a);
    if (archive_read_open(a, stream, NULL, unpack_input, NULL) != ARCHIVE_OK)
        return unpack_failed(stream, err);
    struct archive_entry *entry;
    int result = archive_read_next_header(a, &entry);
    if (result != ARCHIVE_OK && result != ARCHIVE_EOF)
        return unpack_failed(stream, err);
    // Nothing was compressed, and libarchive wants not to be asked for more.
    stream->fill = result == ARCHIVE_EOF ? fill_nothing : fill_unpack;
    return STATUS_OK;
}

static int open_gzip(struct stream *stream, struct error *err) {
    enum { GZIP_ONLY = 16 };
    if (inflateInit2(&stream->inflate, MAX_WBITS + GZIP_ONLY) != Z_OK)
        return error_nomem(err);
    stream->inflating = true;
    stream->fill = fill_gzip;
    return STATUS_OK;
}

static int recognise_compression(struct stream *stream, struct error *err) {
    struct read_buffer *input = &stream->input;
    size_t got = 1;
    while (got > 0 && window_held(input) < MAGIC_SIZE) {
        int status = input_more(stream, &got, err);
        if (status)
            return status;
    }
    size_t held = window_held(input);
    stream->fill = fill_plain;
    if (held >= 3 && !memcmp(input->data, "\x1f\x8b\x08", 3)) {
        stream->size = -1;
        return open_gzip(stream, err);
    }
    if ((held >= 4 && !memcmp(input->data, "\x28\xb5\x2f\xfd", 4)) ||
        (held >= 6 && !memcmp(input->data,
                              "\xfd"
                              "7zXZ",
                              6))) {
        stream->size = -1;
        return open_unpack(stream, err);
    }
    return STATUS_OK;
}

static const char *file_kind(mode_t mode) {
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a named pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

// To open a pipe that nobody writes to would wait; O_NONBLOCK does not. What is read then
// waits like any other.
static int open_waiting(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int flags = fd < 0 ? 0 : fcntl(fd, F_GETFL);
    if (fd >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

static int open_named(struct stream *stream, const char *path, bool regular, struct error *err) {
    struct stat stat_of;
    bool there = stat(path, &stat_of) == 0, pipe = there && S_ISFIFO(stat_of.st_mode);
    if (there && regular && !S_ISREG(stat_of.st_mode))
        return error_set(err, STATUS_NOINPUT, "is %s, not a file", file_kind(stat_of.st_mode));
    stream->fd = pipe && stream->wait.stop ? open_waiting(path) : open(path, O_RDONLY | O_CLOEXEC);
    return stream->fd < 0 ? error_errno(err, STATUS_NOINPUT, "cannot open %s", path) : STATUS_OK;
}

static int open_file(struct stream *stream, const char *path, bool regular, struct error *err) {
    bool standard = !strcmp(path, "-") && !regular;
    stream->name = mem_string(standard ? "standard input" : path);
    if (!stream->name)
        return error_nomem(err);
    if (standard)
        stream->fd = STDIN_FILENO;
    else if (open_named(stream, path, regular, err))
        return STATUS_NOINPUT;
    struct stat stat;
    bool plain = fstat(stream->fd, &stat) == 0 && S_ISREG(stat.st_mode);
    if (plain)
        stream->wait.stop = NULL;
    if (plain && !standard)
        stream->size = stat.st_size;
    return STATUS_OK;
}

static int open_stream(struct stream **out, const char *path, const struct stream_wait *wait,
                       bool regular, struct error *err) {
    struct stream *stream = mem_zeroed(1, sizeof *stream);
    if (!stream)
        return error_nomem(err);
    stream->fd = -1;
    stream->size = -1;
    stream->wait = *wait;
    int status = open_file(stream, path, regular, err);
    if (!status)
        status = recognise_compression(stream, err);
    if (status) {
        stream_close(stream);
        return status;
    }
    *out = stream;
    return STATUS_OK;
}

int stream_open(struct stream **out, const char *path, struct error *err) {
    return open_stream(out, path, &(struct stream_wait){0}, false, err);
}

int stream_open_stoppable(struct stream **out, const char *path, const struct stream_wait *wait,
                          struct error *err) {
    return open_stream(out, path, wait, false, err);
}

int stream_open_regular(struct stream **out, const char *path, struct error *err) {
    return open_stream(out, path, &(struct stream_wait){0}, true, err);
}

void stream_close(struct stream *stream) {
    if (!stream)
        return;
    if (stream->fill == fill_gzip)
        inflateEnd(&stream->inflate);
    archive_read_free(stream->unpack);
    if (stream->fd > STDIN_FILENO)
        close(stream->fd);
    free(stream->input.data);
    free(stream->ahead.data);
    free(stream->name);
    free(stream);
}

int stream_peek(struct stream *stream, size_t n, const uint8_t **data, size_t *got,
                struct error *err) {
    struct read_buffer *ahead = &stream->ahead;
    while (window_held(ahead) < n) {
        size_t held = window_held(ahead), room = ahead->capacity - ahead->begin;
        // Room grows by what has come, never by what was only asked for.
        size_t wanted = held < AHEAD_SIZE / 2 ? AHEAD_SIZE : 2 * held;
        int status = STATUS_OK;
        if (room == held || room < AHEAD_SIZE)
            status = window_reserve(ahead, wanted, err);
        if (!status)
            status = stream->fill(stream, err);
        if (status)
            return status;
        if (window_held(ahead) == held)
            break;
    }
    *data = ahead->data + ahead->begin;
    *got = window_held(ahead) < n ? window_held(ahead) : n;
    return STATUS_OK;
}

// Takes what is there of n bytes, up to one filling; a plain file is read
// straight to where it is wanted.
static int take_bytes(struct stream *stream, uint8_t *data, uint64_t n, size_t *got,
                      struct error *err) {
    struct read_buffer *ahead = &stream->ahead;
    bool plain = stream->fill == fill_plain && window_held(&stream->input) == 0;
    if (data && plain && window_held(ahead) == 0 && n >= AHEAD_SIZE)
        return read_bytes(stream, data, (size_t)n, got, err);
    const uint8_t *there;
    int status = stream_peek(stream, 1, &there, got, err);
    if (status)
        return status;
    *got = window_held(ahead) < n ? window_held(ahead) : (size_t)n;
    if (data)
        memcpy(data, there, *got);
    ahead->begin += *got;
    return STATUS_OK;
}

int stream_read(struct stream *stream, void *data, size_t n, size_t *got, struct error *err) {
    size_t some = 1;
    *got = 0;
    while (*got < n && some > 0) {
        int status = take_bytes(stream, (uint8_t *)data + *got, n - *got, &some, err);
        if (status)
            return status;
        *got += some;
        stream->taken += some;
    }
    return STATUS_OK;
}

int stream_skip(struct stream *stream, uint64_t n, uint64_t *skipped, struct error *err) {
    size_t some = 1;
    *skipped = 0;
    while (*skipped < n && some > 0) {
        int status = take_bytes(stream, NULL, n - *skipped, &some, err);
        if (status)
            return status;
        *skipped += some;
        stream->taken += some;
    }
    return STATUS_OK;
}

uint64_t stream_offset(const struct stream *stream) {
    return stream->taken;
}

const char *stream_name(const struct stream *stream) {
    return stream->name;
}

int64_t stream_size(const struct stream *stream) {
    return stream->size;
}
