// The first weights of a run, and the memory for copies of them.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "model/init.h"
#include "remote/part_gather.h"
#include "role/controller/checkpointer_internal.h"
#include "run/checkpoint_parts.h"
#include "run/model_ops.h"
#include "train/inherit.h"

// What is pulled next is not there yet.
void checkpointer_drop_copy(struct checkpointer *s) {
    struct checkpoint *c = &s->checkpoint;
    size_t shards = servers_shards(s->servers);
    checkpoint_drop_values(c);
    memset(s->stamps, 0, shards * sizeof *s->stamps);
    memset(s->state_stamps, 0, KEPT_MOST * shards * sizeof *s->state_stamps);
}

// Samples before the places of a checkpoint that it was not trained on. Where a place is one
// whose data server was absent, training may have been beyond it.
static uint64_t skipped_before(const json_t *cursors, uint64_t trained) {
    uint64_t before = data_servers_before(cursors);
    return before > trained && before <= INT64_MAX ? before - trained : 0;
}

// A checkpoint of one process has no places of data servers: they begin with its epoch.
static int resume_place(struct checkpointer *s, const struct checkpoint *from, struct error *err) {
    struct data_servers servers = checkpointer_data_servers(s);
    const json_t *known = json_object_get(from->run, "cursors");
    json_t *epoch =
        json_pack("[{s:I, s:i, s:[]}]", "epoch", (json_int_t)from->epoch, "samples", 0, "finished");
    const json_t *cursors = known ? known : epoch;
    int status = cursors ? data_servers_resume(&servers, cursors, err) : error_nomem(err);
    s->result.skipped = skipped_before(cursors, from->samples);
    json_decref(epoch);
    return status;
}

// They lie in the same kind of memory.
static void adopt_values(struct checkpoint *mine, struct checkpoint *theirs) {
    checkpoint_drop_values(mine);
    mine->parameters = theirs->parameters;
    mine->state = theirs->state;
    theirs->parameters = theirs->state = NULL;
}

// What was best on another test set says nothing about this one.
static int recall_tests(struct checkpointer *s, const struct checkpoint *from, struct error *err) {
    char text[FEED_TEXT];
    s->best = best_read(json_object_get(from->run, "best"));
    if (!s->feed->test)
        return STATUS_OK;
    json_t *test = feed_describe(s->settings.test, s->feed->test);
    if (!test)
        return error_nomem(err);
    if (feed_differs(text, json_object_get(from->run, "test"), test, "test")) {
        checkpointer_say(s, "note: %s", text);
        if (s->best.known)
            checkpointer_say(s,
                             "note: what was best on that test set, epoch %.4g, no longer counts",
                             s->best.epoch);
        s->best = (struct best){0};
    }
    json_decref(test);
    return STATUS_OK;
}

// What the run goes on from: the weights, and what else goes on with the run's optimizer.
static int adopt_weights(struct checkpointer *s, struct checkpoint *from, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    if (strcmp(from->model->text, c->model->text) != 0)
        return error_set(err, STATUS_DATA, "%s is of another model than %s", s->resume,
                         c->model->name);
    checkpoint_lacks_state(from);
    int status = checkpoint_turn(from, &c->optimizer, err);
    if (status)
        return status;
    adopt_values(c, from);
    c->clock = from->clock;
    c->samples = from->samples;
    c->epoch = from->epoch;
    json_decref(s->places);
    s->places = json_incref(json_object_get(from->run, "cursors"));
    status = recall_tests(s, from, err);
    return status ? status : resume_place(s, from, err);
}

static void say_difference(void *self, const char *name, const char *before, const char *after) {
    checkpointer_say(self, "%s is %s now, was %s", name, after, before);
}

// The run's settings apply, not those with which the checkpoint was made.
static int say_differences(struct checkpointer *s, const struct checkpoint *from,
                           struct error *err) {
    json_t *now = settings_write(&s->settings);
    if (!now)
        return error_nomem(err);
    settings_compare(json_object_get(from->run, "settings"), now, say_difference, s);
    json_decref(now);
    return STATUS_OK;
}

// Asks all servers of the routes for their names.
static int ask_holders(struct part_holder *holders, struct part_gather *gather,
                       const struct proto_list *servers, struct error *err) {
    const struct proto_server *server = servers->at;
    int status = STATUS_OK;
    for (uint32_t i = 0; !status && i < servers->count; i++)
        status = part_holder_ask(&holders[gather->count++], &server[i], gather, err);
    return status;
}

// Parts that the servers kept come to where the checkpoint is.
static int gather_parts(struct checkpointer *s, const char *folder, const json_t *manifest,
                        struct error *err) {
    const struct proto_list *servers = &s->known->message.routes.servers;
    const struct proto_hello hello = checkpointer_hello(s);
    struct part_holder *holders = mem_zeroed(servers->count + 1, sizeof *holders);
    struct part_gather gather = {.holders = holders,
                                 .hello = &hello,
                                 .keys = s->config.keys,
                                 .insecure = s->config.insecure,
                                 .refused = &s->result.hopeless};
    int status = holders ? ask_holders(holders, &gather, servers, err) : error_nomem(err);
    if (!status)
        status = part_gather(&gather, manifest, folder, err);
    free(holders);
    return status;
}

// What it goes on from is whole here; what is wrong with it otherwise checkpoint_load says.
static int fetch_parts(struct checkpointer *s, struct error *err) {
    uint8_t run[CHECKPOINT_TOKEN], token[CHECKPOINT_TOKEN];
    json_t *manifest = NULL;
    char *folder = checkpoint_folder(s->resume);
    int status = STATUS_OK;
    if (folder && !checkpoint_manifest(&manifest, folder, NULL) &&
        checkpoint_manifest_token(manifest, run, token))
        status = gather_parts(s, folder, manifest, err);
    if (status == STATUS_DATA || s->result.hopeless)
        checkpoint_name_sound(s->resume, err);
    json_decref(manifest);
    free(folder);
    return status;
}

static int load_weights(struct checkpointer *s, struct error *err) {
    struct checkpoint from = {0};
    int status = fetch_parts(s, err);
    if (!status)
        status = checkpoint_load_into(&from, s->resume, s->checkpoint.scratch, true, err);
    if (!status)
        status = adopt_weights(s, &from, err);
    if (!status)
        status = say_differences(s, &from, err);
    checkpoint_free(&from);
    return status;
}

// --- to the servers -----------------------------------------------------------------------

enum { CHUNK = 8 * PROTO_SHARD_FLOATS }; // floats that are stored at once: whole shards

static int store_chunk(struct checkpointer *s, enum proto_quantity quantity, const float *values,
                       struct span span, struct error *err) {
    const struct store store = {
        .quantity = quantity, .values = values, .stamps = s->stamps, .first = span.first};
    struct exchange *exchange;
    int status = exchange_open(&exchange, s->servers, EXCHANGE_STORE, &span, 1, err);
    if (status)
        return status;
    exchange_store(exchange, &store);
    status = exchange_wait(exchange, NULL, err);
    exchange_close(exchange);
    return status;
}

static struct span chunk_at(const struct checkpointer *s, size_t first) {
    size_t left = s->checkpoint.model->parameter_count - first;
    return (struct span){first, left < CHUNK ? left : CHUNK};
}

static int store_all(struct checkpointer *s, enum proto_quantity quantity, const float *values,
                     struct error *err) {
    int status = STATUS_OK;
    size_t end = s->checkpoint.model->parameter_count;
    for (size_t first = 0; !status && first < end; first += CHUNK)
        status = store_chunk(s, quantity, values + first, chunk_at(s, first), err);
    return status;
}

// What is nowhere whole: a filler makes it, or with NULL it is all zeros.
static int store_made(struct checkpointer *s, enum proto_quantity quantity,
                      struct model_filler *filler, struct error *err) {
    float *chunk = mem_floats(CHUNK);
    int status = chunk ? STATUS_OK : error_nomem(err);
    size_t end = s->checkpoint.model->parameter_count;
    for (size_t first = 0; !status && first < end; first += CHUNK) {
        const struct span span = chunk_at(s, first);
        if (filler)
            model_fill(filler, chunk, span.n);
        status = store_chunk(s, quantity, chunk, span, err);
    }
    free(chunk);
    return status;
}

// The weights that the run begins with, where `quantity` is.
static int store_first(struct checkpointer *s, enum proto_quantity quantity, struct error *err) {
    const struct checkpoint *c = &s->checkpoint;
    double deviation;
    if (c->parameters)
        return store_all(s, quantity, c->parameters, err);
    int status = model_ops_deviation(&deviation, c->model, err);
    if (status)
        return status;
    struct model_filler filler = model_filler(c->model, c->seed, deviation);
    return store_made(s, quantity, &filler, err);
}

// States come first: a server that has all weights is ready. States begin at zeros, the average
// behind them at the weights.
static int store_states(struct checkpointer *s, struct error *err) {
    const struct checkpoint *c = &s->checkpoint;
    int status = STATUS_OK, states = optimizer_states(c->optimizer.rule);
    for (int i = 0; !status && i < optimizer_kept(&c->optimizer); i++) {
        enum proto_quantity quantity = (enum proto_quantity)(PROTO_QUANTITY_STATE + i);
        size_t first = (size_t)i * c->model->parameter_count;
        status = c->state     ? store_all(s, quantity, c->state + first, err)
                 : i < states ? store_made(s, quantity, NULL, err)
                              : store_first(s, quantity, err);
    }
    return status;
}

static int store_weights(struct checkpointer *s, struct error *err) {
    const struct checkpoint *c = &s->checkpoint;
    for (size_t i = 0; i < servers_shards(s->servers); i++)
        s->stamps[i].version = c->clock ? c->clock : 1; // 0 says that there are no weights
    int status = store_states(s, err);
    return status ? status : store_first(s, PROTO_QUANTITY_WEIGHT, err);
}

static void say_line(void *self, const char *text) {
    checkpointer_say(self, "%s", text);
}

// As the model begins, with layers of another one.
static int inherit(struct checkpointer *s, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    double deviation;
    int status = checkpoint_make_room(c, false, err);
    if (!status)
        status = model_ops_deviation(&deviation, c->model, err);
    if (status)
        return status;
    model_init(c->model, c->parameters, c->seed, deviation);
    return inherit_weights(c, s->settings.init_from, say_line, s, err);
}

int checkpointer_initialise(struct checkpointer *s, struct error *err) {
    int status = STATUS_OK;
    if (s->resume)
        status = load_weights(s, err);
    else if (s->settings.init_from)
        status = inherit(s, err);
    return status ? status : store_weights(s, err);
}
