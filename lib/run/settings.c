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
#include "run/settings_internal.h"

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
    ROW("last-epoch", COUNT, last_epoch, MANY | OWN, 0, 1e9),
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

bool settings_is_held_out(const char *test, size_t length) {
    return length >= strlen(HELD_OUT) && !memcmp(test, HELD_OUT, strlen(HELD_OUT));
}

static bool is_balanced(const char *text, size_t length) {
    return length == strlen(SETTINGS_BALANCED) && !memcmp(text, SETTINGS_BALANCED, length);
}

static bool names_file(const struct row *row, const char *value, size_t length) {
    bool weights = row->offset == offsetof(struct settings, class_weights);
    return row->use & PATH && !settings_is_held_out(value, length) &&
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
