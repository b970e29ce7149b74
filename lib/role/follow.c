#include "role/follow.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "member/place.h"
#include "member/run_text.h"
#include "net/link.h"
#include "net/ready.h"
#include "remote/class_names.h"
#include "remote/servers_client.h"

#define POLL 0.1 // seconds between two looks at whether to stop

enum {
    ASK = 5000,     // milliseconds that others have to welcome who asks them
    LAST_PULL = 30, // seconds that the servers of a run that is over have for the last copy
};

struct follow {
    struct follow_options options;
    char *controller; // address, or @FILE with it
    struct member *member;
    struct kept *run;             // that the model is from
    enum proto_quantity quantity; // what is tested: the weights, or their average
    struct model *model;
    struct servers *servers;
    struct exchange *pull;
    float *parameters;
    struct shard_stamp *stamps;
    struct classes names;
    uint64_t samples; // that the run is at, as far as is known
    double epoch;
    double due; // clock_seconds of the next copy
    bool over;  // the controller said stop
};

static struct proto_text own_name(const struct follow *follow) {
    const char *name = follow->options.member.name;
    return proto_text(name ? name : "");
}

// --- waiting -----------------------------------------------------------------

// STATUS_OK while there is reason to go on.
static int look_around(struct follow *follow, struct error *err) {
    struct member_order order;
    if (follow->options.stop && follow->options.stop())
        return error_set(err, STATUS_STOPPED, "stopped");
    if (member_take_order(follow->member, &order) && order.order == PROTO_ORDER_STOP)
        follow->over = true;
    return follow->over ? STATUS_OK : member_status(follow->member, err);
}

// Waits a little, for whatever comes next.
static void wait_for_news(struct follow *follow, uint32_t seen, double seconds) {
    member_wait(follow->member, seen, seconds < POLL ? seconds : POLL);
}

static int wait_for_run(struct follow *follow, struct error *err) {
    for (;;) {
        uint32_t seen = member_news(follow->member);
        int status = look_around(follow, err);
        if (status)
            return status;
        if (follow->over)
            return error_set(err, STATUS_UNAVAILABLE, "the run ended before it began");
        follow->run = member_run(follow->member);
        if (follow->run)
            return STATUS_OK;
        wait_for_news(follow, seen, POLL);
    }
}

static int wait_until_due(struct follow *follow, struct error *err) {
    for (;;) {
        uint32_t seen = member_news(follow->member);
        int status = look_around(follow, err);
        double left = follow->due - clock_seconds();
        if (status || follow->over || left <= 0)
            return status;
        wait_for_news(follow, seen, left);
    }
}

// --- the model ---------------------------------------------------------------

static void look_up_routes(void *self, uint64_t epoch) {
    struct follow *follow = self;
    (void)epoch;
    member_look(follow->member);
}

static void say_line(void *self, const char *text) {
    const struct member_hooks *hooks = &((struct follow *)self)->options.member.hooks;
    if (hooks->say)
        hooks->say(hooks->self, text);
}

static int open_servers(struct follow *follow, struct error *err) {
    const struct member_options *o = &follow->options.member;
    struct member_identity identity;
    struct servers_options options = {
        .hello = {.role = PROTO_ROLE_EVALUATOR, .name = own_name(follow)},
        .parameters = follow->model->parameter_count,
        .keys = o->keys,
        .insecure = o->insecure,
        .self = follow,
        .stale = look_up_routes,
        .say = say_line,
    };
    if (member_identity(follow->member, &identity)) {
        options.hello.run = identity.run;
        options.hello.model = identity.model;
        options.hello.session = identity.session;
    }
    int status = servers_open(&follow->servers, &options, err);
    if (status)
        return status;
    const struct span all = servers_all(follow->servers);
    return exchange_open(&follow->pull, follow->servers, EXCHANGE_PULL, &all, 1, err);
}

// The average lies behind the states of the rule.
static int find_quantity(struct follow *follow, struct error *err) {
    struct settings settings;
    struct optimizer optimizer;
    char *text = NULL;
    int status = run_settings(&settings, &text, &follow->run->message.run, err);
    if (!status)
        status = settings_optimizer(&settings, &optimizer, err);
    free(text);
    if (status)
        return status;
    int states = optimizer.ema > 0 ? optimizer_states(optimizer.rule) : -1;
    follow->quantity = (enum proto_quantity)(PROTO_QUANTITY_STATE + states);
    return STATUS_OK;
}

// Once the controller has said what is trained.
static int open_copy(struct follow *follow, struct error *err) {
    int status = wait_for_run(follow, err);
    if (!status)
        status = run_model(&follow->model, "the run's model", &follow->run->message.run, err);
    if (!status)
        status = find_quantity(follow, err);
    if (!status)
        status = open_servers(follow, err);
    if (status)
        return status;
    follow->parameters = mem_array(follow->model->parameter_count, sizeof *follow->parameters);
    follow->stamps = mem_zeroed(servers_shards(follow->servers), sizeof *follow->stamps);
    return follow->parameters && follow->stamps ? STATUS_OK : error_nomem(err);
}

// --- a copy ------------------------------------------------------------------

static void take_routes(struct follow *follow) {
    struct kept *routes = member_routes(follow->member);
    if (routes)
        servers_route(follow->servers, routes);
    kept_drop(routes);
}

// The servers of a run that is over go when all others have: not having answered for long
// they are not there any more.
static int check_patience(const struct follow *follow, double since, struct error *err) {
    if (!follow->over || clock_seconds() < since + LAST_PULL)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE,
                     "the run is over, and its parameter servers went before they gave their last "
                     "weights");
}

static int pull_weights(struct follow *follow, struct error *err) {
    const struct pull pull = {
        .quantity = follow->quantity, .into = follow->parameters, .stamps = follow->stamps};
    double since = clock_seconds();
    int status = STATUS_OK;
    exchange_pull(follow->pull, &pull);
    while (!status && !exchange_over(follow->pull)) {
        uint32_t seen = member_news(follow->member);
        status = look_around(follow, err);
        if (!status)
            status = check_patience(follow, since, err);
        take_routes(follow);
        if (!status)
            wait_for_news(follow, seen, POLL);
    }
    if (status)
        servers_stop(follow->servers);
    int pulled = exchange_wait(follow->pull, NULL, status ? NULL : err);
    return status ? status : pulled;
}

// How far the run is, from a list of members.
static void note_epoch(struct follow *follow, const struct proto_status *status) {
    const struct proto_member *members = status->members.at;
    for (uint32_t i = 0; i < status->members.count; i++)
        if (members[i].role == PROTO_ROLE_CONTROLLER && members[i].epoch > follow->epoch) {
            follow->epoch = members[i].epoch;
            follow->samples = members[i].samples;
        }
}

// The list as it was when somebody came or went last: workers leave when all is trained.
static void note_progress(struct follow *follow) {
    struct kept *members = member_members(follow->member);
    if (members)
        note_epoch(follow, &members->message.status);
    kept_drop(members);
}

// Figures change all the time, and are asked for when they are needed. Without an answer
// they stay as they were: weights are tested also while the controller is away.
static void ask_progress(struct follow *follow) {
    const struct member_options *o = &follow->options.member;
    const struct link_options options = {.keys = o->keys, .insecure = o->insecure};
    const struct proto_hello hello = {.role = PROTO_ROLE_EVALUATOR, .name = own_name(follow)};
    struct link_request request = {.type = PROTO_TYPE_GET_STATUS,
                                   .message = &(struct proto_get_status){0}};
    char address[PROTO_ADDRESS_MAX];
    struct link *link;
    struct kept *answer;
    bool told = false;
    for (uint32_t turn = 0, count = 1; !told && turn < count; turn++) {
        if (ready_find(o->controller, turn, address, &count, NULL) ||
            link_dial(&link, address, &options, &hello, ASK, NULL, NULL))
            continue;
        if (!link_call_kept(link, &request, &answer, NULL)) {
            told = answer->type == PROTO_TYPE_STATUS;
            if (told)
                note_epoch(follow, &answer->message.status);
            kept_drop(answer);
        }
        link_close(link);
    }
}

// Once is enough. Data servers end before the last weights are tested.
static void ask_names(struct follow *follow) {
    const struct member_options *o = &follow->options.member;
    const struct link_options options = {.keys = o->keys, .insecure = o->insecure};
    const struct proto_hello hello = {.role = PROTO_ROLE_EVALUATOR, .name = own_name(follow)};
    struct kept *routes = follow->names.count > 0 ? NULL : member_routes(follow->member);
    if (routes)
        class_names_fetch(&follow->names, &routes->message.routes, &hello, &options, ASK, NULL);
    kept_drop(routes);
}

static void describe_run(struct follow *follow, struct follow_copy *copy, bool last) {
    struct member_identity identity;
    *copy = (struct follow_copy){
        .model = follow->model,
        .parameters = follow->parameters,
        .names = &follow->names,
        .last = last,
    };
    if (member_identity(follow->member, &identity))
        copy->rank = identity.member;
    for (size_t i = 0; i < servers_shards(follow->servers); i++)
        if (follow->stamps[i].version > copy->step)
            copy->step = follow->stamps[i].version;
    note_progress(follow);
    ask_progress(follow);
    copy->samples = follow->samples;
    copy->epoch = follow->epoch;
}

// --- for its owner -----------------------------------------------------------

int follow_open(struct follow **out, const struct follow_options *options, struct error *err) {
    struct follow *follow = mem_zeroed(1, sizeof *follow);
    if (!follow)
        return error_nomem(err);
    follow->options = *options;
    follow->options.member.role = PROTO_ROLE_EVALUATOR;
    follow->options.member.members = true;
    int status = place_controller(&follow->controller, options->member.controller, err);
    follow->options.member.controller = follow->controller;
    if (!status)
        status = member_open(&follow->member, &follow->options.member, err);
    if (status)
        follow_close(follow);
    else
        *out = follow;
    return status;
}

int follow_next(struct follow *follow, struct follow_copy *copy, struct error *err) {
    int status = follow->model ? wait_until_due(follow, err) : open_copy(follow, err);
    if (status)
        return status;
    follow->due = clock_seconds() + follow->options.every;
    bool last = follow->over; // so that the pull begins when all pushes are applied
    status = pull_weights(follow, err);
    if (status)
        return status;
    ask_names(follow);
    describe_run(follow, copy, last);
    if (last) { // nobody needs to wait until it is tested
        member_close(follow->member, "it has the last weights");
        follow->member = NULL;
    }
    return STATUS_OK;
}

void follow_close(struct follow *follow) {
    if (!follow)
        return;
    if (follow->servers)
        servers_stop(follow->servers);
    if (follow->pull)
        exchange_close(follow->pull);
    if (follow->servers)
        servers_close(follow->servers);
    if (follow->member)
        member_close(follow->member, "stopped");
    free(follow->controller);
    kept_drop(follow->run);
    model_free(follow->model);
    free(follow->parameters);
    free(follow->stamps);
    classes_free(&follow->names);
    free(follow);
}
