#include "role/data_service.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "member/sharers.h"

enum {
    NOT_YET = 100,                    // milliseconds, until it has begun
    NAMES_BYTES = PROTO_BODY_MAX / 2, // of names of classes in one answer
    RANGES_MOST = 32768,              // of a cursor on the wire
    JOURNAL_LINES = 1 << 16,          // after which it is written anew
};
static const double tend_most = 1; // seconds

struct peer { // one link that was welcomed
    struct peer *next, **at;
    struct link *link;
    enum proto_role role;
    uint64_t session;
};

struct data_service {
    struct data_service_options options;
    struct data_service_run run;
    struct dealer *dealer; // set once, before `begun`
    struct journal *journal;
    atomic_bool begun, stop_wanted, journal_failed;
    _Atomic uint32_t journal_epoch; // when it was written anew
    _Atomic uint64_t leases, busy, over, again, refused;
    pthread_mutex_t lock; // of all that follows
    struct peer *peers;
    uint64_t received, sent; // of links that have ended
};

// --- who calls -------------------------------------------------------------------

static bool same_run(const struct data_service *service, const struct proto_hello *hello) {
    static const struct proto_id any = {{0}};
    return !memcmp(&hello->run, &any, sizeof any) ||
           !memcmp(&hello->run, &service->run.run, sizeof any);
}

static void add_peer(struct data_service *service, struct peer *peer) {
    pthread_mutex_lock(&service->lock);
    peer->next = service->peers;
    peer->at = &service->peers;
    if (peer->next)
        peer->next->at = &peer->next;
    service->peers = peer;
    pthread_mutex_unlock(&service->lock);
}

static enum proto_refusal hello(void *context, struct link *link, const struct proto_hello *hello,
                                struct proto_welcome *welcome, uint64_t *detail) {
    struct data_service *service = context;
    *detail = NOT_YET;
    if (!atomic_load(&service->begun))
        return PROTO_REFUSAL_NOT_READY;
    if (!same_run(service, hello))
        return PROTO_REFUSAL_WRONG_RUN;
    struct peer *peer = mem_zeroed(1, sizeof *peer);
    if (!peer)
        return PROTO_REFUSAL_BUSY;
    *peer = (struct peer){
        .link = link, .role = (enum proto_role)hello->role, .session = hello->session};
    link_set_user(link, peer);
    add_peer(service, peer);
    *welcome = (struct proto_welcome){
        .role = PROTO_ROLE_DATA_SERVER,
        .run = service->run.run,
        .model = service->run.model,
        .session = hello->session,
        .window = LINK_WINDOW,
        .name = proto_text(service->run.name),
    };
    return PROTO_REFUSAL_NONE;
}

static void closed(void *context, struct link *link, const char *why) {
    struct data_service *service = context;
    struct peer *peer = link_user(link);
    uint64_t received, sent;
    (void)why;
    link_traffic(link, &received, &sent);
    pthread_mutex_lock(&service->lock);
    service->received += received;
    service->sent += sent;
    *peer->at = peer->next;
    if (peer->next)
        peer->next->at = peer->at;
    pthread_mutex_unlock(&service->lock);
    free(peer);
}

// --- answers ---------------------------------------------------------------------

struct request {
    struct data_service *service;
    struct link *link;
    const struct peer *peer;
    uint64_t number;
};

static void refuse(const struct request *request, enum proto_refusal code, uint64_t detail,
                   const char *text) {
    if (code == PROTO_REFUSAL_BUSY)
        atomic_fetch_add(&request->service->busy, 1);
    else if (code != PROTO_REFUSAL_EPOCH_OVER)
        atomic_fetch_add(&request->service->refused, 1);
    link_refuse(request->link, request->number, code, detail,
                text ? text : proto_refusal_text(code));
}

static void answer(const struct request *request, uint16_t type, const void *message) {
    struct error err = {0};
    if (link_answer(request->link, request->number, type, message, NULL, &err))
        refuse(request, PROTO_REFUSAL_BUSY, NOT_YET, err.text);
}

// Names from label `first` on, as many as fit.
static uint32_t name_classes(const struct classes *classes, uint32_t first,
                             struct proto_named *names) {
    size_t bytes = 0;
    uint32_t n = 0;
    for (uint32_t i = first; i < (uint32_t)classes->count && n < 65536; i++, n++) {
        names[n].name = proto_text(classes->names[i]);
        bytes += sizeof(uint32_t) + names[n].name.length;
        if (bytes > NAMES_BYTES)
            break;
    }
    return n;
}

static void answer_data(const struct request *request, const struct proto_get_data *asked) {
    const struct data_service *service = request->service;
    const struct stock *stock = service->options.stock;
    const struct classes *classes = stock_classes(stock);
    const struct dealer_shape shape = dealer_shape(service->dealer);
    struct proto_named *names = mem_array((size_t)classes->count + 1, sizeof *names);
    if (!names) {
        refuse(request, PROTO_REFUSAL_BUSY, NOT_YET, "out of memory");
        return;
    }
    const struct proto_data data = {
        .name = proto_text(service->options.name),
        .whole = stock_whole(stock),
        .first = stock_first(stock),
        .samples = stock_count(stock),
        .digest = stock_digest(stock),
        .classes = (uint32_t)classes->count,
        .channels = (uint32_t)shape.channels,
        .height = (uint32_t)shape.height,
        .width = (uint32_t)shape.width,
        .value = shape.type == PIXEL_U8 ? PROTO_VALUE_BYTE : PROTO_VALUE_FLOAT,
        .epoch = dealer_figures(service->dealer).epoch,
        .names = proto_list(names, name_classes(classes, asked->names, names)),
    };
    answer(request, PROTO_TYPE_DATA, &data);
    free(names);
}

// A batch on its way out.
struct sending {
    struct dealer *dealer;
    struct buffer *buffer;
    struct link_part parts[3];
};

static void batch_sent(void *context) {
    struct sending *sending = context;
    dealer_release(sending->dealer, sending->buffer);
    free(sending);
}

static void send_batch(const struct request *request, const struct deal *deal) {
    struct dealer *dealer = request->service->dealer;
    struct sending *sending = mem_zeroed(1, sizeof *sending);
    uint32_t n = deal->stretch.places.count;
    if (!sending) { // the lease runs out, and its samples go to another
        dealer_release(dealer, deal->buffer);
        refuse(request, PROTO_REFUSAL_BUSY, NOT_YET, "out of memory");
        return;
    }
    *sending = (struct sending){
        .dealer = dealer,
        .buffer = deal->buffer,
        .parts = {{deal->keys, n * sizeof *deal->keys},
                  {deal->labels, n * sizeof *deal->labels},
                  {deal->values, deal->value_bytes}},
    };
    const struct link_payload payload = {sending->parts, 3, batch_sent, sending};
    const struct proto_batch batch = {
        .lease = deal->lease.number,
        .deadline = (uint32_t)fmin(deal->lease.deadline * 1000, UINT32_MAX),
        .epoch = deal->stretch.epoch,
        .first = deal->stretch.places.first,
        .samples = n,
    };
    atomic_fetch_add(&request->service->leases, 1);
    link_answer(request->link, request->number, PROTO_TYPE_BATCH, &batch, &payload, NULL);
}

static void answer_lease(const struct request *request, const struct proto_lease *asked) {
    struct dealer *dealer = request->service->dealer;
    struct error err = {0};
    const struct deal_wish wish = {
        .session = asked->session,
        .step = asked->step,
        .clock = asked->clock,
        .epoch = asked->epoch,
        .samples = asked->samples,
    };
    struct deal deal;
    uint64_t detail = 0;
    switch (dealer_deal(dealer, &wish, clock_seconds(), &deal, &detail)) {
    case DEAL_DONE:
        send_batch(request, &deal);
        break;
    case DEAL_IDLE:
        answer(request, PROTO_TYPE_BATCH, &(struct proto_batch){.epoch = asked->epoch});
        break;
    case DEAL_BUSY:
        refuse(request, PROTO_REFUSAL_BUSY, detail, NULL);
        break;
    case DEAL_OVER:
        refuse(request, PROTO_REFUSAL_EPOCH_OVER, detail, NULL);
        break;
    case DEAL_NONE:
        refuse(request, PROTO_REFUSAL_EPOCH_OVER, PROTO_NOWHERE, NULL);
        break;
    case DEAL_FAILED:
        dealer_status(dealer, &err);
        refuse(request, PROTO_REFUSAL_STORAGE, 0, err.text);
        break;
    }
}

// --- what is finished, or comes back ---------------------------------------------

static void say(const struct data_service *service, const char *text) {
    if (service->options.say)
        service->options.say(service->options.self, text);
}

// A journal that cannot be written does not end the service; it is said once.
static void journal_trouble(struct data_service *service, const struct error *err) {
    char text[ERROR_TEXT + 128];
    if (atomic_exchange(&service->journal_failed, true))
        return;
    snprintf(text, sizeof text,
             "warning: %s; if this server is killed, what is finished from now "
             "on is handed out again",
             err->text);
    say(service, text);
}

static bool finish_one(const struct request *request, uint64_t session, uint64_t lease) {
    struct data_service *service = request->service;
    struct error err = {0};
    struct range places;
    uint32_t epoch;
    if (!dealer_finish(service->dealer, session, lease, clock_seconds(), &epoch, &places)) {
        atomic_fetch_add(&service->over, 1);
        return false;
    }
    // It is in the journal before it is acknowledged.
    if (service->journal && journal_add(service->journal, epoch, places, &err))
        journal_trouble(service, &err);
    return true;
}

static bool return_one(const struct request *request, uint64_t session, uint64_t lease) {
    struct data_service *service = request->service;
    uint32_t samples = dealer_return(service->dealer, session, lease);
    atomic_fetch_add(&service->again, samples);
    return samples > 0;
}

// The lease that a message names first; false: it names none.
static bool first_lease(const struct proto_finish *finish, uint64_t *lease) {
    const struct proto_list *list = finish->leases.count > 0 ? &finish->leases : &finish->returned;
    if (list->count == 0)
        return false;
    *lease = ((const struct proto_lease_id *)list->at)->lease;
    return true;
}

// What comes back is there before an epoch is found to be over.
static void answer_finish(const struct request *request, const struct proto_finish *finish) {
    const struct proto_lease_id *finished = finish->leases.at, *returned = finish->returned.at;
    uint32_t open = 0;
    uint64_t first;
    for (uint32_t i = 0; i < finish->returned.count; i++)
        open += return_one(request, finish->session, returned[i].lease);
    for (uint32_t i = 0; i < finish->leases.count; i++)
        open += finish_one(request, finish->session, finished[i].lease);
    if (open == 0 && first_lease(finish, &first)) {
        refuse(request, PROTO_REFUSAL_LEASE_OVER, first, NULL);
        return;
    }
    const struct dealer_figures figures = dealer_figures(request->service->dealer);
    const struct proto_progress progress = {
        .epoch = figures.epoch,
        .finished = figures.finished,
        .samples = stock_count(request->service->options.stock),
    };
    answer(request, PROTO_TYPE_PROGRESS, &progress);
}

// --- the cursor ------------------------------------------------------------------

static struct range *cursor_now(void *dealer, uint64_t *seed, uint32_t *epoch, size_t *count) {
    return dealer_cursor(dealer, seed, epoch, count);
}

static int rewrite_journal(struct data_service *service, struct error *err) {
    if (!service->journal)
        return STATUS_OK;
    atomic_store(&service->journal_epoch, dealer_figures(service->dealer).epoch);
    return journal_rewrite(service->journal, cursor_now, service->dealer, err);
}

static void answer_get_cursor(const struct request *request) {
    struct proto_cursor cursor = {0};
    size_t count;
    struct range *finished =
        dealer_cursor(request->service->dealer, &cursor.seed, &cursor.epoch, &count);
    // Of more ranges than a message holds the rest is trained on again.
    count = count < RANGES_MOST ? count : RANGES_MOST;
    struct proto_range *ranges = mem_array(count + 1, sizeof *ranges);
    for (size_t i = 0; finished && ranges && i < count; i++)
        ranges[i] = (struct proto_range){finished[i].first, finished[i].count};
    cursor.finished = proto_list(ranges, (uint32_t)count);
    if (finished && ranges)
        answer(request, PROTO_TYPE_CURSOR, &cursor);
    else
        refuse(request, PROTO_REFUSAL_BUSY, NOT_YET, "out of memory");
    free(ranges);
    free(finished);
}

static int set_cursor(struct data_service *service, const struct proto_set_cursor *cursor,
                      struct error *err) {
    const struct proto_range *ranges = cursor->finished.at;
    size_t count = cursor->finished.count;
    struct range *finished = mem_array(count + 1, sizeof *finished);
    int status = finished ? STATUS_OK : error_nomem(err);
    for (size_t i = 0; !status && i < count; i++) {
        if (ranges[i].first > UINT32_MAX || ranges[i].count > UINT32_MAX)
            status = error_set(err, STATUS_DATA, "the cursor is not of this data");
        else
            finished[i] = (struct range){(uint32_t)ranges[i].first, (uint32_t)ranges[i].count};
    }
    if (!status)
        status =
            dealer_set_cursor(service->dealer, cursor->seed, cursor->epoch, finished, count, err);
    free(finished);
    return status;
}

static void answer_set_cursor(const struct request *request,
                              const struct proto_set_cursor *cursor) {
    struct data_service *service = request->service;
    struct error err = {0};
    if (set_cursor(service, cursor, &err)) {
        refuse(request, PROTO_REFUSAL_WRONG_SHAPE, 0, err.text);
        return;
    }
    if (rewrite_journal(service, &err))
        journal_trouble(service, &err);
    answer(request, PROTO_TYPE_DONE, NULL);
}

// --- requests --------------------------------------------------------------------

// Who may ask what. A worker asks in its own session.
static enum proto_refusal allowed(const struct peer *peer, uint16_t type,
                                  const union proto_message *message) {
    uint64_t session;
    switch (type) {
    case PROTO_TYPE_LEASE:
        session = message->lease.session;
        break;
    case PROTO_TYPE_FINISH:
        session = message->finish.session;
        break;
    case PROTO_TYPE_LEAVE:
        session = message->leave.session;
        break;
    case PROTO_TYPE_SET_CURSOR:
    case PROTO_TYPE_STOP:
        return peer->role == PROTO_ROLE_CONTROLLER || peer->role == PROTO_ROLE_ADMINISTRATOR
                   ? PROTO_REFUSAL_NONE
                   : PROTO_REFUSAL_WRONG_ROLE;
    default:
        return PROTO_REFUSAL_NONE;
    }
    if (peer->role != PROTO_ROLE_WORKER)
        return PROTO_REFUSAL_WRONG_ROLE;
    return session > 0 && session == peer->session ? PROTO_REFUSAL_NONE
                                                   : PROTO_REFUSAL_WRONG_SESSION;
}

static void serve(const struct request *request, uint16_t type,
                  const union proto_message *message) {
    struct data_service *service = request->service;
    switch (type) {
    case PROTO_TYPE_GET_DATA:
        answer_data(request, &message->get_data);
        break;
    case PROTO_TYPE_LEASE:
        answer_lease(request, &message->lease);
        break;
    case PROTO_TYPE_FINISH:
        answer_finish(request, &message->finish);
        break;
    case PROTO_TYPE_LEAVE:
        dealer_gone(service->dealer, message->leave.session);
        answer(request, PROTO_TYPE_DONE, NULL);
        break;
    case PROTO_TYPE_GET_CURSOR:
        answer_get_cursor(request);
        break;
    case PROTO_TYPE_SET_CURSOR:
        answer_set_cursor(request, &message->set_cursor);
        break;
    case PROTO_TYPE_STOP:
        atomic_store(&service->stop_wanted, true);
        answer(request, PROTO_TYPE_DONE, NULL);
        break;
    default:
        refuse(request, PROTO_REFUSAL_WRONG_ROLE, 0, "this is a data server");
        break;
    }
}

static void request(void *context, struct link *link, uint64_t number, uint16_t type,
                    const union proto_message *message, struct buffer *payload) {
    const struct request request = {context, link, link_user(link), number};
    (void)payload;
    enum proto_refusal refusal = allowed(request.peer, type, message);
    if (refusal)
        refuse(&request, refusal, 0, NULL);
    else
        serve(&request, type, message);
}

struct link_handlers data_service_handlers(struct data_service *service) {
    return (struct link_handlers){service, hello, request, closed};
}

// --- the owner -------------------------------------------------------------------

static void run_text(char text[33], struct proto_id run) {
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", run.bytes[i]);
}

static int go_on(struct data_service *service, const struct journal_place *place,
                 struct error *err) {
    char text[128];
    int status = dealer_set_cursor(service->dealer, place->seed, place->epoch, place->finished.at,
                                   place->finished.count, err);
    if (status)
        return error_context(err, "%s", service->run.cursor);
    snprintf(text, sizeof text,
             "goes on in epoch %" PRIu32 ", of which %" PRIu64 " samples are finished",
             place->epoch, ranges_places(&place->finished));
    say(service, text);
    return STATUS_OK;
}

static int open_journal(struct data_service *service, struct error *err) {
    const struct stock *stock = service->options.stock;
    struct journal_of of = {
        .digest = stock_digest(stock),
        .samples = stock_whole(stock),
        .first = stock_first(stock),
        .count = stock_count(stock),
    };
    struct journal_place place;
    bool found;
    if (!service->run.cursor)
        return STATUS_OK;
    run_text(of.run, service->run.run);
    int status = journal_open(&service->journal, service->run.cursor, &of, &place, &found, err);
    if (status)
        return status;
    if (found)
        status = go_on(service, &place, err);
    ranges_free(&place.finished);
    return status ? status : rewrite_journal(service, err);
}

int data_service_begin(struct data_service *service, const struct data_service_run *run,
                       struct error *err) {
    service->run = *run;
    struct decode_options decode = {0};
    if (run->ops)
        ops_decode_hint(run->ops, &decode);
    stock_hint(service->options.stock, &decode);
    const struct dealer_options options = {
        .stock = service->options.stock,
        .ops = run->ops,
        .rules = run->rules,
        .seed = run->seed,
        .number = run->number,
        .batch = run->batch,
        .ahead = run->ahead,
        .threads = run->threads,
        .rounds = run->rounds,
    };
    int status = dealer_open(&service->dealer, &options, err);
    if (!status)
        status = open_journal(service, err);
    if (!status)
        atomic_store(&service->begun, true);
    return status;
}

void data_service_rules(struct data_service *service, const struct lease_rules *rules) {
    dealer_rules(service->dealer, rules);
}

// An epoch that is over, or many lines, is a reason to write it anew.
static void tend_journal(struct data_service *service) {
    struct error err = {0};
    if (!service->journal)
        return;
    bool anew = journal_lines(service->journal) > JOURNAL_LINES ||
                dealer_figures(service->dealer).epoch != atomic_load(&service->journal_epoch);
    int status = anew ? rewrite_journal(service, &err) : journal_sync(service->journal, &err);
    if (status)
        journal_trouble(service, &err);
}

int data_service_tend(struct data_service *service, double *next, struct error *err) {
    double deadline;
    *next = tend_most;
    if (!atomic_load(&service->begun))
        return STATUS_OK;
    atomic_fetch_add(&service->again, dealer_expire(service->dealer, clock_seconds(), &deadline));
    if (deadline >= 0)
        *next = fmin(*next, deadline);
    tend_journal(service);
    return dealer_status(service->dealer, err);
}

static bool lives(const struct proto_status *status, uint64_t session) {
    const struct proto_member *members = status->members.at;
    for (uint32_t i = 0; i < status->members.count; i++)
        if (members[i].session == session)
            return members[i].state != PROTO_STATE_GONE;
    return false;
}

static int set_sharers(struct data_service *service, const struct proto_status *status,
                       struct error *err) {
    uint64_t *sessions;
    size_t count;
    int result = sharers_of(&sessions, &count, status, err);
    if (result)
        return result;
    result = dealer_members(service->dealer, sessions, count, err);
    free(sessions);
    return result;
}

int data_service_members(struct data_service *service, const struct proto_status *status,
                         struct error *err) {
    uint64_t session;
    size_t i = 0;
    if (!atomic_load(&service->begun))
        return STATUS_OK;
    while ((session = dealer_session(service->dealer, i)) > 0)
        if (lives(status, session))
            i++;
        else
            dealer_gone(service->dealer, session); // another takes its place in the list
    return service->run.rounds ? set_sharers(service, status, err) : STATUS_OK;
}

bool data_service_met_stranger(struct data_service *service) {
    return atomic_load(&service->begun) && dealer_met_stranger(service->dealer);
}

bool data_service_stop_wanted(const struct data_service *service) {
    return atomic_load(&service->stop_wanted);
}

static void count_traffic(struct data_service *service, struct data_service_figures *figures) {
    pthread_mutex_lock(&service->lock);
    figures->received = service->received;
    figures->sent = service->sent;
    for (const struct peer *peer = service->peers; peer; peer = peer->next) {
        uint64_t received, sent;
        link_traffic(peer->link, &received, &sent);
        figures->received += received;
        figures->sent += sent;
    }
    pthread_mutex_unlock(&service->lock);
}

struct data_service_figures data_service_figures(struct data_service *service) {
    struct data_service_figures figures = {
        .stock = stock_figures(service->options.stock),
        .leases = atomic_load(&service->leases),
        .busy = atomic_load(&service->busy),
        .over = atomic_load(&service->over),
        .again = atomic_load(&service->again),
        .refused = atomic_load(&service->refused),
    };
    if (atomic_load(&service->begun))
        figures.dealer = dealer_figures(service->dealer);
    count_traffic(service, &figures);
    return figures;
}

int data_service_open(struct data_service **out, const struct data_service_options *options,
                      struct error *err) {
    struct data_service *service = mem_zeroed(1, sizeof *service);
    if (!service)
        return error_nomem(err);
    service->options = *options;
    pthread_mutex_init(&service->lock, NULL);
    *out = service;
    return STATUS_OK;
}

void data_service_close(struct data_service *service) {
    if (!service)
        return;
    if (atomic_load(&service->begun))
        tend_journal(service);
    journal_close(service->journal);
    dealer_close(service->dealer);
    pthread_mutex_destroy(&service->lock);
    free(service);
}
