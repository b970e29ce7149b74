#include "run/settings.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"

const char *const home_names[] = {"shared", "copies", "joined", NULL};

enum kind { TEXT, COUNT, REAL, FLAG };

// Where a key has a meaning, and whether a run of many processes can change it.
enum use {
    ALONE = 1, // of adam-worker alone
    MANY = 2,  // of many processes alone
    LIVE = 4,  // may change meanwhile
    PATH = 8,  // names a file
    OWN = 16,  // the run's own: nobody chooses it
    SOME = 32, // who chooses it takes 1 at the least; 0 is that nobody has
};

static const char *const loss_names[] = {"reform", "stop", NULL};
static const char *const data_loss_names[] = {"wait", "end", "continue", NULL};
static const char *const ack_names[] = {"memory", "replicated", "durable", NULL};
static const char *const parts_names[] = {"off", "shared", "local", NULL};
static const char *const overlap_names[] = {"auto", "yes", "no", NULL};

// One row a stored setting, named as the option; counts and reals lie within low..high,
// texts are one of the choices, if there are any.
static const struct row {
    const char *name;
    enum kind kind;
    size_t offset;
    unsigned use;
    double low, high;
    const char *const *choices;
} rows[] = {
#define ROW(option, kind, member, use, low, high)                                                  \
    { option, kind, offsetof(struct settings, member), use, low, high, NULL }
#define CHOICE(option, member, use, choices)                                                       \
    { option, TEXT, offsetof(struct settings, member), use, 0, 0, choices }
    ROW("data", TEXT, data, PATH, 0, 0),
    ROW("labels", TEXT, labels, PATH, 0, 0),
    ROW("targets", TEXT, targets, PATH, 0, 0),
    ROW("test", TEXT, test, PATH, 0, 0),
    ROW("test-labels", TEXT, test_labels, PATH, 0, 0),
    ROW("test-targets", TEXT, test_targets, PATH, 0, 0),
    ROW("from", TEXT, from, 0, 0, 0),
    ROW("spool", TEXT, spool, ALONE, 0, 0),
    ROW("ops", TEXT, ops, 0, 0, 0),
    ROW("mixup", REAL, mixup, 0, 0, 100),
    ROW("cutmix", REAL, cutmix, 0, 0, 100),
    ROW("init-from", TEXT, init_from, PATH, 0, 0),
    ROW("class-weights", TEXT, class_weights, PATH, 0, 0),
    ROW("epochs", COUNT, epochs, SOME, 0, 1e9),
    ROW("batch", COUNT, batch, 0, 1, 1e6),
    ROW("sync", FLAG, sync, ALONE, 0, 0),
    CHOICE("home", home, ALONE, home_names),
    ROW("partitions", COUNT, partitions, 0, 1, 64),
    ROW("in-flight", COUNT, in_flight, 0, 1, 64),
    CHOICE("optimizer", optimizer, 0, rule_names),
    ROW("rate", REAL, rate, LIVE, 0, 1e9),
    ROW("schedule", TEXT, schedule, LIVE, 0, 0),
    ROW("warmup", REAL, warmup, LIVE, 0, 1e9),
    ROW("momentum", REAL, momentum, LIVE, 0, 1),
    ROW("beta2", REAL, beta2, LIVE, 0, 1),
    ROW("decay", REAL, decay, LIVE, 0, 1),
    ROW("epsilon", REAL, epsilon, LIVE, 0, 1),
    ROW("clip", REAL, clip, LIVE, 0, 1e9),
    ROW("ema", REAL, ema, 0, 0, SETTINGS_EMA_MOST),
    ROW("state-since", COUNT, state_since, OWN, 0, 9007199254740992.0),
    ROW("eval-every", REAL, eval_every, LIVE, 0, 1e9),
    ROW("checkpoint-every", TEXT, checkpoint_every, LIVE, 0, 0),
    ROW("keep-last", COUNT, keep_last, LIVE, 0, 1e9),
    ROW("patience", COUNT, patience, LIVE, 0, 1e9),
    ROW("metrics-every", REAL, metrics_every, LIVE, 0.1, 1e9),
    ROW("seed", COUNT, seed, 0, 0, 9007199254740992.0),
    ROW("threads", COUNT, threads, 0, 0, 4096),
    ROW("model", TEXT, model, MANY | PATH, 0, 0),
    ROW("protocol", TEXT, protocol, MANY, 0, 0),
    CHOICE("push", push, MANY, protocol_push_names),
    ROW("push-every", COUNT, push_every, MANY | LIVE, 0, 1e9),
    ROW("pull-every", COUNT, pull_every, MANY | LIVE, 0, 1e9),
    CHOICE("overlap", overlap, MANY, overlap_names),
    ROW("factors", TEXT, factors, MANY, 0, 0),
    CHOICE("modulate", modulate, MANY | LIVE, protocol_modulate_names),
    ROW("reference-batch", COUNT, reference_batch, MANY | LIVE, 0, 1e9),
    ROW("max-staleness", COUNT, max_staleness, MANY | LIVE, 0, 1e9),
    CHOICE("ack", ack, MANY, ack_names),
    ROW("warm-start", COUNT, warm_start, MANY, 0, 9007199254740992.0),
    CHOICE("on-peer-loss", on_peer_loss, MANY | LIVE, loss_names),
    CHOICE("on-data-loss", on_data_loss, MANY | LIVE, data_loss_names),
    ROW("data-patience", REAL, data_patience, MANY | LIVE, 0, 1e9),
    ROW("server-patience", REAL, server_patience, MANY | LIVE, 0, 1e9),
    ROW("controller-patience", REAL, controller_patience, MANY | LIVE, 0, 1e9),
    ROW("silence", REAL, silence, MANY, 1, 3600),
    ROW("epoch-end", REAL, epoch_end, MANY, 0, 1),
    ROW("servers", COUNT, servers, MANY, 1, 4096),
    ROW("copies", COUNT, copies, MANY, 1, 3),
    ROW("data-servers", COUNT, data_servers, MANY, 1, 4096),
    ROW("workers", COUNT, workers, MANY | LIVE, 0, 4096),
    CHOICE("checkpoint-parts", checkpoint_parts, MANY | LIVE, parts_names),
#undef ROW
#undef CHOICE
};

enum { ROWS = sizeof rows / sizeof *rows };

void settings_default(struct settings *settings) {
    *settings = (struct settings){
        .batch = 16,
        .partitions = 1,
        .in_flight = 1,
        .rate = NAN,
        .schedule = "constant",
        .momentum = NAN,
        .beta2 = NAN,
        .epsilon = SETTINGS_EPSILON,
        .eval_every = 1,
        .checkpoint_every = "1",
        .keep_last = 3,
        .metrics_every = 5,
        .seed = 1,
        .loaders = 1,
        .frozen_memory = UINT64_C(1) << 30,
        .protocol = "async",
        .push = "delta",
        .overlap = "auto",
        .factors = "auto",
        .modulate = "mean",
        .ack = "replicated",
        .on_peer_loss = "reform",
        .on_data_loss = "end",
        .data_patience = 600,
        .server_patience = 30,
        .controller_patience = 3600,
        .silence = 8,
        .epoch_end = 0.75,
        .servers = 1,
        .copies = 1,
        .data_servers = 1,
        .checkpoint_parts = "off",
    };
}

// --- stored -------------------------------------------------------------------------

// A setting's value: the member of its row's kind, the others are 0.
struct value {
    const char *text;
    int64_t count;
    double real;
    bool flag;
};

static struct value value_of(const struct settings *settings, const struct row *row) {
    const char *member = (const char *)settings + row->offset;
    struct value value = {0};
    if (row->kind == TEXT)
        memcpy(&value.text, member, sizeof value.text);
    else if (row->kind == COUNT)
        memcpy(&value.count, member, sizeof value.count);
    else if (row->kind == REAL)
        memcpy(&value.real, member, sizeof value.real);
    else
        memcpy(&value.flag, member, sizeof value.flag);
    return value;
}

static json_t *row_json(const struct settings *settings, const struct row *row) {
    struct value value = value_of(settings, row);
    switch (row->kind) {
    case TEXT:
        return json_string(value.text);
    case COUNT:
        return json_integer(value.count);
    case REAL:
        return json_real(value.real);
    case FLAG:
        return json_boolean(value.flag);
    }
    return NULL;
}

static bool is_given(const struct settings *settings, const struct row *row) {
    struct value value = value_of(settings, row);
    return row->kind == TEXT ? value.text != NULL : !isnan(value.real);
}

// Whether it is of many processes alone, and as usual.
static bool is_usual(const struct settings *settings, const struct row *row) {
    struct settings usual;
    settings_default(&usual);
    struct value is = value_of(settings, row), was = value_of(&usual, row);
    bool same_text = is.text && was.text ? !strcmp(is.text, was.text) : is.text == was.text;
    return row->use & MANY && same_text && is.count == was.count && is.real == was.real &&
           is.flag == was.flag;
}

json_t *settings_write(const struct settings *settings) {
    json_t *object = json_object();
    for (size_t i = 0; i < ROWS; i++) {
        bool without_effect = settings->sync && !strcmp(rows[i].name, "threads");
        if (!without_effect && is_given(settings, &rows[i]) && !is_usual(settings, &rows[i]))
            json_put(&object, rows[i].name, row_json(settings, &rows[i]));
    }
    return object;
}

static void set_row(struct settings *settings, const struct row *row, const json_t *value) {
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
        set_row(settings, &rows[i], json_object_get(object, rows[i].name));
}

// A value as the user would write it.
static void show_value(char text[512], const json_t *value) {
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
        show_value(old, json_object_get(before, rows[i].name));
        show_value(new, json_object_get(after, rows[i].name));
        if (strcmp(old, new) != 0)
            told(self, rows[i].name, old, new);
    }
}

#define HELD_OUT "auto=" // in the place of a test set

static bool is_held_out(const char *test, size_t length) {
    return length >= strlen(HELD_OUT) && !memcmp(test, HELD_OUT, strlen(HELD_OUT));
}

static bool is_balanced(const char *text, size_t length) {
    return length == strlen(SETTINGS_BALANCED) && !memcmp(text, SETTINGS_BALANCED, length);
}

static bool names_file(const struct row *row, const char *value, size_t length) {
    bool weights = row->offset == offsetof(struct settings, class_weights);
    return row->use & PATH && !is_held_out(value, length) &&
           !(weights && is_balanced(value, length));
}

static bool is_relative(const struct row *row, const char *path) {
    return path && *path && *path != '/' && strcmp(path, "-") != 0 &&
           names_file(row, path, strlen(path));
}

void settings_relocate(json_t *object, const char *directory, settings_told *told, void *self) {
    for (size_t i = 0; i < ROWS; i++) {
        const char *path = json_string_value(json_object_get(object, rows[i].name));
        char *whole = NULL;
        if (!is_relative(&rows[i], path) || asprintf(&whole, "%s/%s", directory, path) < 0)
            continue;
        json_t *value = json_string(whole);
        if (value && (access(whole, F_OK) == 0 || access(path, F_OK) != 0)) {
            told(self, rows[i].name, path, whole);
            json_object_set(object, rows[i].name, value); // `path` ends here
        }
        json_decref(value);
        free(whole);
    }
}

// --- as text --------------------------------------------------------------------------

static const struct row *find_row(const char *key) {
    for (size_t i = 0; i < ROWS; i++)
        if (!(rows[i].use & ALONE) && !strcmp(rows[i].name, key))
            return &rows[i];
    return NULL;
}

const char *settings_key(size_t index) {
    for (size_t i = 0; i < ROWS; i++)
        if (!(rows[i].use & (ALONE | OWN)) && index-- == 0)
            return rows[i].name;
    return NULL;
}

const char *settings_live_key(size_t index) {
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].use & LIVE && index-- == 0)
            return rows[i].name;
    return NULL;
}

bool settings_known(const char *key) {
    return find_row(key) != NULL;
}

static bool is_of(const char *key, unsigned use) {
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].use & use && !strcmp(rows[i].name, key))
            return true;
    return false;
}

bool settings_is_of_many(const char *key) {
    return is_of(key, MANY);
}

bool settings_is_of_one(const char *key) {
    return is_of(key, ALONE);
}

bool settings_live(const char *key) {
    const struct row *row = find_row(key);
    return row && row->use & LIVE;
}

bool settings_path(const char *key, const char *value, size_t length) {
    const struct row *row = find_row(key);
    return row && names_file(row, value, length);
}

static int refuse_unknown_key(const char *key, struct error *err) {
    const char *keys[ROWS];
    size_t count = 0;
    while ((keys[count] = settings_key(count)))
        count++;
    const char *near = text_nearest(key, strlen(key), keys, count);
    return error_set(err, STATUS_USAGE, "unknown key '%s'%s", key, text_hint(near).text);
}

static int refuse_value(const struct row *row, const char *value, const char *what,
                        struct error *err) {
    return error_set(err, STATUS_USAGE, "%s is %s of %g to %g, not '%s'", row->name, what, row->low,
                     row->high, value);
}

static int set_text(char *member, const struct row *row, const char *value, struct error *err) {
    size_t count = 0;
    bool good = !row->choices && *value;
    for (; row->choices && row->choices[count]; count++)
        good = good || !strcmp(row->choices[count], value);
    if (good) {
        memcpy(member, &value, sizeof value);
        return STATUS_OK;
    }
    if (!row->choices)
        return error_set(err, STATUS_USAGE, "%s needs a value", row->name);
    char list[128] = "";
    for (size_t i = 0, n = 0; i < count && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", row->choices[i]);
    return error_set(err, STATUS_USAGE, "%s is one of %s, not '%s'", row->name, list, value);
}

static int set_count(char *member, const struct row *row, const char *value, struct error *err) {
    int64_t count;
    if (!text_integer(value, strlen(value), &count) || (double)count < row->low ||
        (double)count > row->high)
        return refuse_value(row, value, "a whole number", err);
    memcpy(member, &count, sizeof count);
    return STATUS_OK;
}

static int set_row_real(char *member, const struct row *row, const char *value, struct error *err) {
    double real;
    if (!text_real(value, strlen(value), &real) || real < row->low || real > row->high)
        return refuse_value(row, value, "a number", err);
    memcpy(member, &real, sizeof real);
    return STATUS_OK;
}

// Whether it can stand in a line and in JSON, as all settings do sooner or later.
static bool is_line(const char *value) {
    size_t length = 1;
    for (; *value && *value != '\n' && length; value += length)
        length = utf8_length(value);
    return !*value && length;
}

void settings_round(struct settings *settings) {
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].kind != REAL)
            continue;
        const double real = json_kept(value_of(settings, &rows[i]).real);
        memcpy((char *)settings + rows[i].offset, &real, sizeof real);
    }
}

static int set_key(struct settings *settings, const char *key, const char *value,
                   struct error *err) {
    const struct row *row = find_row(key);
    if (!row)
        return refuse_unknown_key(key, err);
    if (!is_line(value))
        return error_set(err, STATUS_USAGE, "%s: needs one line of UTF-8 text", key);
    char *member = (char *)settings + row->offset;
    return row->kind == TEXT    ? set_text(member, row, value, err)
           : row->kind == COUNT ? set_count(member, row, value, err)
                                : set_row_real(member, row, value, err);
}

int settings_choose(struct settings *settings, const char *key, const char *value,
                    struct error *err) {
    const struct row *row = find_row(key);
    if (row && row->use & OWN)
        return error_set(err, STATUS_USAGE, "%s is no choice of yours: the run keeps it itself",
                         key);
    int status = set_key(settings, key, value, err);
    settings_round(settings);
    if (status || !(row->use & SOME) || value_of(settings, row).count)
        return status;
    struct row some = *row;
    some.low = 1;
    return refuse_value(&some, value, "a whole number", err);
}

// The fewest digits that mean the same number.
static void print_real(FILE *f, double value) {
    char text[32];
    int digits = 6;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
    fputs(text, f);
}

static void print_line(FILE *f, const char *name, const json_t *value) {
    fprintf(f, "%s=", name);
    if (json_is_string(value))
        fputs(json_string_value(value), f);
    else if (json_is_integer(value))
        fprintf(f, "%lld", (long long)json_integer_value(value));
    else
        print_real(f, json_real_value(value));
    fputc('\n', f);
}

char *settings_text(const struct settings *settings) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    bool whole = true;
    for (size_t i = 0; f && i < ROWS; i++) {
        if (rows[i].use & ALONE || !is_given(settings, &rows[i]))
            continue;
        json_t *value = row_json(settings, &rows[i]);
        whole = whole && value;
        if (value)
            print_line(f, rows[i].name, value);
        json_decref(value);
    }
    if (f && fclose(f) == 0 && whole)
        return text;
    free(text);
    return NULL;
}

static int parse_line(struct settings *settings, char *line, struct error *err) {
    char *equals = strchr(line, '=');
    if (!equals)
        return error_set(err, STATUS_USAGE, "'%.100s' is not KEY=VALUE", line);
    *equals = 0;
    return set_key(settings, line, equals + 1, err);
}

int settings_parse(struct settings *settings, char *text, struct error *err) {
    struct settings next = *settings;
    int status = STATUS_OK;
    for (char *rest = text, *line; status == STATUS_OK && (line = strsep(&rest, "\n"));)
        if (*line)
            status = parse_line(&next, line, err);
    if (status == STATUS_OK)
        *settings = next;
    return status;
}

// --- understood -----------------------------------------------------------------------

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
    if (!test || !is_held_out(test, strlen(test)))
        return STATUS_OK;
    if (text_real(number, strlen(number), share) && *share > 0 && *share < 1)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "--test %s: is not auto=SHARE with a share between 0 and 1",
                     test);
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
    if (settings->test && is_held_out(settings->test, strlen(settings->test)))
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

// What forbids factors, as it counts updates; NULL: nothing. Those of each layer, and the rest of
// the push, are messages that servers look at, and apply, one by one. So each would be as stale as
// what others push between them makes it, and one of them could be refused where others were taken,
// whose turn then is never whole.
static const char *counts_updates(const struct settings *settings,
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
    bool whole =
        !strcmp(settings->factors, "auto") && counts_updates(settings, optimizer, protocol);
    return whole ? "none" : settings->factors;
}

// Only the delta of plain sgd is a sum of products. Of a product nobody knows the length, by
// which gradients are clipped.
static int check_factors_allowed(const struct settings *settings, const struct optimizer *optimizer,
                                 const struct protocol *protocol, enum protocol_push push,
                                 struct error *err) {
    const char *factors = settings->factors,
               *counts = counts_updates(settings, optimizer, protocol);
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

int settings_check_text(const char *name, const char *text, struct error *err) {
    if (!text || utf8_is_valid(text))
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "%s '%s' is not UTF-8: no checkpoint could keep it", name,
                     text);
}

int settings_check_texts(const struct settings *settings, struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; i < ROWS && !status; i++)
        status = settings_check_text(rows[i].name, value_of(settings, &rows[i]).text, err);
    return status;
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
    bool own = test && !is_held_out(test, strlen(test));
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
        status = settings_schedule(settings, (double)settings->epochs, &schedule, err);
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
