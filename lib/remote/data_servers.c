#include "remote/data_servers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "net/link.h"
#include "proto/kept.h"

enum { PATIENCE = 10000 }; // milliseconds for a dial

// --- asking -------------------------------------------------------------------------------

static const struct proto_server *server_at(const struct data_servers *servers, size_t i) {
    return (const struct proto_server *)servers->routes->data_servers.at + i;
}

static bool is_absent(const struct data_servers *servers, uint32_t member) {
    for (size_t i = 0; i < servers->absent_count; i++)
        if (servers->absent[i].member == member)
            return true;
    return false;
}

// Where it is administered.
static int dial_server(const struct data_servers *servers, size_t i, struct link **link,
                       struct error *err) {
    const struct proto_server *server = server_at(servers, i);
    const struct proto_text *text =
        server->administration.length ? &server->administration : &server->training;
    const struct link_options options = {.keys = servers->keys, .insecure = servers->insecure};
    char address[PROTO_ADDRESS_MAX + 1];
    snprintf(address, sizeof address, "%.*s", (int)text->length, text->at);
    int status = link_dial(link, address, &options, &servers->hello, PATIENCE, NULL, err);
    return status ? error_context(err, "data server %u", server->member) : STATUS_OK;
}

// Asks, and wants an answer of this type.
static int ask_server(struct link *link, uint16_t type, const void *message, uint16_t wanted,
                      struct kept **answer, struct error *err) {
    struct link_request request = {.type = type, .message = message};
    int status = link_call_kept(link, &request, answer, err);
    if (status || (*answer)->type == wanted)
        return status;
    const struct proto_refused *refused = &(*answer)->message.refused;
    if ((*answer)->type == PROTO_TYPE_REFUSED)
        error_set(err, STATUS_UNAVAILABLE, "%s: %s%s%.*s", link_address(link),
                  proto_refusal_name(refused->code), refused->text.length ? ": " : "",
                  (int)refused->text.length, refused->text.at);
    else
        error_set(err, STATUS_UNAVAILABLE, "%s: answered with '%s'", link_address(link),
                  proto_message_name((*answer)->type));
    kept_drop(*answer);
    return STATUS_UNAVAILABLE;
}

// --- what they serve ----------------------------------------------------------------------

static int check_same_data(const struct proto_data *data, int outputs,
                           struct data_servers_data *all, struct error *err) {
    if (data->classes > (uint32_t)outputs)
        return error_set(err, STATUS_DATA, "has %u classes, but the model has %d outputs",
                         data->classes, outputs);
    if (all->samples && all->digest != data->digest)
        return error_set(err, STATUS_DATA,
                         "serves another data set (digest %08" PRIx32
                         ") than the others (%08" PRIx32 ")",
                         data->digest, all->digest);
    snprintf(all->name, sizeof all->name, "%.*s", (int)data->name.length, data->name.at);
    all->digest = data->digest;
    all->samples += data->samples;
    return STATUS_OK;
}

// The samples of one server.
struct served {
    uint64_t first, samples;
};

static int by_first(const void *a, const void *b) {
    const struct served *left = a, *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

// The first gap between these, whose order is lost by that.
static void find_gap(struct data_servers_gap *gap, struct served *served, size_t count) {
    uint64_t end = 0, next = gap->whole;
    if (count > 0)
        qsort(served, count, sizeof *served, by_first);
    for (size_t i = 0; i < count && next == gap->whole; i++) {
        if (served[i].first > end)
            next = served[i].first;
        else if (served[i].samples > end - served[i].first)
            end = served[i].first + served[i].samples;
    }
    gap->first = end;
    gap->samples = next > end ? next - end : 0;
}

static int add_description(struct link *link, int outputs, struct data_servers_data *all,
                           struct served *served, struct error *err) {
    const struct proto_get_data get = {.names = UINT32_MAX};
    struct kept *answer;
    int status = ask_server(link, PROTO_TYPE_GET_DATA, &get, PROTO_TYPE_DATA, &answer, err);
    if (status)
        return status;
    const struct proto_data *data = &answer->message.data;
    status = check_same_data(data, outputs, all, err);
    *served = (struct served){data->first, data->samples};
    all->gap.whole = data->whole;
    kept_drop(answer);
    return status ? error_context(err, "data server %s", link_address(link)) : STATUS_OK;
}

static int describe(const struct data_servers *servers, int outputs, struct data_servers_data *data,
                    struct served *served, struct error *err) {
    int status = STATUS_OK;
    size_t count = 0;
    for (size_t i = 0; !status && i < servers->routes->data_servers.count; i++) {
        struct link *link;
        if (is_absent(servers, server_at(servers, i)->member))
            continue;
        status = dial_server(servers, i, &link, err);
        if (status)
            break;
        status = add_description(link, outputs, data, &served[count++], err);
        link_close(link);
    }
    if (!status && data->samples == 0)
        status = error_set(err, STATUS_UNAVAILABLE, "no data server can be asked");
    for (size_t i = 0; i < servers->absent_count; i++) {
        data->samples += servers->absent[i].samples;
        served[count++] = (struct served){servers->absent[i].first, servers->absent[i].samples};
    }
    if (!status)
        find_gap(&data->gap, served, count);
    return status;
}

int data_servers_describe(const struct data_servers *servers, int outputs,
                          struct data_servers_data *data, struct error *err) {
    size_t most = servers->routes->data_servers.count + servers->absent_count;
    struct served *served = mem_zeroed(most + 1, sizeof *served);
    *data = (struct data_servers_data){0};
    int status = served ? describe(servers, outputs, data, served, err) : error_nomem(err);
    free(served);
    return status;
}

json_t *data_servers_json(const struct data_servers_data *data) {
    char digest[16];
    snprintf(digest, sizeof digest, "%08" PRIx32, data->digest);
    return json_pack("{s:s, s:I, s:s}", "path", data->name, "samples", (json_int_t)data->samples,
                     "digest", digest);
}

// --- how far they are ---------------------------------------------------------------------

// A data server's place in its data, as checkpoints have it.
static json_t *cursor_json(const struct proto_data *data, const struct proto_cursor *cursor,
                           uint64_t *finished) {
    const struct proto_range *ranges = cursor->finished.at;
    json_t *list = json_array();
    *finished = 0;
    for (uint32_t i = 0; i < cursor->finished.count; i++) {
        json_append(&list,
                    json_pack("[I, I]", (json_int_t)ranges[i].first, (json_int_t)ranges[i].count));
        *finished += ranges[i].count;
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "digest", (json_int_t)data->digest, "first",
                     (json_int_t)data->first, "samples", (json_int_t)data->samples, "seed",
                     (json_int_t)cursor->seed, "epoch", (json_int_t)cursor->epoch, "finished",
                     list);
}

struct server_progress { // in the data of one server
    json_t *cursor;
    uint64_t samples, finished; // in its range; finished in the epoch
    uint32_t epoch;
    bool out;
};

static int ask_progress(struct link *link, struct server_progress *progress, struct error *err) {
    struct kept *data, *cursor;
    int status =
        ask_server(link, PROTO_TYPE_GET_DATA, &(struct proto_get_data){.names = UINT32_MAX},
                   PROTO_TYPE_DATA, &data, err);
    if (status)
        return status;
    status = ask_server(link, PROTO_TYPE_GET_CURSOR, NULL, PROTO_TYPE_CURSOR, &cursor, err);
    if (!status) {
        progress->cursor =
            cursor_json(&data->message.data, &cursor->message.cursor, &progress->finished);
        progress->samples = data->message.data.samples;
        progress->epoch = cursor->message.cursor.epoch;
        kept_drop(cursor);
        status = progress->cursor ? STATUS_OK : error_nomem(err);
    }
    kept_drop(data);
    return status;
}

// What it had finished of its last epoch only itself knows: all of that is wanted again.
static struct server_progress absent_progress(const struct data_servers *servers,
                                              const struct data_servers_part *part) {
    json_t *cursor =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:[]}", "digest", (json_int_t)servers->digest, "first",
                  (json_int_t)part->first, "samples", (json_int_t)part->samples, "seed",
                  (json_int_t)servers->seed, "epoch", (json_int_t)part->epoch, "finished");
    double whole = floor(part->done);
    return (struct server_progress){
        .cursor = cursor,
        .samples = part->samples,
        .epoch = (uint32_t)whole,
        .out = part->out,
        .finished = (uint64_t)((part->done - whole) * (double)part->samples),
    };
}

static int dial_progress(const struct data_servers *servers, size_t i,
                         struct server_progress *progress, struct error *err) {
    struct link *link;
    int status = dial_server(servers, i, &link, err);
    if (status)
        return status;
    status = ask_progress(link, progress, err);
    link_close(link);
    return status;
}

static int find_progress(const struct data_servers *servers, size_t i,
                         struct server_progress *progress, struct error *err) {
    size_t routes = servers->routes->data_servers.count;
    if (i < routes)
        return dial_progress(servers, i, progress, err);
    *progress = absent_progress(servers, &servers->absent[i - routes]);
    return STATUS_OK;
}

int data_servers_cursors(const struct data_servers *servers, json_t **cursors, uint64_t *finished,
                         double *epoch, struct error *err) {
    uint64_t samples = 0, out = 0; // in the parts of the run; finished in the others
    size_t routes = servers->routes->data_servers.count, all = routes + servers->absent_count;
    int status = STATUS_OK;
    *cursors = json_array();
    *finished = 0;
    for (size_t i = 0; !status && i < all; i++) {
        struct server_progress progress = {0};
        if (i < routes && is_absent(servers, server_at(servers, i)->member))
            continue;
        status = find_progress(servers, i, &progress, err);
        if (!status && json_array_append_new(*cursors, progress.cursor))
            status = error_nomem(err);
        uint64_t done = progress.epoch * progress.samples + progress.finished;
        samples += progress.out ? 0 : progress.samples;
        out += progress.out ? done : 0;
        *finished += done;
    }
    *epoch = samples ? (double)(*finished - out) / (double)samples : 0;
    if (status)
        json_decref(*cursors);
    return status;
}

// --- going on -----------------------------------------------------------------------------

static uint64_t json_count(const json_t *object, const char *name) {
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static uint64_t ranges_sum(const json_t *ranges) {
    uint64_t sum = 0;
    size_t i;
    json_t *range;
    json_array_foreach(ranges, i, range) sum +=
        (uint64_t)json_integer_value(json_array_get(range, 1));
    return sum;
}

uint64_t data_servers_before(const json_t *cursors) {
    uint64_t sum = 0;
    size_t i;
    json_t *one;
    json_array_foreach(cursors, i, one) sum +=
        json_count(one, "epoch") * json_count(one, "samples") +
        ranges_sum(json_object_get(one, "finished"));
    return sum;
}

// Ranges were cut otherwise then: all of them begin with the first epoch that was not over.
static json_t *oldest_epoch(const json_t *cursors, const json_t *mine) {
    uint64_t least = UINT64_MAX;
    size_t i;
    json_t *one;
    json_array_foreach(cursors, i, one) {
        if (json_count(one, "epoch") < least)
            least = json_count(one, "epoch");
    }
    return json_pack("{s:O, s:I, s:[]}", "seed", json_object_get(mine, "seed"), "epoch",
                     (json_int_t)(i ? least : 0), "finished");
}

// The place that the checkpoint has for the same range of the same data. A new reference.
static json_t *find_cursor(const json_t *cursors, const json_t *mine) {
    size_t i;
    json_t *one;
    json_array_foreach(cursors, i, one) {
        if (json_equal(json_object_get(one, "digest"), json_object_get(mine, "digest")) &&
            json_equal(json_object_get(one, "first"), json_object_get(mine, "first")) &&
            json_equal(json_object_get(one, "samples"), json_object_get(mine, "samples")))
            return json_incref(one);
    }
    return oldest_epoch(cursors, mine);
}

static bool is_behind(const json_t *mine, const json_t *theirs) {
    uint64_t a = json_count(mine, "epoch"), b = json_count(theirs, "epoch");
    return a < b || (a == b && ranges_sum(json_object_get(mine, "finished")) <
                                   ranges_sum(json_object_get(theirs, "finished")));
}

static int set_cursor(struct link *link, const json_t *cursor, struct error *err) {
    const json_t *list = json_object_get(cursor, "finished");
    size_t count = json_array_size(list);
    struct proto_range *ranges = mem_zeroed(count + 1, sizeof *ranges);
    if (!ranges)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *range = json_array_get(list, i);
        ranges[i].first = (uint64_t)json_integer_value(json_array_get(range, 0));
        ranges[i].count = (uint64_t)json_integer_value(json_array_get(range, 1));
    }
    const struct proto_set_cursor set = {
        .seed = json_count(cursor, "seed"),
        .epoch = (uint32_t)json_count(cursor, "epoch"),
        .finished = proto_list(ranges, (uint32_t)count),
    };
    struct kept *answer;
    int status = ask_server(link, PROTO_TYPE_SET_CURSOR, &set, PROTO_TYPE_DONE, &answer, err);
    if (!status)
        kept_drop(answer);
    free(ranges);
    return status;
}

static int resume_server(const struct data_servers *servers, size_t i, const json_t *cursors,
                         struct error *err) {
    struct link *link;
    struct server_progress here = {0};
    int status = dial_server(servers, i, &link, err);
    if (status)
        return status;
    status = ask_progress(link, &here, err);
    json_t *there = status ? NULL : find_cursor(cursors, here.cursor);
    if (there && is_behind(here.cursor, there))
        status = set_cursor(link, there, err);
    json_decref(there);
    json_decref(here.cursor);
    link_close(link);
    return status;
}

int data_servers_resume(const struct data_servers *servers, const json_t *cursors,
                        struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < servers->routes->data_servers.count; i++)
        status = resume_server(servers, i, cursors, err);
    return status;
}
