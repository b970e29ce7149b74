#include "ps/members.h"

#include <stdlib.h>

#include "core/mem.h"

static _Atomic(struct session *) *head_of(const struct members *members, uint64_t number) {
    return (_Atomic(struct session *) *)&members
        ->heads[(number * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

struct session *members_find(const struct members *members, uint64_t number) {
    struct session *session = atomic_load(head_of(members, number));
    while (session && session->number != number)
        session = session->next;
    return session;
}

static void free_list(struct session *list) {
    for (struct session *next; list; list = next) {
        next = list->next;
        free(list);
    }
}

// Sessions for those numbers that are not known yet; false when memory is out.
static bool make_unknown(const struct members *members, const uint64_t *sessions, size_t count,
                         struct session **made) {
    *made = NULL;
    for (size_t i = 0; i < count; i++) {
        struct session *session = members_find(members, sessions[i]);
        for (struct session *m = *made; !session && m; m = m->next)
            session = m->number == sessions[i] ? m : NULL;
        if (session)
            continue;
        if (!(session = mem_zeroed(1, sizeof *session))) {
            free_list(*made);
            return false;
        }
        session->number = sessions[i];
        session->next = *made;
        *made = session;
    }
    return true;
}

static bool make_slots(struct members *members, size_t count) {
    struct session **list =
        mem_longer(members->list, &members->slots, (uint32_t)count, sizeof(struct session *));
    if (list)
        members->list = list;
    return list != NULL;
}

static void add_sessions(struct members *members, struct session *made) {
    for (struct session *next; made; made = next) {
        next = made->next;
        _Atomic(struct session *) *head = head_of(members, made->number);
        made->next = atomic_load(head);
        atomic_store(head, made);
    }
}

// Ends those who are not named.
static void keep_named(struct members *members) {
    for (uint32_t i = 0; i < members->slots; i++) {
        struct session *session = members->list[i];
        if (session && !session->named) {
            atomic_store(&session->works, false);
            members->list[i] = NULL;
        }
    }
}

static void begin_session(struct members *members, struct session *session) {
    uint32_t slot = 0;
    while (members->list[slot])
        slot++;
    members->list[slot] = session;
    session->slot = slot;
    atomic_store(&session->works, true);
}

// The replicas of those who are named: each session has the number of its own.
static uint32_t set_replicas(const struct members *members, const uint64_t *sessions,
                             const uint32_t *replicas, size_t count) {
    uint32_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        struct session *session = members_find(members, sessions[i]);
        bool known = session->named;
        session->named = true;
        atomic_store(&session->replica, replicas ? replicas[i] : (uint32_t)i);
        for (size_t k = 0; replicas && !known && k < i; k++)
            known = replicas[k] == replicas[i];
        distinct += !known;
    }
    return distinct;
}

bool members_set(struct members *members, const uint64_t *sessions, const uint32_t *replicas,
                 size_t count) {
    struct session *made;
    if (!make_slots(members, count) || !make_unknown(members, sessions, count, &made))
        return false;
    add_sessions(members, made);
    uint32_t working = set_replicas(members, sessions, replicas, count);
    keep_named(members);
    atomic_store(&members->working, working);
    for (size_t i = 0; i < count; i++) {
        struct session *session = members_find(members, sessions[i]);
        if (!atomic_load(&session->works))
            begin_session(members, session);
    }
    for (size_t i = 0; i < count; i++)
        members_find(members, sessions[i])->named = false;
    return true;
}

void members_free(struct members *members) {
    for (int i = 0; i < MEMBERS_HEADS; i++)
        free_list(atomic_load(&members->heads[i]));
    free(members->list);
}
