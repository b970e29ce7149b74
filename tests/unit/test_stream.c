// Streams: what is in a file or comes through a pipe is given whole, packed by gzip, zstd, xz or by
// the letter of RFC 1952, whatever the kernel does meanwhile.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <zlib.h>

#include "../helper/heap.h"
#include "../helper/samples.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "store/stream.h"

enum { SIZE = 200001, BLOCK = 1 << 16 };

static char folder[SCRATCH_PATH];
static uint8_t content[SIZE], back[SIZE + 1];

static const char *const packed[] = {"a", "a.gz", "a.zst", "a.xz"};
enum { PACKED = sizeof packed / sizeof *packed };

// --- the kernel's moods ----------------------------------------------------------------

static enum mood { WELL, PIECEMEAL } mood;
static int reads, failing; // failing: the read, counted from 1, that fails
static bool blocking;      // no read was of a file that gives up rather than wait
static int polls, longest; // longest: what a poll may take, in ms

static void begin(enum mood now, int fails) {
    mood = now;
    failing = fails;
    reads = polls = longest = 0;
    blocking = true;
}

// Each second one is interrupted; the others are short.
ssize_t read(int fd, void *data, size_t size) {
    reads++;
    blocking = blocking && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
    if (reads == failing) {
        errno = EIO;
        return -1;
    }
    if (mood == PIECEMEAL && reads % 2) {
        errno = EINTR;
        return -1;
    }
    size_t most = mood == WELL ? size : reads < 100 ? 1 : 997;
    return syscall(SYS_read, fd, data, size < most ? size : most);
}

// Nothing yet, interrupted, and then what there is.
int poll(struct pollfd *files, nfds_t count, int ms) {
    longest = ms > longest ? ms : longest;
    if (ms < 1)
        longest = INT32_MAX;
    if (++polls % 3 == 0)
        return (int)syscall(SYS_ppoll, files, count, &(struct timespec){0}, NULL, 0);
    errno = polls % 3 == 2 ? EINTR : 0;
    return polls % 3 == 2 ? -1 : 0;
}

// How many files are open.
static int open_files(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

// --- streams ---------------------------------------------------------------------------

static struct stream *opened(struct tap *tap, const char *name) {
    struct stream *stream = NULL;
    struct error err = {0};
    if (stream_open(&stream, in(folder, name), &err)) {
        FAIL(tap, "%s: %s", name, err.text);
        exit(1);
    }
    return stream;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// Reads to the end in pieces; the stream must give the content from `at` on.
static void check_rest(struct tap *tap, struct stream *stream, size_t at, size_t piece) {
    size_t got = piece;
    while (got == piece) {
        CHECK_INT(tap, stream_read(stream, back, piece, &got, NULL), STATUS_OK);
        CHECK_INT(tap, got, least(piece, SIZE - at));
        CHECK(tap, !memcmp(back, content + at, got));
        at += got;
        CHECK_INT(tap, stream_offset(stream), at);
    }
    CHECK_INT(tap, at, SIZE);
}

// The status of opening a file of these bytes and reading it all; what came is in `back`.
static int status_of(const void *bytes, size_t size, size_t *got, struct error *err) {
    struct stream *stream;
    file_write(in(folder, "some"), bytes, size);
    int status = stream_open(&stream, in(folder, "some"), err);
    *got = 0;
    if (status)
        return status;
    status = stream_read(stream, back, sizeof back, got, err);
    stream_close(stream);
    return status;
}

static void test_reading(struct tap *tap) {
    TEST(tap, "plain and packed alike, a stream gives what went in, in pieces of any size", {
        static const size_t pieces[] = {1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, SIZE + 1};
        for (int i = 0; i < PACKED; i++)
            for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
                begin(WELL, 0);
                struct stream *stream = opened(tap, packed[i]);
                check_rest(tap, stream, 0, pieces[p]);
                stream_close(stream);
            }
    });
    TEST(tap, "a read that is short or interrupted is no end", {
        for (int i = 0; i < PACKED; i++) {
            begin(PIECEMEAL, 0);
            struct stream *stream = opened(tap, packed[i]);
            check_rest(tap, stream, 0, SIZE + 1);
            stream_close(stream);
        }
        begin(WELL, 0);
    });
    TEST(tap, "looking ahead takes nothing, and gives less only at the end", {
        static const size_t ahead[] = {0,         1,         6,    BLOCK - 1, BLOCK,
                                       BLOCK + 1, 2 * BLOCK, SIZE, SIZE + 1,  SIZE_MAX};
        static const size_t steps[] = {0, 1, BLOCK / 2, BLOCK, BLOCK + 10, SIZE - 1, SIZE};
        for (int i = 0; i < PACKED; i++)
            for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
                struct stream *stream = opened(tap, packed[i]);
                const uint8_t *data;
                size_t got;
                CHECK_INT(tap, stream_read(stream, back, steps[s], &got, NULL), STATUS_OK);
                for (size_t n = 0; n < sizeof ahead / sizeof *ahead; n++) {
                    CHECK_INT(tap, stream_peek(stream, ahead[n], &data, &got, NULL), STATUS_OK);
                    CHECK_INT(tap, got, least(ahead[n], SIZE - steps[s]));
                    CHECK(tap, got == 0 || !memcmp(data, content + steps[s], got));
                }
                CHECK_INT(tap, stream_offset(stream), steps[s]);
                check_rest(tap, stream, steps[s], BLOCK + 1);
                stream_close(stream);
            }
    });
    TEST(tap, "bytes that were looked at are taken first", {
        for (int i = 0; i < PACKED; i++) {
            struct stream *stream = opened(tap, packed[i]);
            const uint8_t *data;
            size_t got;
            for (size_t at = 0; at < SIZE; at += 2 * BLOCK) {
                CHECK_INT(tap, stream_peek(stream, 10, &data, &got, NULL), STATUS_OK);
                CHECK_INT(tap, stream_read(stream, back, 2 * BLOCK, &got, NULL), STATUS_OK);
                CHECK_INT(tap, got, least(2 * BLOCK, SIZE - at));
                CHECK(tap, !memcmp(back, content + at, got));
            }
            stream_close(stream);
        }
    });
    TEST(tap, "bytes that are passed over are counted, up to the end", {
        for (int i = 0; i < PACKED; i++) {
            struct stream *stream = opened(tap, packed[i]);
            uint64_t skipped;
            CHECK_INT(tap, stream_skip(stream, BLOCK + 7, &skipped, NULL), STATUS_OK);
            CHECK_INT(tap, skipped, BLOCK + 7);
            CHECK_INT(tap, stream_offset(stream), BLOCK + 7);
            CHECK_INT(tap, stream_skip(stream, 0, &skipped, NULL), STATUS_OK);
            CHECK_INT(tap, skipped, 0);
            CHECK_INT(tap, stream_read(stream, back, 9, &(size_t){0}, NULL), STATUS_OK);
            CHECK(tap, !memcmp(back, content + BLOCK + 7, 9));
            CHECK_INT(tap, stream_skip(stream, UINT64_MAX, &skipped, NULL), STATUS_OK);
            CHECK_INT(tap, skipped, SIZE - BLOCK - 16);
            CHECK_INT(tap, stream_offset(stream), SIZE);
            stream_close(stream);
        }
    });
    TEST(tap, "the length is known of a plain file only", {
        for (int i = 0; i < PACKED; i++) {
            struct stream *stream = opened(tap, packed[i]);
            CHECK_INT(tap, stream_size(stream), i ? -1 : SIZE);
            CHECK_TEXT(tap, stream_name(stream), in(folder, packed[i]));
            stream_close(stream);
        }
        file_write(in(folder, "some"), "", 0);
        struct stream *stream = opened(tap, "some");
        CHECK_INT(tap, stream_size(stream), 0);
        stream_close(stream);
    });
    TEST(tap, "a stream leaves no memory and no file open", {
        for (int i = 0; i < PACKED; i++) {
            long before = heap_live();
            int files = open_files();
            struct stream *stream = opened(tap, packed[i]);
            check_rest(tap, stream, 0, BLOCK);
            stream_close(stream);
            stream_close(NULL);
            CHECK_INT(tap, heap_live(), before);
            CHECK_INT(tap, open_files(), files);
        }
    });
}

// --- what packs ------------------------------------------------------------------------

static void put_little(uint8_t to[4], uint32_t value) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

// A member of a gzip file with one stored block (RFC 1952, RFC 1951); its size.
enum { MEMBER = 23 }; // bytes beside the content
static size_t gzip_member(uint8_t *to, const uint8_t *data, uint16_t size) {
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1};
    memcpy(to, head, sizeof head);
    put_little(to + 11, size | (uint32_t)(uint16_t)~size << 16);
    memcpy(to + 15, data, size);
    put_little(to + 15 + size, (uint32_t)crc32(0, data, size));
    put_little(to + 19 + size, size);
    return MEMBER + size;
}

static void test_gzip(struct tap *tap) {
    static uint8_t bytes[4 * BLOCK];
    TEST(tap, "members of gzip are one stream, wherever one ends within a block", {
        for (int around = -3; around <= 3; around++) {
            uint16_t first = (uint16_t)(BLOCK - MEMBER + around);
            size_t got, size = gzip_member(bytes, content, first);
            size += gzip_member(bytes + size, content, 0);
            size += gzip_member(bytes + size, content + first, 1000);
            CHECK_INT(tap, status_of(bytes, size, &got, NULL), STATUS_OK);
            CHECK_INT(tap, got, first + 1000);
            CHECK(tap, !memcmp(back, content, got));
        }
    });
    TEST(tap, "zeros behind gzip, as on tapes, are no data", {
        static const size_t zeros[] = {1, 2, 511, BLOCK, 2 * BLOCK};
        for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
            size_t got, size = gzip_member(bytes, content, 999);
            memset(bytes + size, 0, zeros[i]);
            CHECK_INT(tap, status_of(bytes, size + zeros[i], &got, NULL), STATUS_OK);
            CHECK_INT(tap, got, 999);
        }
    });
    TEST(tap, "anything else behind gzip is refused, behind what was good", {
        static const struct {
            size_t zeros, size;
            const char *bytes;
        } rows[] = {{0, 1, "x"},        {0, 1, "\x1f"}, {0, 2, "\x1f\x8c"}, {0, 2, "\x1e\x8b"},
                    {0, 2, "\x8b\x1f"}, {1, 1, "x"},    {511, 1, "\1"},     {BLOCK, 2, "\x1f\x8b"}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct error err = {0};
            size_t got, size = gzip_member(bytes, content, 999);
            memset(bytes + size, 0, rows[i].zeros);
            memcpy(bytes + size + rows[i].zeros, rows[i].bytes, rows[i].size);
            size += rows[i].zeros + rows[i].size;
            CHECK_INT(tap, status_of(bytes, size, &got, &err), STATUS_DATA);
            CHECK_INT(tap, got, 999);
            CHECK(tap, strstr(err.text, "some: garbage behind the gzip data"));
        }
    });
    TEST(tap, "gzip that is cut is told as such, and from one bit on as damaged", {
        size_t got, size = gzip_member(bytes, content, 40);
        for (size_t n = 3; n < size; n++) {
            struct error err = {0};
            CHECK_INT(tap, status_of(bytes, n, &got, &err), STATUS_DATA);
            CHECK(tap, strstr(err.text, "some: the gzip data ends too early"));
        }
        for (size_t n = 10; n < size; n++) {
            struct error err = {0};
            bytes[n] ^= 4;
            CHECK_INT(tap, status_of(bytes, size, &got, &err), STATUS_DATA);
            CHECK(tap, strstr(err.text, "some: "));
            bytes[n] ^= 4;
        }
        size += gzip_member(bytes + size, content, 40);
        struct error err = {0};
        CHECK_INT(tap, status_of(bytes, size - 1, &got, &err), STATUS_DATA);
        CHECK_INT(tap, got, 80);
    });
    TEST(tap, "of data that says it was packed otherwise, the reason is told", {
        struct error err = {0};
        size_t got, size = gzip_member(bytes, content, 40);
        bytes[10] = 7; // a kind of block that there is not
        CHECK_INT(tap, status_of(bytes, size, &got, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "some: damaged gzip data: invalid block type"));
    });
}

static void test_packed(struct tap *tap) {
    TEST(tap, "zstd and xz that are cut or damaged are refused by name", {
        for (int i = 2; i < PACKED; i++) {
            size_t size = 0, got;
            uint8_t *bytes = test_need(file_read(in(folder, packed[i]), &size));
            for (size_t n = 6; n < size; n += size / 5) {
                struct error err = {0};
                CHECK_INT(tap, status_of(bytes, n, &got, &err), STATUS_DATA);
                CHECK(tap, strstr(err.text, "some: damaged compressed data: "));
            }
            struct error err = {0};
            memset(bytes + size / 2, 0, 64);
            CHECK_INT(tap, status_of(bytes, size, &got, &err), STATUS_DATA);
            CHECK(tap, strstr(err.text, "some: damaged compressed data: "));
            free(bytes);
        }
    });
    TEST(tap, "nothing, packed, is nothing", {
        CHECK_INT(tap, shell(folder, ": >n; gzip -k n; zstd -q n; xz -k n"), 0);
        static const char *const names[] = {"n", "n.gz", "n.zst", "n.xz"};
        for (int i = 0; i < 4; i++) {
            struct stream *stream = opened(tap, names[i]);
            for (int twice = 0; twice < 2; twice++) {
                size_t got = 1;
                CHECK_INT(tap, stream_read(stream, back, 9, &got, NULL), STATUS_OK);
                CHECK_INT(tap, got, 0);
            }
            stream_close(stream);
        }
    });
    TEST(tap, "what only begins like something packed is plain, and all of it is told apart", {
        static const struct {
            size_t size;
            const char *bytes;
            int status;
        } rows[] = {
            {1, "\x1f", STATUS_OK},
            {2, "\x1f\x8b", STATUS_OK},
            {3, "\x1f\x8b\x08", STATUS_DATA},
            {3, "\x1f\x8b\x09", STATUS_OK},
            {3, "\x28\xb5\x2f", STATUS_OK},
            {4, "\x28\xb5\x2f\xfd", STATUS_DATA},
            {4, "\x28\xb5\x2f\xfe", STATUS_OK},
            {5,
             "\xfd"
             "7zXZ",
             STATUS_OK},
            {6,
             "\xfd"
             "7zXZ\0",
             STATUS_DATA},
            {6,
             "\xfd"
             "7zXZ\1",
             STATUS_OK},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            size_t got;
            CHECK_INT(tap, status_of(rows[i].bytes, rows[i].size, &got, NULL), rows[i].status);
            if (!rows[i].status)
                CHECK(tap, got == rows[i].size && !memcmp(back, rows[i].bytes, got));
        }
    });
}

// --- failures --------------------------------------------------------------------------

// Opens and reads it all.
static int whole_status(const char *path, size_t *got, struct error *err) {
    struct stream *stream;
    int status = stream_open(&stream, path, err);
    if (status)
        return status;
    status = stream_read(stream, back, sizeof back, got, err);
    stream_close(stream);
    return status;
}

static void test_failures(struct tap *tap) {
    TEST(tap, "whichever read fails, it is an I/O error with the file and the reason", {
        for (int i = 0; i < PACKED; i++) {
            int status = 1;
            int n = 1;
            size_t got = 0;
            for (; status && n < 100; n++) {
                struct error err = {0};
                begin(WELL, n);
                status = whole_status(in(folder, packed[i]), &got, &err);
                if (status == 0)
                    continue;
                CHECK_INT(tap, status, STATUS_IO);
                CHECK(tap, strstr(err.text, "cannot read") && strstr(err.text, "Input/output"));
                CHECK(tap, strstr(err.text, in(folder, packed[i])));
            }
            CHECK(tap, n > 3 && status == 0 && got == SIZE);
        }
        begin(WELL, 0);
    });
    TEST(tap, "a skip and a look that fail say so too", {
        struct error err = {0};
        const uint8_t *data;
        uint64_t skipped;
        size_t got;
        struct stream *stream = opened(tap, "a");
        begin(WELL, 1);
        CHECK_INT(tap, stream_skip(stream, SIZE, &skipped, &err), STATUS_IO);
        stream_close(stream);
        stream = opened(tap, "a");
        begin(WELL, 1);
        CHECK_INT(tap, stream_peek(stream, SIZE, &data, &got, &err), STATUS_IO);
        stream_close(stream);
        begin(WELL, 0);
    });
    // Libarchive ends the process when memory is out, so not of zstd and xz.
    TEST(tap, "when memory is out it is said, and nothing is left", {
        for (int i = 0; i < 2 && HEAP_FAILS; i++) {
            const char *path = in(folder, packed[i]);
            long before = heap_live();
            int files = open_files(), status = 1;
            int n = 0;
            size_t got = 0;
            for (; status && n < 100; n++) {
                heap_fail_after(n);
                status = whole_status(path, &got, NULL);
                heap_fail_after(-1);
                CHECK(tap, status == STATUS_OK || status == STATUS_IO);
                CHECK_INT(tap, heap_live(), before);
                CHECK_INT(tap, open_files(), files);
            }
            CHECK(tap, n > 3 && status == 0 && got == SIZE && !memcmp(back, content, SIZE));
        }
    });
}

static void listen_at(const char *name) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    memcpy(at.sun_path, name, strlen(name) + 1);
    if (chdir(folder) || bind(fd, (struct sockaddr *)&at, sizeof at))
        exit(2);
    close(fd);
}

static void test_names(struct tap *tap) {
    TEST(tap, "what cannot be opened is no input", {
        struct stream *stream;
        struct error err = {0};
        int files = open_files();
        CHECK_INT(tap, stream_open(&stream, in(folder, "none"), &err), STATUS_NOINPUT);
        CHECK(tap, strstr(err.text, "cannot open") && strstr(err.text, "/none: No such file"));
        CHECK_INT(tap, stream_open_regular(&stream, in(folder, "none"), &err), STATUS_NOINPUT);
        CHECK_INT(tap, open_files(), files);
    });
    TEST(tap, "where a file is wanted, anything else is named and not opened", {
        listen_at("socket");
        CHECK_INT(tap, mkfifo(in(folder, "pipe"), 0600), 0);
        static const char *const what[] = {"is a folder, not a file", "is a named pipe, not a file",
                                           "is a socket, not a file", "is a device, not a file"};
        const char *paths[] = {folder, in(folder, "pipe"), in(folder, "socket"), "/dev/null"};
        for (int i = 0; i < 4; i++) {
            struct stream *stream;
            struct error err = {0};
            CHECK_INT(tap, stream_open_regular(&stream, paths[i], &err), STATUS_NOINPUT);
            CHECK_TEXT(tap, err.text, what[i]);
        }
        unlink(in(folder, "pipe"));
        unlink(in(folder, "socket"));
    });
    TEST(tap, "a regular file is a stream like any other, also of the name -", {
        struct stream *stream;
        size_t got;
        CHECK_INT(tap, shell(folder, "cp a.gz ./-"), 0);
        CHECK_INT(tap, chdir(folder), 0);
        CHECK_INT(tap, stream_open_regular(&stream, "-", NULL), STATUS_OK);
        CHECK_TEXT(tap, stream_name(stream), "-");
        CHECK_INT(tap, stream_read(stream, back, SIZE, &got, NULL), STATUS_OK);
        CHECK(tap, got == SIZE && !memcmp(back, content, SIZE));
        stream_close(stream);
        CHECK_INT(tap, chdir("/"), 0);
    });
}

// --- standard input and pipes ----------------------------------------------------------

// Makes it standard input; what that was before comes back.
static int redirect(int fd) {
    int before = dup(STDIN_FILENO);
    dup2(fd, STDIN_FILENO);
    close(fd);
    return before;
}

static void restore(int before) {
    dup2(before, STDIN_FILENO);
    close(before);
}

// A pipe that holds so much of the content, and its end.
static int filled_pipe(size_t size) {
    int ends[2];
    if (pipe(ends) || write(ends[1], content, size) != (ssize_t)size)
        exit(2);
    close(ends[1]);
    return ends[0];
}

static void test_standard_input(struct tap *tap) {
    TEST(tap, "- is standard input, which stays open", {
        for (int piped = 0; piped < 2; piped++) {
            int before = redirect(piped ? filled_pipe(999) : open(in(folder, "a"), O_RDONLY));
            struct stream *stream;
            size_t got;
            CHECK_INT(tap, stream_open(&stream, "-", NULL), STATUS_OK);
            CHECK_TEXT(tap, stream_name(stream), "standard input");
            CHECK_INT(tap, stream_size(stream), -1);
            CHECK_INT(tap, stream_read(stream, back, SIZE + 1, &got, NULL), STATUS_OK);
            CHECK_INT(tap, got, piped ? 999 : SIZE);
            CHECK(tap, !memcmp(back, content, got));
            stream_close(stream);
            CHECK(tap, fcntl(STDIN_FILENO, F_GETFD) >= 0);
            restore(before);
        }
    });
}

static void test_arriving(struct tap *tap) {
    TEST(tap, "what has come through a pipe is given, and no more is waited for", {
        begin(WELL, 0);
        CHECK_INT(tap, mkfifo(in(folder, "pipe"), 0600), 0);
        int writer = open(in(folder, "pipe"), O_RDWR);
        CHECK_INT(tap, write(writer, content, 6), 6); // as many as tell what is packed
        struct stream *stream = opened(tap, "pipe");
        size_t got;
        CHECK_INT(tap, stream_read(stream, back, 6, &got, NULL), STATUS_OK);
        CHECK(tap, got == 6 && !memcmp(back, content, 6));
        CHECK_INT(tap, write(writer, content + 6, 1), 1);
        CHECK_INT(tap, stream_read(stream, back, 1, &got, NULL), STATUS_OK);
        CHECK(tap, got == 1 && back[0] == content[6]);
        stream_close(stream);
        close(writer);
        unlink(in(folder, "pipe"));
    });
    TEST(tap, "a file is read also where standard input is closed", {
        int before = dup(STDIN_FILENO);
        close(STDIN_FILENO);
        struct stream *stream = opened(tap, "a");
        check_rest(tap, stream, 0, BLOCK);
        stream_close(stream);
        restore(before);
    });
}

// Says stop when it was asked so many times.
struct patience {
    int asked, most;
};

static bool lose_patience(void *self) {
    struct patience *patience = self;
    return ++patience->asked > patience->most;
}

static void test_stopping(struct tap *tap) {
    TEST(tap, "who waits for a pipe that nobody writes to is asked until he stops", {
        struct patience patience = {.most = 4};
        const struct stream_wait wait = {lose_patience, &patience};
        struct stream *stream;
        struct error err = {0};
        int files = open_files();
        begin(WELL, 0);
        CHECK_INT(tap, mkfifo(in(folder, "pipe"), 0600), 0);
        CHECK_INT(tap, stream_open_stoppable(&stream, in(folder, "pipe"), &wait, &err),
                  STATUS_STOPPED);
        CHECK_TEXT(tap, err.text, "stopped on request");
        CHECK_INT(tap, patience.asked, 5);
        CHECK_INT(tap, polls, 4);
        CHECK(tap, longest <= 500); // several times a second
        CHECK_INT(tap, open_files(), files);
        unlink(in(folder, "pipe"));
    });
    TEST(tap, "what is in a pipe is read, and then its end", {
        struct patience patience = {.most = 1000};
        const struct stream_wait wait = {lose_patience, &patience};
        struct stream *stream;
        size_t got;
        begin(PIECEMEAL, 0);
        CHECK_INT(tap, mkfifo(in(folder, "pipe"), 0600), 0);
        int writer = open(in(folder, "pipe"), O_RDWR);
        CHECK_INT(tap, write(writer, content, 999), 999);
        CHECK_INT(tap, stream_open_stoppable(&stream, in(folder, "pipe"), &wait, NULL), STATUS_OK);
        CHECK_INT(tap, stream_size(stream), -1);
        CHECK_INT(tap, stream_read(stream, back, 500, &got, NULL), STATUS_OK);
        CHECK(tap, got == 500 && !memcmp(back, content, 500));
        close(writer);
        CHECK_INT(tap, stream_read(stream, back, SIZE, &got, NULL), STATUS_OK);
        CHECK(tap, got == 499 && !memcmp(back, content + 500, 499));
        // Who else reads the pipe may take what was there.
        CHECK(tap, blocking && polls > 0);
        stream_close(stream);
        unlink(in(folder, "pipe"));
        begin(WELL, 0);
    });
    TEST(tap, "a file is not waited for, and a stream without who stops it asks nobody", {
        struct patience patience = {.most = 0};
        const struct stream_wait wait = {lose_patience, &patience};
        struct stream *stream;
        begin(WELL, 0);
        CHECK_INT(tap, stream_open_stoppable(&stream, in(folder, "a"), &wait, NULL), STATUS_OK);
        check_rest(tap, stream, 0, BLOCK);
        stream_close(stream);
        int before = redirect(filled_pipe(999));
        CHECK_INT(tap, whole_status("-", &(size_t){0}, NULL), STATUS_OK);
        restore(before);
        CHECK_INT(tap, polls, 0);
        CHECK_INT(tap, patience.asked, 0);
    });
    TEST(tap, "standard input can be stopped as well", {
        struct patience patience = {.most = 0};
        const struct stream_wait wait = {lose_patience, &patience};
        struct stream *stream;
        int before = redirect(filled_pipe(999));
        CHECK_INT(tap, stream_open_stoppable(&stream, "-", &wait, NULL), STATUS_STOPPED);
        restore(before);
    });
}

int main(void) {
    struct tap tap = {0};
    scratch_make(folder);
    for (uint32_t i = 0, x = 1; i < SIZE; i++, x = x * 1664525u + 1013904223u)
        content[i] = (uint8_t)(x >> 24 & 0x3f); // it can be packed
    file_write(in(folder, "a"), content, SIZE);
    if (shell(folder, "gzip -k a; zstd -q --check a; xz -k a"))
        exit(2);
    test_reading(&tap);
    test_gzip(&tap);
    test_packed(&tap);
    test_failures(&tap);
    test_names(&tap);
    test_standard_input(&tap);
    test_arriving(&tap);
    test_stopping(&tap);
    scratch_remove(folder);
    return tap_done(&tap);
}
