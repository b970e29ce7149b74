// What a parameter server's core does with its machine: nodes, threads, address space, memory.
// The machine is of the test's making: it has as many nodes as the test says, and whatever it has
// runs out when the test wants it.
#ifdef __SANITIZE_THREAD__
#include <stdio.h>

// ThreadSanitizer maps memory before a test could stand in for mmap.
int main(void) {
    puts("1..0");
    return 0;
}
#else
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../helper/heap.h"
#include "../helper/ps_stand.h"
#include "../helper/tap.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/node.h"

enum { PLACES = 16, PAGE = 2 << 20, SHARD = PROTO_SHARD_FLOATS * sizeof(float) };

struct place {
    char *at;
    size_t size;
    int node;
};

static struct machine {
    int nodes;
    long mapped;      // bytes
    int maps_left;    // below 0: any number
    int threads_left; //
    int threads;      // that were started
    struct place on[PLACES], huge[PLACES];
    int on_count, huge_count;
} machine = {.nodes = 1, .maps_left = -1, .threads_left = -1};

static _Thread_local int bound = -1; // to this node

static void machine_is(int nodes) {
    machine = (struct machine){.nodes = nodes, .maps_left = -1, .threads_left = -1};
}

// --- the system's functions, as the core sees them ----------------------------------------

int node_count(void) {
    return machine.nodes;
}

void node_bind(int node) {
    bound = node;
}

void node_place(void *memory, size_t size, int node) {
    if (machine.on_count < PLACES)
        machine.on[machine.on_count++] = (struct place){memory, size, node};
}

static bool is_left(int *left) {
    bool any = *left != 0;
    *left -= *left > 0;
    return any;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    void *(*real)(void *, size_t, int, int, int, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    void *memory =
        is_left(&machine.maps_left) ? real(at, size, protection, flags, fd, offset) : MAP_FAILED;
    machine.mapped += memory == MAP_FAILED ? 0 : (long)size;
    return memory;
}

int munmap(void *at, size_t size) {
    int (*real)(void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "munmap");
    int result = real(at, size);
    machine.mapped -= result ? 0 : (long)size;
    return result;
}

int madvise(void *at, size_t size, int advice) {
    if (advice == MADV_HUGEPAGE && machine.huge_count < PLACES)
        machine.huge[machine.huge_count++] = (struct place){at, size, 0};
    return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (!is_left(&machine.threads_left))
        return EAGAIN;
    machine.threads++;
    return real(thread, attributes, start, argument);
}

// --- nodes --------------------------------------------------------------------------------

// An answer, and the node of the thread that gave it.
struct bound_reply {
    struct reply reply;
    int node;
};

static void take_bound(void *context, const struct ps_answer *answer) {
    struct bound_reply *reply = context;
    reply->node = bound;
    reply_take(&reply->reply, answer);
}

// The node of the thread that updates this shard.
static int updated_on(struct tap *tap, struct stand *stand, uint32_t shard, uint64_t sequence) {
    const struct proto_piece piece = rig_piece(shard, 0, 1, 1);
    const struct proto_push push = {1, sequence, PROTO_UPDATE_DELTA, 1, 0, {&piece, 1}};
    struct buffer *payload = rig_payload(&stand->rig, &piece, 1, stand->values);
    struct bound_reply reply = {.node = -2};
    ps_push(stand->rig.ps, &push, payload, take_bound, &reply);
    buffer_drop(payload);
    reply_wait(&reply.reply);
    CHECK_INT(tap, reply.reply.code, PROTO_REFUSAL_NONE);
    return reply.node;
}

static void test_nodes(struct tap *tap) {
    struct stand stand;
    TEST(tap, "shards lie on the nodes in turn, and are updated by threads of theirs (Adam 3.3.1)",
         {
             machine_is(2);
             if (stand_open_with(&stand, tap, async, 1, 4)) {
                 CHECK_INT(tap, machine.on_count, 2 * RIG_SHARDS); // weights, and the rule's state
                 for (int i = 0; i < machine.on_count; i++) {
                     const struct place *array = &machine.on[i / RIG_SHARDS * RIG_SHARDS];
                     CHECK_INT(tap, machine.on[i].node, i % RIG_SHARDS % 2);
                     CHECK_INT(tap, machine.on[i].size, SHARD);
                     CHECK_INT(tap, machine.on[i].at - array->at, i % RIG_SHARDS * SHARD);
                 }
                 for (uint64_t i = 0; i < 60; i++)
                     CHECK_INT(tap, updated_on(tap, &stand, i % RIG_SHARDS, i + 1),
                               i % RIG_SHARDS % 2);
                 CHECK_INT(tap, machine.huge_count, 0); // of whose shards each is on another node
             }
             stand_close(&stand);
         });
    TEST(tap, "one node, or one thread, binds nothing", {
        for (int nodes = 1; nodes <= 2; nodes++) {
            machine_is(nodes);
            if (stand_open_with(&stand, tap, async, 1, 3 - nodes)) {
                CHECK_INT(tap, machine.on_count, 0);
                for (uint32_t shard = 0; shard < RIG_SHARDS; shard++)
                    CHECK_INT(tap, updated_on(tap, &stand, shard, 1), -1);
            }
            stand_close(&stand);
        }
        machine_is(1);
    });
}

// --- threads ------------------------------------------------------------------------------

// The letter by which the system tells what a thread does.
static char state_of(const char *thread) {
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d %*s %c", &state) != 1)
        state = '?';
    if (file)
        fclose(file);
    return state;
}

static bool all_others_sleep(void) {
    DIR *folder = opendir("/proc/self/task");
    bool sleep = folder;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (isdigit(*entry->d_name) && atol(entry->d_name) != syscall(SYS_gettid))
            sleep = sleep && state_of(entry->d_name) == 'S';
    if (folder)
        closedir(folder);
    return sleep;
}

static void test_threads(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    TEST(tap, "there are as many threads as were asked for, or as there are processors", {
        const int asked[] = {1, 3, 0};
        for (int i = 0; i < 3; i++) {
            machine_is(1);
            if (stand_open_with(&stand, tap, async, 1, asked[i]))
                CHECK_INT(tap, machine.threads, asked[i] ? asked[i] : cpu_count());
            stand_close(&stand);
        }
    });
    TEST(tap, "threads with nothing to do sleep", {
        if (stand_open(&stand, tap, async, 1)) {
            push_one(&stand, 1, 1, 1, 1, &reply);
            for (int looks = 0; looks < 200;) // in a row
                looks = all_others_sleep() ? looks + 1 : 0;
            CHECK_INT(tap, push_one(&stand, 1, 2, 1, 1, &reply), PROTO_REFUSAL_NONE);
        }
        stand_close(&stand);
    });
}

// --- what runs out ------------------------------------------------------------------------

static struct ps_options options_of(const struct model *model, int threads) {
    return (struct ps_options){.model = model,
                               .kernels = kernels_best(),
                               .optimizer = rules[1],
                               .protocol = async,
                               .threads = threads};
}

static struct model *model_of(struct tap *tap, const char *text) {
    struct model *model = NULL;
    struct error err = {0};
    if (model_parse(&model, "test.net", text, NULL, 0, &err))
        FAIL(tap, "%s", err.text);
    return model;
}

static void test_scarcity(struct tap *tap) {
    struct model *model = model_of(tap, rig_text);
    const struct ps_options options = options_of(model, 3);
    struct ps *ps;
    TEST(tap, "without address space it does not open, and keeps none", {
        int status = STATUS_IO;
        for (int n = 0; status && n < 9; n++) {
            struct error err = {0};
            machine_is(1);
            machine.maps_left = n;
            ps = (struct ps *)&machine;
            status = ps_open(&ps, &options, &err);
            CHECK_INT(tap, status, n < 2 ? STATUS_IO : STATUS_OK); // weights, and the rule's state
            if (status) {
                CHECK(tap, !ps && strstr(err.text, "out of memory"));
                CHECK_INT(tap, machine.mapped, 0);
            }
        }
        CHECK_INT(tap, machine.mapped, 2 * RIG_SHARDS * SHARD);
        ps_close(ps);
        CHECK_INT(tap, machine.mapped, 0);
    });
    TEST(tap, "without threads neither", {
        for (int n = 0; n < 3; n++) {
            machine_is(1);
            machine.threads_left = n;
            CHECK_INT(tap, ps_open(&ps, &options, NULL), STATUS_IO);
            CHECK(tap, !ps);
            CHECK_INT(tap, machine.threads, n);
            CHECK_INT(tap, machine.mapped, 0);
        }
        machine_is(1);
    });
    model_free(model);
}

// All that can be in a server, and its end.
static void fill_and_close(struct tap *tap) {
    struct stand stand;
    struct reply push, wait;
    const uint64_t more[] = {1, 2, 3};
    if (stand_open_with(&stand, tap, (struct protocol){.kind = PROTOCOL_HARDSYNC}, 2, 1)) {
        struct proto_piece piece = rig_piece(0, 0, 1, 0);
        push_all(&stand.rig, (struct shove){1, 1, 0, 8, 0.1}, 1, stand.values, &push);
        rig_pull_begin(&stand.rig, 1, PROTO_QUANTITY_WEIGHT, 5, &piece, 1, &wait);
        for (int i = 0; i < 3; i++)
            CHECK_INT(tap,
                      ps_settings(stand.rig.ps, &rules[1],
                                  &(struct protocol){.kind = PROTOCOL_HARDSYNC}, true, NULL),
                      STATUS_OK);
        CHECK_INT(tap, ps_members(stand.rig.ps, more, NULL, 3, NULL), STATUS_OK);
        rig_wait_queued(&stand.rig, RIG_SHARDS);
    }
    stand_close(&stand);
}

static void test_memory(struct tap *tap) {
    struct stand stand;
    struct reply reply;
    TEST(tap, "what it had is free when it is closed", {
        machine_is(1);
        fill_and_close(tap); // the system keeps something of its own for threads
        long before = heap_live();
        fill_and_close(tap);
        CHECK_INT(tap, heap_live(), before);
        CHECK_INT(tap, machine.mapped, 0);
    });
    TEST(tap, "without memory for new sessions or settings all stays as it was", {
        const uint64_t five[] = {1, 2, 3, 4, 5};
        const uint64_t others[] = {6, 7, 8};
        const uint64_t six[] = {1, 2, 3, 4, 5, 1};
        const struct protocol hard = {.kind = PROTOCOL_HARDSYNC};
        if (HEAP_FAILS && stand_open(&stand, tap, async, 1)) {
            CHECK_INT(tap, ps_members(stand.rig.ps, five, NULL, 5, NULL), STATUS_OK);
            long before = heap_live();
            for (int n = 0; n < 3; n++) {
                heap_fail_after(n);
                CHECK_INT(tap, ps_members(stand.rig.ps, others, NULL, 3, NULL), STATUS_IO);
                heap_fail_after(-1);
                CHECK_INT(tap, heap_live(), before);
            }
            heap_fail_after(0);
            CHECK_INT(tap, ps_members(stand.rig.ps, six, NULL, 6, NULL), STATUS_IO);
            CHECK_INT(tap, ps_settings(stand.rig.ps, &rules[1], &hard, true, NULL), STATUS_IO);
            heap_fail_after(-1);
            CHECK_INT(tap, push_one(&stand, 1, 1, 1, 1, &reply), PROTO_REFUSAL_NONE);
            CHECK_INT(tap, push_one(&stand, 6, 1, 1, 1, &reply), PROTO_REFUSAL_BUSY);
        }
        if (HEAP_FAILS)
            stand_close(&stand);
    });
    TEST(tap, "a request that there is no memory for is to be made again", {
        struct rig rig;
        struct ps_figures figures;
        const struct proto_piece piece = rig_piece(0, 0, 1, 1);
        if (HEAP_FAILS && rig_open_empty(&rig, tap, rules[0], async, 1, 1)) {
            heap_fail_after(0);
            rig_pull_begin(&rig, 1, PROTO_QUANTITY_WEIGHT, 0, &piece, 1, &reply);
            heap_fail_after(-1);
            CHECK(tap, atomic_load(&reply.done));
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_BUSY);
            CHECK_INT(tap, reply.detail, 100);
            ps_figures(rig.ps, &figures);
            CHECK_INT(tap, figures.refused[PROTO_REFUSAL_BUSY], 1);
        }
        if (HEAP_FAILS)
            rig_close(&rig);
    });
    TEST(tap, "so is a push of which the shard could not remember that it was applied", {
        const struct proto_piece piece = rig_piece(1, 5, 1000, 1);
        const struct shove one = {1, 1, PROTO_UPDATE_DELTA, 1, 0};
        const struct shove two = {1, 2, PROTO_UPDATE_DELTA, 1, 0};
        struct hold hold;
        struct reply first;
        struct reply second;
        if (HEAP_FAILS && stand_open_with(&stand, tap, async, 1, 1)) {
            hold_begin(&hold, &stand.rig);
            rig_push_begin(&stand.rig, one, &piece, 1, stand.values, &first);
            rig_push_begin(&stand.rig, two, &piece, 1, stand.values, &second);
            hold_end(&hold);
            reply_wait(&first);
            reply_wait(&second); // so the first one's memory can be had again
            heap_fail_after(0);
            push_one(&stand, 1, 1, 0, 1, &reply);
            heap_fail_after(-1);
            CHECK_INT(tap, reply.code, PROTO_REFUSAL_BUSY);
            push_one(&stand, 1, 1, 0, 1, &reply);
            CHECK(tap, reply.code == PROTO_REFUSAL_NONE && !reply.repeated);
        }
        if (HEAP_FAILS)
            stand_close(&stand);
    });
}

// --- huge pages ---------------------------------------------------------------------------

// All buckets are this server's, but that of one shard (or of none).
static void route_but(struct ps *ps, uint32_t shard) {
    enum { BUCKETS = 64 };
    struct proto_place places[BUCKETS];
    for (uint32_t i = 0; i < BUCKETS; i++) {
        bool other = shard != UINT32_MAX && i == proto_bucket_of(shard, BUCKETS);
        places[i] = rig_bucket(i, 1, other ? RIG_MEMBER + 1 : RIG_MEMBER);
    }
    ps_route(ps, places, BUCKETS, RIG_MEMBER);
}

static void test_huge_pages(struct tap *tap) {
    TEST(tap, "huge pages are asked for where all shards of one are here: others cost nothing", {
        static const char text[] = "input 1000x1x1\ndense units=1000\nsoftmax units=2\n";
        struct model *model = model_of(tap, text); // of four shards, two a page
        const struct ps_options options = options_of(model, 1);
        struct ps *ps;
        machine_is(1);
        CHECK_INT(tap, ps_open(&ps, &options, NULL), STATUS_OK);
        route_but(ps, UINT32_MAX);
        CHECK_INT(tap, machine.huge_count, 4); // of weights and of the rule's state
        const struct place *huge = machine.huge;
        for (int i = 0; i < machine.huge_count; i++) {
            CHECK_INT(tap, (uintptr_t)huge[i].at % PAGE, 0);
            CHECK_INT(tap, huge[i].size, PAGE);
        }
        CHECK_INT(tap, huge[2].at - huge[0].at, PAGE);
        CHECK_INT(tap, huge[3].at - huge[1].at, PAGE);
        for (uint32_t shard = 0; shard < 4; shard++) {
            machine.huge_count = 4;
            route_but(ps, shard);
            CHECK_INT(tap, machine.huge_count, 4 + 2);
            CHECK(tap, huge[4].at == huge[shard < 2 ? 2 : 0].at);
        }
        ps_close(ps);
        model_free(model);
    });
}

int main(void) {
    struct tap tap = {0};
    test_nodes(&tap);
    test_threads(&tap);
    test_scarcity(&tap);
    test_memory(&tap);
    test_huge_pages(&tap);
    return tap_done(&tap);
}
#endif
