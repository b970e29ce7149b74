// Files that appear whole or not at all, and those that never have a name: what was written comes
// back, whatever the disk, the kernel and the heap do meanwhile.
#ifdef __SANITIZE_THREAD__
#include <stdio.h>

// ThreadSanitizer maps memory before a test could stand in for mmap.
int main(void) {
    puts("1..0");
    return 0;
}
#else
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "store/content.h"
#include "store/crc.h"
#include "store/map.h"
#include "store/output.h"
#include "store/sealed.h"
#include "store/spool.h"
#include "store/stream.h"
#include "store/textfile.h"

enum { PATH = 256, LARGE = 700001 };

static char folder[PATH / 2];
static unsigned char large[LARGE];

// --- the kernel's moods ----------------------------------------------------------------

static enum mood { WELL, PIECEMEAL, FULL, NO_MAP } mood;
static int writes, unmapped;
static int refusal = ENOSPC;       // of a disk that is full
static int refusal_later = ENOSPC; // from the second write on

// Interrupted, then short, then whole; or the disk is full.
ssize_t write(int fd, const void *data, size_t size) {
    writes++;
    if (mood == FULL) {
        errno = refusal;
        refusal = refusal_later;
        return -1;
    }
    if (mood == PIECEMEAL && writes % 3 == 1) {
        errno = EINTR;
        return -1;
    }
    if (mood == PIECEMEAL && writes % 3 == 2 && size > 1)
        size /= 2;
    return syscall(SYS_write, fd, data, size);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (mood == NO_MAP && fd >= 0) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset); // NOLINT
}

int munmap(void *at, size_t size) {
    unmapped++;
    return (int)syscall(SYS_munmap, at, size);
}

// --- files -----------------------------------------------------------------------------

static const char *in(const char *name) {
    static char path[4][PATH];
    static int turn;
    char *to = path[turn++ % 4];
    snprintf(to, PATH, "%s/%s", folder, name);
    return to;
}

static int files(void) {
    int n = 0;
    DIR *at = opendir(folder);
    for (struct dirent *entry; (entry = readdir(at));)
        n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(at);
    return n;
}

static int open_files(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

// Whether the file, uncompressed, has these bytes.
static bool holds(const char *path, const void *wanted, size_t size) {
    struct stream *stream;
    size_t got = 0;
    if (stream_open(&stream, path, NULL))
        return false;
    char *bytes = malloc(size + 1);
    bool same = !stream_read(stream, bytes, size + 1, &got, NULL) && got == size &&
                !memcmp(bytes, wanted, size);
    free(bytes);
    stream_close(stream);
    return same;
}

// All of `large`, in pieces of this size.
static int write_large(const char *path, size_t piece, struct error *err) {
    struct output *output;
    int status = output_open(&output, path, true, err);
    if (status)
        return status;
    for (size_t at = 0; !status && at < LARGE; at += piece)
        status = output_write(output, large + at, LARGE - at < piece ? LARGE - at : piece, err);
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

static const char *const names[] = {"a", "a.gz", "a.zst", "a.xz"};
enum { NAMES = sizeof names / sizeof *names };

static void test_output(struct tap *tap) {
    TEST(tap, "what is written is there, in whatever pieces, whatever interrupts it", {
        static const size_t pieces[] = {LARGE, 1, 65536, 65535, 4097, LARGE / 2};
        for (int i = 0; i < NAMES; i++) {
            const char *path = in(names[i]);
            for (size_t p = i > 1 ? 4 : 0; p < sizeof pieces / sizeof *pieces; p++) {
                mood = p % 2 ? WELL : PIECEMEAL;
                CHECK_INT(tap, write_large(path, pieces[p], NULL), STATUS_OK);
                mood = WELL;
                CHECK(tap, holds(path, large, LARGE));
                CHECK_INT(tap, files(), 1);
            }
            unlink(path);
        }
    });
    TEST(tap, "bytes that come one by one are written many at a time", {
        writes = 0;
        CHECK_INT(tap, write_large(in("a"), 1, NULL), STATUS_OK);
        CHECK(tap, writes < 100);
        unlink(in("a"));
    });
    TEST(tap, "a compressed file has no more bytes than it needs, and gzip no time (RFC 1952)", {
        for (int i = 1; i < NAMES; i++) {
            uint8_t bytes[PATH];
            struct output *output;
            CHECK_INT(tap, output_open(&output, in(names[i]), true, NULL), STATUS_OK);
            CHECK_INT(tap, output_write(output, "abc", 3, NULL), STATUS_OK);
            CHECK_INT(tap, output_close(output, NULL), STATUS_OK);
            FILE *file = fopen(in(names[i]), "rb");
            size_t got = fread(bytes, 1, sizeof bytes, file);
            fclose(file);
            CHECK(tap, got > 3 && got < 100);
            if (i == 1)
                CHECK(tap, bytes[0] == 0x1f && !memcmp(bytes + 4, "\0\0\0\0", 4));
            unlink(in(names[i]));
        }
    });
    TEST(tap, "of a full disk the path and the reason are told, and nothing is left", {
        for (int i = 0; i < NAMES; i++) {
            struct error err = {0};
            mood = FULL;
            int status = write_large(in(names[i]), 4097, &err);
            mood = WELL;
            CHECK_INT(tap, status, STATUS_IO);
            CHECK(tap, strstr(err.text, in(names[i])) && strstr(err.text, "No space left"));
            CHECK_INT(tap, files(), 0);
        }
    });
    TEST(tap, "of several failures while a file is compressed the first is told", {
        for (int i = 1; i < NAMES; i++) {
            struct error err = {0};
            mood = FULL;
            refusal_later = EIO;
            int status = write_large(in(names[i]), LARGE, &err);
            refusal = refusal_later = ENOSPC;
            mood = WELL;
            CHECK_INT(tap, status, STATUS_IO);
            CHECK(tap, strstr(err.text, "No space left"));
        }
    });
    TEST(tap, "bytes that come all at once are no file either when they did not fit", {
        struct error err = {0};
        mood = FULL;
        int status = write_large(in("a"), LARGE, &err);
        mood = WELL;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "No space left"));
        CHECK_INT(tap, files(), 0);
    });
    TEST(tap, "an output that is given up leaves what was there, and nothing else", {
        struct output *output;
        CHECK_INT(tap, write_large(in("a"), LARGE, NULL), STATUS_OK);
        CHECK_INT(tap, output_open(&output, in("a"), true, NULL), STATUS_OK);
        CHECK_INT(tap, output_write(output, "x", 1, NULL), STATUS_OK);
        CHECK_INT(tap, files(), 2);
        output_abort(output);
        CHECK_INT(tap, files(), 1);
        CHECK(tap, holds(in("a"), large, LARGE));
        unlink(in("a"));
        output_abort(NULL);
        CHECK_INT(tap, output_open(&output, "/dev/null", false, NULL), STATUS_OK);
        output_abort(output); // what was written straight on stays
        CHECK(tap, access("/dev/null", F_OK) == 0);
    });
    TEST(tap, "no file is left open, whatever became of the output", {
        struct output *output;
        int before = open_files();
        for (int i = 0; i < NAMES; i++) {
            CHECK_INT(tap, write_large(in(names[i]), LARGE, NULL), STATUS_OK);
            CHECK_INT(tap, output_open(&output, in(names[i]), true, NULL), STATUS_OK);
            output_abort(output);
            unlink(in(names[i]));
        }
        CHECK_INT(tap, output_open(&output, "/dev/null", true, NULL), STATUS_OK);
        CHECK_INT(tap, output_close(output, NULL), STATUS_OK);
        CHECK_INT(tap, output_open(&output, folder, true, NULL), STATUS_CANTCREATE);
        CHECK_INT(tap, output_make_parents(in("b/c"), NULL), STATUS_OK);
        CHECK_INT(tap, rmdir(in("b")), 0);
        CHECK_INT(tap, open_files(), before);
    });
    TEST(tap, "- is standard output, which stays open", {
        struct output *output;
        fflush(stdout);
        int before = dup(STDOUT_FILENO), to = open(in("o"), O_WRONLY | O_CREAT, 0600);
        dup2(to, STDOUT_FILENO);
        close(to);
        CHECK_INT(tap, output_open(&output, "-", false, NULL), STATUS_OK);
        CHECK_TEXT(tap, output_name(output), "standard output");
        CHECK_INT(tap, output_write(output, large, LARGE, NULL), STATUS_OK);
        CHECK_INT(tap, output_close(output, NULL), STATUS_OK);
        bool open_still = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
        dup2(before, STDOUT_FILENO);
        close(before);
        CHECK(tap, open_still && holds(in("o"), large, LARGE));
        unlink(in("o"));
    });
    TEST(tap, "the wrong moment, a folder and a file that is there are refused by name", {
        struct output *output;
        struct error err = {0};
        CHECK_INT(tap, output_open(&output, folder, true, &err), STATUS_CANTCREATE);
        CHECK(tap, strstr(err.text, "it is a folder"));
        CHECK_INT(tap, output_open(&output, in("no/a"), true, &err), STATUS_CANTCREATE);
        CHECK_INT(tap, output_open(&output, in("a"), false, &err), STATUS_OK);
        CHECK_INT(tap, write_large(in("a"), LARGE, NULL), STATUS_OK); // another is first
        CHECK_INT(tap, output_close(output, &err), STATUS_CANTCREATE);
        CHECK(tap, holds(in("a"), large, LARGE));
        CHECK_INT(tap, output_open(&output, in("a"), false, &err), STATUS_CANTCREATE);
        CHECK(tap, strstr(err.text, "exists"));
        CHECK_INT(tap, files(), 1);
        unlink(in("a"));
    });
    // Libarchive ends the process when memory is out, so only of plain files.
    TEST(tap, "when memory is out nothing is left, or the whole file without a durable name", {
        CHECK_INT(tap, write_large(in("a"), LARGE, NULL), STATUS_OK);
        long before = heap_live();
        int status = 1;
        int n = 0;
        for (; status && HEAP_FAILS && n < 100; n++) {
            unlink(in("a"));
            heap_fail_after(n);
            status = write_large(in("a"), LARGE, NULL);
            heap_fail_after(-1);
            CHECK_INT(tap, heap_live(), before);
            CHECK(tap, files() == 0 || (files() == 1 && holds(in("a"), large, LARGE)));
        }
        CHECK(tap, !HEAP_FAILS || (status == 0 && n > 4));
        unlink(in("a"));
    });
    TEST(tap, "folders around an output are made as far as they are missing", {
        long before = heap_live();
        CHECK_INT(tap, output_make_parents(in("b/c//d/"), NULL), STATUS_OK);
        CHECK(tap, access(in("b/c"), F_OK) == 0 && access(in("b/c/d"), F_OK) != 0);
        CHECK_INT(tap, output_make_parents(in("b/c/d"), NULL), STATUS_OK);
        CHECK_INT(tap, output_make_parents("/proc/no/a", NULL), STATUS_CANTCREATE);
        CHECK_INT(tap, output_make_parents("", NULL), STATUS_OK); // has none
        CHECK_INT(tap, heap_live(), before);
        rmdir(in("b/c"));
        rmdir(in("b"));
    });
}

static void test_names(struct tap *tap) {
    TEST(tap, "a temporary name is hidden, beside its place, this process's own and not too long", {
        char wanted[PATH];
        char *name = output_temporary("b/c.gz", 7);
        snprintf(wanted, sizeof wanted, "b/.c.gz.%ld-7.tmp", (long)getpid());
        CHECK_TEXT(tap, name, wanted);
        free(name);
        name = output_temporary("c", 0);
        snprintf(wanted, sizeof wanted, ".c.%ld-0.tmp", (long)getpid());
        CHECK_TEXT(tap, name, wanted);
        free(name);
        char longest[NAME_MAX + 1] = "";
        memset(longest, 'n', NAME_MAX);
        name = output_temporary(longest, UINT32_MAX);
        CHECK(tap, strlen(name) <= NAME_MAX && strlen(name) > 200);
        free(name);
    });
    TEST(tap, "a temporary name that is taken is passed over, until it is given up", {
        struct output *output;
        struct error err = {0};
        for (unsigned n = 0; n < 100; n++) {
            char *name = output_temporary(in("a"), n);
            CHECK_INT(tap, output_open(&output, in("a"), true, &err), STATUS_OK);
            output_abort(output);
            fclose(fopen(name, "w"));
            free(name);
        }
        CHECK_INT(tap, output_open(&output, in("a"), true, &err), STATUS_CANTCREATE);
        CHECK(tap, strstr(err.text, "cannot create") && strstr(err.text, "/a: File exists"));
        CHECK_INT(tap, files(), 100);
        for (unsigned n = 0; n < 100; n++) {
            char *name = output_temporary(in("a"), n);
            unlink(name);
            free(name);
        }
    });
    TEST(tap, "an ending that asks for compression is told apart from the name", {
        static const struct {
            const char *name;
            size_t length;
        } rows[] = {{"a.tar.gz", 5}, {"a.zst", 1}, {"b/a.xz", 3}, {"a.tar", 5},
                    {"a.gz.tar", 8}, {".gz", 3},   {"gz", 2},     {"", 0}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            CHECK_INT(tap, output_plain_length(rows[i].name), rows[i].length);
    });
    TEST(tap, "an output is told by its path", {
        struct output *output;
        CHECK_INT(tap, output_open(&output, in("a"), true, NULL), STATUS_OK);
        CHECK_TEXT(tap, output_name(output), in("a"));
        output_abort(output);
    });
    TEST(tap, "when memory is out for the folders around an output, it is said", {
        long before = heap_live();
        for (int n = 0; HEAP_FAILS && n < 2; n++) {
            heap_fail_after(n);
            int status = output_make_parents(in("b/c"), NULL);
            heap_fail_after(-1);
            CHECK_INT(tap, status, STATUS_IO);
            CHECK_INT(tap, heap_live(), before);
            rmdir(in("b"));
        }
    });
}

static void test_textfile(struct tap *tap) {
    TEST(tap, "text that is printed is there when the file is closed, and not before", {
        struct textfile *file;
        CHECK_INT(tap, textfile_open(&file, in("t"), NULL), STATUS_OK);
        fprintf(textfile_stream(file), "%s %d\n", "abc", 7);
        CHECK(tap, access(in("t"), F_OK) != 0);
        CHECK_INT(tap, textfile_close(file, NULL), STATUS_OK);
        CHECK(tap, holds(in("t"), "abc 7\n", 6));
        CHECK_INT(tap, textfile_open(&file, in("t"), NULL), STATUS_OK);
        fputs("other", textfile_stream(file));
        textfile_abort(file);
        textfile_abort(NULL);
        CHECK(tap, holds(in("t"), "abc 7\n", 6));
        CHECK_INT(tap, files(), 1);
        unlink(in("t"));
    });
    TEST(tap, "text that did not fit is an I/O error with its reason, and no file", {
        struct textfile *file;
        struct error err = {0};
        long before = heap_live();
        CHECK_INT(tap, textfile_open(&file, in("t"), NULL), STATUS_OK);
        mood = FULL;
        fwrite(large, 1, LARGE, textfile_stream(file));
        int status = textfile_close(file, &err);
        mood = WELL;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "No space left"));
        CHECK_INT(tap, files(), 0);
        CHECK_INT(tap, heap_live(), before);
        CHECK_INT(tap, textfile_open(&file, in("no/t"), NULL), STATUS_CANTCREATE);
        CHECK_INT(tap, heap_live(), before);
    });
    TEST(tap, "of several failures the first is told, also when the last bytes did fit", {
        struct textfile *file;
        struct error err = {0};
        CHECK_INT(tap, textfile_open(&file, in("t"), NULL), STATUS_OK);
        mood = FULL;
        fwrite(large, 1, LARGE, textfile_stream(file));
        fflush(textfile_stream(file));
        refusal = EIO;
        fwrite(large, 1, LARGE, textfile_stream(file));
        fflush(textfile_stream(file));
        refusal = ENOSPC;
        mood = WELL;
        fputs("more", textfile_stream(file));
        CHECK_INT(tap, textfile_close(file, &err), STATUS_IO);
        CHECK(tap, strstr(err.text, "No space left"));
        CHECK_INT(tap, files(), 0);
    });
    TEST(tap, "text that fits no more when the file is closed is an I/O error", {
        struct textfile *file;
        struct error err = {0};
        CHECK_INT(tap, textfile_open(&file, in("t"), NULL), STATUS_OK);
        fputs("abc", textfile_stream(file));
        mood = FULL;
        int status = textfile_close(file, &err);
        mood = WELL;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "No space left"));
        CHECK_INT(tap, files(), 0);
    });
    TEST(tap, "a failure that only stdio met is an I/O error too", {
        struct textfile *file;
        struct error err = {0};
        CHECK_INT(tap, textfile_open(&file, in("t"), NULL), STATUS_OK);
        CHECK_INT(tap, fgetc(textfile_stream(file)), EOF); // it is for writing
        CHECK_INT(tap, textfile_close(file, &err), STATUS_IO);
        CHECK_TEXT(tap, err.text, "cannot write");
        CHECK_INT(tap, files(), 0);
    });
    TEST(tap, "when memory is out for a text there is no file, and nothing is left", {
        long before = heap_live();
        int status = 1;
        int n = 0;
        for (; HEAP_FAILS && status && n < 100; n++) {
            struct textfile *file;
            heap_fail_after(n);
            status = textfile_open(&file, in("t"), NULL);
            heap_fail_after(-1);
            if (!status)
                textfile_abort(file);
            CHECK(tap, status == STATUS_OK || status == STATUS_IO);
            CHECK_INT(tap, heap_live(), before);
            CHECK_INT(tap, files(), 0);
        }
        CHECK(tap, !HEAP_FAILS || (status == STATUS_OK && n > 3));
    });
}

static void test_spool(struct tap *tap) {
    TEST(tap, "a spool gives back what it was given, from anywhere, and has no name", {
        struct spool *spool;
        struct output *output;
        static char back[LARGE];
        size_t got;
        long before = heap_live();
        CHECK_INT(tap, spool_open(&spool, NULL), STATUS_OK);
        CHECK_INT(tap, files(), 0); // $TMPDIR is the folder
        CHECK_INT(tap, spool_write(spool, large, 5, NULL), STATUS_OK);
        CHECK_INT(tap, spool_read_at(spool, 3, back, 9, &got, NULL), STATUS_OK);
        CHECK(tap, got == 2 && !memcmp(back, large + 3, 2)); // also what stdio holds
        CHECK_INT(tap, spool_write(spool, large + 5, LARGE - 5, NULL), STATUS_OK);
        CHECK_INT(tap, spool_read_at(spool, LARGE - 7, back, 9, &got, NULL), STATUS_OK);
        CHECK(tap, got == 7 && !memcmp(back, large + LARGE - 7, 7));
        CHECK_INT(tap, spool_read_at(spool, LARGE + 7, back, 9, &got, NULL), STATUS_OK);
        CHECK_INT(tap, got, 0);
        CHECK_INT(tap, spool_rewind(spool, NULL), STATUS_OK);
        CHECK_INT(tap, spool_read(spool, back, 100, &got, NULL), STATUS_OK);
        CHECK(tap, got == 100 && !memcmp(back, large, 100));
        CHECK_INT(tap, spool_read(spool, back, LARGE, &got, NULL), STATUS_OK);
        CHECK(tap, got == LARGE - 100 && !memcmp(back, large + 100, got));
        CHECK_INT(tap, output_open(&output, in("s"), true, NULL), STATUS_OK);
        CHECK_INT(tap, spool_copy(spool, output, NULL), STATUS_OK);
        CHECK_INT(tap, output_close(output, NULL), STATUS_OK);
        CHECK(tap, holds(in("s"), large, LARGE));
        unlink(in("s"));
        spool_close(spool);
        spool_close(NULL);
        CHECK_INT(tap, heap_live(), before);
    });
    TEST(tap, "where there is no folder or no memory for it there is no spool", {
        struct spool *spool;
        struct error err = {0};
        int opened = open_files();
        setenv("TMPDIR", "/proc/no", 1);
        CHECK_INT(tap, spool_open(&spool, &err), STATUS_IO);
        CHECK(tap, strstr(err.text, "/proc/no: No such file"));
        setenv("TMPDIR", folder, 1);
        long before = heap_live();
        for (int n = 0; HEAP_FAILS && n < 3; n++) {
            heap_fail_after(n);
            CHECK(tap, spool_open(&spool, NULL) == STATUS_IO);
            heap_fail_after(-1);
        }
        CHECK_INT(tap, heap_live(), before);
        CHECK_INT(tap, open_files(), opened);
        CHECK_INT(tap, files(), 0);
    });
}

// Files have at most so many bytes; 0: no limit.
static void limit_files(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void test_full_spool(struct tap *tap) {
    TEST(tap, "a spool that cannot grow is an I/O error with its folder, wherever it is noticed", {
        static char back[LARGE];
        size_t got = 1;
        for (int i = 0; i < 3; i++) {
            struct spool *spool;
            struct error err = {0};
            CHECK_INT(tap, spool_open(&spool, NULL), STATUS_OK);
            limit_files(100);
            if (i == 0)
                CHECK_INT(tap, spool_write(spool, large, LARGE, &err), STATUS_IO);
            else
                CHECK_INT(tap, spool_write(spool, large, 200, &err), STATUS_OK);
            if (i == 1)
                CHECK_INT(tap, spool_rewind(spool, &err), STATUS_IO);
            else if (i == 2)
                CHECK_INT(tap, spool_read_at(spool, 0, back, 9, &got, &err), STATUS_IO);
            limit_files(0);
            CHECK(tap, strstr(err.text, folder) && strstr(err.text, "File too large"));
            spool_close(spool);
        }
    });
    TEST(tap, "what cannot be copied from a spool is an I/O error with the output's name", {
        struct spool *spool;
        struct output *output;
        struct error err = {0};
        CHECK_INT(tap, spool_open(&spool, NULL), STATUS_OK);
        CHECK_INT(tap, spool_write(spool, large, LARGE, NULL), STATUS_OK);
        CHECK_INT(tap, output_open(&output, in("s"), true, NULL), STATUS_OK);
        mood = FULL;
        int status = spool_copy(spool, output, &err);
        mood = WELL;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "/s: No space left"));
        output_abort(output);
        spool_close(spool);
    });
    TEST(tap, "no spool leaves a file open, and without TMPDIR it is in /tmp", {
        int before = open_files();
        static const char *const folders[] = {"", NULL};
        for (int i = 0; i < 2; i++) {
            struct spool *spool;
            struct error err = {0};
            if (folders[i])
                setenv("TMPDIR", folders[i], 1);
            else
                unsetenv("TMPDIR");
            CHECK_INT(tap, spool_open(&spool, &err), STATUS_OK);
            limit_files(100);
            CHECK_INT(tap, spool_write(spool, large, LARGE, &err), STATUS_IO);
            limit_files(0);
            CHECK(tap, strstr(err.text, "file in /tmp: "));
            spool_close(spool);
        }
        setenv("TMPDIR", folder, 1);
        CHECK_INT(tap, open_files(), before);
    });
}

static void test_crc(struct tap *tap) {
    TEST(tap, "the checksum is that of gzip, in one piece or several", {
        CHECK_INT(tap, crc32_of(0, "123456789", 9), 0xcbf43926); // the check value of CRC-32
        CHECK_INT(tap, crc32_of(crc32_of(0, "1234", 4), "56789", 5), 0xcbf43926);
        CHECK_INT(tap, crc32_of(crc32_of(0, "12345678", 8), "9", 1), 0xcbf43926);
        CHECK_INT(tap, crc32_of(0xcbf43926, NULL, 0), 0xcbf43926);
    });
}

static void test_sealed(struct tap *tap) {
    static const char text[] = "{\n  \"a\": 1,\n  \"crc32\": \"";
    TEST(tap, "a sealed object comes back; any bit that flips, and a lost end, are noticed", {
        json_t *object = json_pack("{s:i}", "a", 1), *back;
        bool sealed = false;
        long before = heap_live();
        CHECK_INT(tap, sealed_write(in("j"), object, NULL), STATUS_OK);
        CHECK_INT(tap, sealed_read(&back, &sealed, in("j"), NULL), STATUS_OK);
        CHECK(tap, sealed && json_integer_value(json_object_get(back, "a")) == 1);
        json_decref(back);
        char *whole = sealed_text(object);
        size_t size = strlen(whole);
        CHECK(tap, !strncmp(whole, text, sizeof text - 1) && !strcmp(whole + size - 4, "\"\n}\n"));
        for (size_t i = 0; i < size; i++) {
            struct error err = {0};
            FILE *file = fopen(in("j"), "wb");
            whole[i] ^= 1;
            fwrite(whole, 1, size, file);
            whole[i] ^= 1;
            fclose(file);
            int status = sealed_read(&back, &sealed, in("j"), &err);
            if (status == STATUS_OK && sealed)
                FAIL(tap, "byte %zu is taken for good", i);
            if (status)
                CHECK(tap, status == STATUS_DATA && !back && strstr(err.text, in("j")));
            json_decref(back);
        }
        free(whole);
        unlink(in("j"));
        CHECK_INT(tap, heap_live(), before);
        json_decref(object);
    });
    TEST(tap, "one without a checksum is read, and told apart", {
        json_t *back;
        bool sealed = true;
        FILE *file = fopen(in("j"), "wb");
        fputs("{\"a\":1}\n", file);
        fclose(file);
        CHECK_INT(tap, sealed_read(&back, &sealed, in("j"), NULL), STATUS_OK);
        CHECK(tap, !sealed && json_object_size(back) == 1);
        json_decref(back);
        CHECK_INT(tap, sealed_read(&back, &sealed, in("none"), NULL), STATUS_NOINPUT);
        CHECK(tap, !back);
        unlink(in("j"));
    });
    TEST(tap, "the text is indented by two, in the order of its keys, reals with nine digits", {
        static const char wanted[] = "{\n  \"b\": 0.333333333,\n  \"a\": 1,\n  \"crc32\": \"";
        json_t *object = json_pack("{s:f, s:i}", "b", 1.0 / 3, "a", 1);
        char *whole = sealed_text(object);
        CHECK(tap, !strncmp(whole, wanted, sizeof wanted - 1));
        free(whole);
        json_decref(object);
    });
    TEST(tap, "what cannot be sealed or written is told, and nothing is left", {
        json_t *object = json_pack("{s:i}", "a", 1);
        struct error err = {0};
        char *whole = sealed_text(object);
        int before = open_files();
        CHECK_INT(tap, sealed_write(in("no/j"), object, &err), STATUS_CANTCREATE);
        mood = FULL;
        int status = sealed_write(in("j"), object, &err);
        mood = WELL;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "/j: No space left"));
        long live = heap_live();
        int n = 0;
        for (status = 1; HEAP_FAILS && status && n < 200; n++) {
            heap_fail_after(n);
            status = sealed_write(in("j"), object, NULL);
            heap_fail_after(-1);
            CHECK(tap, status == STATUS_OK || status == STATUS_IO);
            CHECK_INT(tap, heap_live(), live);
            CHECK(tap, files() == 0 || holds(in("j"), whole, strlen(whole)));
            unlink(in("j"));
        }
        CHECK(tap, !HEAP_FAILS || (status == STATUS_OK && n > 3));
        CHECK_INT(tap, open_files(), before);
        free(whole);
        json_decref(object);
    });
    TEST(tap, "a large object that did not fit is no sealed file", {
        static char value[LARGE];
        memset(value, 'v', LARGE - 1);
        json_t *object = json_pack("{s:s}", "a", value);
        struct error err = {0};
        mood = FULL;
        int status = sealed_write(in("j"), object, &err);
        mood = WELL;
        CHECK_INT(tap, status, STATUS_IO);
        CHECK(tap, strstr(err.text, "No space left"));
        CHECK_INT(tap, files(), 0);
        json_decref(object);
    });
    TEST(tap, "a sealed file is read up to 4 MiB", {
        enum { MOST = 4 << 20 };
        static char value[MOST];
        memset(value, 'v', MOST - 1);
        for (int more = 0; more < 2; more++) {
            struct error err = {0};
            json_t *back;
            bool sealed;
            FILE *file = fopen(in("j"), "wb");
            fprintf(file, "{\"a\": \"%.*s\"}", MOST - 9 + more, value);
            CHECK_INT(tap, ftell(file), MOST + more);
            fclose(file);
            CHECK_INT(tap, sealed_read(&back, &sealed, in("j"), &err),
                      more ? STATUS_DATA : STATUS_OK);
            json_decref(back);
        }
        unlink(in("j"));
    });
}

static void test_map(struct tap *tap) {
    TEST(tap, "a file is mapped whole, an empty one to nothing; what is no file is refused", {
        struct map map;
        struct error err = {0};
        int opened = open_files();
        CHECK_INT(tap, write_large(in("m"), LARGE, NULL), STATUS_OK);
        CHECK_INT(tap, map_open(&map, in("m"), NULL), STATUS_OK);
        CHECK(tap, map.size == LARGE && !memcmp(map.data, large, LARGE));
        int before = unmapped;
        map_close(&map);
        CHECK_INT(tap, unmapped, before + 1);
        CHECK(tap, !map.data && map.size == 0);
        map_close(&map);
        CHECK_INT(tap, unmapped, before + 1);
        mood = NO_MAP;
        CHECK_INT(tap, map_open(&map, in("m"), &err), STATUS_IO);
        mood = WELL;
        CHECK(tap, !map.data && strstr(err.text, "cannot map"));
        fclose(fopen(in("m"), "wb"));
        CHECK_INT(tap, map_open(&map, in("m"), NULL), STATUS_OK);
        CHECK(tap, !map.data && map.size == 0);
        map_close(&map);
        CHECK_INT(tap, map_open(&map, folder, &err), STATUS_NOINPUT);
        CHECK(tap, strstr(err.text, "is no plain file"));
        unlink(in("m"));
        CHECK(tap, !mkfifo(in("m"), 0600));
        alarm(60); // who waits for a writer of the pipe
        CHECK_INT(tap, map_open(&map, in("m"), &err), STATUS_NOINPUT);
        alarm(0);
        CHECK(tap, strstr(err.text, "is no plain file"));
        unlink(in("m"));
        CHECK_INT(tap, map_open(&map, in("m"), &err), STATUS_NOINPUT);
        CHECK_INT(tap, open_files(), opened);
    });
}

static void test_content(struct tap *tap) {
    TEST(tap, "what is read of a file is checked as long as the file is", {
        struct content content;
        struct error err = {0};
        uint32_t crc;
        char part[10];
        int opened = open_files();
        CHECK_INT(tap, write_large(in("c"), LARGE, NULL), STATUS_OK);
        CHECK_INT(tap, content_open(&content, in("c"), NULL), STATUS_OK);
        CHECK_INT(tap, content.size, LARGE);
        CHECK_INT(tap, content_crc(&content, &crc, NULL), STATUS_OK);
        CHECK_INT(tap, crc, crc32_of(0, large, LARGE));
        CHECK_INT(tap, content_read(&content, part, LARGE - 10, 10, NULL), STATUS_OK);
        CHECK(tap, !memcmp(part, large + LARGE - 10, 10));
        CHECK(tap, !truncate(in("c"), LARGE - 1));
        CHECK_INT(tap, content_read(&content, part, LARGE - 10, 10, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "became shorter while it was read"));
        CHECK_INT(tap, content_crc(&content, &crc, NULL), STATUS_DATA);
        content_close(&content);
        content_close(&content);
        unlink(in("c"));
        CHECK_INT(tap, content_open(&content, in("c"), &err), STATUS_NOINPUT);
        CHECK_INT(tap, content_open(&content, folder, &err), STATUS_NOINPUT);
        CHECK(tap, strstr(err.text, "is no plain file"));
        content_close(&content);
        CHECK_INT(tap, open_files(), opened);
    });
}

int main(void) {
    struct tap tap = {0};
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.60s/store.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        abort();
    setenv("TMPDIR", folder, 1);
    for (uint32_t i = 0, x = 1; i < LARGE; i++, x = x * 1664525u + 1013904223u)
        large[i] = (unsigned char)(x >> 24);
    test_output(&tap);
    test_names(&tap);
    test_textfile(&tap);
    test_spool(&tap);
    test_full_spool(&tap);
    test_crc(&tap);
    test_sealed(&tap);
    test_map(&tap);
    test_content(&tap);
    rmdir(folder);
    return tap_done(&tap);
}
#endif
