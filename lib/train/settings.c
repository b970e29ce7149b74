#include "train/settings.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

enum kind { TEXT, COUNT, REAL, FLAG };

// One row a stored setting, named as the option.
static const struct row {
    const char *name;
    enum kind kind;
    size_t offset;
} rows[] = {
#define ROW(option, kind, member)                                                                  \
    { option, kind, offsetof(struct settings, member) }
    ROW("data", TEXT, data),
    ROW("labels", TEXT, labels),
    ROW("test", TEXT, test),
    ROW("test-labels", TEXT, test_labels),
    ROW("from", TEXT, from),
    ROW("spool", TEXT, spool),
    ROW("ops", TEXT, ops),
    ROW("epochs", COUNT, epochs),
    ROW("batch", COUNT, batch),
    ROW("sync", FLAG, sync),
    ROW("optimizer", TEXT, optimizer),
    ROW("rate", REAL, rate),
    ROW("schedule", TEXT, schedule),
    ROW("warmup", REAL, warmup),
    ROW("momentum", REAL, momentum),
    ROW("decay", REAL, decay),
    ROW("epsilon", REAL, epsilon),
    ROW("clip", REAL, clip),
    ROW("eval-every", COUNT, eval_every),
    ROW("checkpoint-every", TEXT, checkpoint_every),
    ROW("keep-last", COUNT, keep_last),
    ROW("metrics-every", REAL, metrics_every),
    ROW("seed", COUNT, seed),
    ROW("threads", COUNT, threads),
#undef ROW
};

enum { ROWS = sizeof rows / sizeof *rows };

void settings_default(struct settings *settings) {
    *settings = (struct settings){
        .batch = 16,
        .rate = 0.01,
        .schedule = "constant",
        .momentum = NAN,
        .epsilon = 1e-8,
        .eval_every = 1,
        .checkpoint_every = "1",
        .keep_last = 3,
        .metrics_every = 5,
        .seed = 1,
        .loaders = 1,
    };
}

// --- stored -------------------------------------------------------------------------

static json_t *value_of(const struct settings *settings, const struct row *row) {
    const char *member = (const char *)settings + row->offset;
    const char *text;
    int64_t count;
    double real;
    switch (row->kind) {
    case TEXT:
        memcpy(&text, member, sizeof text);
        return text ? json_string(text) : NULL;
    case COUNT:
        memcpy(&count, member, sizeof count);
        return json_integer(count);
    case REAL:
        memcpy(&real, member, sizeof real);
        return isnan(real) ? NULL : json_real(real);
    case FLAG:
        return json_boolean(*(const bool *)member);
    }
    return NULL;
}

json_t *settings_write(const struct settings *settings) {
    json_t *object = json_object();
    for (size_t i = 0; object && i < ROWS; i++) {
        if (settings->sync && !strcmp(rows[i].name, "threads"))
            continue;
        json_t *value = value_of(settings, &rows[i]);
        if (value)
            json_object_set_new(object, rows[i].name, value);
    }
    return object;
}

static void set(struct settings *settings, const struct row *row, const json_t *value) {
    char *member = (char *)settings + row->offset;
    const char *text = json_string_value(value);
    int64_t count = json_integer_value(value);
    double real = json_number_value(value);
    if (row->kind == TEXT && text)
        memcpy(member, &text, sizeof text);
    else if (row->kind == COUNT && json_is_integer(value))
        memcpy(member, &count, sizeof count);
    else if (row->kind == REAL && json_is_number(value))
        memcpy(member, &real, sizeof real);
    else if (row->kind == FLAG && json_is_boolean(value))
        *(bool *)member = json_is_true(value);
}

void settings_read(struct settings *settings, const json_t *object) {
    for (size_t i = 0; i < ROWS; i++)
        set(settings, &rows[i], json_object_get(object, rows[i].name));
}

// A value as the user would write it.
static void show(char text[512], const json_t *value) {
    if (json_is_string(value))
        snprintf(text, 512, "%s", json_string_value(value));
    else if (json_is_integer(value))
        snprintf(text, 512, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, 512, "%g", json_real_value(value));
    else
        snprintf(text, 512, "%s", json_is_true(value) ? "on" : "not given");
}

void settings_compare(const json_t *before, const json_t *after, settings_told *told, void *self) {
    char old[512], new[512];
    for (size_t i = 0; i < ROWS; i++) {
        show(old, json_object_get(before, rows[i].name));
        show(new, json_object_get(after, rows[i].name));
        if (strcmp(old, new) != 0)
            told(self, rows[i].name, old, new);
    }
}

// --- understood -----------------------------------------------------------------------

int settings_optimizer(const struct settings *settings, struct optimizer *optimizer,
                       struct error *err) {
    bool given = !isnan(settings->momentum);
    const char *name = settings->optimizer ? settings->optimizer : given ? "momentum" : "sgd";
    enum rule rule = RULE_SGD;
    while (rule_names[rule] && strcmp(rule_names[rule], name) != 0)
        rule++;
    if (!rule_names[rule])
        return error_set(err, STATUS_USAGE, "unknown optimizer '%s'", name);
    if (given && rule != RULE_MOMENTUM)
        return error_set(err, STATUS_USAGE, "--momentum has no meaning with --optimizer %s", name);
    *optimizer = (struct optimizer){
        .rule = rule,
        .momentum = rule != RULE_MOMENTUM ? 0
                    : given               ? (float)settings->momentum
                                          : 0.9f,
        .decay = (float)settings->decay,
        .epsilon = (float)settings->epsilon,
        .clip = (float)settings->clip,
    };
    return STATUS_OK;
}

int settings_schedule(const struct settings *settings, double epochs, struct schedule *schedule,
                      struct error *err) {
    *schedule =
        (struct schedule){.rate = settings->rate, .warmup = settings->warmup, .total = epochs};
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
