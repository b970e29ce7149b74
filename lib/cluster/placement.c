#include "cluster/placement.h"

#include <stddef.h>

#include "core/invariant.h"

enum { IN_A_ROW = 8 }; // buckets that a server gets before it is another's turn

// --- one bucket ---------------------------------------------------------------------------

uint32_t placement_members(const struct proto_place *place) {
    return 1 + (place->second != PROTO_NOBODY) + (place->third != PROTO_NOBODY);
}

static bool is_member(const struct proto_place *place, uint32_t member) {
    return place->primary == member || place->second == member || place->third == member;
}

static bool is_here(const struct proto_place *place, uint32_t member) {
    return is_member(place, member) || place->joiner == member;
}

static void remove_secondary(struct proto_place *place, uint32_t member) {
    if (place->second == member)
        place->second = place->third;
    else if (place->third != member)
        return;
    place->third = PROTO_NOBODY;
}

static void add_secondary(struct proto_place *place, uint32_t member) {
    INVARIANT(place->third == PROTO_NOBODY);
    if (place->second == PROTO_NOBODY)
        place->second = member;
    else
        place->third = member;
}

// A secondary becomes the primary, who is no member any more.
static void promote_secondary(struct proto_place *place, uint32_t member) {
    INVARIANT(place->second == member || place->third == member);
    remove_secondary(place, member);
    place->primary = member;
}

// No longer here, in whatever role. The last member stays.
static void remove_member(struct proto_place *place, uint32_t member) {
    if (place->joiner == member)
        place->joiner = PROTO_NOBODY;
    else if (place->primary != member)
        remove_secondary(place, member);
    else if (place->second != PROTO_NOBODY)
        promote_secondary(place, place->second);
}

static bool place_same(const struct proto_place *a, const struct proto_place *b) {
    return a->primary == b->primary && a->second == b->second && a->third == b->third &&
           a->joiner == b->joiner;
}

// --- servers ------------------------------------------------------------------------------

static struct placement_server *find_server(struct placement_server *servers, uint32_t count,
                                            uint32_t member) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (servers[middle].member < member)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && servers[low].member == member ? &servers[low] : NULL;
}

static void count_place(struct placement_server *servers, uint32_t count, uint32_t member,
                        uint32_t by) {
    struct placement_server *server = find_server(servers, count, member);
    if (server)
        server->copies += by;
}

static bool is_draining(struct placement_server *servers, uint32_t count, uint32_t member) {
    const struct placement_server *server = find_server(servers, count, member);
    return server && server->draining;
}

// Who leaves when the joiner is complete: a draining member, or the last secondary, or the primary
// where there is none.
static uint32_t choose_leaver(const struct proto_place *place, struct placement_server *servers,
                              uint32_t count) {
    const uint32_t members[] = {place->third, place->second, place->primary};
    uint32_t leaver = PROTO_NOBODY;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (is_draining(servers, count, members[i]))
            return members[i];
        if (leaver == PROTO_NOBODY)
            leaver = members[i];
    }
    return leaver;
}

// Places of each server, as they are.
static void count_places(const struct placement *p, struct placement_server *servers,
                         uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        servers[i].copies = servers[i].primaries = 0;
    for (uint32_t b = 0; b < p->count; b++) {
        const struct proto_place *place = &p->places[b];
        struct placement_server *primary = find_server(servers, count, place->primary);
        if (primary)
            primary->primaries++;
        count_place(servers, count, place->primary, 1);
        count_place(servers, count, place->second, 1);
        count_place(servers, count, place->third, 1);
        count_place(servers, count, place->joiner, 1);
    }
}

// The same without those who will leave for a joiner.
static void count_moves(const struct placement *p, struct placement_server *servers,
                        uint32_t count) {
    count_places(p, servers, count);
    for (uint32_t b = 0; b < p->count; b++) {
        const struct proto_place *place = &p->places[b];
        if (place->joiner != PROTO_NOBODY && placement_members(place) >= p->copies)
            count_place(servers, count, choose_leaver(place, servers, count), UINT32_MAX);
    }
}

static bool is_heard(struct placement_server *servers, uint32_t count, uint32_t member) {
    const struct placement_server *server = find_server(servers, count, member);
    return server && server->heard;
}

bool placement_parts(const struct placement_parting *parting, uint32_t one, uint32_t other) {
    return (parting->one == one && parting->other == other) ||
           (parting->one == other && parting->other == one);
}

static bool are_parted(const struct placement *p, uint32_t one, uint32_t other) {
    for (uint32_t i = 0; i < p->parted_count; i++)
        if (placement_parts(&p->parted[i], one, other))
            return true;
    return false;
}

// Whether the server may get this bucket: one that the primary reaches, or one that it does not.
static bool may_join(const struct placement *p, const struct placement_server *server,
                     const struct proto_place *place, bool reached) {
    return server->heard && !server->draining && !is_here(place, server->member) &&
           are_parted(p, place->primary, server->member) != reached;
}

// The server with the fewest copies that may; NULL: none.
static struct placement_server *least_loaded(const struct placement *p,
                                             struct placement_server *servers, uint32_t count,
                                             const struct proto_place *place, bool reached) {
    struct placement_server *least = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (may_join(p, &servers[i], place, reached) &&
            (!least || servers[i].copies < least->copies))
            least = &servers[i];
    return least;
}

// --- transitions --------------------------------------------------------------------------

// A server's run of buckets first..end-1 has a stretch for each of the others, whose secondaries
// are the same servers: their shares are equal, and few places differ from the one before.
static uint32_t stretch_of(uint32_t b, uint32_t first, uint32_t end, uint32_t count) {
    return (uint32_t)((uint64_t)(b - first) * (count - 1) / (end - first));
}

void placement_assign(struct placement *p, const struct placement_server *servers, uint32_t count,
                      uint64_t epoch) {
    for (uint32_t k = 0, first = 0; k < count; k++) {
        uint32_t end = (uint32_t)((uint64_t)(k + 1) * p->count / count);
        for (uint32_t b = first; b < end; b++) {
            p->places[b] = (struct proto_place){
                .bucket = b,
                .epoch = epoch,
                .primary = servers[k].member,
                .second = PROTO_NOBODY,
                .third = PROTO_NOBODY,
                .joiner = PROTO_NOBODY,
            };
            uint32_t stretch = stretch_of(b, first, end, count);
            for (uint32_t i = 0; i + 1 < p->copies && i + 1 < count; i++)
                add_secondary(&p->places[b],
                              servers[(k + 1 + (stretch + i) % (count - 1)) % count].member);
        }
        first = end;
    }
}

// Whether a member of the bucket, other than this one, was heard lately.
static bool is_heard_beside(const struct proto_place *place, uint32_t member,
                            struct placement_server *servers, uint32_t count) {
    const uint32_t members[] = {place->primary, place->second, place->third};
    for (int i = 0; i < 3; i++)
        if (members[i] != member && is_heard(servers, count, members[i]))
            return true;
    return false;
}

bool placement_may_lose(const struct placement *p, uint32_t member,
                        struct placement_server *servers, uint32_t count) {
    for (uint32_t b = 0; b < p->count; b++)
        if (is_member(&p->places[b], member) &&
            !is_heard_beside(&p->places[b], member, servers, count))
            return false;
    return true;
}

bool placement_lose(struct placement *p, uint32_t member, uint64_t epoch) {
    bool changed = false;
    for (uint32_t b = 0; b < p->count; b++) {
        struct proto_place before = p->places[b];
        remove_member(&p->places[b], member);
        if (place_same(&p->places[b], &before))
            continue;
        p->places[b].epoch = epoch;
        changed = true;
    }
    return changed;
}

static void rename_member(uint32_t *place, uint32_t member, uint32_t number) {
    *place = *place == member ? number : *place;
}

static void rename_places(struct proto_place *place, uint32_t member, uint32_t number) {
    rename_member(&place->primary, member, number);
    rename_member(&place->second, member, number);
    rename_member(&place->third, member, number);
    rename_member(&place->joiner, member, number);
}

bool placement_succeed(struct placement *p, uint32_t member, uint32_t number, const bool *lacks,
                       struct placement_server *servers, uint32_t count, uint64_t epoch) {
    bool any = false;
    for (uint32_t b = 0; b < p->count; b++) {
        struct proto_place *place = &p->places[b];
        if (!is_here(place, member))
            continue;
        bool lacking = lacks && lacks[b] && placement_members(place) > 1;
        if (lacking || is_heard_beside(place, member, servers, count))
            remove_member(place, member);
        else
            rename_places(place, member, number);
        place->epoch = epoch;
        any = true;
    }
    return any;
}

static void complete_joiner(const struct placement *p, struct proto_place *place,
                            struct placement_server *servers, uint32_t count) {
    bool full = placement_members(place) >= p->copies;
    uint32_t joiner = place->joiner;
    uint32_t leaver = full ? choose_leaver(place, servers, count) : PROTO_NOBODY;
    place->joiner = PROTO_NOBODY;
    if (leaver == PROTO_NOBODY) {
        add_secondary(place, joiner);
    } else if (placement_members(place) == 1) {
        place->primary = joiner;
    } else {
        remove_member(place, leaver);
        add_secondary(place, joiner);
    }
}

bool placement_propose(struct placement *p, const struct proto_proposal *proposal,
                       struct placement_server *servers, uint32_t count, uint64_t epoch) {
    if (proposal->bucket >= p->count || proposal->member == PROTO_NOBODY)
        return false;
    struct proto_place *place = &p->places[proposal->bucket];
    bool other = proposal->member != place->primary;
    bool secondary = other && is_member(place, proposal->member);
    bool joiner = place->joiner == proposal->member;
    if (proposal->epoch != place->epoch || proposal->primary != place->primary)
        return false;
    if (proposal->change == PROTO_CHANGE_TAKE_OVER && secondary)
        promote_secondary(place, proposal->member);
    else if (proposal->change == PROTO_CHANGE_COMPLETE && joiner)
        complete_joiner(p, place, servers, count);
    else if (proposal->change == PROTO_CHANGE_DROP && (secondary || joiner))
        remove_member(place, proposal->member);
    else
        return false;
    place->epoch = epoch;
    return true;
}

// --- filling ------------------------------------------------------------------------------

static bool add_joiner(struct proto_place *place, struct placement_server *server, uint64_t epoch) {
    if (!server)
        return false;
    place->joiner = server->member;
    place->epoch = epoch;
    server->copies++;
    return true;
}

// Who got the bucket before, for some in a row: so the places of all buckets are few words, where
// neighbours are alike. Else the server with the fewest.
static struct placement_server *choose_joiner(const struct placement *p,
                                              struct placement_server *servers, uint32_t count,
                                              const struct proto_place *place,
                                              struct placement_server *before) {
    struct placement_server *least = least_loaded(p, servers, count, place, true);
    if (before && least && may_join(p, before, place, true) &&
        before->copies < least->copies + IN_A_ROW)
        return before;
    return least ? least : least_loaded(p, servers, count, place, false);
}

// Buckets with too few members, and those that a draining server has.
static bool fill_places(struct placement *p, struct placement_server *servers, uint32_t count,
                        uint64_t epoch) {
    struct placement_server *joiner = NULL;
    bool changed = false;
    for (uint32_t b = 0; b < p->count; b++) {
        struct proto_place *place = &p->places[b];
        bool drains = is_draining(servers, count, place->primary) ||
                      is_draining(servers, count, place->second) ||
                      is_draining(servers, count, place->third);
        if (place->joiner == PROTO_NOBODY && is_heard(servers, count, place->primary) &&
            (placement_members(place) < p->copies || drains)) {
            joiner = choose_joiner(p, servers, count, place, joiner);
            changed |= add_joiner(place, joiner, epoch);
        }
    }
    return changed;
}

// The shares of copies that servers should have: as many as fit into each, and one more in some.
struct shares {
    uint32_t low, high;
};

static struct shares find_shares(const struct placement_server *servers, uint32_t count) {
    uint32_t copies = 0, staying = 0;
    for (uint32_t i = 0; i < count; i++) {
        copies += servers[i].copies;
        staying += !servers[i].draining;
    }
    staying += !staying;
    return (struct shares){copies / staying, (copies + staying - 1) / staying};
}

// The last secondary, if it has more than its share; else the secondary with the most copies; the
// primary where there is none. Primary roles move by themselves.
static struct placement_server *choose_giver(struct placement_server *servers, uint32_t count,
                                             const struct proto_place *place, uint32_t share) {
    struct placement_server *second = find_server(servers, count, place->second);
    struct placement_server *third = find_server(servers, count, place->third);
    if (second && third)
        return third->copies > share || third->copies >= second->copies ? third : second;
    return second ? second : find_server(servers, count, place->primary);
}

// Begins to move a copy, if one server has too many or the other too few: so each copy moves once.
static bool move_copy(const struct placement *p, struct proto_place *place, struct shares shares,
                      struct placement_server *servers, uint32_t count, uint64_t epoch) {
    struct placement_server *least = least_loaded(p, servers, count, place, true);
    struct placement_server *giver = choose_giver(servers, count, place, shares.high);
    if (!is_heard(servers, count, place->primary) || place->joiner != PROTO_NOBODY ||
        placement_members(place) != p->copies || !least || !giver || giver->copies <= shares.low ||
        least->copies >= shares.high || giver->copies < least->copies + 2)
        return false;
    if (place->second == giver->member && place->third != PROTO_NOBODY) {
        place->second = place->third; // the last one leaves
        place->third = giver->member;
    }
    giver->copies--;
    return add_joiner(place, least, epoch);
}

// Whether a member could be the primary: it reaches all others that are here.
static bool reaches_all(const struct placement *p, const struct proto_place *place,
                        uint32_t member) {
    return !are_parted(p, member, place->primary) && !are_parted(p, member, place->second) &&
           !are_parted(p, member, place->third) && !are_parted(p, member, place->joiner);
}

// The primary and a secondary change roles where the one has at least two primary roles more, or
// is draining.
static bool move_primary(const struct placement *p, struct proto_place *place,
                         struct placement_server *servers, uint32_t count, uint64_t epoch) {
    struct placement_server *primary = find_server(servers, count, place->primary), *best = NULL;
    const uint32_t seconds[] = {place->second, place->third};
    for (int i = 0; primary && primary->heard && i < 2; i++) {
        struct placement_server *server = find_server(servers, count, seconds[i]);
        if (server && server->heard && !server->draining && reaches_all(p, place, server->member) &&
            (!best || server->primaries < best->primaries))
            best = server;
    }
    if (!best || (!primary->draining && primary->primaries < best->primaries + 2))
        return false;
    primary->primaries--;
    best->primaries++;
    promote_secondary(place, best->member);
    add_secondary(place, primary->member);
    place->epoch = epoch;
    return true;
}

bool placement_fill(struct placement *p, struct placement_server *servers, uint32_t count,
                    uint64_t epoch) {
    count_moves(p, servers, count);
    bool changed = fill_places(p, servers, count, epoch);
    struct shares shares = find_shares(servers, count);
    for (uint32_t b = 0; b < p->count; b++) {
        changed |= move_copy(p, &p->places[b], shares, servers, count, epoch);
        changed |= move_primary(p, &p->places[b], servers, count, epoch);
    }
    return changed;
}

bool placement_has(const struct placement *p, uint32_t member) {
    for (uint32_t b = 0; b < p->count; b++)
        if (is_here(&p->places[b], member))
            return true;
    return false;
}
