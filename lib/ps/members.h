// The sessions that a parameter server knows: a hash table in which any thread looks up,
// without a lock, while one adds. Sessions stay in it when they are over, so that a push
// that comes late is told from one that comes early.
#ifndef ADAM_PS_MEMBERS_H
#define ADAM_PS_MEMBERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session {
    uint64_t number;
    // Its place in the tables of those who keep something for each working session; free
    // for another when the session is over.
    uint32_t slot;
    _Atomic uint32_t replica; // that it is one of, or the only one
    _Atomic bool works;
    bool named; // in the present list: members_set's own
    struct session *next;
};

#define MEMBERS_HEADS 1024

struct members { // {0} knows nobody
    _Atomic(struct session *) heads[MEMBERS_HEADS];
    _Atomic uint32_t working; // replicas of which some session works: lambda
    // members_set's own.
    struct session **list; // who works; by slot, NULL: free
    uint32_t slots;
};

// Any thread. NULL: never named.
struct session *members_find(const struct members *members, uint64_t number);

// These work from now on, and nobody else, each for its replica; `replicas` NULL: each for one of
// its own. First those that are over stop, then the number changes, then the new ones work: who
// reads the number before it looks at sessions never finds more of them working than the number
// says. One thread at a time. False when memory is out; nothing has changed then.
bool members_set(struct members *members, const uint64_t *sessions, const uint32_t *replicas,
                 size_t count);

void members_free(struct members *members);

#endif
