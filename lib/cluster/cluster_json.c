// The controllers' state as JSON text, both ways.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "core/error.h"
#include "core/json.h"
#include "core/mem.h"

// A state in which each bucket is on one server is written as it was before there were copies.
enum { FORMAT = 2, FORMAT_COPIES = 3 };

// --- writing ------------------------------------------------------------------------------

// Where it is known.
static void put_data(json_t **object, const struct cluster_data *data) {
    if (data->whole > 0)
        json_put(object, "data",
                 json_pack("{s:I, s:I, s:I}", "whole", (json_int_t)data->whole, "digest",
                           (json_int_t)data->digest, "classes", (json_int_t)data->classes));
}

static json_t *member_json(const struct cluster_member *m, bool cut) {
    json_t *member =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:s, s:s, s:s}",     //
                  "member", (json_int_t)m->number, "session", (json_int_t)m->session, //
                  "role", (json_int_t)m->role, "threads", (json_int_t)m->threads,     //
                  "memory", (json_int_t)m->memory, "first", (json_int_t)m->first, "samples",
                  (json_int_t)m->samples, "gone", m->gone, "name", m->name, //
                  "training", m->training, "replication", m->replication,   //
                  "administration", m->administration);
    put_data(&member, &m->data);
    if (m->stores)
        json_put(&member, "stores", json_true());
    if (m->parts)
        json_put(&member, "parts", json_true());
    if (m->draining)
        json_put(&member, "draining", json_true());
    if (m->left)
        json_put(&member, "left", json_true());
    if (cut && m->role == PROTO_ROLE_WORKER) {
        json_put(&member, "replica", json_integer(m->replica));
        json_put(&member, "partition", json_integer(m->partition));
    }
    return member;
}

// Of buckets first..first+count-1, which are on the same servers since the same epoch.
static json_t *route_json(const struct proto_place *p, size_t first, size_t count, bool copies) {
    json_t *route =
        json_pack("{s:I, s:I, s:I, s:I}", "first", (json_int_t)first, "count", (json_int_t)count,
                  "epoch", (json_int_t)p->epoch, "primary", (json_int_t)p->primary);
    if (copies) {
        json_put(&route, "second", json_integer(p->second));
        json_put(&route, "third", json_integer(p->third));
        json_put(&route, "joiner", json_integer(p->joiner));
    }
    return route;
}

static bool place_same(const struct proto_place *a, const struct proto_place *b) {
    return a->epoch == b->epoch && a->primary == b->primary && a->second == b->second &&
           a->third == b->third && a->joiner == b->joiner;
}

static json_t *routes_json(const struct cluster *c, bool copies) {
    json_t *routes = json_array();
    for (size_t first = 0, end; first < c->place_count; first = end) {
        const struct proto_place *place = &c->places[first];
        for (end = first + 1; end < c->place_count && place_same(place, &c->places[end]);)
            end++;
        json_append(&routes, route_json(place, first, end - first, copies));
    }
    return routes;
}

static json_t *part_json(const struct cluster_part *p) {
    return json_pack("{s:I, s:I, s:I, s:f, s:b}", "first", (json_int_t)p->first, "samples",
                     (json_int_t)p->samples, "member", (json_int_t)p->member, "epoch", p->epoch,
                     "out", p->out);
}

// Whether buckets are, or are to be, on more than one server.
static bool has_copies(const struct cluster *c) {
    bool copies = c->copies > 1;
    for (size_t i = 0; i < c->place_count; i++)
        copies |= c->places[i].second != PROTO_NOBODY || c->places[i].joiner != PROTO_NOBODY;
    return copies;
}

char *cluster_write(const struct cluster *c) {
    char run[PROTO_ID_TEXT];
    bool copies = has_copies(c);
    json_t *members = json_array(), *routes = routes_json(c, copies), *parts = json_array();
    for (size_t i = 0; i < c->member_count; i++)
        json_append(&members, member_json(&c->members[i], c->partitions > 1));
    for (size_t i = 0; i < c->part_count; i++)
        json_append(&parts, part_json(&c->parts[i]));
    proto_id_text(run, &c->run);
    json_t *all = json_pack(
        "{s:i, s:s, s:s, s:b, s:b, s:i, s:s?, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, "
        "s:I, s:o, s:o, s:o}",
        "format", copies ? FORMAT_COPIES : FORMAT, "run", run, "stage",
        cluster_stage_name(c->stage), //
        "warm", c->warm, "finished", c->finished, "status", c->status, "why", c->why, "resume",
        c->resume,                                                                //
        "next_session", (json_int_t)c->next_session,                              //
        "next_member", (json_int_t)c->next_member, "order", (json_int_t)c->order, //
        "members_epoch", (json_int_t)c->members_epoch,                            //
        "routes_epoch", (json_int_t)c->routes_epoch,                              //
        "settings_version", (json_int_t)c->settings_version,                      //
        "model_name", c->model_name, "model", c->model, "settings", c->settings,  //
        "skipped", (json_int_t)c->skipped, "members", members, "routes", routes, "parts", parts);
    put_data(&all, &c->data);
    if (copies)
        json_put(&all, "copies", json_integer(c->copies));
    if (c->partitions > 1)
        json_put(&all, "partitions", json_integer(c->partitions));
    char *text = all ? json_line(all) : NULL;
    json_decref(all);
    return text;
}

// --- reading ------------------------------------------------------------------------------

static int wrong_field(const char *what, struct error *err) {
    return error_set(err, STATUS_DATA, "not the state of a controller: %s", what);
}

// A member of an object that is a whole number of 0..most.
static bool read_number(const json_t *object, const char *name, uint64_t most, uint64_t *value) {
    const json_t *found = json_object_get(object, name);
    json_int_t n = json_integer_value(found);
    *value = (uint64_t)n;
    return json_is_integer(found) && n >= 0 && (uint64_t)n <= most;
}

static bool read_flag(const json_t *object, const char *name, bool *value) {
    const json_t *found = json_object_get(object, name);
    *value = json_is_true(found);
    return json_is_boolean(found);
}

static bool text_within(const json_t *object, const char *name, char *to, size_t room) {
    const char *text = json_string_value(json_object_get(object, name));
    return text && snprintf(to, room, "%s", text) < (int)room;
}

#define TEXT_WITHIN(object, name, to) text_within(object, name, to, sizeof(to))

static bool read_run(const json_t *object, struct proto_id *run) {
    const char *text = json_string_value(json_object_get(object, "run"));
    if (!text || strlen(text) != 2 * sizeof run->bytes ||
        strspn(text, "0123456789abcdef") != 2 * sizeof run->bytes)
        return false;
    for (size_t i = 0; i < sizeof run->bytes; i++) {
        char byte[3] = {text[2 * i], text[2 * i + 1], 0};
        run->bytes[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return true;
}

static bool read_stage(const json_t *object, enum cluster_stage *stage) {
    const char *text = json_string_value(json_object_get(object, "stage"));
    for (int i = 0; text && i < CLUSTER_STAGE_COUNT; i++)
        if (!strcmp(text, cluster_stage_name((enum cluster_stage)i))) {
            *stage = (enum cluster_stage)i;
            return true;
        }
    return false;
}

static bool read_numbers(struct cluster *c, const json_t *object) {
    uint64_t next_member = 0, status = 0;
    bool good = read_number(object, "next_member", UINT32_MAX - 1, &next_member) &&
                read_number(object, "status", 255, &status) &&
                read_flag(object, "warm", &c->warm) &&
                read_flag(object, "finished", &c->finished) &&
                read_number(object, "next_session", INT64_MAX, &c->next_session) &&
                read_number(object, "order", INT64_MAX, &c->order) &&
                read_number(object, "members_epoch", INT64_MAX, &c->members_epoch) &&
                read_number(object, "routes_epoch", INT64_MAX, &c->routes_epoch) &&
                read_number(object, "settings_version", INT64_MAX, &c->settings_version);
    c->next_member = (uint32_t)next_member;
    c->status = (int)status;
    return good;
}

// Older states have none.
static bool read_skipped(struct cluster *c, const json_t *object) {
    return !json_object_get(object, "skipped") ||
           read_number(object, "skipped", INT64_MAX, &c->skipped);
}

static bool read_data(struct cluster_data *data, const json_t *object) {
    const json_t *found = json_object_get(object, "data");
    uint64_t digest = 0, classes = 0;
    bool good = !found || (read_number(found, "whole", INT64_MAX, &data->whole) &&
                           read_number(found, "digest", UINT32_MAX, &digest) &&
                           read_number(found, "classes", UINT32_MAX, &classes));
    data->digest = (uint32_t)digest;
    data->classes = (uint32_t)classes;
    return good;
}

static bool read_copies(struct cluster *c, const json_t *object, bool told) {
    uint64_t copies = 1;
    bool good = !told || read_number(object, "copies", PLACEMENT_COPIES_MAX, &copies);
    c->copies = (uint32_t)copies;
    return good && copies > 0;
}

// Of a model that is not cut there are none.
static bool read_partitions(struct cluster *c, const json_t *object) {
    uint64_t partitions = 1;
    bool good = !json_object_get(object, "partitions") ||
                read_number(object, "partitions", CLUSTER_PARTITIONS_MAX, &partitions);
    c->partitions = (uint32_t)partitions;
    return good && partitions > 0;
}

static int read_text(const json_t *object, const char *name, char **text, struct error *err) {
    const char *found = json_string_value(json_object_get(object, name));
    if (!found)
        return wrong_field(name, err);
    *text = mem_string(found);
    return *text ? STATUS_OK : error_nomem(err);
}

static int read_texts(struct cluster *c, const json_t *object, struct error *err) {
    int status = read_text(object, "model_name", &c->model_name, err);
    if (!status)
        status = read_text(object, "model", &c->model, err);
    if (!status)
        status = read_text(object, "settings", &c->settings, err);
    if (!status && c->status != STATUS_OK)
        status = read_text(object, "why", &c->why, err);
    if (!status && !json_is_null(json_object_get(object, "resume")))
        status = read_text(object, "resume", &c->resume, err);
    return status;
}

static bool read_member(struct cluster *c, struct cluster_member *m, const json_t *object) {
    uint64_t number_of = 0, role = 0, threads = 0, replica = 0, partition = 0;
    bool good = read_number(object, "member", UINT32_MAX - 1, &number_of) &&
                read_number(object, "session", INT64_MAX, &m->session) &&
                read_number(object, "role", PROTO_ROLE_LAST, &role) &&
                read_number(object, "threads", UINT32_MAX, &threads) &&
                read_number(object, "memory", INT64_MAX, &m->memory) &&
                read_number(object, "first", INT64_MAX, &m->first) &&
                read_number(object, "samples", INT64_MAX, &m->samples) &&
                read_data(&m->data, object) && read_flag(object, "gone", &m->gone) &&
                TEXT_WITHIN(object, "name", m->name) &&
                TEXT_WITHIN(object, "training", m->training) &&
                TEXT_WITHIN(object, "replication", m->replication) &&
                TEXT_WITHIN(object, "administration", m->administration);
    m->number = (uint32_t)number_of;
    m->role = (enum proto_role)role;
    m->threads = (uint32_t)threads;
    if (json_object_get(object, "stores"))
        good &= read_flag(object, "stores", &m->stores);
    if (json_object_get(object, "parts"))
        good &= read_flag(object, "parts", &m->parts);
    if (json_object_get(object, "draining"))
        good &= read_flag(object, "draining", &m->draining);
    if (json_object_get(object, "left"))
        good &= read_flag(object, "left", &m->left);
    if (c->partitions == 1)
        replica = number_of;
    else if (m->role == PROTO_ROLE_WORKER)
        good &= read_number(object, "replica", CLUSTER_MEMBERS_MAX, &replica) &&
                read_number(object, "partition", c->partitions - 1, &partition);
    m->replica = (uint32_t)replica;
    m->partition = (uint32_t)partition;
    return good && number_of > 0 && number_of < c->next_member && m->session > 0 &&
           m->session < c->next_session;
}

static int read_members(struct cluster *c, const json_t *list, struct error *err) {
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > CLUSTER_MEMBERS_MAX + CLUSTER_GONE_MAX)
        return wrong_field("members", err);
    c->members = mem_zeroed(count + 1, sizeof *c->members);
    if (!c->members)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        struct cluster_member *m = &c->members[i];
        // Numbers and sessions are given in order, and never twice.
        if (!read_member(c, m, json_array_get(list, i)) ||
            (i > 0 && (m->number <= m[-1].number || m->session <= m[-1].session)))
            return wrong_field("a member", err);
        c->member_count++;
    }
    return STATUS_OK;
}

static bool is_server(const struct cluster *c, uint32_t number) {
    const struct cluster_member *member = cluster_numbered(c, number);
    return member && member->role == PROTO_ROLE_PARAMETER_SERVER;
}

// A server beside the primary, or nobody. Routes of runs with one copy have none.
static bool read_other(const struct cluster *c, const json_t *object, const char *name,
                       uint32_t *number) {
    uint64_t value = PROTO_NOBODY;
    bool good = !json_object_get(object, name) || read_number(object, name, PROTO_NOBODY, &value);
    *number = (uint32_t)value;
    return good && (*number == PROTO_NOBODY || is_server(c, *number));
}

// No server has two roles, and there is a second before there is a third.
static bool roles_differ(const struct proto_place *p) {
    const uint32_t members[] = {p->primary, p->second, p->third, p->joiner};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            if (members[i] == members[k] && members[i] != PROTO_NOBODY)
                return false;
    return p->second != PROTO_NOBODY || p->third == PROTO_NOBODY;
}

static bool read_route(const struct cluster *c, struct proto_place *p, const json_t *object,
                       uint64_t *count) {
    uint64_t first = 0, primary = 0;
    bool good = read_number(object, "first", CLUSTER_BUCKETS, &first) &&
                read_number(object, "count", CLUSTER_BUCKETS, count) &&
                read_number(object, "epoch", c->routes_epoch, &p->epoch) &&
                read_number(object, "primary", UINT32_MAX - 1, &primary) &&
                read_other(c, object, "second", &p->second) &&
                read_other(c, object, "third", &p->third) &&
                read_other(c, object, "joiner", &p->joiner);
    p->bucket = (uint32_t)first;
    p->primary = (uint32_t)primary;
    return good && is_server(c, p->primary) && *count > 0 && roles_differ(p);
}

static int read_routes(struct cluster *c, const json_t *list, struct error *err) {
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > CLUSTER_BUCKETS)
        return wrong_field("routes", err);
    c->places = mem_zeroed(CLUSTER_BUCKETS, sizeof *c->places);
    if (!c->places)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        struct proto_place place = {0};
        uint64_t buckets = 0;
        if (!read_route(c, &place, json_array_get(list, i), &buckets) ||
            place.bucket != c->place_count || buckets > CLUSTER_BUCKETS - c->place_count)
            return wrong_field("a route", err);
        for (; buckets > 0; buckets--, place.bucket++)
            c->places[c->place_count++] = place;
    }
    bool needed = c->routes_epoch > 0;
    return c->place_count == (needed ? CLUSTER_BUCKETS : 0) ? STATUS_OK
                                                            : wrong_field("routes", err);
}

static bool read_part(const struct cluster *c, struct cluster_part *p, const json_t *object) {
    const json_t *epoch = json_object_get(object, "epoch");
    uint64_t member_of = 0;
    bool good = read_number(object, "first", INT64_MAX, &p->first) &&
                read_number(object, "samples", INT64_MAX, &p->samples) &&
                read_number(object, "member", UINT32_MAX - 1, &member_of) &&
                read_flag(object, "out", &p->out) && json_is_number(epoch);
    p->member = (uint32_t)member_of;
    p->epoch = json_number_value(epoch);
    const struct cluster_member *member = good ? cluster_numbered(c, p->member) : NULL;
    return member && member->role == PROTO_ROLE_DATA_SERVER && p->epoch >= 0 && p->epoch <= 1e9;
}

static int read_parts(struct cluster *c, const json_t *list, struct error *err) {
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > CLUSTER_MEMBERS_MAX)
        return wrong_field("parts", err);
    c->parts = mem_zeroed(count + 1, sizeof *c->parts);
    if (!c->parts)
        return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        if (!read_part(c, &c->parts[i], json_array_get(list, i)))
            return wrong_field("a part", err);
        c->part_count++;
    }
    return STATUS_OK;
}

static int read_state(struct cluster *c, const json_t *object, struct error *err) {
    uint64_t format = 0;
    if (!read_number(object, "format", FORMAT_COPIES, &format) || format < FORMAT ||
        !read_copies(c, object, format == FORMAT_COPIES))
        return wrong_field("format", err);
    if (!read_run(object, &c->run) || !read_stage(object, &c->stage) || !read_numbers(c, object) ||
        !read_skipped(c, object) || !read_data(&c->data, object) || !read_partitions(c, object))
        return wrong_field("a number", err);
    int status = read_texts(c, object, err);
    if (!status)
        status = read_members(c, json_object_get(object, "members"), err);
    if (!status)
        status = read_routes(c, json_object_get(object, "routes"), err);
    if (!status)
        status = read_parts(c, json_object_get(object, "parts"), err);
    return status;
}

int cluster_read(struct cluster *cluster, const char *text, size_t size, struct error *err) {
    json_t *object = NULL;
    *cluster = (struct cluster){0};
    int status = json_read(&object, text, size, err);
    if (!status)
        status = read_state(cluster, object, err);
    json_decref(object);
    if (status)
        cluster_free(cluster);
    return status;
}
