// Files that appear whole or not at all, and those that never have a name: what was written comes
// back, whatever the disk, the kernel and the heap do meanwhile.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
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
static int writes;

// Interrupted, then short, then whole; or the disk is full.
ssize_t write(int fd, const void *data, size_t size) {
    writes++;
    if (mood == FULL) {
        errno = ENOSPC;
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
        CHECK_INT(tap, heap_live(), before);
        rmdir(in("b/c"));
        rmdir(in("b"));
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
        setenv("TMPDIR", "/proc/no", 1);
        CHECK_INT(tap, spool_open(&spool, &err), STATUS_IO);
        CHECK(tap, strstr(err.text, "/proc/no"));
        setenv("TMPDIR", folder, 1);
        long before = heap_live();
        for (int n = 0; HEAP_FAILS && n < 3; n++) {
            heap_fail_after(n);
            CHECK(tap, spool_open(&spool, NULL) == STATUS_IO);
            heap_fail_after(-1);
        }
        CHECK_INT(tap, heap_live(), before);
        CHECK_INT(tap, files(), 0);
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
}

static void test_map(struct tap *tap) {
    TEST(tap, "a file is mapped whole, an empty one to nothing; what is no file is refused", {
        struct map map;
        struct error err = {0};
        CHECK_INT(tap, write_large(in("m"), LARGE, NULL), STATUS_OK);
        CHECK_INT(tap, map_open(&map, in("m"), NULL), STATUS_OK);
        CHECK(tap, map.size == LARGE && !memcmp(map.data, large, LARGE));
        map_close(&map);
        CHECK(tap, !map.data && map.size == 0);
        map_close(&map);
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
        CHECK_INT(tap, map_open(&map, in("m"), &err), STATUS_NOINPUT);
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
    test_textfile(&tap);
    test_spool(&tap);
    test_sealed(&tap);
    test_map(&tap);
    rmdir(folder);
    return tap_done(&tap);
}
