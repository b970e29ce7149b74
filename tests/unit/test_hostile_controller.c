// Controllers that lie, to members and to who administers: they answer by what was not asked, ask
// for heartbeats at impossible times, give orders anew, or refuse in words for a terminal.
#include <stdlib.h>

#include "../helper/controller.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "member/member.h"
#include "remote/admin.h"

// A controller of which one kind of request is answered falsely.
struct liar {
    struct controller honest;
    char address[64];
    _Atomic uint16_t type; // of the requests that are answered falsely; 0: none
    uint16_t answer;       // the type of the false answers
    const void *message;
    _Atomic int put_off; // so many of these requests are put off before
    struct gate gate;    // opened with each line that a member says
    char said[ERROR_TEXT];
    _Atomic bool told;
};

static enum proto_refusal liar_hello(void *context, struct link *link,
                                     const struct proto_hello *hello, struct proto_welcome *welcome,
                                     uint64_t *detail) {
    struct liar *liar = context;
    return controller_hello(&liar->honest, link, hello, welcome, detail);
}

static void liar_request(void *context, struct link *link, uint64_t request, uint16_t type,
                         const union proto_message *message, struct buffer *payload) {
    struct liar *liar = context;
    if (type == atomic_load(&liar->type) && atomic_load(&liar->put_off) > 0) {
        atomic_fetch_sub(&liar->put_off, 1);
        link_refuse(link, request, PROTO_REFUSAL_BUSY, 10, "another leads");
    } else if (type == atomic_load(&liar->type))
        link_answer(link, request, liar->answer, liar->message, NULL, NULL);
    else
        controller_request(&liar->honest, link, request, type, message, payload);
}

static void liar_open(struct tap *tap, struct liar *liar, uint16_t type, uint16_t answer,
                      const void *message) {
    struct error err = {0};
    *liar = (struct liar){.type = type, .answer = answer, .message = message};
    controller_init(&liar->honest);
    const struct link_options options = {.handlers = {liar, liar_hello, liar_request, NULL}};
    snprintf(liar->address, sizeof liar->address, "inproc://liar-%p", (void *)liar);
    if (listener_open(&liar->honest.listener, liar->address, &options, NULL, &err))
        FAIL(tap, "%s", err.text);
}

static void liar_close(struct liar *liar) {
    controller_free(&liar->honest);
}

// --- members ------------------------------------------------------------------------------

static void keep_said(void *self, const char *text) {
    struct liar *liar = self;
    if (atomic_load(&liar->told))
        return;
    snprintf(liar->said, sizeof liar->said, "%s", text);
    atomic_store(&liar->told, true);
    gate_open(&liar->gate);
}

static struct member *start(struct tap *tap, struct liar *liar) {
    const struct member_options options = {
        .role = PROTO_ROLE_WORKER,
        .controller = liar->address,
        .name = "w",
        .hooks = {.self = liar, .say = keep_said},
    };
    struct member *member = NULL;
    struct error err = {0};
    if (member_open(&member, &options, &err))
        FAIL(tap, "%s", err.text);
    return member;
}

// The member says which controller it was, and why it does not believe it.
static void check_said(struct tap *tap, struct liar *liar) {
    for (uint32_t seen = gate_look(&liar->gate); !atomic_load(&liar->told);
         seen = gate_look(&liar->gate))
        gate_wait(&liar->gate, seen, -1);
    if (!strstr(liar->said, liar->address) || !strstr(liar->said, "answered what was not asked"))
        FAIL(tap, "%s", liar->said);
}

static void await_look(struct member *member) {
    uint64_t look = member_look(member);
    for (uint32_t seen = member_news(member); member_looked(member) < look;
         seen = member_news(member))
        member_wait(member, seen, -1);
}

static void test_joining(struct tap *tap) {
    static const struct proto_beat beat = {.members = 1};
    TEST(tap, "who is not told that it has joined has not, and asks again", {
        struct liar liar;
        struct member_identity identity;
        liar_open(tap, &liar, PROTO_TYPE_JOIN, PROTO_TYPE_BEAT, &beat);
        struct member *member = start(tap, &liar);
        controller_await(&liar.honest, &liar.honest.hellos, 2);
        CHECK(tap, !member_identity(member, &identity));
        CHECK_INT(tap, member_status(member, NULL), STATUS_OK);
        atomic_store(&liar.type, PROTO_TYPE_NONE);
        controller_await(&liar.honest, &liar.honest.heartbeats, 1);
        CHECK(tap, member_identity(member, &identity));
        member_close(member, NULL);
        liar_close(&liar);
    });
    TEST(tap, "a heartbeat is asked for at possible times only", {
        const uint32_t every[] = {0, UINT32_MAX};
        for (int i = 0; i < 2; i++) {
            struct liar liar;
            liar_open(tap, &liar, PROTO_TYPE_NONE, PROTO_TYPE_NONE, NULL);
            liar.honest.heartbeat = every[i];
            struct member *member = start(tap, &liar);
            controller_await(&liar.honest, &liar.honest.heartbeats, 1);
            await_look(member);
            if (every[i] == 0)
                controller_await(&liar.honest, &liar.honest.heartbeats, 4);
            CHECK_INT(tap, member_status(member, NULL), STATUS_OK);
            member_close(member, NULL);
            liar_close(&liar);
        }
    });
}

static void test_heartbeats(struct tap *tap) {
    static const struct proto_joined joined = {.member = 99, .session = 99};
    TEST(tap, "what is no answer to a heartbeat changes nothing, and the session goes on", {
        struct liar liar;
        struct member_identity before;
        struct member_identity after;
        liar_open(tap, &liar, PROTO_TYPE_NONE, PROTO_TYPE_JOINED, &joined);
        struct member *member = start(tap, &liar);
        controller_await(&liar.honest, &liar.honest.heartbeats, 1);
        CHECK(tap, member_identity(member, &before));
        atomic_store(&liar.type, PROTO_TYPE_HEARTBEAT);
        controller_await(&liar.honest, &liar.honest.hellos, 2);
        check_said(tap, &liar);
        atomic_store(&liar.type, PROTO_TYPE_NONE);
        await_look(member);
        CHECK(tap, member_identity(member, &after));
        CHECK_INT(tap, after.session, before.session);
        CHECK_INT(tap, after.member, before.member);
        CHECK_INT(tap, atomic_load(&liar.honest.joins), 1);
        member_close(member, NULL);
        liar_close(&liar);
    });
    TEST(tap, "an order that is older than the last is not taken", {
        struct liar liar;
        struct member_order order;
        const uint64_t numbers[] = {5, 4, 5, 6};
        liar_open(tap, &liar, PROTO_TYPE_NONE, PROTO_TYPE_NONE, NULL);
        struct member *member = start(tap, &liar);
        for (int i = 0; i < 4; i++) {
            pthread_mutex_lock(&liar.honest.lock);
            liar.honest.order = i == 1 ? PROTO_ORDER_STOP : PROTO_ORDER_SAVE;
            liar.honest.order_number = numbers[i];
            pthread_mutex_unlock(&liar.honest.lock);
            await_look(member);
            CHECK_INT(tap, member_take_order(member, &order), i == 0 || i == 3);
            CHECK_INT(tap, order.order, PROTO_ORDER_SAVE);
        }
        member_close(member, NULL);
        liar_close(&liar);
    });
    TEST(tap, "routes and a run of other versions than a heartbeat promised are taken as they are",
         {
             static const struct proto_routes routes = {.epoch = 3};
             struct liar liar;
             liar_open(tap, &liar, PROTO_TYPE_GET_ROUTES, PROTO_TYPE_ROUTES, &routes);
             liar.honest.routes_epoch = 7;
             struct member *member = start(tap, &liar);
             for (int i = 0; i < 3; i++)
                 await_look(member);
             struct kept *kept = member_routes(member);
             CHECK(tap, kept && kept->message.routes.epoch == 3);
             CHECK_INT(tap, atomic_load(&liar.honest.hellos), 1);
             kept_drop(kept);
             member_close(member, NULL);
             liar_close(&liar);
         });
}

// --- administration -----------------------------------------------------------------------

static const struct proto_get_status get_status = {.known = 0};
static const struct proto_set set = {.settings = {"rate=1\n", 7}};
static const struct proto_save save = {0};
static const struct proto_stop stop = {.save = 1};

// As adam-ctl status, set, checkpoint and down ask.
static const struct errand {
    uint16_t type, wanted;
    const void *message;
} errands[] = {
    {PROTO_TYPE_GET_STATUS, PROTO_TYPE_STATUS, &get_status},
    {PROTO_TYPE_SET, PROTO_TYPE_DONE, &set},
    {PROTO_TYPE_SAVE, PROTO_TYPE_SAVED, &save},
    {PROTO_TYPE_STOP, PROTO_TYPE_DONE, &stop},
};
enum { ERRANDS = sizeof errands / sizeof *errands };

static int run_errand(const struct liar *liar, const struct errand *errand, struct error *err) {
    const struct admin admin = {.place = liar->address};
    struct kept *answer = NULL;
    *err = (struct error){0};
    int status = admin_ask(&admin, errand->type, errand->message, errand->wanted, &answer, err);
    if (!status)
        kept_drop(answer);
    return status;
}

static void test_administration(struct tap *tap) {
    struct liar liar;
    struct error err;
    TEST(tap, "what is no answer to an errand is not taken for one", {
        static const struct proto_beat beat = {.members = 1};
        for (int i = 0; i < ERRANDS; i++) {
            liar_open(tap, &liar, errands[i].type, PROTO_TYPE_BEAT, &beat);
            CHECK_INT(tap, run_errand(&liar, &errands[i], &err), STATUS_UNAVAILABLE);
            if (!strstr(err.text, liar.address) || !strstr(err.text, "what was not asked"))
                FAIL(tap, "%s", err.text);
            liar_close(&liar);
        }
    });
    TEST(tap, "a refusal is told in its words, and whose it is", {
        const struct proto_refused refused = {.code = PROTO_REFUSAL_NOT_READY,
                                              .text = proto_text("not now")};
        for (int i = 0; i < ERRANDS; i++) {
            liar_open(tap, &liar, errands[i].type, PROTO_TYPE_REFUSED, &refused);
            CHECK_INT(tap, run_errand(&liar, &errands[i], &err), STATUS_UNAVAILABLE);
            if (!strstr(err.text, liar.address) || !strstr(err.text, "not now"))
                FAIL(tap, "%s", err.text);
            liar_close(&liar);
        }
    });
    TEST(tap, "who is told when to ask again does, until there is an answer", {
        static const struct proto_status status = {.epoch = 1};
        static const struct proto_saved saved = {.path = {"run", 3}};
        const void *const answers[ERRANDS] = {&status, NULL, &saved, NULL};
        for (int i = 0; i < ERRANDS; i++) {
            liar_open(tap, &liar, errands[i].type, errands[i].wanted, answers[i]);
            atomic_store(&liar.put_off, 3);
            CHECK_INT(tap, run_errand(&liar, &errands[i], &err), STATUS_OK);
            CHECK_INT(tap, atomic_load(&liar.put_off), 0);
            liar_close(&liar);
        }
    });
    TEST(tap, "a refusal of a kind that nobody knows, and without words, is one", {
        const struct proto_refused refused = {.code = 31};
        for (int i = 0; i < ERRANDS; i++) {
            liar_open(tap, &liar, errands[i].type, PROTO_TYPE_REFUSED, &refused);
            CHECK_INT(tap, run_errand(&liar, &errands[i], &err), STATUS_UNAVAILABLE);
            CHECK(tap, strstr(err.text, liar.address));
            liar_close(&liar);
        }
    });
}

int main(void) {
    struct tap tap = {0};
    test_joining(&tap);
    test_heartbeats(&tap);
    test_administration(&tap);
    return tap_done(&tap);
}
