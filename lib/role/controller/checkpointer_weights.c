// The first weights of a run, and the memory for copies of them.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "remote/part_gather.h"
#include "role/controller/checkpointer_internal.h"
#include "run/checkpoint_parts.h"

int checkpointer_make_room(struct checkpointer *s, bool state, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    size_t n = c->model->parameter_count;
    bool stateful = state && optimizer_state_name(c->optimizer.rule);
    c->parameters = mem_floats(n);
    c->state = stateful ? mem_floats(n) : NULL;
    return c->parameters && (c->state || !stateful)
               ? STATUS_OK
               : error_set(err, STATUS_IO, "out of memory for the %zu parameters of %s", n,
                           c->model->name);
}

// What is pulled next is not there yet.
void checkpointer_drop_copy(struct checkpointer *s) {
    struct checkpoint *c = &s->checkpoint;
    size_t shards = servers_shards(s->servers);
    free(c->parameters);
    free(c->state);
    c->parameters = c->state = NULL;
    memset(s->versions, 0, shards * sizeof *s->versions);
    memset(s->state_versions, 0, shards * sizeof *s->state_versions);
}

// Samples before the places of a checkpoint that it was not trained on. Where a place is one
// whose data server was absent, training may have been beyond it.
static uint64_t skipped_before(const json_t *cursors, uint64_t trained) {
    uint64_t before = data_servers_before(cursors);
    return before > trained && before <= INT64_MAX ? before - trained : 0;
}

static void adopt(float **mine, float **theirs) {
    free(*mine);
    *mine = *theirs;
    *theirs = NULL;
}

// What the run goes on from: the weights, and the state when the rule is the same.
static int adopt_weights(struct checkpointer *s, struct checkpoint *from, struct error *err) {
    struct checkpoint *c = &s->checkpoint;
    if (strcmp(from->model->text, c->model->text) != 0)
        return error_set(err, STATUS_DATA, "%s is of another model than %s", s->resume,
                         c->model->name);
    adopt(&c->parameters, &from->parameters);
    if (from->state && from->optimizer.rule == c->optimizer.rule)
        adopt(&c->state, &from->state);
    else if (optimizer_state_name(c->optimizer.rule) &&
             !(c->state = mem_floats(c->model->parameter_count)))
        return error_nomem(err);
    c->clock = from->clock;
    c->samples = from->samples;
    c->epoch = from->epoch;
    const json_t *cursors = json_object_get(from->run, "cursors");
    struct data_servers servers = checkpointer_data_servers(s);
    s->result.skipped = skipped_before(cursors, from->samples);
    return cursors ? data_servers_resume(&servers, cursors, err) : STATUS_OK;
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
                                 .insecure = s->config.insecure};
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
    json_decref(manifest);
    free(folder);
    return status;
}

static int load_weights(struct checkpointer *s, struct error *err) {
    struct checkpoint from = {0};
    int status = fetch_parts(s, err);
    if (!status)
        status = checkpoint_load(&from, s->resume, NULL, 0, true, err);
    if (!status)
        status = adopt_weights(s, &from, err);
    if (!status)
        status = say_differences(s, &from, err);
    checkpoint_free(&from);
    return status;
}

static int store_quantity(struct checkpointer *s, enum proto_quantity quantity, const float *values,
                          struct error *err) {
    const struct store store = {.quantity = quantity, .values = values, .versions = s->versions};
    exchange_store(s->store, &store);
    return exchange_wait(s->store, NULL, err);
}

// State comes first: a server that has all weights is ready.
static int store_weights(struct checkpointer *s, struct error *err) {
    const struct checkpoint *c = &s->checkpoint;
    int status = STATUS_OK;
    for (size_t i = 0; i < servers_shards(s->servers); i++)
        s->versions[i] = c->clock ? c->clock : 1; // 0 says that there are no weights
    if (c->state)
        status = store_quantity(s, PROTO_QUANTITY_STATE, c->state, err);
    return status ? status : store_quantity(s, PROTO_QUANTITY_WEIGHT, c->parameters, err);
}

static int make_weights(struct checkpointer *s, struct error *err) {
    int status = checkpointer_make_room(s, true, err);
    if (!status)
        model_init(s->checkpoint.model, s->checkpoint.parameters, s->checkpoint.seed);
    return status;
}

int checkpointer_initialise(struct checkpointer *s, struct error *err) {
    int status;
    if (s->resume)
        status = load_weights(s, err);
    else
        status = make_weights(s, err);
    return status ? status : store_weights(s, err);
}
