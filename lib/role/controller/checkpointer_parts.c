// A checkpoint in parts: the parameter servers write them, all at once, and the checkpointer makes
// a checkpoint of them.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "net/link.h"
#include "remote/part_gather.h"
#include "role/controller/checkpointer_internal.h"
#include "role/controller/part_plan.h"
#include "run/checkpoint_parts.h"

// What one server was told to write.
struct order {
    struct checkpointer *s;
    const struct planned_part *part;
    struct link *link;
    struct link_request ask;
    char address[PROTO_ADDRESS_MAX];
    // By the network's threads, before `over`.
    struct kept *answer;
    struct error err;
    _Atomic bool over;
};

struct orders {
    struct checkpointer *s;
    struct part_plan plan;
    struct checkpoint_draft draft;
    struct checkpoint_part *parts;
    struct order *orders;
    struct part_holder *holders; // of parts that stay with their servers; NULL: none do
    struct proto_token *kept;    // checkpoints before this one, of the same kind
    uint32_t kept_count;
    char run_id[PROTO_ID_TEXT];
};

// --- one order --------------------------------------------------------------------------

static int status_of(enum proto_refusal code) {
    return code == PROTO_REFUSAL_NOT_FINITE ? STATUS_DIVERGED
           : code == PROTO_REFUSAL_STORAGE  ? STATUS_IO
                                            : STATUS_UNAVAILABLE;
}

static void take_answer(struct order *order, const struct link_request *ask) {
    const struct proto_refused *refused = &ask->answer->refused;
    if (ask->answer_type == PROTO_TYPE_PART_SAVED)
        kept_make(&order->answer, ask->answer_type, ask->answer, &order->err);
    else if (ask->answer_type == PROTO_TYPE_REFUSED)
        error_set(&order->err, status_of(refused->code), "parameter server %s: %s: %.*s",
                  order->address, proto_refusal_name(refused->code), (int)refused->text.length,
                  refused->text.at);
    else
        error_set(&order->err, STATUS_UNAVAILABLE, "parameter server %s answered with '%s'",
                  order->address, proto_message_name(ask->answer_type));
}

static void order_done(struct link_request *ask) {
    struct order *order = ask->context;
    if (ask->status)
        error_set(&order->err, STATUS_UNAVAILABLE, "parameter server %s: %s", order->address,
                  ask->why);
    else
        take_answer(order, ask);
    atomic_store(&order->over, true);
    gate_open(&order->s->gate);
}

static int dial(struct order *order, struct error *err) {
    const struct checkpointer *s = order->s;
    const struct link_options options = {.keys = s->config.keys, .insecure = s->config.insecure};
    const struct proto_hello hello = checkpointer_hello(s);
    const struct proto_text address = order->part->server->administration;
    snprintf(order->address, sizeof order->address, "%.*s", (int)address.length, address.at);
    return link_dial(&order->link, order->address, &options, &hello, CHECKPOINTER_PATIENCE, NULL,
                     err)
               ? error_context(err, "parameter server")
               : STATUS_OK;
}

static int give_order(struct orders *all, uint32_t i, struct error *err) {
    struct order *order = &all->orders[i];
    *order = (struct order){.s = all->s, .part = &all->plan.parts[i]};
    int status = dial(order, err);
    struct proto_tensor *tensors = mem_array(order->part->count, sizeof *tensors);
    struct proto_save_part message = {
        .folder = proto_text(all->holders ? "" : all->draft.path),
        .part = i + 1,
        .parts = all->plan.count,
        .tensors = proto_list(tensors, (uint32_t)order->part->count),
        .kept = proto_list(all->kept, all->kept_count),
    };
    memcpy(message.token.bytes, all->draft.token, sizeof message.token.bytes);
    for (size_t t = 0; tensors && t < order->part->count; t++)
        tensors[t].tensor = order->part->tensors[t];
    order->ask = (struct link_request){
        .type = PROTO_TYPE_SAVE_PART, .message = &message, .done = order_done, .context = order};
    if (!status)
        status = tensors ? link_ask(order->link, &order->ask, err) : error_nomem(err);
    free(tensors);
    return status;
}

// --- all of them ------------------------------------------------------------------------

// *over: all have succeeded. An error is that of the first that has not.
static int look_at_orders(const struct orders *all, bool *over, struct error *err) {
    *over = true;
    if (atomic_load(&all->s->stopping))
        return error_set(err, STATUS_STOPPED, "stopped while saving");
    for (uint32_t i = 0; i < all->plan.count; i++) {
        const struct order *order = &all->orders[i];
        bool ended = atomic_load(&order->over);
        if (ended && order->err.status) {
            *err = order->err;
            return err->status;
        }
        *over &= ended;
    }
    return STATUS_OK;
}

static int wait_for_orders(struct orders *all, struct error *err) {
    for (;;) {
        bool over;
        uint32_t seen = gate_look(&all->s->gate);
        int status = look_at_orders(all, &over, err);
        if (status || over)
            return status;
        gate_wait(&all->s->gate, seen, -1);
    }
}

// Those that are under way end with their links.
static void close_orders(struct orders *all) {
    for (uint32_t i = 0; all->orders && i < all->plan.count; i++) {
        if (all->orders[i].link)
            link_close(all->orders[i].link);
        kept_drop(all->orders[i].answer);
    }
    free(all->orders);
    free(all->parts);
    free(all->holders);
    free(all->kept);
}

// --- what they tell ---------------------------------------------------------------------

// A shard that several parts have values of is as new as the oldest of these.
static int take_versions(struct checkpointer *s, const struct proto_part_saved *saved,
                         struct error *err) {
    const struct proto_reached *reached = saved->shards.at;
    for (uint32_t i = 0; i < saved->shards.count; i++) {
        if (reached[i].shard >= servers_shards(s->servers) || !reached[i].version)
            return error_set(err, STATUS_DATA, "a part has version %llu of shard %u",
                             (unsigned long long)reached[i].version, (unsigned)reached[i].shard);
        uint64_t *version = &s->stamps[reached[i].shard].version;
        if (!*version || reached[i].version < *version)
            *version = reached[i].version;
    }
    return STATUS_OK;
}

static int take_parts(struct orders *all, struct error *err) {
    struct checkpointer *s = all->s;
    size_t shards = servers_shards(s->servers);
    int status = STATUS_OK;
    memset(s->stamps, 0, shards * sizeof *s->stamps);
    s->result.bytes = 0;
    for (uint32_t i = 0; !status && i < all->plan.count; i++) {
        const struct proto_part_saved *saved = &all->orders[i].answer->message.part_saved;
        all->parts[i].sum = (struct file_sum){saved->bytes, saved->crc};
        s->result.bytes += saved->bytes;
        status = take_versions(s, saved, err);
    }
    for (size_t i = 0; !status && i < shards; i++)
        if (!s->stamps[i].version)
            status = error_set(err, STATUS_DATA, "no part has weights of shard %zu", i);
    return status ? status : checkpointer_take_versions(s, err);
}

// --- parts that stay with their servers -------------------------------------------------

static bool stay_with_servers(const struct checkpointer *s) {
    return !strcmp(s->settings.checkpoint_parts, "local");
}

// Which of these servers still may need the parts that they have.
static int list_kept(struct orders *all, struct error *err) {
    struct own_parts own;
    int status = checkpointer_list_own(all->s, &own, err);
    if (status)
        return status;
    all->kept = mem_zeroed(own.count + 1, sizeof *all->kept);
    all->kept_count = all->kept ? (uint32_t)own.count : 0;
    for (uint32_t i = 0; i < all->kept_count; i++)
        memcpy(all->kept[i].token.bytes, own.items[i].token, CHECKPOINT_TOKEN);
    free(own.items);
    return all->kept ? STATUS_OK : error_nomem(err);
}

static int name_holders(struct orders *all, struct error *err) {
    const struct checkpointer *s = all->s;
    const struct proto_hello hello = checkpointer_hello(s);
    const struct part_gather how = {
        .hello = &hello, .keys = s->config.keys, .insecure = s->config.insecure};
    int status = list_kept(all, err);
    all->holders = mem_zeroed(all->plan.count, sizeof *all->holders);
    if (!status && !all->holders)
        status = error_nomem(err);
    for (uint32_t i = 0; !status && i < all->plan.count; i++) {
        status = part_holder_ask(&all->holders[i], all->plan.parts[i].server, &how, err);
        all->parts[i].server = all->holders[i].name;
    }
    proto_id_text(all->run_id, &s->config.run);
    all->draft.run_id = all->run_id;
    return status;
}

// --- from the beginning to the end ------------------------------------------------------

static int order_parts(struct orders *all, struct error *err) {
    uint32_t count = all->plan.count;
    int status = STATUS_OK;
    all->orders = mem_zeroed(count, sizeof *all->orders);
    all->parts = mem_zeroed(count, sizeof *all->parts);
    if (!all->orders || !all->parts)
        return error_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        all->parts[i].tensors = all->plan.parts[i].tensors;
        all->parts[i].count = all->plan.parts[i].count;
    }
    if (stay_with_servers(all->s))
        status = name_holders(all, err);
    for (uint32_t i = 0; !status && i < count; i++)
        status = give_order(all, i, err);
    return status ? status : wait_for_orders(all, err);
}

int checkpointer_save_parts(struct checkpointer *s, struct error *err) {
    struct orders all = {.s = s};
    const struct checkpoint *c = &s->checkpoint;
    int status = part_plan_make(&all.plan, c->model, &s->known->message.routes, err);
    if (status)
        return status;
    status = checkpoint_draft_open(&all.draft, s->config.folder, c->clock, err);
    if (!status) {
        status = order_parts(&all, err);
        if (!status)
            status = take_parts(&all, err);
        if (!status)
            status = checkpointer_name_best(s, err);
        if (!status)
            status = checkpoint_draft_save(&all.draft, c, all.parts, all.plan.count,
                                           (int)s->settings.keep_last, err);
        close_orders(&all);
        status = checkpoint_draft_end(&all.draft, status, err);
    }
    part_plan_free(&all.plan);
    return status;
}
