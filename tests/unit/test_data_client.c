// A data server and its clients over Unix sockets: what is trained on, once, whoever dies.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "remote/data_client.h"
#include "role/dataserver/data_service.h"

// So many that leases of the whole set are of three batches (dealer_together).
enum { SAMPLES = 6147, SIDE = 4, CLASSES = 5, BATCH = 8, SERVERS = 3 };

// --- a data set, and servers of it -----------------------------------------------------

// Pixel p of sample i is (i + p) % 256, its label i % CLASSES.
struct fixture {
    char folder[64], base[72], images[96], labels[96], cursor[96];
    struct picture_cache *pictures[SERVERS];
    struct data_service *service[SERVERS];
    struct listener *listener[SERVERS];
    char address[SERVERS][128];
    uint64_t number; // of leases of the next server
};

static void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
}

static void make(struct fixture *f) {
    unsigned char images[16 + SAMPLES * SIDE * SIDE] = {
        0, 0, 8, 3, 0, 0, SAMPLES >> 8, SAMPLES & 255, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char labels[8 + SAMPLES] = {0, 0, 8, 1, 0, 0, SAMPLES >> 8, SAMPLES & 255};
    for (int i = 0; i < SAMPLES; i++) {
        labels[8 + i] = (unsigned char)(i % CLASSES);
        for (int p = 0; p < SIDE * SIDE; p++)
            images[16 + i * SIDE * SIDE + p] = (unsigned char)(i + p);
    }
    snprintf(f->folder, sizeof f->folder, "%s/client.XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(f->folder))
        abort();
    snprintf(f->base, sizeof f->base, "ipc://%s", f->folder);
    snprintf(f->images, sizeof f->images, "%s/images", f->folder);
    snprintf(f->labels, sizeof f->labels, "%s/labels", f->folder);
    snprintf(f->cursor, sizeof f->cursor, "%s/cursor", f->folder);
    write_file(f->images, images, sizeof images);
    write_file(f->labels, labels, sizeof labels);
    f->number = 1000;
}

static void unmake(struct fixture *f) {
    unlink(f->images);
    unlink(f->labels);
    unlink(f->cursor);
    rmdir(f->folder);
}

static const struct proto_id the_run = {{7, 7, 7}};

// Server `i` of `of`, which has its part of the samples.
static void start(struct tap *tap, struct fixture *f, int i, int of, double epoch_end,
                  const char *cursor) {
    struct error err = {0};
    const char *paths[] = {f->images};
    const struct picture_cache_options pictures = {
        .paths = paths,
        .path_count = 1,
        .source = {.labels = f->labels},
        .part = (uint32_t)i + 1,
        .parts = (uint32_t)of,
        .cache = 1 << 20,
    };
    CHECK_INT(tap, picture_cache_open(&f->pictures[i], &pictures, &err), STATUS_OK);
    const struct data_service_options options = {.name = "images", .pictures = f->pictures[i]};
    CHECK_INT(tap, data_service_open(&f->service[i], &options, &err), STATUS_OK);
    const struct data_service_run run = {
        .run = the_run,
        .name = "serve",
        .rules = {.epochs = 3, .epoch_end = epoch_end, .least = 5},
        .seed = 11,
        .number = f->number += 1000000,
        .batch = BATCH,
        .ahead = 1 << 16,
        .threads = 2,
        .cursor = cursor,
    };
    CHECK_INT(tap, data_service_begin(f->service[i], &run, &err), STATUS_OK);
    const struct link_options link = {.handlers = data_service_handlers(f->service[i])};
    snprintf(f->address[i], sizeof f->address[i], "%s/serve%d", f->base, i);
    CHECK_INT(tap, listener_open(&f->listener[i], f->address[i], &link, NULL, &err), STATUS_OK);
    if (err.status)
        printf("# %s\n", err.text);
}

static void stop(struct fixture *f, int i) {
    listener_close(f->listener[i]);
    data_service_close(f->service[i]);
    picture_cache_close(f->pictures[i]);
}

// --- clients ---------------------------------------------------------------------------

static void route(struct data_client *client, const struct fixture *f, int servers) {
    struct proto_server list[SERVERS];
    struct kept *kept = NULL;
    for (int i = 0; i < servers; i++)
        list[i] = (struct proto_server){
            .member = (uint32_t)i + 1,
            .training = proto_text(f->address[i]),
        };
    static _Atomic uint64_t epoch;
    const struct proto_routes routes = {.epoch = ++epoch,
                                        .data_servers = proto_list(list, (uint32_t)servers)};
    if (kept_make(&kept, PROTO_TYPE_ROUTES, &routes, NULL))
        abort();
    data_client_route(client, kept);
    kept_drop(kept);
}

static struct data_client *open_client(struct tap *tap, const struct fixture *f, uint64_t session,
                                       int servers, int takers, int ahead) {
    struct data_client *client = NULL;
    struct error err = {0};
    const struct data_client_options options = {
        .hello = {.role = PROTO_ROLE_WORKER,
                  .run = the_run,
                  .session = session,
                  .name = proto_text("worker")},
        .input = {.channels = 1, .height = SIDE, .width = SIDE, .classes = CLASSES, .seed = 11},
        .batch = BATCH,
        .ahead = ahead,
        .together = ahead > 1,

        .takers = takers,
    };
    CHECK_INT(tap, data_client_open(&client, &options, &err), STATUS_OK);
    route(client, f, servers);
    return client;
}

// How often each sample was trained on in each epoch.
struct seen {
    atomic_int times[3][SAMPLES];
    atomic_int wrong;
};

static void see(struct seen *seen, const struct batch *batch) {
    for (int i = 0; i < batch->n; i++) {
        uint32_t index = batch->index[i];
        const float *values = batch->input + i * SIDE * SIDE;
        bool right =
            index < SAMPLES && batch->epoch < 3 && batch->label[i] == (int32_t)(index % CLASSES);
        for (int p = 0; right && p < SIDE * SIDE; p++)
            right = values[p] == (float)((index + (uint32_t)p) % 256);
        if (right)
            atomic_fetch_add(&seen->times[batch->epoch][index], 1);
        else
            atomic_fetch_add(&seen->wrong, 1);
    }
}

// A worker of several threads whose pushes are applied at once.
struct worker {
    struct data_client *client;
    struct seen *seen;
    int most; // batches; then it stops without finishing what it took last
    atomic_int left;
};

static void *train(void *self) {
    struct worker *worker = self;
    struct supply *supply = data_client_supply(worker->client);
    while (atomic_fetch_sub(&worker->left, 1) > 0) {
        struct batch *batch = supply_take(supply, SUPPLY_PATIENT, NULL);
        if (!batch)
            return NULL;
        see(worker->seen, batch);
        supply_give_back(supply, batch);
        data_client_finish(worker->client, data_client_trained(worker->client));
    }
    return NULL;
}

static void train_all(struct data_client *client, struct seen *seen, int threads, int most) {
    struct worker worker = {.client = client, .seen = seen, .left = most};
    pthread_t thread[8];
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, train, &worker);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

static void check_once(struct tap *tap, struct seen *seen) {
    CHECK_INT(tap, seen->wrong, 0);
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 0; i < SAMPLES; i++)
            CHECK_INT(tap, seen->times[epoch][i], 1);
}

// --- tests -----------------------------------------------------------------------------

static void test_once(struct tap *tap, struct fixture *f) {
    TEST(tap, "every sample comes once an epoch, to the threads of one worker", {
        struct seen seen = {0};
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 3, 4);
        train_all(client, &seen, 3, 1000000);
        check_once(tap, &seen);
        CHECK_INT(tap, data_client_figures(client).total, SAMPLES);
        CHECK_INT(tap, data_client_figures(client).samples, 3 * SAMPLES);
        CHECK_INT(tap, data_client_figures(client).over, 0);
        data_client_close(client);
        stop(f, 0);
    });
    TEST(tap, "and of several data servers by parts, which are the whole", {
        struct seen seen = {0};
        for (int i = 0; i < SERVERS; i++)
            start(tap, f, i, SERVERS, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, SERVERS, 2, 4);
        train_all(client, &seen, 2, 1000000);
        check_once(tap, &seen);
        data_client_close(client);
        for (int i = 0; i < SERVERS; i++)
            stop(f, i);
    });
}

// The batches of one server as one taker gets them: those that a loader would have made.
static void test_numbers(struct tap *tap, struct fixture *f) {
    TEST(tap, "batches are numbered as those of a loader, and draw as its would", {
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 1);
        struct supply *supply = data_client_supply(client);
        uint64_t number = 0;
        for (struct batch *batch; (batch = supply_take(supply, SUPPLY_PATIENT, NULL));) {
            CHECK_INT(tap, batch->number, number++);
            for (int i = 0; i < batch->n; i++) {
                const char *sample = picture_cache_key(f->pictures[0], batch->index[i]);
                uint64_t hash = hash_bytes(sample, strlen(sample));
                CHECK(tap, batch->draw[i] == hash_mix(hash_mix(11, batch->epoch), hash));
            }
            supply_give_back(supply, batch);
            data_client_finish(client, data_client_trained(client));
        }
        CHECK_INT(tap, number, 3 * ((SAMPLES + BATCH - 1) / BATCH));
        data_client_close(client);
        stop(f, 0);
    });
}

static void test_patience(struct tap *tap, struct fixture *f) {
    TEST(tap, "an impatient taker gets an empty batch while leases are to be finished", {
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 2);
        struct supply *supply = data_client_supply(client);
        struct batch *batch;
        uint64_t samples = 0;
        while (samples < SAMPLES) { // on a busy machine it loses patience earlier, too
            batch = supply_take(supply, 0.2, NULL);
            samples += (uint64_t)batch->n;
            CHECK_INT(tap, batch->n > 0 ? batch->epoch : 0, 0);
            supply_give_back(supply, batch);
        }
        CHECK_INT(tap, samples, SAMPLES);
        batch = supply_take(supply, 0.2, NULL);
        CHECK_INT(tap, batch->n, 0);
        supply_give_back(supply, batch);
        data_client_finish(client, data_client_trained(client));
        CHECK(tap, data_client_flush(client, 10));
        batch = supply_take(supply, SUPPLY_PATIENT, NULL);
        CHECK_INT(tap, batch->epoch, 1);
        supply_give_back(supply, batch);
        data_client_close(client);
        stop(f, 0);
    });
    TEST(tap, "a flush in the middle of a lease waits for nothing that does not come", {
        start(tap, f, 0, 1, 1.0, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 2);
        struct supply *supply = data_client_supply(client);
        double longest = 0;
        for (int i = 0; i < 100; i++) {
            struct batch *batch = supply_take(supply, SUPPLY_PATIENT, NULL);
            CHECK(tap, batch != NULL);
            supply_give_back(supply, batch);
            data_client_finish(client, data_client_trained(client));
            double begun = clock_seconds();
            CHECK(tap, data_client_flush(client, 4));
            longest = fmax(longest, clock_seconds() - begun);
        }
        CHECK(tap, longest < 4);
        data_client_close(client);
        stop(f, 0);
    });
    TEST(tap, "a cancelled client lets everybody go", {
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 2);
        supply_cancel(data_client_supply(client));
        CHECK(tap, supply_take(data_client_supply(client), SUPPLY_PATIENT, NULL) == NULL);
        data_client_close(client);
        stop(f, 0);
    });
}

static void test_leaving(struct tap *tap, struct fixture *f) {
    TEST(tap, "what a worker that leaves had not finished is handed to another", {
        struct seen seen = {0};
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *first = open_client(tap, f, 1, 1, 1, 6);
        struct supply *supply = data_client_supply(first);
        for (int i = 0; i < 5; i++) // trained on, and never pushed
            supply_give_back(supply, supply_take(supply, SUPPLY_PATIENT, NULL));
        data_client_close(first);
        struct data_client *other = open_client(tap, f, 2, 1, 2, 4);
        train_all(other, &seen, 2, 1000000);
        check_once(tap, &seen);
        data_client_close(other);
        stop(f, 0);
    });
    TEST(tap, "and of one that the controller says has gone", {
        struct seen seen = {0};
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *first = open_client(tap, f, 1, 1, 1, 6);
        struct supply *supply = data_client_supply(first);
        supply_give_back(supply, supply_take(supply, SUPPLY_PATIENT, NULL));
        const struct proto_member members[] = {{.member = 9, .session = 2}};
        const struct proto_status status = {.members = proto_list(members, 1)};
        struct data_client *other = open_client(tap, f, 2, 1, 2, 4);
        // It is silent from now on: nothing is asked for, nothing finished.
        supply_cancel(supply);
        while (data_client_figures(other).ready == 0)
            usleep(1000);
        struct error err = {0};
        data_service_members(f->service[0], &status, &err);
        train_all(other, &seen, 2, 1000000);
        check_once(tap, &seen);
        data_client_close(other);
        data_client_close(first);
        stop(f, 0);
    });
}

// So many batches come, of the first epoch; they are trained on and not pushed.
static void take_some(struct tap *tap, struct data_client *client, struct seen *seen, uint64_t n) {
    struct supply *supply = data_client_supply(client);
    for (uint64_t i = 0; i < n; i++) {
        struct batch *batch = supply_take(supply, 30, NULL);
        if (!batch || batch->n == 0 || batch->epoch > 0) {
            FAIL(tap, "%llu of %llu batches came", (unsigned long long)i, (unsigned long long)n);
            supply_cancel(supply); // so that nobody waits for them
            return;
        }
        see(seen, batch);
        supply_give_back(supply, batch);
    }
}

// Nobody tends the server: no lease of it runs out.
static void test_losing(struct tap *tap, struct fixture *f) {
    const uint64_t batches = (SAMPLES + BATCH - 1) / BATCH, lost = 3;
    TEST(tap, "what a refused push held comes again at once, and nothing else does", {
        static struct seen before, after; // the second: what was lost
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 1);
        take_some(tap, client, &before, batches);
        data_client_finish(client, 10);
        data_client_lose(client, 10, 10 + lost);
        data_client_finish(client, batches);
        take_some(tap, client, &after, lost);
        data_client_finish(client, data_client_trained(client));
        train_all(client, &before, 1, 1000000);
        int again = 0;
        for (int i = 0; i < SAMPLES; i++) {
            CHECK_INT(tap, before.times[0][i], 1);
            again += after.times[0][i];
        }
        CHECK_INT(tap, again, lost * BATCH);
        CHECK_INT(tap, before.wrong + after.wrong, 0);
        CHECK_INT(tap, data_service_figures(f->service[0]).again, lost * BATCH);
        CHECK_INT(tap, data_service_figures(f->service[0]).over, 0);
        CHECK_INT(tap, data_client_figures(client).over, 0);
        data_client_close(client);
        stop(f, 0);
    });
    TEST(tap, "also when that push was the last, and a flush waits until it is told", {
        static struct seen before, after;
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 1);
        take_some(tap, client, &before, batches);
        data_client_finish(client, batches - lost);
        data_client_lose(client, batches - lost, data_client_trained(client));
        CHECK(tap, data_client_flush(client, 10));
        CHECK(tap, data_service_figures(f->service[0]).again > 0);
        take_some(tap, client, &after, lost);
        data_client_close(client);
        stop(f, 0);
    });
    TEST(tap, "a lease of several batches comes again as soon as none of them is open", {
        static struct seen before, after;
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 4);
        take_some(tap, client, &before, batches);
        data_client_lose(client, 0, 1);
        CHECK(tap, data_client_flush(client, 10));
        CHECK_INT(tap, data_service_figures(f->service[0]).again, 0);
        data_client_finish(client, batches);
        take_some(tap, client, &after, 3);
        CHECK_INT(tap, data_service_figures(f->service[0]).again, 3 * BATCH);
        data_client_close(client);
        stop(f, 0);
    });
}

// What was in flight in a replica that is no more, beside what was trained on.
static void test_untrained(struct tap *tap, struct fixture *f) {
    const uint64_t batches = (SAMPLES + BATCH - 1) / BATCH, lost = 3;
    TEST(tap, "batches that were not trained on come again, whatever was pushed meanwhile", {
        static struct seen before, after;
        struct batch *flying[3];
        int untrained = 0;
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 1, 1, (int)lost, 1);
        struct supply *supply = data_client_supply(client);
        take_some(tap, client, &before, batches - lost);
        for (uint64_t i = 0; i < lost; i++)
            flying[i] = supply_take(supply, SUPPLY_PATIENT, NULL);
        for (uint64_t i = 0; i < lost; i++) {
            untrained += flying[i]->n;
            supply_lose(supply, flying[i]);
        }
        CHECK_INT(tap, data_client_trained(client), batches - lost);
        data_client_finish(client, data_client_trained(client));
        CHECK(tap, data_client_flush(client, 10));
        CHECK_INT(tap, data_service_figures(f->service[0]).over, 0);
        take_some(tap, client, &after, lost);
        CHECK_INT(tap, data_service_figures(f->service[0]).again, untrained);
        data_client_finish(client, data_client_trained(client));
        train_all(client, &before, 1, 1000000);
        for (int i = 0; i < SAMPLES; i++)
            CHECK_INT(tap, before.times[0][i] + after.times[0][i], 1);
        CHECK_INT(tap, before.wrong + after.wrong, 0);
        data_client_close(client);
        stop(f, 0);
    });
}

// The server dies after some batches and comes back at the same place, with its journal.
static void test_restart(struct tap *tap, struct fixture *f) {
    TEST(tap, "a data server that comes back hands out nothing that is finished, loses nothing", {
        struct seen seen = {0};
        start(tap, f, 0, 1, 1, f->cursor);
        struct data_client *client = open_client(tap, f, 1, 1, 1, 1);
        for (int round = 0; round < 12; round++) {
            train_all(client, &seen, 1, 5);
            CHECK(tap, data_client_flush(client, 10));
            stop(f, 0);
            start(tap, f, 0, 1, 1, f->cursor);
        }
        train_all(client, &seen, 1, 1000000);
        CHECK_INT(tap, seen.wrong, 0);
        int twice = 0;
        for (int epoch = 0; epoch < 3; epoch++)
            for (int i = 0; i < SAMPLES; i++) {
                CHECK(tap, seen.times[epoch][i] >= 1);
                twice += seen.times[epoch][i] - 1;
            }
        // Beyond open leases: the one that was on its way at each end.
        CHECK(tap, twice <= 12 * BATCH);
        CHECK(tap, data_client_figures(client).redials >= 12);
        data_client_close(client);
        stop(f, 0);
    });
    TEST(tap, "a journal of another run is not gone on with", {
        struct error err = {0};
        struct journal_of of = {.run = "09", .digest = 1, .samples = 2, .first = 0, .count = 2};
        struct journal_place place;
        struct journal *journal;
        bool found = true;
        CHECK_INT(tap, journal_open(&journal, f->cursor, &of, &place, &found, &err), STATUS_OK);
        CHECK(tap, !found);
        journal_close(journal);
    });
}

// A worker that speaks for itself.
static struct link *call_server(struct tap *tap, struct fixture *f, uint64_t session) {
    const struct proto_hello hello = {
        .role = PROTO_ROLE_WORKER, .run = the_run, .session = session};
    const struct link_options options = {0};
    struct link *link = NULL;
    struct error err = {0};
    CHECK_INT(tap, link_dial(&link, f->address[0], &options, &hello, 2000, NULL, &err), STATUS_OK);
    return link;
}

// The first batch of the epoch is made by now, or soon.
static uint64_t lease_batch(struct tap *tap, struct link *link, uint64_t session) {
    const struct proto_lease lease = {.session = session, .samples = BATCH};
    char raw[BATCH * (sizeof(uint64_t) + sizeof(int32_t) + SIDE * SIDE)];
    struct link_request request = {
        .type = PROTO_TYPE_LEASE, .message = &lease, .into = raw, .room = sizeof raw};
    union proto_message answer = {0};
    struct error err = {0};
    for (int i = 0; i < 30000 && link_call(link, &request, &answer, &err); i++)
        usleep(1000);
    CHECK_INT(tap, answer.batch.samples, BATCH);
    CHECK_INT(tap, answer.batch.first % BATCH, 0);
    return answer.batch.lease;
}

static int give_up(struct link *link, uint64_t session, uint64_t finished, uint64_t returned,
                   struct error *err) {
    const struct proto_lease_id done = {finished}, undone = {returned};
    const struct proto_finish finish = {session, proto_list(&done, finished > 0),
                                        proto_list(&undone, returned > 0)};
    struct link_request request = {.type = PROTO_TYPE_FINISH, .message = &finish};
    union proto_message answer;
    *err = (struct error){0};
    return link_call(link, &request, &answer, err);
}

static int tell_held(struct link *link, uint64_t session, uint64_t lease, struct error *err) {
    const struct proto_lease_id held = {lease};
    const struct proto_hold hold = {session, proto_list(&held, 1)};
    struct link_request request = {.type = PROTO_TYPE_HOLD, .message = &hold};
    *err = (struct error){0};
    return link_call(link, &request, NULL, err);
}

static int ask_lease(struct link *link, uint64_t session, struct error *err) {
    const struct proto_lease lease = {.session = session, .samples = BATCH};
    char raw[BATCH * (sizeof(uint64_t) + sizeof(int32_t) + SIDE * SIDE)];
    struct link_request request = {
        .type = PROTO_TYPE_LEASE, .message = &lease, .into = raw, .room = sizeof raw};
    *err = (struct error){0};
    return link_call(link, &request, NULL, err);
}

// Nobody tends the server: no lease of it runs out.
static void test_cut_links(struct tap *tap, struct fixture *f) {
    TEST(tap, "who calls again says what it holds, and has nothing else; nor does the link before",
         {
             struct error err;
             start(tap, f, 0, 1, 1, NULL);
             struct link *before = call_server(tap, f, 5), *other = call_server(tap, f, 6);
             uint64_t lost = lease_batch(tap, before, 5), kept = lease_batch(tap, before, 5);
             uint64_t others = lease_batch(tap, other, 6);
             struct link *after = call_server(tap, f, 5);
             CHECK_INT(tap, tell_held(other, 5, kept, &err), STATUS_UNAVAILABLE);
             CHECK(tap, strstr(err.text, "wrong session"));
             CHECK_INT(tap, tell_held(after, 5, kept, &err), STATUS_OK);
             CHECK_INT(tap, data_service_figures(f->service[0]).again, BATCH);
             CHECK_INT(tap, give_up(after, 5, lost, 0, &err), STATUS_UNAVAILABLE);
             CHECK_INT(tap, give_up(after, 5, kept, 0, &err), STATUS_OK);
             CHECK_INT(tap, give_up(other, 6, others, 0, &err), STATUS_OK);
             uint64_t leased = data_service_figures(f->service[0]).dealer.leased;
             CHECK_INT(tap, ask_lease(before, 5, &err), STATUS_UNAVAILABLE);
             CHECK(tap, strstr(err.text, "called anew"));
             lease_batch(tap, other, 6);
             // What was leased to nobody came back, to be leased again.
             CHECK(tap, data_service_figures(f->service[0]).dealer.leased > leased);
             CHECK_INT(tap, tell_held(after, 5, kept, &err), STATUS_OK);
             CHECK_INT(tap, data_service_figures(f->service[0]).again, BATCH);
             link_close(before);
             link_close(other);
             link_close(after);
             stop(f, 0);
         });
    TEST(tap, "what is lost with a link comes again as soon as there is a link again", {
        static struct seen seen;
        start(tap, f, 0, 1, 1, NULL);
        struct data_client *client = open_client(tap, f, 5, 1, 1, 2);
        take_some(tap, client, &seen, 20);
        data_client_finish(client, 10);             // the others are held, and not reported
        struct link *lost = call_server(tap, f, 5); // over which two of its leases go, to nobody
        lease_batch(tap, lost, 5);
        lease_batch(tap, lost, 5);
        link_close(lost);
        struct error err = {0};
        const struct link_options link = {.handlers = data_service_handlers(f->service[0])};
        listener_close(f->listener[0]);
        CHECK_INT(tap, listener_open(&f->listener[0], f->address[0], &link, NULL, &err), STATUS_OK);
        for (int i = 0; i < 30000 && data_client_figures(client).redials == 0; i++)
            usleep(1000);
        CHECK_INT(tap, data_client_figures(client).redials, 1);
        CHECK(tap, data_service_figures(f->service[0]).again >= 2 * BATCH);
        data_client_finish(client, data_client_trained(client));
        train_all(client, &seen, 1, 1000000);
        check_once(tap, &seen);
        data_client_close(client);
        stop(f, 0);
    });
}

static void test_giving_up(struct tap *tap, struct fixture *f) {
    TEST(tap, "only its own open leases may a worker finish or give back", {
        struct error err;
        start(tap, f, 0, 1, 1, NULL);
        struct link *first = call_server(tap, f, 5), *other = call_server(tap, f, 6);
        uint64_t lease = lease_batch(tap, first, 5), second = lease_batch(tap, first, 5);
        CHECK_INT(tap, give_up(other, 6, 0, lease, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "lease over"));
        CHECK_INT(tap, give_up(other, 5, 0, lease, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "wrong session"));
        CHECK_INT(tap, give_up(first, 5, 0, second + 1, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "lease over"));
        CHECK_INT(tap, data_service_figures(f->service[0]).again, 0);
        // What is not its own is passed over where something else is.
        CHECK_INT(tap, give_up(first, 5, second + 1, lease, &err), STATUS_OK);
        CHECK_INT(tap, data_service_figures(f->service[0]).again, BATCH);
        CHECK_INT(tap, give_up(first, 5, lease, 0, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "lease over"));
        CHECK_INT(tap, give_up(first, 5, second, lease, &err), STATUS_OK);
        CHECK_INT(tap, give_up(first, 5, 0, second, &err), STATUS_UNAVAILABLE);
        CHECK_INT(tap, give_up(first, 5, 0, 0, &err), STATUS_OK);
        CHECK_INT(tap, data_service_figures(f->service[0]).again, BATCH);
        CHECK_INT(tap, data_service_figures(f->service[0]).dealer.finished, BATCH);
        link_close(first);
        link_close(other);
        stop(f, 0);
    });
}

static void test_refusals(struct tap *tap, struct fixture *f) {
    TEST(tap, "pictures of another shape end the supply, and name both shapes", {
        struct data_client *client = NULL;
        struct error err = {0};
        start(tap, f, 0, 1, 1, NULL);
        const struct data_client_options options = {
            .hello = {.role = PROTO_ROLE_WORKER, .run = the_run, .session = 1},
            .input = {.channels = 3, .height = SIDE, .width = SIDE},
            .batch = BATCH,
            .ahead = 1,
            .takers = 1,
        };
        CHECK_INT(tap, data_client_open(&client, &options, &err), STATUS_OK);
        route(client, f, 1);
        CHECK(tap, supply_take(data_client_supply(client), SUPPLY_PATIENT, NULL) == NULL);
        CHECK_INT(tap, supply_status(data_client_supply(client), &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "1x4x4") && strstr(err.text, "3x4x4"));
        data_client_close(client);
        stop(f, 0);
    });
    TEST(tap, "who has another run, role or session is refused", {
        struct error err = {0};
        struct link *link = NULL;
        const struct link_options options = {0};
        struct proto_hello hello = {.role = PROTO_ROLE_WORKER, .run = {{1}}, .session = 5};
        union proto_message answer;
        start(tap, f, 0, 1, 1, NULL);
        CHECK_INT(tap, link_dial(&link, f->address[0], &options, &hello, 2000, NULL, &err),
                  STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "wrong run"));
        hello.run = the_run;
        CHECK_INT(tap, link_dial(&link, f->address[0], &options, &hello, 2000, NULL, &err),
                  STATUS_OK);
        const struct proto_lease lease = {.session = 6, .samples = 8};
        struct link_request request = {.type = PROTO_TYPE_LEASE, .message = &lease};
        CHECK_INT(tap, link_call(link, &request, &answer, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "wrong session"));
        const struct proto_set_cursor cursor = {.seed = 1};
        request = (struct link_request){.type = PROTO_TYPE_SET_CURSOR, .message = &cursor};
        CHECK_INT(tap, link_call(link, &request, &answer, &err), STATUS_UNAVAILABLE);
        CHECK(tap, strstr(err.text, "wrong role"));
        link_close(link);
        stop(f, 0);
    });
}

int main(void) {
    struct tap tap = {0};
    struct fixture fixture = {0};
    make(&fixture);
    test_once(&tap, &fixture);
    test_numbers(&tap, &fixture);
    test_patience(&tap, &fixture);
    test_leaving(&tap, &fixture);
    test_losing(&tap, &fixture);
    test_untrained(&tap, &fixture);
    test_restart(&tap, &fixture);
    test_cut_links(&tap, &fixture);
    test_giving_up(&tap, &fixture);
    test_refusals(&tap, &fixture);
    unmake(&fixture);
    return tap_done(&tap);
}
