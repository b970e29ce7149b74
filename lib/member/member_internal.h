// What the parts of a member share. Inside lib/member only.
//
//   member.c         beginning and end; what those who use it read and want
//   member_talk.c    what it tells its controller, and hears: heartbeats, places, reports
//   member_thread.c  its thread: dialling, joining, serving the link
#ifndef ADAM_MEMBER_MEMBER_INTERNAL_H
#define ADAM_MEMBER_MEMBER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/error.h"
#include "core/gate.h"
#include "member/member.h"
#include "member/patience.h"
#include "net/link.h"

struct report; // a line of metrics that waits

struct member {
    struct member_options options;
    pthread_t thread;
    struct gate news; // for those who use the member
    struct gate work; // for its thread
    _Atomic bool closing, over;
    _Atomic uint64_t looks, looked;
    _Atomic bool begun; // as the last heartbeat said
    const char *reason; // why it leaves; set before `closing`

    // The thread's own.
    char address[PROTO_ADDRESS_MAX]; // of the controller that is dialled
    uint32_t turn, controllers;      // how many were dialled; how many there are
    struct patience patience;
    bool lost;     // and that was said
    double stay;   // seconds that it waits for a lost controller: the run's controller-patience
    double beaten; // when the last heartbeat went
    double placed; // when places were asked for last
    struct proto_proposal sending[MEMBER_PROPOSALS];

    pthread_mutex_t lock; // of all that follows
    bool joined;
    struct member_identity identity;
    struct kept *run, *routes, *members, *places;
    struct proto_proposal proposals[MEMBER_PROPOSALS];
    uint32_t proposal_count;
    bool places_wanted;
    struct member_order order;
    bool ordered; // `order` was not taken
    struct error end;
    struct report *first, *last;
    uint32_t reports;
    struct link *link; // for member_close to break
};

// member_talk.c. By the member's thread, but where that is said.

// By any thread: those who wait for news look.
void member_tell_news(struct member *member);
// It ends, and why. Gives the status.
int member_end(struct member *member, const struct error *why);
// Asks the controller over the link that there is. A refusal is STATUS_SKIPPED where patience mends
// it, STATUS_UNAVAILABLE of a controller that does not lead, and else the member's end. The caller
// drops *answer; it is NULL after a failure.
int member_ask(struct member *member, uint16_t type, const void *message, struct kept **answer,
               struct error *err);
// An order, unless it is known.
void member_hear_order(struct member *member, const struct proto_beat *beat);
// Says how the role is doing, and fetches what changed since.
int member_send_heartbeat(struct member *member, struct error *err);
// When places are to be asked for (clock_seconds); INFINITY: never.
double member_places_due(const struct member *member);
// Proposals that there are; and asks for places, if that is due or wanted.
int member_send_places(struct member *member, struct error *err);
// Those that wait. One that did not arrive waits on.
int member_send_reports(struct member *member, struct error *err);
// By any thread: takes the first of those that wait, for free(); NULL: none does.
struct report *member_next_report(struct member *member);

// member_thread.c
void *member_thread(void *context);

#endif
