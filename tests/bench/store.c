// Figures of a parameter server's store on a real disk: see store.sh. Values of 1 MiB, written
// again and again, in turns with what the disk takes of one plain file.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "persist/files_system.h"
#include "persist/persist.h"

enum { MIB = 1 << 20, FLOATS = MIB / sizeof(float), MOST = 4096 };

static const struct persist_owner owner = {{1}, "bench"};

struct bench {
    const char *folder;
    uint32_t shards, group, groups; // of the store; in a sync; in a turn
    float *values;
    uint64_t seed, version;
    struct files_system files;
    struct persist *persist;
};

static void fail(const struct error *err) {
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static uint64_t draw(struct bench *bench, uint64_t below) {
    bench->seed = bench->seed * UINT64_C(6364136223846793005) + 1;
    return (bench->seed >> 33) % below;
}

// Different shards, at random.
static void draw_group(struct bench *bench, uint32_t *shards) {
    for (uint32_t i = 0; i < bench->group;) {
        shards[i] = (uint32_t)draw(bench, bench->shards);
        uint32_t k = 0;
        while (shards[k] != shards[i])
            k++;
        i += k == i;
    }
}

static void write_group(struct bench *bench, const uint32_t *shards) {
    static struct persist_record records[MOST];
    struct error err = {0};
    size_t durable;
    for (uint32_t i = 0; i < bench->group; i++)
        records[i] = (struct persist_record){.shard = shards[i],
                                             .version = ++bench->version,
                                             .floats = FLOATS,
                                             .weights = bench->values};
    if (persist_write(bench->persist, records, bench->group, &durable, &err))
        fail(&err);
    while (persist_wants_cleaning(bench->persist))
        if (persist_clean(bench->persist, &err))
            fail(&err);
}

static double time_store(struct bench *bench) {
    static uint32_t shards[MOST];
    double begin = clock_seconds();
    for (uint32_t i = 0; i < bench->groups; i++) {
        draw_group(bench, shards);
        write_group(bench, shards);
    }
    return clock_seconds() - begin;
}

// As dd bs=1M conv=fsync does: one file, one sync at its end.
static double time_plain(const struct bench *bench) {
    char path[512];
    snprintf(path, sizeof path, "%s/plain", bench->folder);
    double begin = clock_seconds();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    for (uint32_t i = 0; i < bench->groups * bench->group; i++)
        if (write(fd, bench->values, MIB) != MIB)
            exit(1);
    if (fsync(fd) || close(fd))
        exit(1);
    double seconds = clock_seconds() - begin;
    unlink(path);
    sync(); // what it costs the disk to forget the file is not the store's
    return seconds;
}

static int compare(const void *a, const void *b) {
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void open_store(struct bench *bench) {
    struct error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/store", bench->folder);
    if (files_system_open(&bench->files, path, &err) ||
        persist_open(&bench->persist, &bench->files.files, &owner, PERSIST_SEGMENT, &err))
        fail(&err);
}

static void close_store(struct bench *bench) {
    persist_close(bench->persist);
    files_system_close(&bench->files);
}

// Opens it again and reads all of it, as a server that starts.
static double time_start(struct bench *bench) {
    struct error err = {0};
    double begin = clock_seconds();
    open_store(bench);
    for (uint32_t i = 0; i < bench->shards; i++) {
        struct persist_copy copy;
        if (persist_read(bench->persist, i, &copy, &err))
            fail(&err);
        persist_copy_free(&copy);
    }
    double seconds = clock_seconds() - begin;
    close_store(bench);
    return seconds;
}

static void fill_store(struct bench *bench) {
    static uint32_t shards[MOST];
    for (uint32_t first = 0; first < bench->shards; first += bench->group) {
        for (uint32_t i = 0; i < bench->group; i++)
            shards[i] = (first + i) % bench->shards;
        write_group(bench, shards);
    }
}

static void run_turns(struct bench *bench, int turns) {
    double ratios[64], rates[64];
    double mebibytes = (double)bench->groups * bench->group;
    for (int i = 0; i < turns; i++) {
        double plain = time_plain(bench), store = time_store(bench);
        ratios[i] = plain / store;
        rates[i] = mebibytes / store;
    }
    struct persist_figures figures;
    persist_figures(bench->persist, &figures);
    qsort(ratios, (size_t)turns, sizeof *ratios, compare);
    qsort(rates, (size_t)turns, sizeof *rates, compare);
    printf("%8u %8u %12.0f %12.2f %12.3f\n", bench->shards, bench->group, rates[turns / 2],
           ratios[turns / 2], (double)figures.written / (double)figures.asked);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: store FOLDER SHARDS GROUP GROUPS TURNS\n");
        return 2;
    }
    struct bench bench = {.folder = argv[1],
                          .shards = (uint32_t)atoi(argv[2]),
                          .group = (uint32_t)atoi(argv[3]),
                          .groups = (uint32_t)atoi(argv[4]),
                          .seed = 1,
                          .values = mem_floats(FLOATS)};
    int turns = atoi(argv[5]);
    if (!bench.values || !bench.groups || bench.group > MOST || bench.group > bench.shards ||
        turns < 1 || turns > 64)
        return 2;
    for (size_t i = 0; i < FLOATS; i++)
        bench.values[i] = (float)draw(&bench, 1 << 24) / 1e6f;
    open_store(&bench);
    fill_store(&bench);
    run_turns(&bench, turns);
    close_store(&bench);
    printf("%8u MiB read at a start in %.2f s\n", bench.shards, time_start(&bench));
    free(bench.values);
    return 0;
}
