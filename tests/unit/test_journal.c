// The journal of a data server, cut off or changed at every byte: what it says is finished
// was finished, or it is refused.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "deal/journal.h"

enum { COUNT = 100, EPOCH = 2, LEASES = 5, LEASE = 8 };

static const struct journal_of mine = {
    .run = "00112233445566778899aabbccddeeff", .digest = 0xabcdef, .samples = 300, .count = COUNT};

// Leases are finished in another order than that of the epoch.
static struct range lease(int i) {
    return (struct range){(uint32_t)(i * 37 % COUNT / LEASE * LEASE), LEASE};
}

// Whether one of the ranges has all of this one in it.
static bool is_in(const struct ranges *ranges, struct range range) {
    for (size_t i = 0; i < ranges->count; i++)
        if (ranges->at[i].first <= range.first &&
            range.first + range.count <= ranges->at[i].first + ranges->at[i].count)
            return true;
    return false;
}

static struct range *nothing_yet(void *self, uint64_t *seed, uint32_t *epoch, size_t *count) {
    (void)self;
    *seed = 7, *epoch = EPOCH, *count = 0;
    return calloc(1, sizeof(struct range));
}

// What `journal_open` makes of the file; the place is empty unless *found.
static int look(const char *path, struct journal_place *place, bool *found) {
    struct journal *journal = NULL;
    struct error err = {0};
    *found = false;
    int status = journal_open(&journal, path, &mine, place, found, &err);
    if (!status)
        journal_close(journal);
    else
        *place = (struct journal_place){0};
    return status;
}

static void write_file(const char *path, const char *bytes, size_t n) {
    FILE *file = fopen(path, "w");
    fwrite(bytes, 1, n, file);
    fclose(file);
}

static size_t read_file(const char *path, char *bytes, size_t room) {
    FILE *file = fopen(path, "r");
    size_t n = fread(bytes, 1, room, file);
    fclose(file);
    return n;
}

// Writes a journal in which all leases are finished; returns its length.
static size_t fill(struct tap *tap, const char *path, char *bytes, size_t room) {
    struct journal *journal;
    struct journal_place place;
    bool found;
    unlink(path);
    CHECK_INT(tap, journal_open(&journal, path, &mine, &place, &found, NULL), STATUS_OK);
    CHECK(tap, !found);
    CHECK_INT(tap, journal_rewrite(journal, nothing_yet, NULL, NULL), STATUS_OK);
    for (int i = 0; i < LEASES; i++)
        CHECK_INT(tap, journal_add(journal, EPOCH, lease(i), NULL), STATUS_OK);
    CHECK_INT(tap, journal_sync(journal, NULL), STATUS_OK);
    CHECK_INT(tap, journal_lines(journal), LEASES);
    journal_close(journal);
    return read_file(path, bytes, room);
}

static int lines_of(const char *bytes, size_t n) {
    int lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += bytes[i] == '\n';
    return lines;
}

// A journal whose last bytes are missing says what its whole lines say.
static void test_cut(struct tap *tap, const char *path) {
    enum { HEAD = 3 };
    char bytes[1024];
    size_t n = fill(tap, path, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= n; cut++) {
        struct journal_place place;
        bool found;
        int leases = lines_of(bytes, cut) - HEAD;
        write_file(path, bytes, cut);
        CHECK_INT(tap, look(path, &place, &found), STATUS_OK);
        CHECK_INT(tap, found, leases >= 0);
        if (found) {
            CHECK_INT(tap, place.seed, 7);
            CHECK_INT(tap, place.epoch, EPOCH);
        }
        CHECK_INT(tap, ranges_places(&place.finished), leases > 0 ? leases * LEASE : 0);
        for (int i = 0; i < leases; i++)
            CHECK(tap, is_in(&place.finished, lease(i)));
        ranges_free(&place.finished);
    }
}

// A byte that is no digit where one should be, or no space, or no end of a line, is seen.
static void test_changed(struct tap *tap, const char *path) {
    char bytes[1024];
    size_t n = fill(tap, path, bytes, sizeof bytes), last = n - 1;
    for (size_t i = 0; i < last; i++) {
        char good = bytes[i];
        struct journal_place place;
        bool found;
        bytes[i] = (char)(good ^ 0x80);
        write_file(path, bytes, n);
        int status = look(path, &place, &found);
        if (status != STATUS_DATA && found)
            FAIL(tap, "byte %zu is taken for good", i);
        ranges_free(&place.finished);
        bytes[i] = good;
    }
}

static void test_numbers(struct tap *tap, const char *path) {
    static const char *const bad[] = {"done 2 0 101",
                                      "done 2 100 1",
                                      "done 2 99 2",
                                      "done 2 -8 8",
                                      "done 2 4294967296 8",
                                      "done 2 0 8 8",
                                      "done 2 0 8x",
                                      "done 99999999999999999999 0 8",
                                      "done 2 0",
                                      "done"};
    char bytes[1024];
    size_t n = fill(tap, path, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct journal_place place;
        bool found;
        size_t more = (size_t)snprintf(bytes + n, sizeof bytes - n, "%s\n", bad[i]);
        write_file(path, bytes, n + more);
        if (look(path, &place, &found) != STATUS_DATA)
            FAIL(tap, "'%s' is taken for good", bad[i]);
        ranges_free(&place.finished);
    }
}

static void test_others(struct tap *tap, const char *path) {
    char bytes[1024];
    size_t n = fill(tap, path, bytes, sizeof bytes);
    struct journal_place place;
    bool found;
    char *run = strstr(bytes, "of ") + 3;
    run[0] = 'f';
    write_file(path, bytes, n);
    CHECK_INT(tap, look(path, &place, &found), STATUS_OK);
    CHECK(tap, !found);
    CHECK_INT(tap, ranges_places(&place.finished), 0);
    ranges_free(&place.finished);
    run[0] = '0';
    char *digest = run + 33;
    digest[0] = digest[0] == '9' ? '8' : '9';
    write_file(path, bytes, n);
    CHECK_INT(tap, look(path, &place, &found), STATUS_DATA);
}

// What `journal_open` says of a file of this text, behind the first line.
static int look_at(const char *path, const char *text, struct journal_place *place, bool *found) {
    char bytes[1024];
    int n = snprintf(bytes, sizeof bytes, "adam-cursor 1\n%s", text);
    write_file(path, bytes, (size_t)n);
    return look(path, place, found);
}

#define MINE "of 00112233445566778899aabbccddeeff "

static void test_identity(struct tap *tap, const char *path) {
    static const char *const others[] = {MINE "11259374 300 0 100\n",
                                         MINE "11259375 299 0 100\n",
                                         MINE "11259375 300 1 100\n",
                                         MINE "11259375 300 0 99\n",
                                         MINE "11259375 300 0\n",
                                         MINE "11259375 300 0 100 0\n",
                                         MINE "11259375 300 0 100\nat 7\n",
                                         MINE "11259375 300 0 100\nat 7 4294967296\n",
                                         MINE "11259375 300 0 100\nto 7 2\n"};
    struct journal_place place;
    bool found;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (look_at(path, others[i], &place, &found) != STATUS_DATA)
            FAIL(tap, "'%s' is taken for good", others[i]);
    CHECK_INT(tap, look_at(path, MINE "11259375 300 0 100\n", &place, &found), STATUS_OK);
    CHECK(tap, !found);
    CHECK_INT(tap, look_at(path, MINE "11259375 300 0 100\nat 7 4294967295\n", &place, &found),
              STATUS_OK);
    CHECK(tap, found);
    CHECK_INT(tap, place.epoch, UINT32_MAX);
    write_file(path, "adam-cursor 2\n", 14);
    CHECK_INT(tap, look(path, &place, &found), STATUS_DATA);
}

static void test_epochs(struct tap *tap, const char *path) {
    struct journal_place place;
    bool found;
    CHECK_INT(tap,
              look_at(path,
                      MINE "11259375 300 0 100\nat 7 2\ndone 2 0 8\ndone 3 8 8\ndone 2 16 8\n"
                           "done 3 92 8\n",
                      &place, &found),
              STATUS_OK);
    CHECK_INT(tap, place.epoch, 3);
    CHECK_INT(tap, place.finished.count, 2);
    CHECK(tap, is_in(&place.finished, (struct range){8, 8}));
    CHECK(tap, is_in(&place.finished, (struct range){92, 8}));
    ranges_free(&place.finished);
}

// An end of a text within a line.
static void test_cut_text(struct tap *tap, const char *path) {
    char bytes[1024];
    struct journal_place place;
    bool found;
    size_t n = fill(tap, path, bytes, sizeof bytes);
    memcpy(bytes + n, "done 2 0 8\0 9\n", 14);
    write_file(path, bytes, n + 14);
    CHECK_INT(tap, look(path, &place, &found), STATUS_DATA);
}

static struct range *no_memory(void *self, uint64_t *seed, uint32_t *epoch, size_t *count) {
    (void)self, (void)seed, (void)epoch, (void)count;
    return NULL;
}

static struct range *one_range(void *self, uint64_t *seed, uint32_t *epoch, size_t *count) {
    struct range *finished = malloc(sizeof *finished);
    (void)self;
    if (!finished)
        abort();
    *finished = (struct range){40, 9};
    *seed = 8, *epoch = EPOCH + 1, *count = 1;
    return finished;
}

static int failing_syncs; // of the next so many the disk says that it could not
static int syncs;

int fdatasync(int fd) {
    (void)fd;
    syncs++;
    if (failing_syncs == 0)
        return 0;
    failing_syncs--;
    errno = EIO;
    return -1;
}

// What was not brought to the disk is tried again, and not once more than that.
static void test_failed_sync(struct tap *tap, const char *path) {
    struct journal *journal;
    struct journal_place place;
    struct error err = {0};
    bool found;
    unlink(path);
    CHECK_INT(tap, journal_open(&journal, path, &mine, &place, &found, NULL), STATUS_OK);
    CHECK_INT(tap, journal_rewrite(journal, nothing_yet, NULL, NULL), STATUS_OK);
    CHECK_INT(tap, journal_add(journal, EPOCH, lease(0), NULL), STATUS_OK);
    failing_syncs = 2, syncs = 0;
    CHECK_INT(tap, journal_sync(journal, &err), STATUS_IO);
    CHECK(tap, strstr(err.text, path) != NULL);
    CHECK_INT(tap, journal_sync(journal, NULL), STATUS_IO);
    CHECK_INT(tap, journal_sync(journal, NULL), STATUS_OK);
    CHECK_INT(tap, journal_sync(journal, NULL), STATUS_OK);
    CHECK_INT(tap, syncs, 3);
    journal_close(journal);
}

enum { NOT_FULL = -1 };

// The disk is full: no file may have more bytes than this.
static void fill_disk(long most) {
    struct rlimit limit;
    signal(SIGXFSZ, most >= 0 ? SIG_IGN : SIG_DFL);
    if (getrlimit(RLIMIT_FSIZE, &limit))
        abort();
    limit.rlim_cur = most >= 0 ? (rlim_t)most : limit.rlim_max;
    if (setrlimit(RLIMIT_FSIZE, &limit))
        abort();
}

static void test_rewrite(struct tap *tap, const char *path) {
    struct journal *journal = NULL;
    struct journal_place place;
    struct error err = {0};
    bool found;
    char bytes[1024];
    fill(tap, path, bytes, sizeof bytes);
    CHECK_INT(tap, journal_open(&journal, path, &mine, &place, &found, NULL), STATUS_OK);
    ranges_free(&place.finished);
    CHECK_INT(tap, journal_rewrite(journal, no_memory, NULL, &err), STATUS_IO);
    CHECK_INT(tap, journal_rewrite(journal, one_range, NULL, NULL), STATUS_OK);
    CHECK_INT(tap, journal_add(journal, EPOCH + 1, (struct range){0, 1}, NULL), STATUS_OK);
    CHECK_INT(tap, journal_lines(journal), 1);
    CHECK_INT(tap, journal_rewrite(journal, one_range, NULL, NULL), STATUS_OK);
    CHECK_INT(tap, journal_lines(journal), 0);
    CHECK_INT(tap, journal_add(journal, EPOCH + 1, (struct range){80, 2}, NULL), STATUS_OK);
    fill_disk(0);
    int added = journal_add(journal, EPOCH + 1, (struct range){50, 1}, &err);
    CHECK(tap, strstr(err.text, path));
    int rewritten = journal_rewrite(journal, nothing_yet, NULL, &err);
    fill_disk(NOT_FULL);
    CHECK_INT(tap, added, STATUS_IO);
    CHECK_INT(tap, rewritten, STATUS_IO);
    CHECK_INT(tap, journal_add(journal, EPOCH + 1, (struct range){60, 3}, NULL), STATUS_OK);
    journal_close(journal);
    CHECK_INT(tap, look(path, &place, &found), STATUS_OK);
    CHECK_INT(tap, place.seed, 8);
    CHECK_INT(tap, place.epoch, EPOCH + 1);
    CHECK_INT(tap, ranges_places(&place.finished), 9 + 2 + 3);
    ranges_free(&place.finished);
}

// Lines that the disk had no room for are missing, and those before and after are there.
static void test_full_disk(struct tap *tap, const char *path) {
    enum { HALF = 5 };
    struct journal *journal = NULL;
    struct journal_place place;
    bool found;
    char bytes[1024];
    unlink(path);
    CHECK_INT(tap, journal_open(&journal, path, &mine, &place, &found, NULL), STATUS_OK);
    CHECK_INT(tap, journal_rewrite(journal, nothing_yet, NULL, NULL), STATUS_OK);
    CHECK_INT(tap, journal_add(journal, EPOCH, lease(0), NULL), STATUS_OK);
    fill_disk((long)read_file(path, bytes, sizeof bytes) + HALF);
    int halves[] = {journal_add(journal, EPOCH, lease(1), NULL),
                    journal_add(journal, EPOCH, lease(1), NULL)};
    fill_disk(NOT_FULL);
    CHECK_INT(tap, halves[0], STATUS_IO);
    CHECK_INT(tap, halves[1], STATUS_IO);
    CHECK_INT(tap, look(path, &place, &found), STATUS_OK);
    CHECK_INT(tap, ranges_places(&place.finished), LEASE);
    ranges_free(&place.finished);
    CHECK_INT(tap, journal_add(journal, EPOCH, lease(2), NULL), STATUS_OK);
    CHECK_INT(tap, journal_add(journal, EPOCH, lease(3), NULL), STATUS_OK);
    journal_close(journal);
    CHECK_INT(tap, look(path, &place, &found), STATUS_OK);
    CHECK_INT(tap, ranges_places(&place.finished), 3 * LEASE);
    CHECK(tap, is_in(&place.finished, lease(0)));
    CHECK(tap, is_in(&place.finished, lease(2)));
    CHECK(tap, is_in(&place.finished, lease(3)));
    ranges_free(&place.finished);
}

// The end of memory is not the end of the journal.
static void test_memory(struct tap *tap, const char *path) {
    char bytes[1024];
    fill(tap, path, bytes, sizeof bytes);
    int failed = 0;
    for (int n = 0; HEAP_FAILS && n < 40; n++) {
        struct journal_place place = {0};
        bool found = false;
        heap_fail_once(n);
        int status = look(path, &place, &found);
        heap_fail_after(-1);
        failed += status != STATUS_OK;
        CHECK(tap, status == STATUS_OK || status == STATUS_IO);
        if (status == STATUS_OK)
            CHECK(tap, found && ranges_places(&place.finished) == LEASES * LEASE);
        ranges_free(&place.finished);
    }
    CHECK(tap, failed > 3 || !HEAP_FAILS);
}

static void test_nothing_left(struct tap *tap, const char *path) {
    struct journal *journal = NULL;
    struct journal_place place;
    bool found;
    char bytes[1024];
    fill(tap, path, bytes, sizeof bytes);
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC); // the lowest number that is free
    close(before);
    long live = heap_live();
    CHECK_INT(tap, journal_open(&journal, path, &mine, &place, &found, NULL), STATUS_OK);
    ranges_free(&place.finished);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(tap, journal_rewrite(journal, nothing_yet, NULL, NULL), STATUS_OK);
        CHECK_INT(tap, journal_add(journal, EPOCH, lease(i), NULL), STATUS_OK);
        CHECK_INT(tap, journal_sync(journal, NULL), STATUS_OK);
    }
    journal_close(journal);
    CHECK_INT(tap, heap_live(), live);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(after);
    CHECK_INT(tap, after, before);
}

static void test_no_input(struct tap *tap, const char *path) {
    struct journal *journal = NULL;
    struct journal_place place;
    bool found;
    unlink(path);
    CHECK_INT(tap, journal_open(&journal, path, &mine, &place, &found, NULL), STATUS_OK);
    CHECK_INT(tap, journal_rewrite(journal, nothing_yet, NULL, NULL), STATUS_OK);
    CHECK_INT(tap, journal_add(journal, EPOCH, lease(0), NULL), STATUS_OK);
    close(STDIN_FILENO);
    int synced = journal_sync(journal, NULL);
    CHECK_INT(tap, open("/dev/null", O_RDONLY), STDIN_FILENO);
    CHECK_INT(tap, synced, STATUS_OK);
    journal_close(journal);
}

static void test_unreadable(struct tap *tap, const char *path, const char *folder) {
    struct journal_place place;
    bool found = true;
    char below[128];
    write_file(path, "", 0);
    snprintf(below, sizeof below, "%s/below", path);
    CHECK_INT(tap, look(below, &place, &found), STATUS_IO); // of a file
    CHECK_INT(tap, look(folder, &place, &found), STATUS_IO);
    snprintf(below, sizeof below, "%s/none/below", folder);
    CHECK_INT(tap, look(below, &place, &found), STATUS_OK);
    CHECK(tap, !found);
}

int main(void) {
    struct tap tap = {0};
    char folder[] = "/tmp/adam-journal-XXXXXX", path[64];
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/cursor", folder);
    TEST(&tap, "cut off anywhere, it says what its whole lines say", { test_cut(&tap, path); });
    TEST(&tap, "a damaged byte is never taken for good", { test_changed(&tap, path); });
    TEST(&tap, "numbers that cannot be are refused", { test_numbers(&tap, path); });
    TEST(&tap, "one of another run is none; one of other data is refused",
         { test_others(&tap, path); });
    TEST(&tap, "each number that says of what it is counts", { test_identity(&tap, path); });
    TEST(&tap, "with a later epoch what was finished before is over", { test_epochs(&tap, path); });
    TEST(&tap, "a line with the end of a text in it is none", { test_cut_text(&tap, path); });
    TEST(&tap, "written anew it says the same; on a full disk it stays as it was",
         { test_rewrite(&tap, path); });
    TEST(&tap, "half a line that a full disk left does not spoil the next",
         { test_full_disk(&tap, path); });
    TEST(&tap, "where memory is out it is an error, and not a journal of less",
         { test_memory(&tap, path); });
    TEST(&tap, "however often it is written anew, no file and no memory is left in the end",
         { test_nothing_left(&tap, path); });
    TEST(&tap, "it is synced also where standard input is closed", { test_no_input(&tap, path); });
    TEST(&tap, "what the disk could not sync is synced by the next call",
         { test_failed_sync(&tap, path); });
    TEST(&tap, "one that cannot be read is an error, one that is not there is none",
         { test_unreadable(&tap, path, folder); });
    unlink(path);
    rmdir(folder);
    return tap_done(&tap);
}
