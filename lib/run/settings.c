#include "run/settings.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/text.h"
#include "run/settings_internal.h"

const char *const home_names[] = {"shared", "copies", "joined", NULL};

static const char *const loss_names[] = {"reform", "stop", NULL};
static const char *const data_loss_names[] = {"wait", "end", "continue", NULL};
static const char *const ack_names[] = {"memory", "replicated", "durable", NULL};
static const char *const parts_names[] = {"off", "shared", "local", NULL};
static const char *const overlap_names[] = {"auto", "yes", "no", NULL};

static const struct settings_row rows[] = {
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

const struct settings_row *settings_row(size_t index) {
    return index < ROWS ? &rows[index] : NULL;
}

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

struct settings_value settings_value(const struct settings *settings,
                                     const struct settings_row *row) {
    const char *member = (const char *)settings + row->offset;
    struct settings_value value = {0};
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

json_t *settings_row_json(const struct settings *settings, const struct settings_row *row) {
    struct settings_value value = settings_value(settings, row);
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

bool settings_row_given(const struct settings *settings, const struct settings_row *row) {
    struct settings_value value = settings_value(settings, row);
    return row->kind == TEXT ? value.text != NULL : !isnan(value.real);
}

// Whether it is of many processes alone, and as usual.
static bool is_usual(const struct settings *settings, const struct settings_row *row) {
    struct settings usual;
    settings_default(&usual);
    struct settings_value is = settings_value(settings, row), was = settings_value(&usual, row);
    bool same_text = is.text && was.text ? !strcmp(is.text, was.text) : is.text == was.text;
    return row->use & MANY && same_text && is.count == was.count && is.real == was.real &&
           is.flag == was.flag;
}

json_t *settings_write(const struct settings *settings) {
    json_t *object = json_object();
    for (size_t i = 0; i < ROWS; i++) {
        bool without_effect = settings->sync && !strcmp(rows[i].name, "threads");
        if (!without_effect && settings_row_given(settings, &rows[i]) &&
            !is_usual(settings, &rows[i]))
            json_put(&object, rows[i].name, settings_row_json(settings, &rows[i]));
    }
    return object;
}

static void set_row(struct settings *settings, const struct settings_row *row,
                    const json_t *value) {
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

static bool names_file(const struct settings_row *row, const char *value, size_t length) {
    bool weights = row->offset == offsetof(struct settings, class_weights);
    return row->use & PATH && !settings_is_held_out(value, length) &&
           !(weights && is_balanced(value, length));
}

static bool is_relative(const struct settings_row *row, const char *path) {
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

// --- by name ---------------------------------------------------------------------------

const struct settings_row *settings_find_row(const char *key) {
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
    return settings_find_row(key) != NULL;
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
    const struct settings_row *row = settings_find_row(key);
    return row && row->use & LIVE;
}

bool settings_path(const char *key, const char *value, size_t length) {
    const struct settings_row *row = settings_find_row(key);
    return row && names_file(row, value, length);
}

int settings_refuse_key(const char *key, struct error *err) {
    const char *keys[ROWS];
    size_t count = 0;
    while ((keys[count] = settings_key(count)))
        count++;
    const char *near = text_nearest(key, strlen(key), keys, count);
    return error_set(err, STATUS_USAGE, "unknown key '%s'%s", key, text_hint(near).text);
}

void settings_round(struct settings *settings) {
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].kind != REAL)
            continue;
        const double real = json_kept(settings_value(settings, &rows[i]).real);
        memcpy((char *)settings + rows[i].offset, &real, sizeof real);
    }
}

int settings_check_texts(const struct settings *settings, struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; i < ROWS && !status; i++)
        status = settings_check_text(rows[i].name, settings_value(settings, &rows[i]).text, err);
    return status;
}
