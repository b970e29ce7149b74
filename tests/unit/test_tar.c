// Tar: archives whose blocks are laid out here by the letter of POSIX (ustar, pax), read; and what
// is written, looked at by the same letter.
#include <errno.h>
#include <sys/syscall.h>

#include "../helper/heap.h"
#include "../helper/samples.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "store/tar.h"

enum { BLOCK = 512, READ_SIZE = 1 << 16, ROOM = 4 * READ_SIZE };

static char folder[SCRATCH_PATH];
static uint8_t content[READ_SIZE], back[READ_SIZE];

static bool full; // the disk

ssize_t write(int fd, const void *data, size_t size) {
    errno = ENOSPC;
    return full ? -1 : syscall(SYS_write, fd, data, size);
}

// --- by the letter of POSIX ------------------------------------------------------------

static unsigned header_sum(const uint8_t header[BLOCK]) {
    unsigned sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : header[i];
    return sum;
}

// An archive in memory.
struct made_tar {
    uint8_t bytes[ROOM];
    size_t size;
};

static void put_header(struct made_tar *tar, const char *name, char type, size_t size,
                       const char *link) {
    char *header = (char *)tar->bytes + tar->size;
    memset(header, 0, BLOCK);
    snprintf(header, 100, "%s", name);
    snprintf(header + 100, 8, "%07o", 0644);
    snprintf(header + 108, 8, "%07o", 0);
    snprintf(header + 116, 8, "%07o", 0);
    snprintf(header + 124, 12, "%011zo", size);
    snprintf(header + 136, 12, "%011o", 0);
    header[156] = type;
    snprintf(header + 157, 100, "%s", link);
    memcpy(header + 257, "ustar\00000", 8);
    snprintf(header + 148, 8, "%06o", header_sum((uint8_t *)header));
    header[155] = ' ';
    tar->size += BLOCK;
}

static void put_member(struct made_tar *tar, const char *name, const void *data, size_t size) {
    size_t blocks = (size + BLOCK - 1) / BLOCK * BLOCK;
    put_header(tar, name, '0', size, "");
    memset(tar->bytes + tar->size, 0, blocks);
    memcpy(tar->bytes + tar->size, data, size);
    tar->size += blocks;
}

static void put_zeros(struct made_tar *tar, size_t size) {
    memset(tar->bytes + tar->size, 0, size);
    tar->size += size;
}

// --- reading ---------------------------------------------------------------------------

struct reading {
    struct stream *stream;
    struct tar_reader *tar;
};

static struct reading reading_of(const char *name) {
    struct reading r;
    if (stream_open(&r.stream, in(folder, name), NULL) || tar_reader_open(&r.tar, r.stream, NULL))
        exit(2);
    return r;
}

static struct reading reading(const struct made_tar *made) {
    file_write(in(folder, "a.tar"), made->bytes, made->size);
    return reading_of("a.tar");
}

static void end_reading(struct reading *r) {
    tar_reader_close(r->tar);
    stream_close(r->stream);
}

// Reads members to the end or a failure: the status.
static int read_all(struct reading *r, int *members, struct error *err) {
    struct tar_member member;
    bool more = true;
    int status = STATUS_OK;
    for (*members = 0; !status && more; *members += !status && more) {
        size_t got;
        status = tar_reader_next(r->tar, &member, &more, err);
        if (!status && more)
            status = tar_reader_read(r->tar, back, sizeof back, &got, err);
    }
    return status;
}

static void check_bytes(struct tap *tap, struct reading *r, const uint8_t *wanted, size_t size,
                        size_t piece) {
    size_t got = piece;
    for (size_t at = 0; got == piece; at += got) {
        CHECK_INT(tap, tar_reader_read(r->tar, back, piece, &got, NULL), STATUS_OK);
        CHECK_INT(tap, got, size - at < piece ? size - at : piece);
        CHECK(tap, !memcmp(back, wanted + at, got));
    }
}

static void test_members(struct tap *tap) {
    static struct made_tar made;
    static const struct {
        const char *name;
        char type;
        size_t size;
        const char *other;
    } rows[] = {
        {"a/b.c", '0', 700, NULL},
        {"a/", '5', 0, "a folder"},
        {"empty", '0', 0, NULL},
        {"link", '2', 0, "a symbolic link"},
        {"hard", '1', 0, "a hard link"},
        {"character", '3', 0, "a device"},
        {"block", '4', 0, "a device"},
        {"pipe", '6', 0, "a named pipe"},
        {"last", '0', READ_SIZE - 1, NULL},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    uint64_t offsets[ROWS];
    for (int i = 0; i < ROWS; i++) {
        offsets[i] = made.size;
        if (rows[i].type == '0')
            put_member(&made, rows[i].name, content, rows[i].size);
        else
            put_header(&made, rows[i].name, rows[i].type, 0, "a/b.c");
    }
    put_zeros(&made, 2 * BLOCK);
    TEST(tap, "a member has its name, size, place and bytes, or what it is instead of a file", {
        static const size_t pieces[] = {1, 7, BLOCK, READ_SIZE};
        for (int p = 0; p < 8; p++) {
            struct reading r = reading(&made);
            struct tar_member member;
            bool more;
            if (p % 2) {
                end_reading(&r);
                CHECK_INT(tap, shell(folder, "gzip -f a.tar"), 0);
                r = reading_of("a.tar.gz");
            }
            for (int i = 0; i < ROWS; i++) {
                CHECK_INT(tap, tar_reader_next(r.tar, &member, &more, NULL), STATUS_OK);
                CHECK(tap, more);
                CHECK_TEXT(tap, member.name, rows[i].name);
                CHECK_INT(tap, member.offset, offsets[i]);
                CHECK_INT(tap, member.size, rows[i].size);
                CHECK_INT(tap, member.folder, rows[i].type == '5');
                CHECK_INT(tap, !member.other, !rows[i].other);
                if (rows[i].other && member.other)
                    CHECK_TEXT(tap, member.other, rows[i].other);
                if (!rows[i].other)
                    check_bytes(tap, &r, content, rows[i].size, pieces[p / 2]);
            }
            CHECK_INT(tap, tar_reader_next(r.tar, &member, &more, NULL), STATUS_OK);
            CHECK(tap, !more && tar_reader_whole(r.tar));
            end_reading(&r);
        }
    });
    TEST(tap, "members need not be read", {
        struct reading r = reading(&made);
        struct tar_member member;
        bool more = true;
        int n = 0;
        while (more && !tar_reader_next(r.tar, &member, &more, NULL))
            n += more;
        CHECK_INT(tap, n, ROWS);
        end_reading(&r);
    });
    TEST(tap, "a reader leaves no memory", {
        long before = heap_live();
        struct reading r = reading(&made);
        int members;
        CHECK_INT(tap, read_all(&r, &members, NULL), STATUS_OK);
        end_reading(&r);
        tar_reader_close(NULL);
        CHECK_INT(tap, heap_live(), before);
    });
    TEST(tap, "archives joined with cat are one", {
        static struct made_tar two;
        memcpy(two.bytes, made.bytes, made.size);
        memcpy(two.bytes + made.size, made.bytes, made.size);
        two.size = 2 * made.size;
        struct reading r = reading(&two);
        int members;
        CHECK_INT(tap, read_all(&r, &members, NULL), STATUS_OK);
        CHECK_INT(tap, members, 2 * ROWS);
        end_reading(&r);
    });
}

static void test_names(struct tap *tap) {
    TEST(tap, "a name that pax keeps in UTF-8 is its bytes, whatever the locale", {
        static struct made_tar made;
        static const char record[] = "14 path=caf\xc3\xa9\n";
        struct tar_member member;
        bool more;
        made.size = 0;
        put_header(&made, "pax", 'x', sizeof record - 1, "");
        put_zeros(&made, BLOCK);
        memcpy(made.bytes + BLOCK, record, sizeof record - 1);
        put_member(&made, "short", "x", 1);
        put_zeros(&made, 2 * BLOCK);
        struct reading r = reading(&made);
        CHECK_INT(tap, tar_reader_next(r.tar, &member, &more, NULL), STATUS_OK);
        CHECK_TEXT(tap, member.name, "caf\xc3\xa9");
        CHECK_INT(tap, tar_reader_next(r.tar, &member, &more, NULL), STATUS_OK);
        CHECK(tap, !more);
        end_reading(&r);
    });
}

// Whether the archive is said to have its end mark.
static bool is_whole(const struct made_tar *made) {
    struct reading r = reading(made);
    int members;
    bool whole = !read_all(&r, &members, NULL) && members == 1 && tar_reader_whole(r.tar);
    end_reading(&r);
    return whole;
}

static void test_end(struct tap *tap) {
    static struct made_tar made;
    TEST(tap, "an archive has its end mark where zeros are behind its last member", {
        for (size_t blocks = 0; blocks < 3; blocks++) {
            made.size = 0;
            put_member(&made, "a", "x", 1);
            put_zeros(&made, blocks * BLOCK);
            CHECK_INT(tap, is_whole(&made), blocks > 0);
        }
    });
    TEST(tap, "the mark is seen wherever it lies between two reads, of zeros and nothing else", {
        for (size_t before = 1; before < 5; before++) { // blocks of the mark in the first read
            made.size = 0;
            put_member(&made, "a", content, READ_SIZE - (1 + before) * BLOCK);
            put_zeros(&made, 4 * BLOCK);
            CHECK(tap, is_whole(&made));
        }
    });
    TEST(tap, "zeros of a member are no mark", {
        static uint8_t bytes[2 * READ_SIZE];
        for (int last = 1; last < 3; last++) {
            // Zeros up to the end of a read, and something behind them.
            memset(bytes, 0, sizeof bytes);
            bytes[(size_t)last * READ_SIZE - BLOCK] = 1;
            made.size = 0;
            put_member(&made, "a", bytes, (size_t)last * READ_SIZE - BLOCK + 1);
            made.bytes[made.size - 1] = 1; // in what fills the block
            CHECK(tap, !is_whole(&made));
        }
    });
}

static void test_damage(struct tap *tap) {
    static struct made_tar made;
    TEST(tap, "an archive that is cut off says so, and within a member where that is", {
        static const size_t cuts[] = {BLOCK + 100, 2 * BLOCK + 7, 3 * BLOCK - 1, 3 * BLOCK + 9};
        for (int i = 0; i < 4; i++) {
            struct error err = {0};
            int members;
            made.size = 0;
            put_member(&made, "a", "", 0);
            put_member(&made, "b", content, 2 * BLOCK);
            made.size = cuts[i];
            struct reading r = reading(&made);
            CHECK_INT(tap, read_all(&r, &members, &err), STATUS_DATA);
            CHECK_INT(tap, members, 1);
            CHECK(tap, strstr(err.text, "a.tar: offset "));
            CHECK(tap, i == 0 || strstr(err.text, "offset 512: ")); // 0: within a header
            CHECK(tap, tar_reader_cut(r.tar));
            end_reading(&r);
        }
    });
    TEST(tap, "a header that is damaged is no cut, however short the archive is", {
        static const size_t sizes[] = {1, READ_SIZE};
        for (int i = 0; i < 2; i++) {
            struct error err = {0};
            int members;
            made.size = 0;
            put_member(&made, "a", "x", 1);
            put_member(&made, "b", content, sizes[i]);
            put_zeros(&made, 2 * BLOCK);
            made.bytes[2 * BLOCK] ^= 1;
            struct reading r = reading(&made);
            CHECK_INT(tap, read_all(&r, &members, &err), STATUS_DATA);
            CHECK_INT(tap, members, 1);
            CHECK(tap, strstr(err.text, "a.tar: offset 1024: ") && strstr(err.text, "Damaged"));
            CHECK(tap, !tar_reader_cut(r.tar));
            end_reading(&r);
        }
    });
    TEST(tap, "what is no archive is refused by name", {
        struct tar_reader *tar;
        struct stream *stream;
        struct error err = {0};
        file_write(in(folder, "none"), content, 3 * BLOCK);
        CHECK_INT(tap, stream_open(&stream, in(folder, "none"), NULL), STATUS_OK);
        CHECK_INT(tap, tar_reader_open(&tar, stream, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "/none: "));
        stream_close(stream);
    });
    TEST(tap, "of packed data that is damaged the reason is told, and it is no cut", {
        struct error err = {0};
        int members;
        made.size = 0;
        put_member(&made, "a", content, READ_SIZE - 1);
        put_member(&made, "b", content, READ_SIZE - 1);
        file_write(in(folder, "z.tar"), made.bytes, made.size);
        CHECK_INT(tap, shell(folder, "gzip <z.tar | head -c 100000 >z"), 0);
        struct reading r = reading_of("z");
        CHECK_INT(tap, read_all(&r, &members, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "/z: the gzip data ends too early"));
        CHECK(tap, !tar_reader_cut(r.tar));
        end_reading(&r);
    });
}

// --- writing ---------------------------------------------------------------------------

static const struct {
    const char *name;
    size_t size;
} written[] = {{"a/b.c", 700}, {"empty", 0}, {"\xff\xc3 name", BLOCK}, {"last", READ_SIZE}};
enum { WRITTEN = sizeof written / sizeof *written };

static int write_archive(const char *name, struct error *err) {
    struct output *output;
    struct tar_writer *tar;
    int status = output_open(&output, in(folder, name), true, err);
    if (status)
        return status;
    status = tar_writer_open(&tar, output, err);
    for (int i = 0; !status && i < WRITTEN; i++) {
        status = tar_writer_put(tar, written[i].name, content, written[i].size, err);
        if (status)
            tar_writer_abort(tar);
    }
    if (!status)
        status = tar_writer_close(tar, err);
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

static unsigned long octal(const uint8_t *field) {
    return strtoul((const char *)field, NULL, 8);
}

static void test_writing(struct tap *tap) {
    TEST(tap, "what is written lies as POSIX says, of owner, time and mode that are fixed", {
        size_t size = 0, at = 0;
        CHECK_INT(tap, write_archive("w.tar", NULL), STATUS_OK);
        uint8_t *bytes = test_need(file_read(in(folder, "w.tar"), &size));
        for (int i = 0; i < WRITTEN && at + BLOCK + written[i].size <= size; i++) {
            const uint8_t *header = bytes + at;
            CHECK_TEXT(tap, (const char *)header, written[i].name);
            CHECK_INT(tap, octal(header + 100), 0644);
            CHECK_INT(tap, octal(header + 108), 0);
            CHECK_INT(tap, octal(header + 116), 0);
            CHECK_INT(tap, octal(header + 124), written[i].size);
            CHECK(tap, octal(header + 136) == 0 && header[136] == '0');
            CHECK_INT(tap, octal(header + 148), header_sum(header));
            CHECK_INT(tap, header[156], '0');
            CHECK(tap, !memcmp(header + 257, "ustar", 5));
            CHECK(tap, !memcmp(header + BLOCK, content, written[i].size));
            at += BLOCK + (written[i].size + BLOCK - 1) / BLOCK * BLOCK;
        }
        CHECK(tap, at + 2 * BLOCK <= size);
        while (at < size && bytes[at] == 0)
            at++;
        CHECK_INT(tap, at, size);
        free(bytes);
    });
    TEST(tap, "a name of any length comes back", {
        char name[400];
        struct tar_writer *tar;
        struct output *output;
        struct tar_member member;
        bool more;
        memset(name, 'n', sizeof name - 1);
        name[sizeof name - 1] = 0;
        CHECK_INT(tap, output_open(&output, in(folder, "n.tar"), true, NULL), STATUS_OK);
        CHECK_INT(tap, tar_writer_open(&tar, output, NULL), STATUS_OK);
        CHECK_INT(tap, tar_writer_put(tar, name, "x", 1, NULL), STATUS_OK);
        CHECK_INT(tap, tar_writer_close(tar, NULL), STATUS_OK);
        CHECK_INT(tap, output_close(output, NULL), STATUS_OK);
        struct reading r = reading_of("n.tar");
        CHECK_INT(tap, tar_reader_next(r.tar, &member, &more, NULL), STATUS_OK);
        CHECK_TEXT(tap, member.name, name);
        end_reading(&r);
    });
    TEST(tap, "of a full disk the file and the reason are told, and nothing is left", {
        long before = heap_live();
        struct error err = {0};
        full = true;
        int status = write_archive("f.tar", &err);
        full = false;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "/f.tar: No space left"));
        CHECK(tap, access(in(folder, "f.tar"), F_OK) != 0);
        CHECK_INT(tap, heap_live(), before);
    });
    TEST(tap, "a full disk is noticed while members are put", {
        static uint8_t much[1 << 20];
        struct error err = {0};
        struct tar_writer *tar;
        struct output *output;
        CHECK_INT(tap, output_open(&output, in(folder, "f.tar"), true, NULL), STATUS_OK);
        CHECK_INT(tap, tar_writer_open(&tar, output, NULL), STATUS_OK);
        full = true;
        int status = tar_writer_put(tar, "a", much, sizeof much, &err);
        full = false;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "No space left"));
        tar_writer_abort(tar);
        output_abort(output);
    });
    TEST(tap, "a writer that is given up leaves no memory", {
        struct tar_writer *tar;
        struct output *output;
        long before = heap_live();
        CHECK_INT(tap, output_open(&output, in(folder, "f.tar"), true, NULL), STATUS_OK);
        CHECK_INT(tap, tar_writer_open(&tar, output, NULL), STATUS_OK);
        CHECK_INT(tap, tar_writer_put(tar, "a", "x", 1, NULL), STATUS_OK);
        tar_writer_abort(tar);
        tar_writer_abort(NULL);
        output_abort(output);
        CHECK_INT(tap, heap_live(), before);
    });
}

// Opens one of both, with memory for so many allocations.
static int open_with(void (*fail)(long n), int allocations, bool writes, struct stream *stream,
                     struct output *output) {
    struct tar_reader *reader;
    struct tar_writer *writer;
    fail(allocations);
    int status =
        writes ? tar_writer_open(&writer, output, NULL) : tar_reader_open(&reader, stream, NULL);
    heap_fail_after(-1);
    if (!status && writes)
        tar_writer_abort(writer);
    else if (!status)
        tar_reader_close(reader);
    return status;
}

static void test_memory(struct tap *tap) {
    TEST(tap, "a reader or writer for which there is no memory is not opened", {
        struct output *output;
        struct stream *stream;
        CHECK_INT(tap, output_open(&output, in(folder, "m.tar"), true, NULL), STATUS_OK);
        CHECK_INT(tap, stream_open(&stream, in(folder, "w.tar"), NULL), STATUS_OK);
        long before = heap_live();
        for (int writes = 0; writes < 2; writes++)
            for (int n = 0; HEAP_FAILS && n < 2; n++) { // ours, and libarchive's first
                CHECK_INT(tap, open_with(heap_fail_after, n, writes, stream, output), STATUS_IO);
                CHECK_INT(tap, heap_live(), before);
                CHECK_INT(tap, open_with(heap_fail_once, n, writes, stream, output), STATUS_IO);
                CHECK_INT(tap, heap_live(), before);
            }
        output_abort(output);
        stream_close(stream);
    });
}

int main(void) {
    struct tap tap = {0};
    scratch_make(folder);
    for (uint32_t i = 0, x = 1; i < sizeof content; i++, x = x * 1664525u + 1013904223u)
        content[i] = (uint8_t)(x >> 24 | 1);
    test_members(&tap);
    test_names(&tap);
    test_end(&tap);
    test_damage(&tap);
    test_writing(&tap);
    test_memory(&tap);
    scratch_remove(folder);
    return tap_done(&tap);
}
