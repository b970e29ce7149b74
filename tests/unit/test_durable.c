// What must survive the machine is on the disk before it has its name, and its name is on the
// disk before anybody is told that it is there.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "cluster/record.h"
#include "core/error.h"
#include "deal/journal.h"
#include "net/keys.h"
#include "run/checkpoint.h"
#include "store/output.h"

enum { EVENTS = 64, PATH = 256 };

// --- the calls, in their order ---------------------------------------------------------

enum event_kind { SYNC, NAME };

struct event {
    enum event_kind kind;
    ino_t file;
};

static struct event events[EVENTS];
static int event_count, failing; // failing: the sync, counted from 1, that fails
static int failure = EIO;

static void note(enum event_kind kind, ino_t file) {
    if (event_count < EVENTS)
        events[event_count++] = (struct event){kind, file};
}

static int note_sync(long number, int fd) {
    struct stat stat;
    note(SYNC, fstat(fd, &stat) ? 0 : stat.st_ino);
    if (failing > 0 && --failing == 0) {
        errno = failure;
        return -1;
    }
    return (int)syscall(number, fd);
}

int fsync(int fd) {
    return note_sync(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return note_sync(SYS_fdatasync, fd);
}

static ino_t inode(const char *path) {
    struct stat stat;
    return lstat(path, &stat) ? 0 : stat.st_ino;
}

static bool no_flags; // on some file systems there are none

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    if (no_flags && flags) {
        errno = EINVAL;
        return -1;
    }
    note(NAME, inode(from)); // all paths of these tests are absolute
    return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

int rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

// Where the event is, from `at` on; EVENTS: it is not.
static int find(enum event_kind kind, ino_t file, int at) {
    while (at < event_count && (events[at].kind != kind || events[at].file != file))
        at++;
    return at < event_count ? at : EVENTS;
}

static void begin(int fails) {
    event_count = 0;
    failing = fails;
}

// The file or folder at `path` was synced, then got its name, and then the folder of that was.
static bool is_durable(const char *path, const char *folder) {
    int synced = find(SYNC, inode(path), 0), named = find(NAME, inode(path), synced);
    return find(SYNC, inode(folder), named) < EVENTS;
}

// --- the tests -------------------------------------------------------------------------

static char folder[PATH / 2];

// Valid until the fourth call from now on.
static const char *in(const char *name) {
    static char path[4][PATH];
    static int turn;
    char *to = path[turn++ % 4];
    snprintf(to, PATH, "%s/%s", folder, name);
    return to;
}

static int write_output(const char *path, bool force) {
    struct output *output;
    int status = output_open(&output, path, force, NULL);
    if (status)
        return status;
    output_write(output, "abc", 3, NULL);
    return output_close(output, NULL);
}

static void test_output(struct tap *tap) {
    TEST(tap, "an output is on the disk before it has its name, and its name before it is closed", {
        const char *path = in("output");
        for (int force = 0; force < 2; force++) { // new, and in the place of another
            begin(0);
            CHECK_INT(tap, write_output(path, force), STATUS_OK);
            CHECK(tap, is_durable(path, folder));
        }
        unlink(path);
    });
    TEST(tap, "a disk that fails is an I/O error, and the file that was there stays", {
        const char *path = in("output");
        begin(0);
        CHECK_INT(tap, write_output(path, false), STATUS_OK);
        ino_t before = inode(path);
        begin(1);
        CHECK_INT(tap, write_output(path, true), STATUS_IO);
        CHECK(tap, inode(path) == before);
        unlink(path);
        begin(2); // the folder's
        CHECK_INT(tap, write_output(path, false), STATUS_IO);
        unlink(path);
        failure = EINVAL; // on a file system that cannot sync folders
        begin(2);
        CHECK_INT(tap, write_output(path, false), STATUS_OK);
        failure = EIO;
        unlink(path);
    });
    TEST(tap, "on a file system that cannot refuse a name that is taken, it is looked for", {
        const char *path = in("output");
        struct error err = {0};
        begin(0);
        no_flags = true;
        CHECK_INT(tap, write_output(path, false), STATUS_OK);
        CHECK(tap, is_durable(path, folder));
        ino_t before = inode(path);
        CHECK_INT(tap, write_output(in("other"), false), STATUS_OK);
        CHECK_INT(tap, output_rename(in("other"), path, false, &err), STATUS_CANTCREATE);
        CHECK(tap, strstr(err.text, "cannot create") && strstr(err.text, "File exists"));
        CHECK(tap, inode(path) == before);
        CHECK_INT(tap, output_rename(in("other"), path, true, NULL), STATUS_OK);
        CHECK(tap, inode(path) != before);
        no_flags = false;
        unlink(path);
    });
    TEST(tap, "two that exchange their names do it at once, and durably", {
        struct error err = {0};
        CHECK_INT(tap, write_output(in("a"), false), STATUS_OK);
        CHECK_INT(tap, write_output(in("b"), false), STATUS_OK);
        ino_t a = inode(in("a")), b = inode(in("b"));
        begin(0);
        CHECK_INT(tap, output_exchange(in("a"), in("b"), NULL), STATUS_OK);
        CHECK(tap, inode(in("a")) == b && inode(in("b")) == a);
        CHECK(tap, find(SYNC, inode(folder), find(NAME, a, 0)) < EVENTS);
        unlink(in("b"));
        CHECK_INT(tap, output_exchange(in("a"), in("b"), &err), STATUS_CANTCREATE);
        CHECK(tap, strstr(err.text, "cannot replace") && strstr(err.text, "/b: No such file"));
        CHECK(tap, inode(in("a")) == b);
        unlink(in("a"));
    });
    TEST(tap, "a name without a folder is one of the folder where one is", {
        CHECK_INT(tap, chdir(folder), 0);
        begin(0);
        CHECK_INT(tap, write_output("a", false), STATUS_OK);
        CHECK(tap, find(SYNC, inode(folder), 0) < EVENTS);
        unlink("a");
        CHECK_INT(tap, chdir("/"), 0);
        struct error err = {0};
        CHECK_INT(tap, output_sync_name(in("no/a"), &err), STATUS_IO);
        CHECK(tap, strstr(err.text, "cannot sync folder"));
    });
    TEST(tap, "the folders that are made around an output have durable names", {
        begin(0);
        CHECK_INT(tap, output_make_parents(in("a/b/c"), NULL), STATUS_OK);
        int first = find(SYNC, inode(folder), 0);
        CHECK(tap, find(SYNC, inode(in("a")), first) < EVENTS);
        rmdir(in("a/b"));
        rmdir(in("a"));
    });
}

static void test_record(struct tap *tap) {
    TEST(tap, "what a controller agreed on is on the disk when it hears so", {
        static const struct record_options alone = {.members = 1};
        struct record *record;
        struct paxos_output output;
        const char *path = in("controller.state");
        CHECK_INT(tap, record_open(&record, path, &alone, NULL), STATUS_OK);
        for (int i = 0; i < 2; i++) {
            begin(0);
            CHECK_INT(tap, record_propose(record, i ? "{\"a\":2}" : "{\"a\":1}", &output, NULL),
                      STATUS_OK);
            CHECK(tap, is_durable(path, folder));
        }
        begin(1);
        CHECK_INT(tap, record_propose(record, "{\"a\":3}", &output, NULL), STATUS_IO);
        record_close(record);
        unlink(path);
    });
}

static void test_checkpoint(struct tap *tap) {
    TEST(tap, "a checkpoint is whole on the disk before it has its name, and `latest` is last", {
        struct checkpoint checkpoint = {.clock = 7, .run = json_object()};
        struct error err = {0};
        begin(0);
        CHECK_INT(tap,
                  model_parse(&checkpoint.model, "a.net", "input 1x1x2\nsoftmax units=2\n", NULL, 0,
                              NULL),
                  STATUS_OK);
        checkpoint.parameters = calloc(checkpoint.model->parameter_count, sizeof(float));
        CHECK_INT(tap, checkpoint_save(&checkpoint, folder, 0, &err), STATUS_OK);
        char saved[PATH];
        snprintf(saved, sizeof saved, "%s/ckpt-00000007", folder);
        CHECK(tap, is_durable(saved, folder));
        int named = find(NAME, inode(saved), 0);
        CHECK(tap, find(SYNC, inode(in("ckpt-00000007/model.safetensors")), 0) < named);
        CHECK(tap, find(SYNC, inode(in("ckpt-00000007/manifest.json")), 0) < named);
        CHECK(tap, find(SYNC, inode(saved), 0) < named);
        int latest = find(NAME, inode(in("latest")), named);
        CHECK(tap, find(SYNC, inode(folder), latest) < EVENTS);
        for (int i = 1; i <= 3; i++) { // the model, the manifest, the folder
            begin(i);
            checkpoint.clock = 8;
            CHECK_INT(tap, checkpoint_save(&checkpoint, folder, 0, &err), STATUS_IO);
            CHECK(tap, inode(in("ckpt-00000008")) == 0);
        }
        run_folder_remove(saved);
        unlink(in("latest"));
        checkpoint_free(&checkpoint);
    });
}

static struct range *nothing_yet(void *self, uint64_t *seed, uint32_t *epoch, size_t *count) {
    (void)self;
    *seed = *epoch = 0, *count = 0;
    return calloc(1, sizeof(struct range));
}

static void test_journal(struct tap *tap) {
    TEST(tap, "what was finished is on the disk when the journal has been synced", {
        const struct journal_of of = {.run = "00112233445566778899aabbccddeeff", .samples = 9};
        const char *path = in("cursor");
        struct journal *journal;
        struct journal_place place;
        bool found;
        CHECK_INT(tap, journal_open(&journal, path, &of, &place, &found, NULL), STATUS_OK);
        begin(0);
        CHECK_INT(tap, journal_rewrite(journal, nothing_yet, NULL, NULL), STATUS_OK);
        CHECK(tap, is_durable(path, folder));
        for (uint32_t i = 0; i < 3; i++) {
            begin(0);
            CHECK_INT(tap, journal_add(journal, 0, (struct range){i, 1}, NULL), STATUS_OK);
            CHECK_INT(tap, journal_sync(journal, NULL), STATUS_OK);
            CHECK(tap, find(SYNC, inode(path), 0) < EVENTS);
        }
        begin(0);
        CHECK_INT(tap, journal_sync(journal, NULL), STATUS_OK); // of nothing new
        CHECK_INT(tap, event_count, 0);
        begin(1);
        CHECK_INT(tap, journal_add(journal, 0, (struct range){3, 1}, NULL), STATUS_OK);
        CHECK_INT(tap, journal_sync(journal, NULL), STATUS_IO);
        journal_close(journal);
        unlink(path);
    });
}

static void test_keys(struct tap *tap) {
    TEST(tap, "keys are on the disk when they have been made", {
        static const char *const files[] = {"keys/ca.crt", "keys/ca.key", "keys/a.pem"};
        static const char *const names[] = {"a"};
        char keys[PATH];
        snprintf(keys, sizeof keys, "%s/keys", folder);
        begin(0);
        CHECK_INT(tap, keys_make(keys, names, 1, 1, NULL), STATUS_OK);
        for (int i = 0; i < 3; i++)
            CHECK(tap, find(SYNC, inode(in(files[i])), 0) < EVENTS);
        unlink(in("keys/a.pem"));
        begin(1);
        CHECK_INT(tap, keys_make(keys, names, 1, 1, NULL), STATUS_IO);
        CHECK(tap, inode(in("keys/a.pem")) == 0);
        run_folder_remove(keys);
    });
}

int main(void) {
    struct tap tap = {0};
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.60s/durable.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        abort();
    test_output(&tap);
    test_record(&tap);
    test_checkpoint(&tap);
    test_journal(&tap);
    test_keys(&tap);
    rmdir(folder);
    return tap_done(&tap);
}
