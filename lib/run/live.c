#include "run/live.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"

static int check_key(const char *key, bool alone, struct error *err) {
    if (alone && settings_is_of_many(key))
        return error_set(err, STATUS_USAGE,
                         "%s is of runs of many processes: this one trains alone", key);
    bool known = settings_known(key) || (alone && settings_is_of_one(key));
    return !known || settings_live(key)
               ? STATUS_OK
               : error_set(err, STATUS_USAGE, "%s cannot change while the run goes on", key);
}

int live_check_keys(const char *lines, bool alone, struct error *err) {
    int status = STATUS_OK;
    while (!status && *lines) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(lines, "=\n"), lines);
        status = check_key(key, alone, err);
        size_t line = strcspn(lines, "\n");
        lines += line + (lines[line] == '\n');
    }
    return status;
}

int live_check_rule(const struct settings *before, const struct settings *next, struct error *err) {
    struct optimizer was = {0}, is = {0};
    int status = settings_optimizer(before, &was, err);
    if (!status)
        status = settings_optimizer(next, &is, err);
    if (!status && was.rule != is.rule)
        status = error_set(err, STATUS_USAGE,
                           "optimizer cannot change while the run goes on: it "
                           "is %s, and would be %s",
                           rule_names[was.rule], rule_names[is.rule]);
    return status;
}

static const char *factors_of(const struct settings *settings) {
    struct optimizer optimizer = {0};
    struct protocol protocol = {0};
    enum protocol_push push;
    if (settings_optimizer(settings, &optimizer, NULL) ||
        settings_protocol(settings, &protocol, &push, NULL))
        return "none";
    return settings_factors(settings, &optimizer, &protocol);
}

int live_check_factors(const struct settings *before, const struct settings *next,
                       struct error *err) {
    if (strcmp(factors_of(before), "none") == 0 || strcmp(factors_of(next), "none") != 0)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "this cannot begin while the run goes on, as layers push factors, which are "
                     "updates of their own: stop it, and go on with --resume --set factors=none");
}

int live_check_patience(const struct settings *next, struct error *err) {
    if (next->patience == 0 || next->test)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "patience needs tests: the run has no test set");
}

void live_one_line(char *lines) {
    for (char *end; (end = strchr(lines, '\n'));)
        *end = end[1] ? ' ' : '\0';
}
