// Data servers that lie: what they say of their data, or of a batch, cannot be. The worker takes
// nothing of it, ends its supply, and names the server.
#include <math.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "net/link.h"
#include "proto/kept.h"
#include "proto/samples.h"
#include "remote/data_client.h"

enum { SIDE = 4, VALUES = SIDE * SIDE, SAMPLES = 100, BATCH = 8, TARGETS = 2 };
enum { BYTES = BATCH * (PROTO_SAMPLE_HEAD + VALUES) }; // of an honest batch

struct liar {
    struct listener *listener;
    char address[64];
    struct proto_data data;
    struct proto_batch batch;
    size_t bytes; // of its payload
    _Alignas(uint64_t) uint8_t payload[2 * BYTES];
    struct link_part part;
    struct input_config input; // what the worker reads of it
};

static enum proto_refusal welcome_all(void *context, struct link *link,
                                      const struct proto_hello *hello,
                                      struct proto_welcome *welcome, uint64_t *detail) {
    (void)context, (void)link, (void)hello, (void)detail;
    welcome->window = 3;
    return PROTO_REFUSAL_NONE;
}

static void answer(void *context, struct link *link, uint64_t request, uint16_t type,
                   const union proto_message *message, struct buffer *payload) {
    struct liar *liar = context;
    (void)message, (void)payload;
    liar->part = (struct link_part){liar->payload, liar->bytes};
    const struct link_payload sent = {&liar->part, 1, NULL, NULL};
    if (type == PROTO_TYPE_GET_DATA)
        link_answer(link, request, PROTO_TYPE_DATA, &liar->data, NULL, NULL);
    else if (type == PROTO_TYPE_LEASE)
        link_answer(link, request, PROTO_TYPE_BATCH, &liar->batch, &sent, NULL);
    else
        link_answer(link, request, PROTO_TYPE_DONE, NULL, NULL, NULL);
}

static void liar_listen(struct tap *tap, struct liar *liar) {
    const struct link_options options = {
        .handlers = {.context = liar, .hello = welcome_all, .request = answer}};
    CHECK_INT(
        tap,
        listener_open(&liar->listener, liar->address, &options, &(struct listener_limits){0}, NULL),
        STATUS_OK);
}

// An honest one, until the test changes what it says.
static void liar_open(struct tap *tap, struct liar *liar) {
    *liar = (struct liar){
        .data = {.whole = SAMPLES,
                 .samples = SAMPLES,
                 .channels = 1,
                 .height = SIDE,
                 .width = SIDE,
                 .value = PROTO_VALUE_BYTE},
        .batch = {.lease = 1, .deadline = 60000, .samples = BATCH},
        .bytes = BYTES,
        .input =
            {.channels = 1, .height = SIDE, .width = SIDE, .classes = TARGETS, .targets = TARGETS},
    };
    snprintf(liar->address, sizeof liar->address, "inproc://liar-%p", (void *)liar);
    liar_listen(tap, liar);
}

static void route(struct data_client *client, const struct liar *liar) {
    const struct proto_server server = {.member = 1, .training = proto_text(liar->address)};
    const struct proto_routes routes = {.epoch = 1, .data_servers = proto_list(&server, 1)};
    struct kept *kept;
    if (kept_make(&kept, PROTO_TYPE_ROUTES, &routes, NULL))
        abort();
    data_client_route(client, kept);
    kept_drop(kept);
}

static struct data_client *open_client(struct tap *tap, const struct liar *liar) {
    const struct data_client_options options = {
        .hello = {.role = PROTO_ROLE_WORKER, .session = 1},
        .input = liar->input,
        .batch = BATCH,
        .ahead = 1,
        .takers = 1,
    };
    struct data_client *client = NULL;
    CHECK_INT(tap, data_client_open(&client, &options, NULL), STATUS_OK);
    route(client, liar);
    return client;
}

// Takes one batch: whether there was one, or why not.
static bool take(struct tap *tap, struct liar *liar, struct error *err) {
    struct data_client *client = open_client(tap, liar);
    *err = (struct error){0};
    struct supply *supply = data_client_supply(client);
    struct batch *batch = supply_take(supply, SUPPLY_PATIENT, NULL);
    if (batch)
        supply_give_back(supply, batch);
    else
        supply_status(supply, err);
    data_client_close(client);
    listener_close(liar->listener);
    return batch;
}

static void check_lie(struct tap *tap, struct liar *liar, const char *why) {
    struct error err;
    CHECK(tap, !take(tap, liar, &err));
    CHECK_INT(tap, err.status, STATUS_DATA);
    if (!strstr(err.text, why) || !strstr(err.text, liar->address))
        FAIL(tap, "not %s of %s: '%s'", why, liar->address, err.text);
}

static void test_honest(struct tap *tap) {
    TEST(tap, "what an honest one says is taken", {
        struct liar liar;
        struct error err;
        liar_open(tap, &liar);
        CHECK(tap, take(tap, &liar, &err));
        liar_open(tap, &liar); // the last of the epoch
        liar.batch.first = SAMPLES - BATCH;
        CHECK(tap, take(tap, &liar, &err));
    });
}

// The field of the data that cannot be so.
#define LIE_OF_DATA(field, value)                                                                  \
    do {                                                                                           \
        liar_open(tap, &liar);                                                                     \
        liar.data.field = (value);                                                                 \
        check_lie(tap, &liar, "are not what can be served");                                       \
    } while (0)

static void test_data(struct tap *tap) {
    struct liar liar;
    TEST(tap, "pictures of no size, or larger than any, are not believed", {
        LIE_OF_DATA(channels, 0);
        LIE_OF_DATA(height, 0);
        LIE_OF_DATA(width, 0);
        LIE_OF_DATA(channels, UINT32_MAX);
        LIE_OF_DATA(height, UINT32_MAX);
        LIE_OF_DATA(width, UINT32_MAX);
        liar_open(tap, &liar);
        liar.data.channels = liar.data.height = liar.data.width = UINT32_MAX;
        check_lie(tap, &liar, "are not what can be served");
    });
    TEST(tap, "nor more samples than there are, or than can be", {
        LIE_OF_DATA(samples, 0);
        LIE_OF_DATA(samples, SAMPLES + 1);
        LIE_OF_DATA(whole, UINT64_MAX);
        LIE_OF_DATA(first, 1);
        LIE_OF_DATA(first, UINT64_MAX);
    });
}

static void test_batches(struct tap *tap) {
    struct liar liar;
    TEST(tap, "a batch of other than what was asked for is not taken", {
        liar_open(tap, &liar);
        liar.batch.samples = 0;
        liar.bytes = 0;
        check_lie(tap, &liar, "a batch of 0 samples");
        liar_open(tap, &liar);
        liar.batch.samples = UINT32_MAX;
        check_lie(tap, &liar, "a batch of 4294967295 samples");
    });
    TEST(tap, "nor one of fewer bytes than it says", {
        liar_open(tap, &liar);
        liar.bytes--;
        check_lie(tap, &liar, "a batch of 8 samples");
        liar_open(tap, &liar);
        liar.batch.samples--;
        check_lie(tap, &liar, "a batch of 7 samples");
    });
    TEST(tap, "nor one of more bytes, or of more than there is room for", {
        liar_open(tap, &liar);
        liar.bytes++;
        check_lie(tap, &liar, "a batch of 8 samples");
        liar_open(tap, &liar);
        liar.bytes = 2 * BYTES;
        check_lie(tap, &liar, "its answer is larger than what was asked for");
    });
    TEST(tap, "nor one beyond the end of the epoch", {
        liar_open(tap, &liar);
        liar.batch.first = SAMPLES - BATCH + 1;
        check_lie(tap, &liar, "a batch of 8 samples");
        liar_open(tap, &liar);
        liar.batch.first = UINT64_MAX - BATCH + 1; // the sum would be 0
        check_lie(tap, &liar, "a batch of 8 samples");
    });
    TEST(tap, "a label that the model has no output for ends it", {
        liar_open(tap, &liar);
        memset(liar.payload, 0xff, sizeof liar.payload);
        check_lie(tap, &liar, "label");
    });
}

// The same with targets: those of a logistic output.
static float *open_targets(struct tap *tap, struct liar *liar) {
    liar_open(tap, liar);
    liar->input.hot = true;
    liar->bytes = BYTES + BATCH * TARGETS * sizeof(float);
    struct proto_samples samples = proto_samples_in(liar->payload, BATCH, TARGETS, VALUES);
    for (int i = 0; i < BATCH; i++)
        samples.labels[i] = -1;
    for (int i = 0; i < BATCH * TARGETS; i++)
        samples.targets[i] = (float)(i % 3 == 0);
    return samples.targets;
}

static void test_targets(struct tap *tap) {
    struct liar liar;
    struct error err;
    TEST(tap, "targets that the model learns are taken", {
        open_targets(tap, &liar);
        CHECK(tap, take(tap, &liar, &err));
        float *targets = open_targets(tap, &liar);
        targets[3] = 0.5f;
        liar.input.hot = false;
        CHECK(tap, take(tap, &liar, &err));
    });
    TEST(tap, "those that it does not learn are not, nor what is no number", {
        open_targets(tap, &liar)[BATCH * TARGETS - 1] = 2;
        check_lie(tap, &liar, "target 1 is 2");
        open_targets(tap, &liar)[0] = NAN;
        check_lie(tap, &liar, "target 0 is not finite");
        open_targets(tap, &liar)[0] = INFINITY;
        liar.input.hot = false;
        check_lie(tap, &liar, "target 0 is not finite");
        open_targets(tap, &liar);
        liar.input.label = true;
        check_lie(tap, &liar, "there are targets, where the model learns labels");
        liar_open(tap, &liar);
        liar.input.classes = 0;
        check_lie(tap, &liar, "there are no targets");
    });
    TEST(tap, "nor targets beside labels, more of them, fewer, or parts of some", {
        open_targets(tap, &liar);
        proto_samples_in(liar.payload, BATCH, TARGETS, VALUES).labels[BATCH - 1] = 0;
        check_lie(tap, &liar, "a label and targets");
        open_targets(tap, &liar);
        liar.bytes -= BATCH * sizeof(float);
        check_lie(tap, &liar, "a batch of 8 samples");
        open_targets(tap, &liar);
        liar.input.targets = liar.input.classes = TARGETS + 1;
        check_lie(tap, &liar, "a batch of 8 samples");
        open_targets(tap, &liar);
        liar.bytes--;
        check_lie(tap, &liar, "a batch of 8 samples");
    });
}

// It is started anew, and serves this. Whether batches come; else the client waits for it, and says
// why.
static bool come_again(struct tap *tap, struct liar *liar, struct data_client *client,
                       const struct proto_data *data, const char *why) {
    struct supply *supply = data_client_supply(client);
    char text[PROTO_ADDRESS_MAX] = "";
    listener_close(liar->listener);
    liar->data = *data;
    liar_listen(tap, liar);
    while (!strstr(text, why)) {
        struct batch *batch = supply_take(supply, 0.01, NULL);
        bool came = batch && batch->n > 0;
        if (batch)
            supply_give_back(supply, batch);
        if (!batch || (came && data_client_figures(client).redials > 0))
            return came;
        data_client_waits_for(client, text);
    }
    return false;
}

static void test_another(struct tap *tap) {
    struct liar liar;
    TEST(tap, "one that serves something else than it did gives no batch, until it is as before", {
        liar_open(tap, &liar);
        const struct proto_data honest = liar.data;
        struct data_client *client = open_client(tap, &liar);
        struct supply *supply = data_client_supply(client);
        struct proto_data other = honest;
        supply_give_back(supply, supply_take(supply, SUPPLY_PATIENT, NULL));
        other.height *= 2;
        CHECK(tap, !come_again(tap, &liar, client, &other, "(1x8x4 bytes"));
        other = honest, other.value = PROTO_VALUE_FLOAT;
        CHECK(tap, !come_again(tap, &liar, client, &other, "(1x4x4 floats"));
        other = honest, other.digest = 0x0badcafe;
        CHECK(tap, !come_again(tap, &liar, client, &other, "digest 0badcafe), and batches are"));
        other = honest, other.classes = 3;
        CHECK(tap, !come_again(tap, &liar, client, &other, "3 classes"));
        other = honest, other.samples--;
        CHECK(tap, !come_again(tap, &liar, client, &other, "samples 0..98 of 100"));
        CHECK_INT(tap, supply_status(supply, NULL), STATUS_OK);
        CHECK(tap, come_again(tap, &liar, client, &honest, "serves something else"));
        data_client_close(client);
        listener_close(liar.listener);
    });
}

int main(void) {
    struct tap tap = {0};
    test_honest(&tap);
    test_data(&tap);
    test_batches(&tap);
    test_targets(&tap);
    test_another(&tap);
    return tap_done(&tap);
}
