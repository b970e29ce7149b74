#include "cluster/vitals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/printable.h"

static const double moment = 3; // seconds, of some heartbeats

static struct vital *find_vital(const struct vitals *vitals, uint32_t number) {
    for (size_t i = 0; i < vitals->count; i++)
        if (vitals->items[i].number == number)
            return &vitals->items[i];
    return NULL;
}

static struct vital *make_vital(struct vitals *vitals, uint32_t number) {
    struct vital *more = mem_resize(vitals->items, vitals->count + 1, sizeof *more);
    if (!more)
        return NULL;
    vitals->items = more;
    struct vital *vital = &more[vitals->count++];
    *vital = (struct vital){.number = number, .figures = {.loss = NAN}};
    return vital;
}

static struct vital *vital_for(struct vitals *vitals, uint32_t number, double now) {
    struct vital *vital = find_vital(vitals, number);
    if (!vital)
        vital = make_vital(vitals, number);
    if (vital) {
        vital->heard = now;
        vital->missed = false;
        vital->closed = 0;
    }
    return vital;
}

bool vitals_heard(struct vitals *vitals, uint32_t number, double now) {
    return vital_for(vitals, number, now) != NULL;
}

bool vitals_tell(struct vitals *vitals, uint32_t number, const struct proto_heartbeat *figures,
                 double now) {
    struct vital *vital = vital_for(vitals, number, now);
    if (!vital)
        return false;
    vital->told = true;
    vital->figures = *figures;
    vital->figures.waits_for = (struct proto_text){0};
    printable_copy(vital->waits_for, sizeof vital->waits_for, figures->waits_for.at,
                   figures->waits_for.length);
    return true;
}

void vitals_beat(struct vitals *vitals, uint32_t number, uint64_t members) {
    struct vital *vital = find_vital(vitals, number);
    if (!vital)
        return;
    vital->knows_members = vital->told_members;
    vital->told_members = members;
}

void vitals_link(struct vitals *vitals, uint32_t number, const void *link) {
    struct vital *vital = find_vital(vitals, number);
    if (vital)
        vital->link = link;
}

void vitals_drained(struct vitals *vitals, uint32_t number) {
    struct vital *vital = find_vital(vitals, number);
    if (vital)
        vital->drained = true;
}

void vitals_lease(struct vitals *vitals, uint32_t number, double until) {
    struct vital *vital = find_vital(vitals, number);
    if (vital)
        vital->leased = until;
}

void vitals_refused(struct vitals *vitals, uint32_t number, uint64_t count) {
    struct vital *vital = find_vital(vitals, number);
    if (vital)
        vital->refused += count;
}

void vitals_closed(struct vitals *vitals, const void *link, double now) {
    for (size_t i = 0; i < vitals->count; i++) {
        struct vital *vital = &vitals->items[i];
        if (vital->link != link)
            continue;
        vital->link = NULL;
        if (now - vital->heard < moment)
            vital->closed = now;
    }
}

const struct vital *vitals_of(const struct vitals *vitals, uint32_t number) {
    return find_vital(vitals, number);
}

bool vitals_gives(const struct vital *vital, double epochs) {
    if (!vital || !vital->told || vital->missed || vital->closed > 0 ||
        vital->figures.state != PROTO_STATE_WORKING)
        return false;
    double epoch = vital->figures.epoch;
    return epoch > floor(epoch) || epoch >= epochs;
}

void vitals_forget(struct vitals *vitals, uint32_t number) {
    struct vital *vital = find_vital(vitals, number);
    if (vital)
        *vital = vitals->items[--vitals->count];
}

void vitals_miss(struct vitals *vitals, uint32_t number) {
    struct vital *vital = find_vital(vitals, number);
    if (vital)
        vital->missed = true;
}

const struct vital *vitals_silent(const struct vitals *vitals, double seconds, double now) {
    for (size_t i = 0; i < vitals->count; i++)
        if (!vitals->items[i].missed && now - vitals->items[i].heard > seconds)
            return &vitals->items[i];
    return NULL;
}

void vitals_free(struct vitals *vitals) {
    free(vitals->items);
    *vitals = (struct vitals){0};
}
