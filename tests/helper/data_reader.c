// A worker that trains nothing: it takes batches of a run's data servers, and tells on
// standard output what it took and what was finished.
//
//   data_reader CONTROLLER [hold|slow]
//
//   take EPOCH SAMPLE DIGEST    it has the sample; a digest of its numbers
//   done EPOCH SAMPLE DIGEST    a data server has heard that it is finished
//   over EPOCH SAMPLE DIGEST    it was handed to another before
//
// Lines of a batch come in one write. With "hold" it finishes nothing, and waits;
// with "slow" it takes 40 ms for each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/grow.h"
#include "core/random.h"
#include "member/member.h"
#include "member/run_text.h"
#include "model/model.h"
#include "remote/data_client.h"
#include "run/model_ops.h"
#include "run/settings.h"

struct reader {
    struct member *member;
    struct model *model;
    struct ops *input;
    struct settings settings;
    char *texts; // of the settings
    struct data_client *client;
    uint32_t batch[4096];  // samples of the batch in hand
    uint64_t digest[4096]; // of what came of each
    int n;
    uint64_t epoch;
};

static void die(const struct error *err) {
    fprintf(stderr, "data_reader: %s\n", err->text);
    exit(err->status ? err->status : 1);
}

static void say(void *self, const char *text) {
    (void)self;
    fprintf(stderr, "data_reader: %s\n", text);
}

static void tell(const struct reader *reader, const char *what) {
    struct grow lines = {0};
    for (int i = 0; i < reader->n; i++)
        grow_format(&lines, "%s %llu %u %016llx\n", what, (unsigned long long)reader->epoch,
                    reader->batch[i], (unsigned long long)reader->digest[i]);
    if (write(STDOUT_FILENO, lines.text, lines.length) != (ssize_t)lines.length)
        exit(1);
    free(grow_take(&lines));
}

static void read_run(struct reader *reader, const struct proto_run *run) {
    struct error err = {0};
    if (run_model(&reader->model, "model", run, &err) ||
        model_ops_open(&reader->input, reader->model, &err) ||
        run_settings(&reader->settings, &reader->texts, run, &err))
        die(&err);
}

static void open_client(struct reader *reader) {
    struct member_identity identity;
    struct error err = {0};
    const struct layer *input = model_input(reader->model);
    member_identity(reader->member, &identity);
    const struct data_client_options options = {
        .hello = {.role = PROTO_ROLE_WORKER,
                  .run = identity.run,
                  .session = identity.session,
                  .name = proto_text("data_reader")},
        .input = {.input = reader->input,
                  .channels = input->out.c,
                  .height = input->out.h,
                  .width = input->out.w,
                  .classes = model_classes(reader->model),
                  .seed = (uint64_t)reader->settings.seed},
        .batch = (int)reader->settings.batch,
        .ahead = 2,
        .takers = 1,
        .say = say,
    };
    if (data_client_open(&reader->client, &options, &err))
        die(&err);
}

// Takes over what the member heard; false: it is to end.
static bool obey(struct reader *reader) {
    struct error err = {0};
    struct member_order order;
    if (member_status(reader->member, &err))
        die(&err);
    if (member_take_order(reader->member, &order) && order.order == PROTO_ORDER_STOP)
        return false;
    struct kept *run = member_run(reader->member);
    if (run && !reader->client) {
        read_run(reader, &run->message.run);
        open_client(reader);
    }
    struct kept *routes = member_routes(reader->member);
    if (routes && reader->client)
        data_client_route(reader->client, routes);
    kept_drop(run);
    kept_drop(routes);
    return true;
}

static void finish(struct reader *reader) {
    uint64_t over = data_client_figures(reader->client).over;
    data_client_finish(reader->client, data_client_trained(reader->client));
    while (!data_client_flush(reader->client, 0.1) && obey(reader))
        continue;
    tell(reader, data_client_figures(reader->client).over > over ? "over" : "done");
}

static void keep(struct reader *reader, const struct batch *batch) {
    size_t floats = shape_size(model_input(reader->model)->out);
    reader->epoch = batch->epoch;
    reader->n = batch->n;
    for (int i = 0; i < batch->n; i++) {
        reader->batch[i] = batch->index[i];
        reader->digest[i] =
            hash_bytes(batch->input + (size_t)i * floats, floats * sizeof *batch->input);
    }
}

// False: there is no more.
static bool read_one(struct reader *reader, bool hold, bool slow) {
    struct supply *supply = data_client_supply(reader->client);
    struct error err = {0};
    struct batch *batch = supply_take(supply, 0.1, NULL);
    if (!batch) {
        if (supply_status(supply, &err))
            die(&err);
        return false;
    }
    keep(reader, batch);
    if (batch->n > 0)
        tell(reader, "take");
    if (slow)
        usleep(40000);
    supply_give_back(supply, batch);
    if (reader->n > 0 && !hold)
        finish(reader);
    return true;
}

int main(int argc, char **argv) {
    struct reader reader = {0};
    struct error err = {0};
    bool hold = argc > 2 && !strcmp(argv[2], "hold"), more = true;
    bool slow = argc > 2 && !strcmp(argv[2], "slow");
    const struct member_options options = {
        .role = PROTO_ROLE_WORKER,
        .controller = argv[1],
        .name = "data_reader",
        .threads = 1,
        .hooks = {.say = say},
    };
    if (member_open(&reader.member, &options, &err))
        die(&err);
    uint32_t seen = member_news(reader.member);
    while (obey(&reader)) {
        if (reader.client && more)
            more = read_one(&reader, hold, slow);
        else
            member_wait(reader.member, seen, 0.1);
        seen = member_news(reader.member);
    }
    data_client_close(reader.client);
    member_close(reader.member, "the end");
    ops_free(reader.input);
    model_free(reader.model);
    free(reader.texts);
    return 0;
}
