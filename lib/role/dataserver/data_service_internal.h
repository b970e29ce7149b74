// What the parts of the data service share. Inside lib/role/dataserver only.
//
//   data_service.c          beginning and end, what the owner has it do, figures
//   data_service_callers.c  links: who calls
//   data_service_request.c  requests: who may ask what, how they are answered
//   data_service_lease.c    leases: batches go out, and are finished or come back
//   data_service_cursor.c   how far it is: in the journal, and for who asks
#ifndef ADAM_ROLE_DATASERVER_DATA_SERVICE_INTERNAL_H
#define ADAM_ROLE_DATASERVER_DATA_SERVICE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "role/dataserver/data_service.h"

struct error;

enum { SERVICE_NOT_YET = 100 }; // milliseconds after which to come again

struct data_caller { // one link that was welcomed
    LIST_ENTRY(data_caller) others;
    struct link *link;
    enum proto_role role;
    uint64_t session;
    atomic_bool replaced; // the session has called anew: nothing reaches it here
};

struct data_service {
    struct data_service_options options;
    // Set once, before `begun`; until then nobody is welcome.
    struct data_service_run run;
    struct dealer *dealer;
    struct journal *journal; // NULL: none

    atomic_bool begun, stop_wanted, journal_failed;
    _Atomic uint32_t journal_epoch; // when it was written anew
    _Atomic uint64_t leases, busy, over, again, refused;

    pthread_mutex_t lock; // of all that follows
    LIST_HEAD(caller_list, data_caller) callers;
    uint64_t received, sent; // of links that have ended
    double seen;             // when this process was last at work; 0: not yet
};

struct data_request { // that is to be answered, once
    struct data_service *service;
    struct link *link;
    struct data_caller *caller;
    uint64_t number;
};

// data_service_callers.c: handlers of links, and the bytes that all of them have carried.
enum proto_refusal service_hello(void *context, struct link *link, const struct proto_hello *hello,
                                 struct proto_welcome *welcome, uint64_t *detail);
void service_closed(void *context, struct link *link, const char *why);
// The session of this caller has no other link from now on.
void service_replace_others(struct data_service *service, const struct data_caller *caller);
void service_traffic(struct data_service *service, uint64_t *received, uint64_t *sent);

// data_service.c: a process that was stopped, or whose machine slept, finds many requests when it
// goes on, which are no more late than it is itself. Before any of them is looked at.
void service_notice_pause(struct data_service *service);

// data_service_request.c: the handler of links, and how it is answered.
void service_request(void *context, struct link *link, uint64_t number, uint16_t type,
                     const union proto_message *message, struct buffer *payload);
void service_answer(const struct data_request *request, uint16_t type, const void *message);
// `text` may be NULL: what the code says.
void service_refuse(const struct data_request *request, enum proto_refusal code, uint64_t detail,
                    const char *text);
// For want of something that will be there again.
void service_put_off(const struct data_request *request, const char *why);

// data_service_lease.c
void service_answer_lease(const struct data_request *request, const struct proto_lease *asked);
void service_answer_finish(const struct data_request *request, const struct proto_finish *finish);
void service_answer_hold(const struct data_request *request, const struct proto_hold *hold);

// data_service_cursor.c
void service_answer_get_cursor(const struct data_request *request);
void service_answer_set_cursor(const struct data_request *request,
                               const struct proto_set_cursor *cursor);
// Opens the journal, if there is to be one, and goes on from there, or from the epoch in which
// the run is if that is later. By the owner, as the next.
int service_find_place(struct data_service *service, struct error *err);
void service_tend_journal(struct data_service *service);
// These places are finished: the journal has it, if it can be written, when this returns.
void service_note_finished(struct data_service *service, uint32_t epoch, struct range places);

#endif
