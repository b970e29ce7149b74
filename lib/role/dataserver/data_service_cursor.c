// How far a data service is: which places of the epoch are finished. The journal keeps it
// for when the server is started again; others ask for it, and set it, on the wire.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "role/dataserver/data_service_internal.h"

enum {
    RANGES_MOST = 32768,     // of a cursor on the wire
    JOURNAL_LINES = 1 << 16, // after which it is written anew
};

// --- the journal -----------------------------------------------------------------

static void say_line(const struct data_service *service, const char *text) {
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
    say_line(service, text);
}

void service_note_finished(struct data_service *service, uint32_t epoch, struct range places) {
    struct error err = {0};
    if (service->journal && journal_add(service->journal, epoch, places, &err))
        journal_trouble(service, &err);
}

static struct range *cursor_now(void *dealer, uint64_t *seed, uint32_t *epoch, size_t *count) {
    return dealer_cursor(dealer, seed, epoch, count);
}

static int rewrite_journal(struct data_service *service, struct error *err) {
    if (!service->journal)
        return STATUS_OK;
    atomic_store(&service->journal_epoch, dealer_figures(service->dealer).epoch);
    return journal_rewrite(service->journal, cursor_now, service->dealer, err);
}

// An epoch that is over, or many lines, is a reason to write it anew.
void service_tend_journal(struct data_service *service) {
    struct error err = {0};
    if (!service->journal)
        return;
    bool anew = journal_lines(service->journal) > JOURNAL_LINES ||
                dealer_figures(service->dealer).epoch != atomic_load(&service->journal_epoch);
    int status = anew ? rewrite_journal(service, &err) : journal_sync(service->journal, &err);
    if (status)
        journal_trouble(service, &err);
}

static int resume_journal(struct data_service *service, const struct journal_place *place,
                          struct error *err) {
    char text[128];
    int status = dealer_set_cursor(service->dealer, place->seed, place->epoch, place->finished.at,
                                   place->finished.count, err);
    if (status)
        return error_context(err, "%s", service->run.cursor);
    snprintf(text, sizeof text,
             "goes on in epoch %" PRIu32 ", of which %" PRIu64 " samples are finished",
             place->epoch, ranges_places(&place->finished));
    say_line(service, text);
    return STATUS_OK;
}

// The run did without this server, or it has no journal of what it served.
static int catch_up(struct data_service *service, struct error *err) {
    uint32_t epoch = service->run.epoch;
    char text[128];
    if (dealer_figures(service->dealer).epoch >= epoch)
        return STATUS_OK;
    int status = dealer_set_cursor(service->dealer, service->run.seed, epoch, NULL, 0, err);
    if (status)
        return status;
    snprintf(text, sizeof text, "begins with epoch %" PRIu32 ", in which the run is", epoch);
    say_line(service, text);
    return STATUS_OK;
}

static int open_journal(struct data_service *service, struct error *err) {
    const struct picture_cache *pictures = service->options.pictures;
    struct journal_of of = {
        .digest = picture_cache_digest(pictures),
        .samples = picture_cache_whole(pictures),
        .first = picture_cache_first(pictures),
        .count = picture_cache_count(pictures),
    };
    struct journal_place place;
    bool found;
    if (!service->run.cursor)
        return STATUS_OK;
    proto_id_text(of.run, &service->run.run);
    int status = journal_open(&service->journal, service->run.cursor, &of, &place, &found, err);
    if (status)
        return status;
    if (found)
        status = resume_journal(service, &place, err);
    ranges_free(&place.finished);
    return status;
}

int service_find_place(struct data_service *service, struct error *err) {
    int status = open_journal(service, err);
    if (!status)
        status = catch_up(service, err);
    return status ? status : rewrite_journal(service, err);
}

// --- on the wire -----------------------------------------------------------------

void service_answer_get_cursor(const struct data_request *request) {
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
        service_answer(request, PROTO_TYPE_CURSOR, &cursor);
    else
        service_put_off(request, "out of memory");
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

void service_answer_set_cursor(const struct data_request *request,
                               const struct proto_set_cursor *cursor) {
    struct data_service *service = request->service;
    struct error err = {0};
    if (set_cursor(service, cursor, &err)) {
        service_refuse(request, PROTO_REFUSAL_WRONG_SHAPE, 0, err.text);
        return;
    }
    if (rewrite_journal(service, &err))
        journal_trouble(service, &err);
    service_answer(request, PROTO_TYPE_DONE, NULL);
}
