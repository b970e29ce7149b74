#include "cluster/buckets.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/columns.h"
#include "core/grow.h"
#include "core/printable.h"

static const struct proto_place *at(const struct proto_places *places, uint32_t index) {
    const struct proto_place *all = places->places.at;
    return &all[index];
}

static bool is_secondary(const struct proto_place *place, uint32_t member) {
    return place->second == member || place->third == member;
}

struct buckets_share buckets_share(const struct proto_places *places, uint32_t member) {
    struct buckets_share share = {0};
    for (uint32_t i = 0; i < places->places.count; i++) {
        const struct proto_place *place = at(places, i);
        share.primary += place->primary == member;
        share.secondary += is_secondary(place, member);
        share.joiner += place->joiner == member;
    }
    return share;
}

// Whether any bucket is on more than one server, or is to be.
static bool has_copies(const struct proto_places *places) {
    for (uint32_t i = 0; i < places->places.count; i++)
        if (at(places, i)->second != PROTO_NOBODY || at(places, i)->joiner != PROTO_NOBODY)
            return true;
    return false;
}

// --- names --------------------------------------------------------------------------------

struct name {
    char text[PROTO_NAME_MAX + 1];
};

static struct name plain_name(const struct proto_member *member) {
    struct name name;
    printable_copy(name.text, sizeof name.text, member->name.at, member->name.length);
    return name;
}

// Of a member that is not listed, its number.
static struct name name_of(const struct proto_status *status, uint32_t number) {
    const struct proto_member *members = status->members.at;
    struct name name = {"-"};
    for (uint32_t i = 0; i < status->members.count; i++)
        if (members[i].member == number && members[i].role == PROTO_ROLE_PARAMETER_SERVER)
            return plain_name(&members[i]);
    if (number != PROTO_NOBODY)
        snprintf(name.text, sizeof name.text, "%" PRIu32, number);
    return name;
}

// --- tables -------------------------------------------------------------------------------

static void put_share(struct columns *table, const struct proto_places *places,
                      const struct proto_member *member) {
    struct buckets_share share = buckets_share(places, member->member);
    columns_cell(table, "%s", plain_name(member).text);
    columns_cell(table, "%" PRIu32, share.primary);
    columns_cell(table, "%" PRIu32, share.secondary);
    columns_cell(table, "%" PRIu32, share.joiner);
}

static bool is_shown(const struct proto_places *places, const struct proto_member *member) {
    struct buckets_share share = buckets_share(places, member->member);
    return member->role == PROTO_ROLE_PARAMETER_SERVER &&
           (member->state != PROTO_STATE_GONE || share.primary || share.secondary || share.joiner);
}

char *buckets_shares(const struct proto_places *places, const struct proto_status *status) {
    static const struct column titles[] = {
        {"SERVER", false}, {"PRIMARY OF", true}, {"SECONDARY OF", true}, {"COPYING", true}};
    struct columns table = {.column = titles, .count = sizeof titles / sizeof *titles};
    const struct proto_member *members = status->members.at;
    struct grow text = {0};
    grow_put(&text, "", 0);
    if (!has_copies(places))
        return grow_take(&text);
    for (uint32_t i = 0; i < status->members.count; i++)
        if (is_shown(places, &members[i]))
            put_share(&table, places, &members[i]);
    columns_put(&table, &text);
    return grow_take(&text);
}

static bool same_place(const struct proto_place *a, const struct proto_place *b) {
    return a->epoch == b->epoch && a->primary == b->primary && a->second == b->second &&
           a->third == b->third && a->joiner == b->joiner;
}

// The bucket behind those that are as bucket `first`.
static uint32_t run_end(const struct proto_places *places, uint32_t first) {
    uint32_t end = first + 1;
    while (end < places->places.count && same_place(at(places, first), at(places, end)))
        end++;
    return end;
}

static void put_run(struct columns *table, const struct proto_places *places, uint32_t first,
                    uint32_t end, const struct proto_status *status) {
    const struct proto_place *place = at(places, first);
    bool third = place->third != PROTO_NOBODY;
    if (end - first > 1)
        columns_cell(table, "%" PRIu32 "..%" PRIu32, first, end - 1);
    else
        columns_cell(table, "%" PRIu32, first);
    columns_cell(table, "%" PRIu64, place->epoch);
    columns_cell(table, "%s", name_of(status, place->primary).text);
    columns_cell(table, "%s%s%s", name_of(status, place->second).text, third ? " " : "",
                 third ? name_of(status, place->third).text : "");
    columns_cell(table, "%s", name_of(status, place->joiner).text);
}

char *buckets_table(const struct proto_places *places, const struct proto_status *status) {
    static const struct column titles[] = {{"BUCKETS", true},
                                           {"EPOCH", true},
                                           {"PRIMARY", false},
                                           {"SECONDARIES", false},
                                           {"COPIES IT", false}};
    struct columns table = {.column = titles, .count = sizeof titles / sizeof *titles};
    struct grow text = {0};
    for (uint32_t first = 0, end; first < places->places.count; first = end) {
        end = run_end(places, first);
        put_run(&table, places, first, end, status);
    }
    columns_put(&table, &text);
    return grow_take(&text);
}

// --- JSON ---------------------------------------------------------------------------------

static json_t *server_json(uint32_t member) {
    return member == PROTO_NOBODY ? json_null() : json_integer((json_int_t)member);
}

static json_t *run_json(const struct proto_place *place, uint32_t first, uint32_t count) {
    json_t *secondaries = json_array();
    if (place->second != PROTO_NOBODY)
        json_append(&secondaries, server_json(place->second));
    if (place->third != PROTO_NOBODY)
        json_append(&secondaries, server_json(place->third));
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "first", (json_int_t)first, "count",
                     (json_int_t)count, "epoch", (json_int_t)place->epoch, "primary",
                     (json_int_t)place->primary, "secondaries", secondaries, "joiner",
                     server_json(place->joiner));
}

json_t *buckets_json(const struct proto_places *places) {
    json_t *runs = json_array();
    for (uint32_t first = 0, end; first < places->places.count; first = end) {
        end = run_end(places, first);
        json_append(&runs, run_json(at(places, first), first, end - first));
    }
    return runs;
}
