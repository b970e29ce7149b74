// Open leases stand in a ring by their numbers, which are given one after the other: the
// first is the oldest that is open. Closed ones between open ones have no session.
//
// Places of the present epoch are in exactly one of: todo (not drawn, or handed back),
// drawn and not issued yet, an open lease, or finished. Only the drawn ones are not here:
// whoever draws issues them all, or asks leases_wants whether they are void.
#include "deal/lease.h"

#include <math.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

#define FIRST_DEADLINE 60.0 // seconds, as long as nothing is known of a session
#define SLACK 10.0          // a lease has so many times what the session's leases take
#define FORGET 0.1          // of that measure, with each lease that was faster
#define PATIENCE 2.0        // the next lease has so many times what a lease had that is over

enum { RING_FIRST = 64, SESSIONS_FIRST = 16 };

struct open_lease {
    uint64_t session; // 0: closed
    struct range places;
    double issued, deadline;
    bool kept; // it has reached its session, which has not said yet that this is all
};

struct holder { // a session that was given leases
    uint64_t session;
    uint32_t open; // leases
    bool part;     // it was given some in this epoch
    double takes;  // seconds from issue to finish; 0: not known
};

struct leases {
    struct lease_rules rules;
    uint32_t count, era, epoch;
    struct ranges todo, next_todo; // of this epoch and the next
    struct ranges finished;
    uint64_t finished_places, open_places;
    struct open_lease *ring;
    size_t ring_room;      // a power of two
    uint64_t oldest, next; // numbers of leases
    size_t open;           // leases
    struct holder *holders;
    size_t holder_count, holder_room;
};

// --- beginnings and ends of epochs -----------------------------------------------

static void begin_epoch(struct leases *leases, uint32_t epoch) {
    leases->epoch = epoch;
    ranges_clear(&leases->finished);
    leases->finished_places = leases->open_places = 0;
    leases->oldest = leases->next;
    leases->open = 0;
    for (size_t i = 0; i < leases->holder_count; i++) {
        leases->holders[i].open = 0;
        leases->holders[i].part = false;
    }
}

static void add_all_samples(struct ranges *todo, uint32_t count) {
    ranges_clear(todo);
    ranges_add(todo, (struct range){0, count});
}

// What was drawn ahead for the next epoch stays drawn.
static void advance_epoch(struct leases *leases) {
    struct ranges todo = leases->todo;
    begin_epoch(leases, leases->epoch + 1);
    leases->todo = leases->next_todo;
    leases->next_todo = todo;
    add_all_samples(&leases->next_todo, leases->count);
}

// Whether enough of the replicas have finished all that they were given, when there is
// nothing left to give.
static bool is_epoch_complete(const struct leases *leases) {
    size_t parts = 0, complete = 0;
    if (leases->open_places + leases->finished_places < leases->count)
        return false;
    for (size_t i = 0; i < leases->holder_count; i++) {
        const struct holder *holder = &leases->holders[i];
        parts += holder->part;
        complete += holder->part && holder->open == 0;
    }
    return leases->open_places == 0 ||
           (double)complete >= leases->rules.epoch_end * (double)parts - 1e-9;
}

static void end_epoch_if_complete(struct leases *leases) {
    if (!leases_done(leases) && is_epoch_complete(leases))
        advance_epoch(leases);
}

// --- sessions --------------------------------------------------------------------

static struct holder *holder_of(const struct leases *leases, uint64_t session) {
    for (size_t i = 0; i < leases->holder_count; i++)
        if (leases->holders[i].session == session)
            return &leases->holders[i];
    return NULL;
}

static struct holder *holder_add(struct leases *leases, uint64_t session, struct error *err) {
    if (leases->holder_count == leases->holder_room) {
        size_t room = leases->holder_room ? 2 * leases->holder_room : SESSIONS_FIRST;
        struct holder *holders = mem_resize(leases->holders, room, sizeof *holders);
        if (!holders) {
            error_nomem(err);
            return NULL;
        }
        leases->holders = holders;
        leases->holder_room = room;
    }
    struct holder *holder = &leases->holders[leases->holder_count++];
    *holder = (struct holder){.session = session};
    return holder;
}

uint64_t leases_session(const struct leases *leases, size_t index) {
    return index < leases->holder_count ? leases->holders[index].session : 0;
}

// Quick to believe that a session is slow, slow to believe that it is quick.
static void note_lease_time(struct holder *holder, double seconds) {
    if (seconds >= holder->takes)
        holder->takes = seconds;
    else
        holder->takes += FORGET * (seconds - holder->takes);
}

static double deadline_of(const struct leases *leases, const struct holder *holder) {
    double least = leases->rules.least;
    if (holder->takes <= 0)
        return fmax(FIRST_DEADLINE, least);
    return fmax(SLACK * holder->takes, least);
}

// --- the ring of open leases -----------------------------------------------------

static struct open_lease *ring_at(const struct leases *leases, uint64_t number) {
    return &leases->ring[number & (leases->ring_room - 1)];
}

static int grow_ring(struct leases *leases, struct error *err) {
    size_t room = leases->ring_room ? 2 * leases->ring_room : RING_FIRST;
    struct open_lease *ring = mem_array(room, sizeof *ring);
    if (!ring)
        return error_nomem(err);
    for (uint64_t number = leases->oldest; number < leases->next; number++)
        ring[number & (room - 1)] = *ring_at(leases, number);
    free(leases->ring);
    leases->ring = ring;
    leases->ring_room = room;
    return STATUS_OK;
}

// Room for one more lease, and for what becomes of all that are open: finishing and
// taking back must not fail.
static int reserve_lease(struct leases *leases, struct error *err) {
    if (leases->next - leases->oldest == leases->ring_room && grow_ring(leases, err))
        return err->status;
    size_t more = leases->open + 2;
    if (!ranges_reserve(&leases->todo, leases->todo.count + more) ||
        !ranges_reserve(&leases->finished, leases->finished.count + more))
        return error_nomem(err);
    return STATUS_OK;
}

static struct open_lease *find_open_lease(const struct leases *leases, uint64_t number) {
    if (number < leases->oldest || number >= leases->next)
        return NULL;
    struct open_lease *lease = ring_at(leases, number);
    return lease->session ? lease : NULL;
}

static void close_lease(struct leases *leases, struct open_lease *lease) {
    struct holder *holder = holder_of(leases, lease->session);
    if (holder)
        holder->open--;
    leases->open--;
    leases->open_places -= lease->places.count;
    lease->session = 0;
    while (leases->oldest < leases->next && !ring_at(leases, leases->oldest)->session)
        leases->oldest++;
}

static void return_lease(struct leases *leases, struct open_lease *lease) {
    ranges_add(&leases->todo, lease->places);
    close_lease(leases, lease);
}

// --- drawing and issuing ---------------------------------------------------------

bool leases_draw(struct leases *leases, uint32_t most, bool ahead, struct drawn_range *drawn) {
    *drawn = (struct drawn_range){.era = leases->era, .epoch = leases->epoch};
    if (leases_done(leases))
        return false;
    if (ranges_take(&leases->todo, most, &drawn->places))
        return true;
    drawn->epoch++;
    return ahead && drawn->epoch < leases->rules.epochs &&
           ranges_take(&leases->next_todo, most, &drawn->places);
}

bool leases_left(const struct leases *leases) {
    return !leases_done(leases) && leases->todo.count > 0;
}

bool leases_wants(const struct leases *leases, const struct drawn_range *drawn) {
    return drawn->era == leases->era && drawn->epoch >= leases->epoch;
}

bool leases_now(const struct leases *leases, const struct drawn_range *drawn) {
    return drawn->era == leases->era && drawn->epoch == leases->epoch && !leases_done(leases);
}

int leases_issue(struct leases *leases, uint64_t session, const struct drawn_range *drawn,
                 double now, struct lease *lease, struct error *err) {
    struct holder *holder = holder_of(leases, session);
    if (!holder && !(holder = holder_add(leases, session, err)))
        return err->status;
    if (reserve_lease(leases, err))
        return err->status;
    *lease = (struct lease){leases->next++, deadline_of(leases, holder)};
    *ring_at(leases, lease->number) =
        (struct open_lease){session, drawn->places, now, now + lease->deadline, false};
    leases->open++;
    leases->open_places += drawn->places.count;
    holder->open++;
    holder->part = true;
    return STATUS_OK;
}

bool leases_finish(struct leases *leases, uint64_t session, uint64_t number, double now,
                   uint32_t *epoch, struct range *places) {
    struct open_lease *lease = find_open_lease(leases, number);
    if (!lease || lease->session != session)
        return false;
    struct holder *holder = holder_of(leases, session);
    if (holder)
        note_lease_time(holder, now - lease->issued);
    *epoch = leases->epoch;
    *places = lease->places;
    ranges_add(&leases->finished, lease->places);
    leases->finished_places += lease->places.count;
    close_lease(leases, lease);
    end_epoch_if_complete(leases);
    return true;
}

uint32_t leases_return(struct leases *leases, uint64_t session, uint64_t number) {
    struct open_lease *lease = find_open_lease(leases, number);
    if (!lease || lease->session != session)
        return 0;
    uint32_t places = lease->places.count;
    return_lease(leases, lease);
    return places;
}

void leases_keep(struct leases *leases, uint64_t session, uint64_t number) {
    struct open_lease *lease = find_open_lease(leases, number);
    if (lease && lease->session == session)
        lease->kept = true;
}

uint64_t leases_lose_rest(struct leases *leases, uint64_t session) {
    uint64_t places = 0;
    for (uint64_t number = leases->oldest; number < leases->next; number++) {
        struct open_lease *lease = ring_at(leases, number);
        if (lease->session == session && !lease->kept) {
            places += lease->places.count;
            return_lease(leases, lease);
        }
        lease->kept = false;
    }
    return places;
}

void leases_gone(struct leases *leases, uint64_t session) {
    struct holder *holder = holder_of(leases, session);
    if (!holder)
        return;
    for (uint64_t number = leases->oldest; number < leases->next; number++)
        if (ring_at(leases, number)->session == session)
            return_lease(leases, ring_at(leases, number));
    *holder = leases->holders[--leases->holder_count];
    end_epoch_if_complete(leases);
}

// Who lives and was not done in time has more the next time: a session that is slower
// than the first deadline would never finish anything.
static void expire_lease(struct leases *leases, struct open_lease *lease) {
    struct holder *holder = holder_of(leases, lease->session);
    if (holder)
        holder->takes = fmax(holder->takes, PATIENCE * (lease->deadline - lease->issued) / SLACK);
    return_lease(leases, lease);
}

uint64_t leases_expire(struct leases *leases, double now, double *next) {
    uint64_t places = 0;
    double earliest = INFINITY;
    for (uint64_t number = leases->oldest; number < leases->next; number++) {
        struct open_lease *lease = ring_at(leases, number);
        if (lease->session && lease->deadline <= now) {
            places += lease->places.count;
            expire_lease(leases, lease);
        } else if (lease->session) {
            earliest = fmin(earliest, lease->deadline);
        }
    }
    *next = isfinite(earliest) ? earliest - now : -1;
    end_epoch_if_complete(leases);
    return places;
}

void leases_paused(struct leases *leases, double seconds) {
    for (uint64_t number = leases->oldest; number < leases->next; number++) {
        struct open_lease *lease = ring_at(leases, number);
        lease->issued += seconds;
        lease->deadline += seconds;
    }
}

// --- how far it is ---------------------------------------------------------------

uint32_t leases_epoch(const struct leases *leases) {
    return leases->epoch;
}

bool leases_done(const struct leases *leases) {
    return leases->epoch >= leases->rules.epochs;
}

uint64_t leases_finished(const struct leases *leases) {
    return leases->finished_places;
}

double leases_progress(const struct leases *leases) {
    return leases->epoch + (double)leases->finished_places / leases->count;
}

const struct ranges *leases_cursor(const struct leases *leases) {
    return &leases->finished;
}

static int check_cursor(const struct leases *leases, const struct range *finished, size_t count,
                        struct error *err) {
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        if (finished[i].count == 0 || finished[i].first < end ||
            (uint64_t)finished[i].first + finished[i].count > leases->count)
            return error_set(err, STATUS_DATA,
                             "the cursor is not of this data: range %zu is %u samples from %u on, "
                             "of %u",
                             i, finished[i].count, finished[i].first, leases->count);
        end = (uint64_t)finished[i].first + finished[i].count;
    }
    return STATUS_OK;
}

int leases_set_cursor(struct leases *leases, uint32_t epoch, const struct range *finished,
                      size_t count, struct error *err) {
    int status = check_cursor(leases, finished, count, err);
    if (status)
        return status;
    if (!ranges_reserve(&leases->todo, count + 2) || !ranges_reserve(&leases->finished, count + 2))
        return error_nomem(err);
    begin_epoch(leases, epoch);
    leases->era++;
    ranges_clear(&leases->todo);
    add_all_samples(&leases->next_todo, leases->count);
    uint32_t place = 0;
    for (size_t i = 0; i < count; i++) {
        ranges_add(&leases->todo, (struct range){place, finished[i].first - place});
        ranges_add(&leases->finished, finished[i]);
        leases->finished_places += finished[i].count;
        place = finished[i].first + finished[i].count;
    }
    ranges_add(&leases->todo, (struct range){place, leases->count - place});
    end_epoch_if_complete(leases);
    return STATUS_OK;
}

// --- beginning and end -----------------------------------------------------------

static bool is_under_way(const struct leases *leases) {
    return !leases_done(leases) && leases->open_places + leases->finished_places > 0;
}

void leases_rules(struct leases *leases, const struct lease_rules *rules) {
    uint64_t least = leases->epoch + (is_under_way(leases) ? 1 : 0);
    leases->rules = *rules;
    if (leases->rules.epochs < least)
        leases->rules.epochs = least;
    end_epoch_if_complete(leases);
}

int leases_open(struct leases **out, uint32_t count, uint64_t number,
                const struct lease_rules *rules, struct error *err) {
    struct leases *leases = mem_zeroed(1, sizeof *leases);
    if (!leases)
        return error_nomem(err);
    *leases = (struct leases){.rules = *rules, .count = count, .oldest = number, .next = number};
    if (!ranges_reserve(&leases->next_todo, 2)) {
        leases_close(leases);
        return error_nomem(err);
    }
    int status = leases_set_cursor(leases, 0, NULL, 0, err);
    if (status)
        leases_close(leases);
    else
        *out = leases;
    return status;
}

void leases_close(struct leases *leases) {
    if (!leases)
        return;
    ranges_free(&leases->todo);
    ranges_free(&leases->next_todo);
    ranges_free(&leases->finished);
    free(leases->ring);
    free(leases->holders);
    free(leases);
}
