// What settings mean: an optimizer, rates, a protocol, when to save.
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"
#include "run/settings_internal.h"

enum { EPOCHS = 10 }; // where nothing is said

// The last of rule_names (NULL) when there is no such rule.
static enum rule rule_of(const struct settings *settings) {
    bool given = !isnan(settings->momentum);
    const char *name = settings->optimizer ? settings->optimizer : given ? "momentum" : "sgd";
    enum rule rule = RULE_SGD;
    while (rule_names[rule] && strcmp(rule_names[rule], name) != 0)
        rule++;
    return rule;
}

int settings_holdout(const struct settings *settings, double *share, struct error *err) {
    const char *test = settings->test, *number = test ? test + strlen(HELD_OUT) : NULL;
    *share = 0;
    if (!test || !settings_is_held_out(test, strlen(test)))
        return STATUS_OK;
    if (text_real(number, strlen(number), share) && *share > 0 && *share < 1)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "--test %s: is not auto=SHARE with a share between 0 and 1",
                     test);
}

int64_t settings_epochs(const struct settings *settings) {
    return settings->epochs > 0 ? settings->epochs : EPOCHS;
}

int64_t settings_last_epoch(const struct settings *settings) {
    int64_t epochs = settings_epochs(settings), last = settings->last_epoch;
    return last > 0 && last < epochs ? last : epochs;
}

double settings_rate(const struct settings *settings) {
    enum rule rule = rule_of(settings);
    return !isnan(settings->rate) ? settings->rate
                                  : optimizer_usual(rule_names[rule] ? rule : RULE_SGD).rate;
}

static bool pushes_deltas(const struct settings *settings) {
    struct protocol protocol;
    enum protocol_push push;
    return !settings_protocol(settings, &protocol, &push, NULL) && push == PUSH_DELTA;
}

static struct settings settings_before(const json_t *run) {
    struct settings before;
    settings_default(&before);
    settings_read(&before, json_object_get(run, "settings"));
    return before;
}

bool settings_lack_state(const json_t *run) {
    const struct settings before = settings_before(run);
    return json_object_get(run, "cursors") && pushes_deltas(&before);
}

void settings_go_on(struct settings *settings, const json_t *before, uint64_t clock) {
    const struct settings then = settings_before(before);
    bool same = rule_of(settings) == rule_of(&then);
    bool lacking = settings_lack_state(before) && !pushes_deltas(settings);
    settings->state_since = same && !lacking ? then.state_since : (int64_t)clock;
}

static void fit_rule(struct settings *settings, const struct settings *before,
                     const struct settings *given) {
    enum rule rule = rule_of(settings);
    if (!rule_names[rule] || rule == rule_of(before))
        return;
    const struct optimizer_usual usual = optimizer_usual(rule);
    if (isnan(usual.momentum))
        settings->momentum = given->momentum;
    if (isnan(usual.beta2))
        settings->beta2 = given->beta2;
    if (!optimizer_is_adaptive(rule))
        settings->epsilon = given->epsilon;
}

// Whether somebody names another file now.
static bool is_other(const char *given, const char *before) {
    return given && (!before || strcmp(given, before) != 0);
}

static bool has_no_home(const struct settings *settings) {
    return settings->partitions > 1 || settings->sync;
}

void settings_fit(struct settings *settings, const struct settings *before,
                  const struct settings *given) {
    fit_rule(settings, before, given);
    if (settings->partitions > 1 && before->partitions < 2)
        settings->threads = given->threads;
    if (has_no_home(settings) && !has_no_home(before))
        settings->home = given->home;
    if (settings->partitions < 2 && before->partitions > 1)
        settings->in_flight = given->in_flight;
    if (is_other(given->data, before->data))
        settings->labels = given->labels;
    if (is_other(given->test, before->test))
        settings->test_labels = given->test_labels;
    if (settings->test && settings_is_held_out(settings->test, strlen(settings->test)))
        settings->test_targets = given->test_targets;
}

static int refuse_value_of_rule(const char *option, enum rule rule, struct error *err) {
    return error_set(err, STATUS_USAGE, "--%s has no meaning with --optimizer %s", option,
                     rule_names[rule]);
}

// A value that the rule has: as given, or as usual; 0 where it has none.
static int find_value(double *value, const char *option, double given, double usual, enum rule rule,
                      struct error *err) {
    *value = !isnan(given) ? given : isnan(usual) ? 0 : usual;
    if (!isnan(given) && isnan(usual))
        return refuse_value_of_rule(option, rule, err);
    if (*value >= 1 && optimizer_states(rule) > 1)
        return error_set(err, STATUS_USAGE, "--%s of --optimizer %s is below 1", option,
                         rule_names[rule]);
    return STATUS_OK;
}

int settings_optimizer(const struct settings *settings, struct optimizer *optimizer,
                       struct error *err) {
    enum rule rule = rule_of(settings);
    if (!rule_names[rule])
        return error_set(err, STATUS_USAGE, "unknown optimizer '%s'", settings->optimizer);
    if (settings->epsilon != SETTINGS_EPSILON && !optimizer_is_adaptive(rule))
        return refuse_value_of_rule("epsilon", rule, err);
    const struct optimizer_usual usual = optimizer_usual(rule);
    *optimizer = (struct optimizer){
        .rule = rule,
        .decay = (float)settings->decay,
        .epsilon = (float)settings->epsilon,
        .clip = (float)settings->clip,
        .ema = (float)settings->ema,
    };
    int status =
        find_value(&optimizer->momentum, "momentum", settings->momentum, usual.momentum, rule, err);
    return status ? status
                  : find_value(&optimizer->beta2, "beta2", settings->beta2, usual.beta2, rule, err);
}

int settings_schedule(const struct settings *settings, double epochs, struct schedule *schedule,
                      struct error *err) {
    *schedule = (struct schedule){
        .rate = settings_rate(settings), .warmup = settings->warmup, .total = epochs};
    int status = schedule_parse(schedule, settings->schedule, err);
    return status ? error_context(err, "--schedule") : STATUS_OK;
}

int settings_checkpoint_every(const struct settings *settings, double *epochs, double *seconds,
                              struct error *err) {
    const char *text = settings->checkpoint_every;
    size_t length = strlen(text);
    bool minutes = length > 1 && text[length - 1] == 'm';
    double value;
    *epochs = *seconds = 0;
    if (!text_real(text, length - minutes, &value) || value < 0)
        return error_set(err, STATUS_USAGE,
                         "--checkpoint-every: '%s' is neither epochs (2, 0.5) nor minutes (15m)",
                         text);
    if (minutes)
        *seconds = 60 * value;
    else
        *epochs = value;
    return STATUS_OK;
}

static int index_of(const char *const *names, const char *name) {
    int i = 0;
    while (names[i] && strcmp(names[i], name) != 0)
        i++;
    return i;
}

enum home_kind home_kind_named(const char *name) {
    return (enum home_kind)index_of(home_names, name);
}

int settings_protocol(const struct settings *settings, struct protocol *protocol,
                      enum protocol_push *push, struct error *err) {
    *protocol = (struct protocol){
        .modulate = (enum protocol_modulate)index_of(protocol_modulate_names, settings->modulate),
        .reference_batch = (uint64_t)settings->reference_batch,
        .max_staleness = (uint64_t)settings->max_staleness,
    };
    *push = (enum protocol_push)index_of(protocol_push_names, settings->push);
    int status = protocol_parse(protocol, settings->protocol, err);
    if (!status && protocol->kind != PROTOCOL_ASYNC)
        *push = PUSH_GRADIENT;
    bool measures = *push == PUSH_DELTA && protocol_measures(protocol);
    if (!protocol->reference_batch && protocol->modulate != MODULATE_NONE && !measures)
        protocol->reference_batch = (uint64_t)settings->batch;
    return status;
}

bool settings_overlap(const struct settings *settings, const struct protocol *protocol) {
    bool usual = protocol->kind == PROTOCOL_ASYNC;
    return strcmp(settings->overlap, "auto") == 0 ? usual : strcmp(settings->overlap, "yes") == 0;
}

bool settings_await_copies(const struct settings *settings, const struct protocol *protocol) {
    return strcmp(settings->ack, "memory") != 0 || protocol->kind != PROTOCOL_ASYNC;
}

const char *settings_counts_updates(const struct settings *settings,
                                    const struct optimizer *optimizer,
                                    const struct protocol *protocol) {
    bool async = protocol->kind == PROTOCOL_ASYNC;
    if (protocol->kind != PROTOCOL_HARDSYNC && protocol->max_staleness > 0)
        return "max-staleness";
    if (async && protocol->modulate == MODULATE_EACH)
        return "modulate=each";
    if (async && (optimizer->rule == RULE_ADAM || optimizer->rule == RULE_ADAMW))
        return rule_names[optimizer->rule];
    return async && settings->ema > 0 ? "ema" : NULL;
}

const char *settings_factors(const struct settings *settings, const struct optimizer *optimizer,
                             const struct protocol *protocol) {
    bool whole = !strcmp(settings->factors, "auto") &&
                 settings_counts_updates(settings, optimizer, protocol);
    return whole ? "none" : settings->factors;
}
