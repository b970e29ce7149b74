// A member of a run: joining, heartbeats, what it fetches and hands out, orders, reports,
// and controllers that are late, vanish, come back or want nothing of it.
#include <stdlib.h>
#include <unistd.h>

#include "../helper/controller.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "member/member.h"
#include "net/ready.h"

static void fill_figures(void *self, struct proto_heartbeat *figures) {
    (void)self;
    figures->state = PROTO_STATE_WAITING;
    figures->clock = 17;
    figures->waits_for = proto_text("data server 1");
}

// Counts lines that say what `self` points to.
struct told {
    const char *what;
    _Atomic int times;
};

static void count_told(void *self, const char *text) {
    struct told *told = self;
    if (strstr(text, told->what))
        atomic_fetch_add(&told->times, 1);
}

static struct member_options options_for(const char *controller) {
    return (struct member_options){
        .role = PROTO_ROLE_PARAMETER_SERVER,
        .controller = controller,
        .name = "ps-a",
        .threads = 2,
        .memory = 1 << 30,
        .training = "tcp://127.0.0.1:7001",
        .members = true,
        .hooks = {.figures = fill_figures},
    };
}

static struct member *start(struct tap *tap, const struct member_options *options) {
    struct member *member;
    struct error err = {0};
    if (member_open(&member, options, &err))
        FAIL(tap, "%s", err.text);
    return member;
}

static void await_end(struct member *member, struct error *err) {
    for (uint32_t seen = member_news(member); !member_status(member, err);
         seen = member_news(member))
        member_wait(member, seen, -1);
}

static void await_look(struct member *member) {
    uint64_t look = member_look(member);
    for (uint32_t seen = member_news(member); member_looked(member) < look;
         seen = member_news(member))
        member_wait(member, seen, -1);
}

static bool text_is(struct proto_text text, const char *wanted) {
    return text.length == strlen(wanted) && memcmp(text.at, wanted, text.length) == 0;
}

static void test_joining(struct tap *tap, struct controller *c, struct member *member) {
    struct member_identity identity;
    await_look(member);
    TEST(tap, "it joins and says who it is", {
        CHECK(tap, member_identity(member, &identity));
        CHECK_INT(tap, identity.member, 3);
        CHECK_INT(tap, identity.session, 1);
        CHECK_INT(tap, identity.run.bytes[0], 1);
        CHECK(tap, identity.model == hash_bytes(c->model, strlen(c->model)));
        const struct proto_join *join = &c->joined->message.join;
        CHECK(tap, text_is(join->name, "ps-a"));
        CHECK(tap, text_is(join->training, "tcp://127.0.0.1:7001"));
        CHECK(tap, text_is(join->replication, ""));
        CHECK_INT(tap, join->role, PROTO_ROLE_PARAMETER_SERVER);
        CHECK_INT(tap, join->threads, 2);
        CHECK_INT(tap, join->memory, 1 << 30);
    });
    TEST(tap, "heartbeats carry the role's figures, again and again", {
        controller_await(c, &c->heartbeats, atomic_load(&c->heartbeats) + 2);
        pthread_mutex_lock(&c->lock);
        const struct proto_heartbeat *figures = &c->figures->message.heartbeat;
        CHECK_INT(tap, figures->session, 1);
        CHECK_INT(tap, figures->clock, 17);
        CHECK_INT(tap, figures->state, PROTO_STATE_WAITING);
        CHECK(tap, isnan(figures->loss));
        CHECK(tap, text_is(figures->waits_for, "data server 1"));
        pthread_mutex_unlock(&c->lock);
    });
}

static void test_snapshots(struct tap *tap, struct controller *c, struct member *member) {
    struct kept *before = member_run(member);
    TEST(tap, "the run is there; routes are not while there are none", {
        CHECK(tap, before && text_is(before->message.run.model, "input {}"));
        CHECK(tap, before && text_is(before->message.run.settings, "rate=0.1\n"));
        CHECK(tap, !member_routes(member));
    });
    pthread_mutex_lock(&c->lock);
    c->settings = "rate=0.2\n";
    c->settings_version = 2;
    c->servers[0] = (struct proto_server){.member = 3, .training = proto_text("tcp://a:1")};
    c->server_count = 1;
    c->buckets[0] = (struct proto_bucket){1, 3, PROTO_NOBODY, PROTO_NOBODY};
    c->bucket_count = 1;
    c->routes_epoch = 1;
    c->members[0] = (struct proto_member){.member = 4, .session = 44};
    c->member_count = 1;
    c->members_epoch = 9;
    pthread_mutex_unlock(&c->lock);
    await_look(member);
    struct kept *run = member_run(member), *routes = member_routes(member),
                *members = member_members(member);
    TEST(tap, "what changed is fetched, and what is held stays as it was", {
        CHECK(tap, run && text_is(run->message.run.settings, "rate=0.2\n"));
        CHECK(tap, before && text_is(before->message.run.settings, "rate=0.1\n"));
        const struct proto_server *server = routes ? routes->message.routes.servers.at : NULL;
        CHECK(tap, server && text_is(server->training, "tcp://a:1"));
        const struct proto_member *other = members ? members->message.status.members.at : NULL;
        CHECK(tap, other && other->session == 44);
    });
    kept_drop(before);
    kept_drop(run);
    kept_drop(routes);
    kept_drop(members);
}

static void test_orders(struct tap *tap, struct controller *c, struct member *member) {
    struct member_order order;
    TEST(tap, "each order is handed out once", {
        CHECK(tap, !member_take_order(member, &order));
        pthread_mutex_lock(&c->lock);
        c->order = PROTO_ORDER_SAVE;
        c->order_number = 5;
        pthread_mutex_unlock(&c->lock);
        await_look(member);
        CHECK(tap, member_take_order(member, &order));
        CHECK_INT(tap, order.order, PROTO_ORDER_SAVE);
        CHECK_INT(tap, order.number, 5);
        await_look(member);
        CHECK(tap, !member_take_order(member, &order));
    });
}

static void test_reports(struct tap *tap, struct controller *c, struct member *member) {
    struct error err = {0};
    TEST(tap, "reports arrive in their order, and too long ones are refused", {
        for (int i = 0; i < 20; i++) {
            char line[32];
            snprintf(line, sizeof line, "{\"line\":%d}", i);
            CHECK_INT(tap, member_report(member, line, &err), STATUS_OK);
        }
        controller_await(c, &c->reports, 20);
        pthread_mutex_lock(&c->lock);
        CHECK_TEXT(tap, c->line, "{\"line\":19}");
        pthread_mutex_unlock(&c->lock);
        char *huge = calloc(1, 70000);
        memset(huge, 'x', 69999);
        CHECK_INT(tap, member_report(member, huge, &err), STATUS_DATA);
        free(huge);
    });
}

// The controller is found by a file, is not there at first, and vanishes once.
static void test_absence(struct tap *tap, const char *folder) {
    struct controller c;
    char at_file[128], file[120], address[120];
    struct error err = {0};
    snprintf(file, sizeof file, "%s/port", folder);
    snprintf(at_file, sizeof at_file, "@%s", file);
    controller_init(&c);
    struct told told = {.what = "lost the controller: ipc://"};
    struct member_options options = options_for(at_file);
    options.hooks = (struct member_hooks){.self = &told, .say = count_told};
    struct member *member = start(tap, &options);
    struct member_identity identity;
    TEST(tap, "while there is no controller it waits, and is no member", {
        CHECK(tap, !member_identity(member, &identity));
        CHECK_INT(tap, member_status(member, &err), STATUS_OK);
    });
    for (int round = 0; round < 2; round++) {
        snprintf(address, sizeof address, "ipc://%s/controller%d", folder, round);
        controller_listen(&c, tap, address);
        struct ready ready = {.port_file = file, .fd = -1};
        const char *addresses[] = {address};
        CHECK_INT(tap, ready_tell(&ready, addresses, 1, &err), STATUS_OK);
        controller_await(&c, &c.heartbeats, atomic_load(&c.heartbeats) + 2);
        if (round == 0) {
            controller_deafen(&c);
            CHECK_INT(tap, member_report(member, "meanwhile", &err), STATUS_OK);
        }
    }
    TEST(tap, "it goes on with the same session after the controller came back elsewhere", {
        controller_await(&c, &c.reports, 1);
        CHECK_INT(tap, atomic_load(&c.joins), 1);
        CHECK_INT(tap, atomic_load(&c.hellos), 2);
        CHECK_TEXT(tap, c.line, "meanwhile");
        CHECK_INT(tap, atomic_load(&told.times), 1);
        CHECK_INT(tap, member_status(member, &err), STATUS_OK);
    });
    TEST(tap, "leaving says why", {
        member_close(member, "all is done");
        CHECK_INT(tap, atomic_load(&c.leaves), 1);
        CHECK_TEXT(tap, c.left, "all is done");
    });
    controller_free(&c);
}

static void test_patience(struct tap *tap, const char *address) {
    struct controller c;
    controller_init(&c);
    c.refuse_type = PROTO_TYPE_JOIN;
    c.refuse_code = PROTO_REFUSAL_BUSY;
    controller_listen(&c, tap, address);
    const struct member_options options = options_for(address);
    struct member *member = start(tap, &options);
    TEST(tap, "a controller that is busy is asked again", {
        struct error err = {0};
        controller_await(&c, &c.hellos, 2);
        CHECK_INT(tap, member_status(member, &err), STATUS_OK);
        pthread_mutex_lock(&c.lock);
        c.refuse_type = PROTO_TYPE_NONE;
        pthread_mutex_unlock(&c.lock);
        controller_await(&c, &c.heartbeats, 1);
    });
    member_close(member, NULL);
    TEST(tap, "without a reason it does not leave", { CHECK_INT(tap, c.leaves, 0); });
    controller_free(&c);
}

static void test_end(struct tap *tap, const char *address, enum proto_refusal code, int wanted) {
    struct controller c;
    struct error err = {0};
    controller_init(&c);
    controller_listen(&c, tap, address);
    const struct member_options options = options_for(address);
    struct member *member = start(tap, &options);
    controller_await(&c, &c.heartbeats, 1);
    pthread_mutex_lock(&c.lock);
    c.refuse_type = PROTO_TYPE_HEARTBEAT;
    c.refuse_code = code;
    pthread_mutex_unlock(&c.lock);
    await_end(member, &err);
    CHECK_INT(tap, err.status, wanted);
    if (!strstr(err.text, proto_refusal_name(code)) || !strstr(err.text, "says the test"))
        FAIL(tap, "%s", err.text);
    member_close(member, "over");
    controller_free(&c);
}

static void test_another_run(struct tap *tap, const char *address) {
    struct controller c;
    struct error err = {0};
    controller_init(&c);
    controller_listen(&c, tap, address);
    const struct member_options options = options_for(address);
    struct member *member = start(tap, &options);
    controller_await(&c, &c.heartbeats, 1);
    controller_deafen(&c);
    c.run = (struct proto_id){{2}};
    controller_listen(&c, tap, address);
    await_end(member, &err);
    CHECK_INT(tap, err.status, STATUS_UNAVAILABLE);
    CHECK(tap, strstr(err.text, "another run") != NULL);
    member_close(member, NULL);
    controller_free(&c);
}

static void test_options(struct tap *tap) {
    static const struct {
        const char *controller, *name;
    } wrong[] = {
        {NULL, "a"},
        {"here", "a"},
        {"tcp://example.org:1", "a"},
        {"ipc:///x", "a name of more letters than anybody can want to read in a list of members"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct member_options options = options_for(wrong[i].controller);
        struct member *member;
        struct error err = {0};
        options.name = wrong[i].name;
        CHECK_INT(tap, member_open(&member, &options, &err), STATUS_USAGE);
    }
}

int main(void) {
    struct tap tap = {0};
    struct controller c;
    char folder[] = "/tmp/adam-member-XXXXXX", address[64];
    if (!mkdtemp(folder))
        return 1;
    snprintf(address, sizeof address, "ipc://%s/c", folder);
    controller_init(&c);
    controller_listen(&c, &tap, address);
    const struct member_options options = options_for(address);
    struct member *member = start(&tap, &options);
    test_joining(&tap, &c, member);
    test_snapshots(&tap, &c, member);
    test_orders(&tap, &c, member);
    test_reports(&tap, &c, member);
    member_close(member, "over");
    controller_free(&c);
    test_absence(&tap, folder);
    test_patience(&tap, address);
    TEST(&tap, "a session that is over ends it, to be run again",
         { test_end(&tap, address, PROTO_REFUSAL_WRONG_SESSION, STATUS_STOPPED); });
    TEST(&tap, "so does a controller that stops",
         { test_end(&tap, address, PROTO_REFUSAL_STOPPING, STATUS_STOPPED); });
    TEST(&tap, "and one of whose run it is not",
         { test_end(&tap, address, PROTO_REFUSAL_WRONG_RUN, STATUS_UNAVAILABLE); });
    TEST(&tap, "or one that is of another run when it comes back",
         { test_another_run(&tap, address); });
    TEST(&tap, "options that cannot work are refused at once", { test_options(&tap); });
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 1 : tap_done(&tap);
}
