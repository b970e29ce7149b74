// Limits of control groups, read from a tree of files as cgroups(7) has them.
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../helper/tap.h"
#include "core/cgroup.h"
#include "core/cpu.h"

enum { PATH_SPACE = 512 };

static char base[PATH_SPACE / 4];
static char root[PATH_SPACE / 2]; // of this case

static void must(bool done, const char *what) {
    if (!done) {
        perror(what);
        exit(2);
    }
}

// A file below the root, and the folders that it is in.
static void put_bytes(const char *name, const char *bytes, size_t size) {
    char path[PATH_SPACE];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        must(mkdir(path, 0700) == 0 || errno == EEXIST, path);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    must(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, path);
}

static void put(const char *name, const char *text) {
    put_bytes(name, text, strlen(text));
}

static void put_group(const char *group, const char *file, const char *text) {
    char name[PATH_SPACE];
    snprintf(name, sizeof name, "sys/fs/cgroup/%s/%s", group, file);
    put(name, text);
}

static void begin_empty(void) {
    static int cases;
    snprintf(root, sizeof root, "%s/%d", base, cases++);
}

static void begin(const char *membership) {
    begin_empty();
    put("proc/self/cgroup", membership);
}

static void check(struct tap *tap, uint64_t memory, int processors) {
    struct cgroup_limits got = cgroup_limits(root);
    CHECK_INT(tap, got.memory, memory);
    CHECK_INT(tap, got.processors, processors);
}

static void test_version_2(struct tap *tap) {
    TEST(tap, "without control groups nothing is limited", {
        begin_empty();
        check(tap, UINT64_MAX, INT_MAX);
    });
    TEST(tap, "the limits of the process's own group count", {
        begin("0::/system.slice/adam.service\n");
        put_group("system.slice/adam.service", "memory.max", "1073741824\n");
        put_group("system.slice/adam.service", "cpu.max", "200000 100000\n");
        check(tap, 1 << 30, 2);
    });
    TEST(tap, "the least limit on the way to the root counts, wherever it is", {
        begin("0::/a/b/c\n");
        put_group("a/b/c", "memory.max", "3000\n");
        put_group("a/b", "memory.max", "max\n");
        put_group("a", "memory.max", "1000\n");
        put_group("", "memory.max", "2000\n");
        put_group("a/b/c", "cpu.max", "max 100000\n");
        put_group("a/b", "cpu.max", "300000 100000\n");
        put_group("a", "cpu.max", "500000 100000\n");
        check(tap, 1000, 3);
        put_group("", "memory.max", "999\n");
        put_group("", "cpu.max", "100000 100000\n");
        check(tap, 999, 1);
    });
    TEST(tap, "a part of a processor is one", {
        const char *const quotas[] = {"1000 100000", "100000 100000", "100001 100000",
                                      "150000 100000"};
        const int processors[] = {1, 1, 2, 2};
        for (int i = 0; i < 4; i++) {
            begin("0::/a\n");
            put_group("a", "cpu.max", quotas[i]);
            check(tap, UINT64_MAX, processors[i]);
        }
    });
    TEST(tap, "groups beside the way limit nothing", {
        begin("0::/a/b\n");
        put_group("a/b/c", "memory.max", "1000\n");
        put_group("a/bc", "memory.max", "1000\n");
        put_group("b", "memory.max", "1000\n");
        check(tap, UINT64_MAX, INT_MAX);
    });
    TEST(tap, "where the group is not in sight, the groups that are count", {
        begin("0::/docker/0123 (deleted)\n");
        put_group("", "memory.max", "5000\n");
        put_group("docker", "cpu.max", "400000 100000\n");
        check(tap, 5000, 4);
    });
    TEST(tap, "the root's limits count without a word about groups", {
        begin("");
        put_group("", "memory.max", "5000\n");
        check(tap, 5000, INT_MAX);
        begin_empty();
        put_group("", "memory.max", "5000\n");
        check(tap, 5000, INT_MAX);
    });
}

static void test_version_1(struct tap *tap) {
    TEST(tap, "each controller of version 1 has its own way", {
        begin("12:cpuset:/x\n5:cpuacct,cpu:/cpus/one\n4:memory:/slurm/uid_1/job_2\n"
              "1:name=systemd:/x\n0::/x\n");
        put_group("memory/slurm/uid_1/job_2", "memory.limit_in_bytes", "9223372036854771712\n");
        put_group("memory/slurm/uid_1", "memory.limit_in_bytes", "4096000\n");
        put_group("memory/cpus/one", "memory.limit_in_bytes", "1\n");
        put_group("cpu/cpus/one", "cpu.cfs_quota_us", "250000\n");
        put_group("cpu/cpus/one", "cpu.cfs_period_us", "100000\n");
        put_group("cpu/cpus", "cpu.cfs_quota_us", "-1\n");
        put_group("cpu/cpus", "cpu.cfs_period_us", "100000\n");
        check(tap, 4096000, 3);
    });
    TEST(tap, "a quota of which no period is known limits nothing", {
        begin("5:cpu:/a\n");
        put_group("cpu/a", "cpu.cfs_quota_us", "250000\n");
        check(tap, UINT64_MAX, INT_MAX);
    });
}

static void test_damage(struct tap *tap) {
    TEST(tap, "what makes no sense limits nothing", {
        const char endless[] =
            "1000000000000000000000000000000000000000000000000000000000000000000000";
        const char *const damaged[] = {
            "", "\n", "-5\n", "0\n", "12x\n", " 12\n", "99999999999999999999\n", endless};
        for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
            begin("0::/a\n");
            put_group("a", "memory.max", damaged[i]);
            check(tap, UINT64_MAX, INT_MAX);
        }
        const char *const quotas[] = {"",         "1",         "100000", "100000 ",   "100000 0",
                                      "0 100000", "-1 100000", "1 -100", "100000 1x", "1x 100000",
                                      "1 2 3",    "x y",       "max",    "1  2"};
        for (size_t i = 0; i < sizeof quotas / sizeof *quotas; i++) {
            begin("0::/a\n");
            put_group("a", "cpu.max", quotas[i]);
            check(tap, UINT64_MAX, INT_MAX);
        }
    });
    TEST(tap, "bytes behind a zero are none of a text", {
        begin("0::/a\n");
        put_bytes("sys/fs/cgroup/a/memory.max", "1000\0 2", 7);
        check(tap, UINT64_MAX, INT_MAX);
        put_group("a", "memory.max", "1000\n");
        put_bytes("proc/self/cgroup", "0::/a\0/b\n", 9);
        check(tap, UINT64_MAX, INT_MAX);
    });
    TEST(tap, "a quota of more processors than an int counts is no limit", {
        begin("0::/a\n");
        put_group("a", "cpu.max", "9223372036854775807 1\n");
        check(tap, UINT64_MAX, INT_MAX);
    });
    TEST(tap, "lines that are none of proc's are passed over", {
        const char *const lines[] = {"nonsense\n", "0:\n",       ":::\n",
                                     "0::a\n",     "0::\n",      "\n",
                                     "0::/../a\n", "0::/a/..\n", "0::/b\\0/a\n"};
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            char membership[PATH_SPACE];
            begin(lines[i]);
            put_group("a", "memory.max", "1000\n");
            put("sys/fs/a/memory.max", "1000\n");
            put("sys/fs/memory.max", "1000\n");
            put_group("", "cpu.max", "200000 100000\n");
            check(tap, UINT64_MAX, 2);
            snprintf(membership, sizeof membership, "%s0::/a\n", lines[i]);
            put("proc/self/cgroup", membership);
            check(tap, 1000, 2);
        }
    });
    TEST(tap, "a group may have dots and colons in its name, and be of any depth", {
        begin("0::/..a/b:c/d..\n");
        put_group("..a/b:c/d..", "memory.max", "1000\n");
        check(tap, 1000, INT_MAX);
        char deep[2 * PATH_MAX + 8] = "0::";
        for (size_t at = 3; at < sizeof deep - 4; at += 2)
            deep[at] = '/', deep[at + 1] = 'a';
        begin(deep);
        put_group("a/a", "memory.max", "2000\n");
        check(tap, 2000, INT_MAX);
    });
}

static int remove_one(const char *path, const struct stat *of, int type, struct FTW *at) {
    (void)of, (void)type, (void)at;
    return remove(path);
}

static void test_this(struct tap *tap) {
    TEST(tap, "this process has no more than its control groups grant", {
        struct cgroup_limits here = cgroup_limits("");
        CHECK(tap, here.processors >= 1 && cpu_count() <= here.processors);
        CHECK(tap, cpu_memory() > 0 && cpu_memory() <= here.memory);
    });
}

int main(void) {
    struct tap tap = {0};
    const char *folder = getenv("TMPDIR");
    snprintf(base, sizeof base, "%s/adam-cgroup-XXXXXX", folder ? folder : "/tmp");
    must(mkdtemp(base) != NULL, base);
    test_version_2(&tap);
    test_version_1(&tap);
    test_damage(&tap);
    test_this(&tap);
    nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return tap_done(&tap);
}
