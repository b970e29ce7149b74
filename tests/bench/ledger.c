// A worker that adds 1 to some weights of every shard, again and again, and keeps a ledger: what
// parameter servers acknowledged must be in the weights once, whoever died meanwhile. See
// failover.sh.
//
//   ledger push CONTROLLER NAME   until SIGTERM; then one line: rounds pushes-a-weight
//   ledger tell CONTROLLER NAME   the same, with a line for each round that was acknowledged
//   ledger load CONTROLLER NAME   the same, and it adds 1 to all weights
//   ledger zero CONTROLLER NAME   makes these weights 0, once
//   ledger sum CONTROLLER NAME    prints the least and the greatest of these weights
//
// While it pushes it writes a line for each round that took longer than a fifth of a second: when
// it began (seconds since 1970), and how long the slowest shard did not answer.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "member/member.h"
#include "member/run_text.h"
#include "remote/servers_client.h"

enum { PLACES = 3 }; // weights of each shard

static const double long_round = 0.2; // seconds

static volatile sig_atomic_t stopping;

static void stop(int signal) {
    (void)signal;
    stopping = 1;
}

struct ledger {
    struct member *member;
    struct model *model;
    struct servers *servers;
    struct kept *routes;
    struct exchange **pushes; // of each shard
    size_t shards;
    bool whole; // it pushes to all weights of a shard
    float *values;
    struct shard_stamp *stamps;
};

static void check(int status, const struct error *err) {
    if (!status)
        return;
    fprintf(stderr, "ledger: %s\n", err->text);
    exit(status);
}

static void say(void *self, const char *text) {
    (void)self;
    fprintf(stderr, "ledger: %s\n", text);
}

static void look_up_routes(void *self, uint64_t epoch) {
    const struct ledger *ledger = self;
    (void)epoch;
    member_look(ledger->member);
}

// --- joining ------------------------------------------------------------------------------

static void check_member(struct ledger *ledger) {
    struct error err = {0};
    check(member_status(ledger->member, &err), &err);
}

static void open_model(struct ledger *ledger) {
    struct error err = {0};
    struct kept *run;
    for (uint32_t seen = member_news(ledger->member); !(run = member_run(ledger->member));
         seen = member_news(ledger->member)) {
        check_member(ledger);
        member_wait(ledger->member, seen, 0.1);
    }
    check(run_model(&ledger->model, "model", &run->message.run, &err), &err);
    kept_drop(run);
}

static void follow_routes(struct ledger *ledger) {
    check_member(ledger);
    if (kept_renew(&ledger->routes, member_routes(ledger->member)))
        servers_route(ledger->servers, ledger->routes);
}

static void open_servers(struct ledger *ledger, const char *name) {
    struct member_identity identity;
    struct error err = {0};
    member_identity(ledger->member, &identity);
    const struct servers_options options = {
        .hello = {.role = PROTO_ROLE_WORKER,
                  .run = identity.run,
                  .model = identity.model,
                  .session = identity.session,
                  .name = proto_text(name)},
        .parameters = ledger->model->parameter_count,
        .insecure = true,
        .self = ledger,
        .stale = look_up_routes,
        .say = say,
    };
    check(servers_open(&ledger->servers, &options, &err), &err);
}

static size_t shard_size(const struct ledger *ledger, size_t shard) {
    size_t rest = ledger->model->parameter_count - shard * PROTO_SHARD_FLOATS;
    return rest < PROTO_SHARD_FLOATS ? rest : PROTO_SHARD_FLOATS;
}

// First, middle and last weight of the shard.
static void place_weights(const struct ledger *ledger, size_t shard, struct span spans[PLACES]) {
    size_t begin = shard * PROTO_SHARD_FLOATS, n = shard_size(ledger, shard);
    for (size_t i = 0; i < PLACES; i++)
        spans[i] = (struct span){begin + i * (n - 1) / (PLACES - 1), 1};
}

static void open_pushes(struct ledger *ledger) {
    struct error err = {0};
    struct span spans[PLACES];
    ledger->shards = servers_shards(ledger->servers);
    ledger->pushes = mem_zeroed(ledger->shards, sizeof(struct exchange *));
    ledger->values = mem_floats(ledger->model->parameter_count);
    ledger->stamps = mem_zeroed(ledger->shards, sizeof *ledger->stamps);
    if (!ledger->pushes || !ledger->values || !ledger->stamps)
        abort();
    for (size_t i = 0; i < ledger->shards; i++) {
        size_t count = ledger->whole ? 1 : PLACES;
        place_weights(ledger, i, spans);
        if (ledger->whole)
            spans[0].n = shard_size(ledger, i);
        check(exchange_open(&ledger->pushes[i], ledger->servers, EXCHANGE_PUSH, spans, count, &err),
              &err);
    }
}

static void join(struct ledger *ledger, const char *controller, const char *name) {
    struct error err = {0};
    const struct member_options options = {
        .role = PROTO_ROLE_WORKER,
        .controller = controller,
        .name = name,
        .threads = 1,
        .insecure = true,
        .hooks = {.say = say},
    };
    check(member_open(&ledger->member, &options, &err), &err);
    open_model(ledger);
    open_servers(ledger, name);
    open_pushes(ledger);
    while (!ledger->routes) {
        uint32_t seen = member_news(ledger->member);
        follow_routes(ledger);
        member_wait(ledger->member, seen, 0.1);
    }
}

static void leave(struct ledger *ledger) {
    for (size_t i = 0; i < ledger->shards; i++)
        exchange_close(ledger->pushes[i]);
    servers_close(ledger->servers);
    member_close(ledger->member, "its ledger is closed");
    kept_drop(ledger->routes);
    model_free(ledger->model);
    free(ledger->pushes);
    free(ledger->values);
    free(ledger->stamps);
}

// --- what is asked ------------------------------------------------------------------------

static bool all_over(const struct ledger *ledger) {
    for (size_t i = 0; i < ledger->shards; i++)
        if (!exchange_over(ledger->pushes[i]))
            return false;
    return true;
}

// One push to every shard; waits for all.
static void push_round(struct ledger *ledger) {
    struct error err = {0};
    const struct push push = {.kind = PROTO_UPDATE_DELTA,
                              .samples = 1,
                              .values = ledger->values,
                              .stamps = ledger->stamps};
    for (size_t i = 0; i < ledger->shards; i++)
        exchange_push(ledger->pushes[i], &push);
    while (!all_over(ledger)) {
        uint32_t seen = member_news(ledger->member);
        follow_routes(ledger);
        if (!all_over(ledger))
            member_wait(ledger->member, seen, 0.002);
    }
    for (size_t i = 0; i < ledger->shards; i++)
        check(exchange_wait(ledger->pushes[i], NULL, &err), &err);
}

static void pull_all(struct ledger *ledger, float *into) {
    struct error err = {0};
    struct exchange *pull;
    const struct span all = servers_all(ledger->servers);
    const struct pull what = {
        .quantity = PROTO_QUANTITY_WEIGHT, .into = into, .stamps = ledger->stamps};
    check(exchange_open(&pull, ledger->servers, EXCHANGE_PULL, &all, 1, &err), &err);
    exchange_pull(pull, &what);
    while (!exchange_over(pull)) {
        follow_routes(ledger);
        member_wait(ledger->member, member_news(ledger->member), 0.002);
    }
    check(exchange_wait(pull, NULL, &err), &err);
    exchange_close(pull);
}

static void push(struct ledger *ledger, bool tells) {
    uint64_t rounds = 0;
    for (size_t i = 0; i < ledger->model->parameter_count; i++)
        ledger->values[i] = 1;
    while (!stopping) {
        double wall = clock_wall(), begun = clock_seconds();
        push_round(ledger);
        double took = clock_seconds() - begun;
        rounds++;
        if (took > long_round)
            printf("round %.3f %.3f\n", wall, took);
        if (tells)
            printf("acknowledged %llu\n", (unsigned long long)rounds);
        fflush(stdout);
    }
    printf("pushed %llu\n", (unsigned long long)rounds);
}

static void zero(struct ledger *ledger) {
    pull_all(ledger, ledger->values);
    for (size_t i = 0; i < ledger->model->parameter_count; i++)
        ledger->values[i] = -ledger->values[i];
    push_round(ledger);
}

static void sum(struct ledger *ledger) {
    struct span spans[PLACES];
    float least = INFINITY, greatest = -INFINITY;
    memset(ledger->stamps, 0, ledger->shards * sizeof *ledger->stamps);
    pull_all(ledger, ledger->values);
    for (size_t i = 0; i < ledger->shards; i++) {
        place_weights(ledger, i, spans);
        for (int k = 0; k < PLACES; k++) {
            least = fminf(least, ledger->values[spans[k].first]);
            greatest = fmaxf(greatest, ledger->values[spans[k].first]);
        }
    }
    printf("sum %.0f %.0f\n", (double)least, (double)greatest);
}

int main(int argc, char **argv) {
    struct ledger ledger = {0};
    if (argc != 4 || signal(SIGTERM, stop) == SIG_ERR) {
        fprintf(stderr, "usage: ledger push|tell|load|zero|sum CONTROLLER NAME\n");
        return 2;
    }
    ledger.whole = !strcmp(argv[1], "load");
    join(&ledger, argv[2], argv[3]);
    if (!strcmp(argv[1], "push"))
        push(&ledger, false);
    else if (!strcmp(argv[1], "tell") || ledger.whole)
        push(&ledger, true);
    else if (!strcmp(argv[1], "zero"))
        zero(&ledger);
    else
        sum(&ledger);
    leave(&ledger);
    return 0;
}
