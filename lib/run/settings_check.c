// Settings that mean nothing beside each other are refused.
#include <string.h>

#include "core/error.h"
#include "run/settings_internal.h"

static bool is_part(double epochs) {
    return epochs > 0 && epochs < 1;
}

// The first of these settings that goes by parts of an epoch; NULL: none.
static const char *key_by_parts(const struct settings *settings, enum schedule_kind schedule,
                                double checkpoint_every) {
    return settings->warmup > 0            ? "warmup"
           : schedule != SCHEDULE_CONSTANT ? "schedule"
           : is_part(settings->eval_every) ? "eval-every"
           : is_part(checkpoint_every)     ? "checkpoint-every"
                                           : NULL;
}

int settings_check_uncounted(const struct settings *settings, struct error *err) {
    struct schedule schedule;
    double epochs, seconds;
    int status = settings_schedule(settings, 1, &schedule, err);
    if (!status)
        status = settings_checkpoint_every(settings, &epochs, &seconds, err);
    if (status)
        return status;
    const char *key = key_by_parts(settings, schedule.kind, epochs);
    if (!key)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s needs to know how many samples will come, and standard input does not "
                     "tell it: --spool FILE counts them first",
                     key);
}

// Only the delta of plain sgd is a sum of products. Of a product nobody knows the length, by
// which gradients are clipped.
static int check_factors_allowed(const struct settings *settings, const struct optimizer *optimizer,
                                 const struct protocol *protocol, enum protocol_push push,
                                 struct error *err) {
    const char *factors = settings->factors,
               *counts = settings_counts_updates(settings, optimizer, protocol);
    if (!strcmp(factors, "auto") || !strcmp(factors, "none"))
        return STATUS_OK;
    if (counts)
        return error_set(err, STATUS_USAGE,
                         "factors=%s and %s: the messages of a push would count as updates of "
                         "their own",
                         factors, counts);
    if (settings->partitions > 1)
        return error_set(err, STATUS_USAGE,
                         "factors=%s and partitions=%lld: parts of a dense layer are sent as they "
                         "are",
                         factors, (long long)settings->partitions);
    if (settings->clip > 0)
        return error_set(err, STATUS_USAGE,
                         "factors=%s and clip=%g: what is sent as factors cannot be clipped",
                         factors, settings->clip);
    bool plain = optimizer->rule == RULE_SGD && optimizer->decay <= 0;
    if (push == PUSH_DELTA && !plain)
        return error_set(err, STATUS_USAGE,
                         "factors=%s and push=delta: only the deltas of sgd without weight decay "
                         "have factors, set push=gradient",
                         factors);
    return STATUS_OK;
}

int settings_check_targets(const struct settings *settings, struct error *err) {
    if (settings->test_targets && !settings->targets)
        return error_set(err, STATUS_USAGE, "test-targets belong to targets");
    if (!settings->targets || !settings->labels)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "labels are given, and samples with targets have none");
}

int settings_check_tests(const struct settings *settings, struct error *err) {
    const char *test = settings->test, *beside = settings->test_labels    ? "test-labels"
                                                 : settings->test_targets ? "test-targets"
                                                                          : NULL;
    bool own = test && !settings_is_held_out(test, strlen(test));
    if (beside && !own)
        return error_set(err, STATUS_USAGE, "%s belong to a test set of its own, and %s", beside,
                         test ? "this one is held out of the training set" : "there is none");
    if (settings->patience > 0 && test && settings->eval_every <= 0)
        return error_set(err, STATUS_USAGE,
                         "patience counts tests, and with eval-every 0 there is one at the end");
    return STATUS_OK;
}

int settings_check_partitions(const struct settings *settings, struct error *err) {
    if (settings->in_flight < 2 || settings->partitions > 1)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "in-flight is of partitions, and the model is whole: set partitions");
}

int settings_check_mixing(const struct settings *settings, struct error *err) {
    const char *way = settings->mixup > 0 ? "mixup" : "cutmix";
    if (settings->batch > 1 || (settings->mixup <= 0 && settings->cutmix <= 0))
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s mixes the samples of a mini-batch, and with a batch of 1 there is nothing "
                     "to mix",
                     way);
}

int settings_check(const struct settings *settings, struct error *err) {
    struct optimizer optimizer;
    struct protocol protocol;
    enum protocol_push push;
    struct schedule schedule;
    double epochs, seconds;
    int status = settings_check_texts(settings, err);
    if (status == STATUS_OK)
        status = settings_optimizer(settings, &optimizer, err);
    if (status == STATUS_OK)
        status = settings_schedule(settings, (double)settings_epochs(settings), &schedule, err);
    if (status == STATUS_OK)
        status = settings_checkpoint_every(settings, &epochs, &seconds, err);
    if (status == STATUS_OK)
        status = settings_protocol(settings, &protocol, &push, err);
    if (status == STATUS_OK)
        status = check_factors_allowed(settings, &optimizer, &protocol, push, err);
    if (status == STATUS_OK)
        status = settings_check_mixing(settings, err);
    if (status == STATUS_OK)
        status = settings_check_targets(settings, err);
    if (status == STATUS_OK)
        status = settings_check_tests(settings, err);
    if (status == STATUS_OK)
        status = settings_check_partitions(settings, err);
    return status;
}
