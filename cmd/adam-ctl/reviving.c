#include "adam-ctl/reviving.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adam-ctl/subcommand.h"
#include "cli/talk.h"
#include "core/error.h"
#include "run/checkpoint.h"
#include "run/metrics.h"

static void request_clear(struct revive_request *request) {
    words_free(&request->records);
    words_free(&request->names);
    words_free(&request->stores);
}

// The records of the controllers, and the stores where there are some.
static int make_request(struct revive_request *request, const struct launch *launch,
                        struct error *err) {
    *request =
        (struct revive_request){.folder = launch->folder, .elsewhere = launch->remote_stores};
    if (launch->controllers < 2)
        words_format(&request->records, "%s/" LAUNCH_STATE, launch->folder);
    for (int i = 1; i <= launch->controllers && launch->controllers > 1; i++)
        words_format(&request->records, "%s/" LAUNCH_STATE_OF, launch->folder, i);
    for (int i = 1; i <= launch->parameter_servers && launch->store; i++) {
        words_format(&request->names, "%s-%d", launch_short(PROTO_ROLE_PARAMETER_SERVER), i);
        launch_store(launch, i, &request->stores);
    }
    bool failed = request->records.failed || request->names.failed || request->stores.failed;
    return failed ? error_nomem(err) : STATUS_OK;
}

// --- what it goes on from ---------------------------------------------------------------

static void say_server(const struct revive_server *server) {
    if (server->shards)
        talk_note(PROGRAM, "%s: %zu shards, of versions %" PRIu64 " to %" PRIu64, server->name,
                  server->shards, server->oldest, server->newest);
}

// What the checkpoint is, behind the words before it.
static void say_checkpoint(const char *before, const struct revival *revival) {
    if (revival->checkpoint)
        talk_note(PROGRAM, "%s the newest checkpoint, of version %" PRIu64, before,
                  revival->checkpoint);
}

static void say_revival(const struct revival *revival, const struct launch *launch) {
    char run[PROTO_ID_TEXT];
    if (!revival->stores) {
        talk_note(PROGRAM, "not going on from the stores: %s", revival->why);
        say_checkpoint("a new run begins with", revival);
        if (!revival->checkpoint)
            talk_note(PROGRAM, "nothing is saved in %s: the run begins anew", launch->folder);
        return;
    }
    proto_id_text(run, &revival->run);
    talk_note(PROGRAM, "run %s goes on from its stores", run);
    for (size_t i = 0; i < revival->server_count; i++)
        say_server(&revival->servers[i]);
    if (launch->remote_stores)
        talk_note(PROGRAM, "they are on the machines of the servers, and not looked at from here");
    say_checkpoint("not used:", revival);
}

int reviving_look(struct launch *launch, struct revival *revival, struct error *err) {
    struct revive_request request;
    struct proto_id run;
    bool stored = false;
    int status = make_request(&request, launch, err);
    if (!status && launch->store)
        status = revive_look(revival, &request, err);
    else if (!status && revive_run(&request.records, &run, &stored) && stored)
        talk_note(PROGRAM, "warning: the run had stores; it goes on from them only with --store");
    request_clear(&request);
    if (status || !launch->store)
        return status;
    launch->revive = revival->stores;
    say_revival(revival, launch);
    return STATUS_OK;
}

// --- before it begins -------------------------------------------------------------------

// Elsewhere only stores of the run that the folder has the record of are in the way, or, where
// there is no record, those of the run that is to be resumed or replaced.
static int set_all_aside(const struct launch *launch, const struct revive_request *request,
                         struct error *err) {
    struct proto_id run;
    bool stored, known = revive_run(&request->records, &run, &stored);
    bool any = launch_stores_inside(launch) || (!known && (launch->resume || launch->force));
    int status = STATUS_OK;
    for (size_t i = 0; i < request->stores.count && !status; i++)
        status = revive_set_aside(request->stores.items[i], any ? NULL : &run, err);
    return status;
}

int reviving_make_way(const struct launch *launch, struct error *err) {
    struct revive_request request;
    if (!launch->store || launch->revive || launch->remote_stores)
        return STATUS_OK;
    int status = launch_check_folder(launch, err);
    if (status)
        return status;
    status = make_request(&request, launch, err);
    if (!status)
        status = set_all_aside(launch, &request, err);
    request_clear(&request);
    return status;
}

int reviving_report(const struct launch *launch, const struct revival *revival, struct error *err) {
    struct metrics *metrics;
    struct grow path = {0};
    if (!revival->servers)
        return STATUS_OK;
    grow_format(&path, "%s/metrics.jsonl", launch->folder);
    char *text = grow_take(&path);
    int status =
        text ? metrics_open(&metrics, text, "controller", 0, false, err) : error_nomem(err);
    free(text);
    if (status)
        return status;
    status = metrics_write(metrics, "revived", revival_json(revival), err);
    metrics_close(metrics);
    return status;
}
