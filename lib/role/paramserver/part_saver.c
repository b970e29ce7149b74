#include "role/paramserver/part_saver.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "remote/servers_client.h"
#include "role/paramserver/part_read.h"
#include "role/request_queue.h"
#include "run/checkpoint_parts.h"

enum { CHUNK = 8 * PROTO_SHARD_FLOATS }; // floats that are pulled at once

struct part_saver {
    struct part_saver_options options;
    pthread_t thread;
    bool started;
    struct gate work; // for the thread
    _Atomic bool closing;
    struct request_queue inbox;

    pthread_mutex_t lock; // of all that follows
    struct kept *routes;
    const struct link *link; // of who gave the order under way; NULL: none is
    struct servers *servers; // of the same
};

// A part in the making.
struct part {
    struct part_saver *saver;
    const struct proto_save_part *order;
    struct servers *servers;
    struct named_lists lists; // of the model's tensors, and of their states
    char *folder;             // of the file
    bool own;                 // it is on this server's own disk
    struct checkpoint_part_file file;
    float *chunk;
    struct shard_stamp *pulled; // of shards, in the last pull
    uint64_t *versions;         // of the oldest weights of each shard in the part; 0: none are
};

// --- values -----------------------------------------------------------------------------

static uint64_t shard_of(size_t place) {
    return place / PROTO_SHARD_FLOATS;
}

static int pull_chunk(const struct part *part, enum proto_quantity quantity, struct span span,
                      struct error *err) {
    const struct pull pull = {
        .quantity = quantity, .into = part->chunk, .first = span.first, .stamps = part->pulled};
    struct exchange *exchange;
    int status = exchange_open(&exchange, part->servers, EXCHANGE_PULL, &span, 1, err);
    if (status)
        return status;
    for (uint64_t shard = shard_of(span.first); shard <= shard_of(span.first + span.n - 1); shard++)
        part->pulled[shard] = (struct shard_stamp){0};
    exchange_pull(exchange, &pull);
    status = exchange_wait(exchange, NULL, err);
    exchange_close(exchange);
    return status;
}

static void note_versions(const struct part *part, struct span span) {
    for (uint64_t shard = shard_of(span.first); shard <= shard_of(span.first + span.n - 1);
         shard++) {
        uint64_t *version = &part->versions[shard], pulled = part->pulled[shard].version;
        if (!*version || pulled < *version)
            *version = pulled;
    }
}

static int check_finite(const struct part *part, const struct named_parameter *named, size_t n,
                        struct error *err) {
    bool finite = true;
    for (size_t i = 0; i < n; i++)
        finite &= isfinite(part->chunk[i]) != 0;
    return finite ? STATUS_OK
                  : error_set(err, STATUS_DIVERGED, "'%s' is no longer finite", named->name);
}

static int write_tensor(struct part *part, enum proto_quantity quantity,
                        const struct named_parameter *named, struct error *err) {
    size_t end = named->parameter->offset + named->parameter->count;
    int status = STATUS_OK;
    for (size_t first = named->parameter->offset; !status && first < end; first += CHUNK) {
        const struct span span = {first, end - first < CHUNK ? end - first : CHUNK};
        status = pull_chunk(part, quantity, span, err);
        if (!status && quantity == PROTO_QUANTITY_WEIGHT)
            note_versions(part, span);
        if (!status)
            status = check_finite(part, named, span.n, err);
        if (!status)
            status = checkpoint_part_write(&part->file, part->chunk, span.n, err);
    }
    return status;
}

// --- the file ---------------------------------------------------------------------------

static uint32_t tensor_at(const struct part *part, uint32_t i) {
    return ((const struct proto_tensor *)part->order->tensors.at)[i].tensor;
}

// Each once, and each of the model.
static int check_tensors(const struct part *part, struct error *err) {
    for (uint32_t i = 0; i < part->order->tensors.count; i++)
        if (tensor_at(part, i) >= part->lists.each ||
            (i > 0 && tensor_at(part, i) <= tensor_at(part, i - 1)))
            return error_set(err, STATUS_DATA, "tensor %u of the part is %u, of %zu in the model",
                             (unsigned)i, (unsigned)tensor_at(part, i), part->lists.each);
    return STATUS_OK;
}

int part_saver_make_folder(const char *folder, struct error *err) {
    char *inside = NULL;
    int status = run_folder_create(folder, err);
    if (!status && asprintf(&inside, "%s/.", folder) < 0)
        return error_nomem(err);
    if (!status && access(inside, W_OK | X_OK))
        status = error_errno(err, STATUS_CANTCREATE, "cannot write in %s", folder);
    free(inside);
    return status;
}

// In the controller's folder, or in this server's own, of which what no checkpoint needs goes
// first.
static int find_folder(struct part *part, struct error *err) {
    const struct proto_save_part *order = part->order;
    const struct part_saver_options *o = &part->saver->options;
    const uint8_t *run = o->identity.run.bytes;
    part->own = order->folder.length == 0;
    if (part->own && !o->folder)
        return error_set(err, STATUS_CANTCREATE,
                         "it has no folder for parts: --checkpoints DIR names it");
    part->folder = part->own ? checkpoint_own_folder(o->folder, run, order->token.bytes)
                             : mem_text(order->folder.at, order->folder.length);
    if (!part->folder)
        return error_nomem(err);
    if (!part->own)
        return STATUS_OK;
    const struct proto_token *kept = order->kept.at;
    checkpoint_own_prune(o->folder, run, order->kept.count ? &kept->token.bytes : NULL,
                         order->kept.count);
    return checkpoint_own_make(part->folder, order->token.bytes, err);
}

static int open_file(struct part *part, struct error *err) {
    const struct proto_save_part *order = part->order;
    uint32_t n = order->tensors.count;
    struct tensor *tensors = mem_array(part->lists.count * n + 1, sizeof *tensors);
    size_t count = 0;
    for (size_t l = 0; tensors && l < part->lists.count; l++)
        for (uint32_t i = 0; i < n; i++)
            tensors[count++] = named_tensor(&part->lists.named[l][tensor_at(part, i)], NULL);
    int status = tensors ? find_folder(part, err) : error_nomem(err);
    if (!status)
        status = checkpoint_part_open(&part->file, part->folder, order->token.bytes, order->part,
                                      order->parts, tensors, count, err);
    free(tensors);
    return status;
}

static enum proto_quantity quantity_of(const struct part *part, size_t list) {
    return (enum proto_quantity)(PROTO_QUANTITY_WEIGHT + named_lists_array(&part->lists, list));
}

static int write_file(struct part *part, struct error *err) {
    uint32_t n = part->order->tensors.count;
    int status = open_file(part, err);
    if (status)
        return status;
    for (size_t l = 0; l < part->lists.count; l++)
        for (uint32_t i = 0; !status && i < n; i++)
            status = write_tensor(part, quantity_of(part, l),
                                  &part->lists.named[l][tensor_at(part, i)], err);
    return checkpoint_part_end(&part->file, status, err);
}

static int open_part(struct part *part, struct error *err) {
    const struct part_saver_options *o = &part->saver->options;
    size_t shards = servers_shards(part->servers);
    int status = named_lists_make(&part->lists, o->model, &o->optimizer, err);
    if (!status)
        status = check_tensors(part, err);
    if (status)
        return status;
    part->chunk = mem_untouched_floats(CHUNK);
    part->pulled = mem_zeroed(shards, sizeof *part->pulled);
    part->versions = mem_zeroed(shards, sizeof *part->versions);
    return part->chunk && part->pulled && part->versions ? STATUS_OK : error_nomem(err);
}

static void free_part(struct part *part) {
    named_lists_free(&part->lists);
    free(part->folder);
    free(part->chunk);
    free(part->pulled);
    free(part->versions);
}

// --- answers ----------------------------------------------------------------------------

static enum proto_refusal refusal_of(int status) {
    switch (status) {
    case STATUS_DIVERGED:
        return PROTO_REFUSAL_NOT_FINITE;
    case STATUS_DATA:
        return PROTO_REFUSAL_WRONG_SHAPE;
    case STATUS_IO:
    case STATUS_CANTCREATE:
        return PROTO_REFUSAL_STORAGE;
    default:
        return PROTO_REFUSAL_STOPPING;
    }
}

static void answer_saved(const struct part *part, const struct queued_request *queued) {
    size_t shards = servers_shards(part->servers);
    struct proto_reached *reached = mem_array(shards, sizeof *reached);
    uint32_t count = 0;
    for (size_t i = 0; reached && i < shards; i++)
        if (part->versions[i])
            reached[count++] = (struct proto_reached){(uint32_t)i, part->versions[i]};
    const struct proto_part_saved saved = {
        .bytes = part->file.sum.bytes,
        .crc = part->file.sum.crc,
        .shards = proto_list(reached, count),
    };
    struct error err = {0};
    if (!reached)
        error_nomem(&err);
    else
        link_answer(queued->link, queued->request, PROTO_TYPE_PART_SAVED, &saved, NULL, &err);
    if (err.status)
        link_refuse(queued->link, queued->request, PROTO_REFUSAL_STORAGE, 0, err.text);
    free(reached);
}

// --- an order ---------------------------------------------------------------------------

static void look_for_routes(void *self, uint64_t epoch) {
    const struct part_saver *saver = self;
    (void)epoch;
    member_look(saver->options.member);
}

static void say_wait(void *self, const char *text) {
    const struct part_saver *saver = self;
    saver->options.say(saver->options.self, text);
}

static int open_servers(struct part_saver *saver, struct servers **servers, struct error *err) {
    const struct part_saver_options *o = &saver->options;
    const struct servers_options options = {
        .hello = {.role = PROTO_ROLE_PARAMETER_SERVER,
                  .run = o->identity.run,
                  .model = o->identity.model,
                  .session = o->identity.session,
                  .name = proto_text(o->name)},
        .parameters = o->model->parameter_count,
        .keys = o->keys,
        .insecure = o->insecure,
        .self = saver,
        .stale = look_for_routes,
        .say = say_wait,
    };
    return servers_open(servers, &options, err);
}

// From now on the order can be ended. One whose giver is gone already ends at once.
static void enter_order(struct part_saver *saver, struct link *link, struct servers *servers) {
    pthread_mutex_lock(&saver->lock);
    saver->link = link;
    saver->servers = servers;
    if (saver->routes)
        servers_route(servers, saver->routes);
    if (atomic_load(&saver->closing) || link_hung_up(link))
        servers_stop(servers);
    pthread_mutex_unlock(&saver->lock);
}

static void leave_order(struct part_saver *saver) {
    pthread_mutex_lock(&saver->lock);
    saver->link = NULL;
    saver->servers = NULL;
    pthread_mutex_unlock(&saver->lock);
}

static void carry_out(struct part_saver *saver, const struct queued_request *queued) {
    struct part part = {.saver = saver, .order = &queued->message->message.save_part};
    struct error err = {0};
    int status = open_servers(saver, &part.servers, &err);
    if (!status) {
        enter_order(saver, queued->link, part.servers);
        status = open_part(&part, &err);
    }
    if (!status)
        status = write_file(&part, &err);
    if (status && part.own && part.folder)
        run_folder_remove(part.folder);
    if (status) {
        error_context(&err, "%s", saver->options.name);
        link_refuse(queued->link, queued->request, refusal_of(status), 0, err.text);
    } else {
        answer_saved(&part, queued);
    }
    leave_order(saver);
    servers_close(part.servers);
    free_part(&part);
}

// A server without a folder has none.
static void drop_parts(const struct part_saver *saver, const struct queued_request *queued) {
    const struct proto_list *list = &queued->message->message.drop_parts.checkpoints;
    const struct proto_dropped *dropped = list->at;
    for (uint32_t i = 0; saver->options.folder && i < list->count; i++) {
        struct checkpoint_own own;
        memcpy(own.run, dropped[i].run.bytes, sizeof own.run);
        memcpy(own.token, dropped[i].token.bytes, sizeof own.token);
        checkpoint_own_remove(saver->options.folder, &own);
    }
    struct error err = {0};
    if (link_answer(queued->link, queued->request, PROTO_TYPE_DONE, NULL, NULL, &err))
        link_break(queued->link, err.text);
}

static void carry_out_any(struct part_saver *saver, const struct queued_request *queued) {
    if (queued->type == PROTO_TYPE_DROP_PARTS)
        drop_parts(saver, queued);
    else if (queued->type == PROTO_TYPE_READ_PART)
        part_read(saver->options.folder, saver->options.name, queued);
    else
        carry_out(saver, queued);
}

static void *carry_out_orders(void *self) {
    struct part_saver *saver = self;
    while (!atomic_load(&saver->closing)) {
        uint32_t seen = gate_look(&saver->work);
        struct queued_request *queued = request_queue_take(&saver->inbox);
        if (queued) {
            carry_out_any(saver, queued);
            queued_request_free(queued);
        } else {
            gate_wait(&saver->work, seen, -1);
        }
    }
    return NULL;
}

// --- for others -------------------------------------------------------------------------

int part_saver_open(struct part_saver **out, const struct part_saver_options *options,
                    struct error *err) {
    struct part_saver *saver = mem_zeroed(1, sizeof *saver);
    if (!saver)
        return error_nomem(err);
    saver->options = *options;
    pthread_mutex_init(&saver->lock, NULL);
    request_queue_open(&saver->inbox, &saver->work);
    saver->started = pthread_create(&saver->thread, NULL, carry_out_orders, saver) == 0;
    if (!saver->started) {
        part_saver_close(saver);
        return error_set(err, STATUS_IO, "cannot start a thread");
    }
    *out = saver;
    return STATUS_OK;
}

void part_saver_close(struct part_saver *saver) {
    if (!saver)
        return;
    atomic_store(&saver->closing, true);
    pthread_mutex_lock(&saver->lock);
    if (saver->servers)
        servers_stop(saver->servers);
    pthread_mutex_unlock(&saver->lock);
    gate_open(&saver->work);
    if (saver->started)
        pthread_join(saver->thread, NULL);
    request_queue_close(&saver->inbox);
    kept_drop(saver->routes);
    pthread_mutex_destroy(&saver->lock);
    free(saver);
}

void part_saver_route(struct part_saver *saver, struct kept *routes) {
    kept_hold(routes);
    pthread_mutex_lock(&saver->lock);
    kept_drop(saver->routes);
    saver->routes = routes;
    if (saver->servers)
        servers_route(saver->servers, routes);
    pthread_mutex_unlock(&saver->lock);
}

void part_saver_hear(struct part_saver *saver, struct link *link, uint64_t request, uint16_t type,
                     const union proto_message *message) {
    link_know(link);
    request_queue_add(&saver->inbox, link, request, type, message, NULL);
}

void part_saver_left(struct part_saver *saver, const struct link *link) {
    pthread_mutex_lock(&saver->lock);
    if (saver->servers && saver->link == link)
        servers_stop(saver->servers);
    pthread_mutex_unlock(&saver->lock);
}
