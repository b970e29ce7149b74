// adam-ctl store: what is in the store of a parameter server, and whether it is sound.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adam-ctl/subcommand.h"
#include "core/error.h"
#include "core/printable.h"
#include "persist/files_system.h"
#include "persist/persist.h"

enum { HEX = 2 * sizeof((struct persist_owner *)0)->run + 1 };

static const double mebi = 1 << 20;

static void run_hex(const struct persist_owner *owner, char text[HEX]) {
    for (size_t i = 0; i < sizeof owner->run; i++)
        snprintf(text + 2 * i, 3, "%02x", owner->run[i]);
}

// --- JSON -------------------------------------------------------------------------------

static json_t *shard_json(const struct persist_entry *entry) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "shard", (json_int_t)entry->shard,
                     "bucket", (json_int_t)entry->bucket, "epoch", (json_int_t)entry->epoch,
                     "version", (json_int_t)entry->version, "segment", (json_int_t)entry->segment,
                     "at", (json_int_t)entry->at, "size", (json_int_t)entry->size, "damaged",
                     entry->damaged);
}

static json_t *shards_json(const struct persist *persist) {
    size_t count;
    const struct persist_entry *entries = persist_entries(persist, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_append(&list, shard_json(&entries[i]));
    return list;
}

static json_t *store_json(const struct persist *persist) {
    const struct persist_owner *owner = persist_owner(persist);
    struct persist_figures figures;
    char run[HEX];
    persist_figures(persist, &figures);
    run_hex(owner, run);
    json_t *object = json_object();
    json_put(&object, "run", json_text(run));
    json_put(&object, "server", json_text(owner->server));
    json_put(&object, "segments", json_integer((json_int_t)figures.segments));
    json_put(&object, "segment_bytes", json_integer((json_int_t)figures.segment_bytes));
    json_put(&object, "live_bytes", json_integer((json_int_t)figures.live_bytes));
    json_put(&object, "torn", json_integer((json_int_t)figures.torn));
    json_put(&object, "damaged", json_integer((json_int_t)figures.damaged));
    json_put(&object, "shards", shards_json(persist));
    return object;
}

// --- text -------------------------------------------------------------------------------

static void print_damage(const struct persist *persist) {
    size_t count;
    const struct persist_entry *entries = persist_entries(persist, &count);
    for (size_t i = 0; i < count; i++)
        if (entries[i].damaged)
            printf("shard %" PRIu32 " is damaged: %08" PRIu64 ".log\n", entries[i].shard,
                   entries[i].segment);
}

static void print_store(const struct persist *persist) {
    const struct persist_owner *owner = persist_owner(persist);
    struct persist_figures figures;
    char run[HEX], name[PERSIST_SERVER_MAX + 1];
    persist_figures(persist, &figures);
    run_hex(owner, run);
    printable_copy(name, sizeof name, owner->server, strlen(owner->server));
    printf("server %s of run %s\n", name, run);
    printf("%" PRIu64 " shards, %.1f MiB, in %" PRIu64 " segments of %.1f MiB\n", figures.shards,
           (double)figures.live_bytes / mebi, figures.segments,
           (double)figures.segment_bytes / mebi);
    if (figures.torn)
        printf("%" PRIu64 " records of an incomplete group at the end: ignored, normal after a "
               "crash\n",
               figures.torn);
    print_damage(persist);
}

// --- check ------------------------------------------------------------------------------

static int tell(const struct persist *persist, bool json, struct error *err) {
    if (json)
        return print_json(store_json(persist), err);
    print_store(persist);
    return STATUS_OK;
}

static int verdict(const struct persist *persist, struct error *err) {
    struct persist_figures figures;
    persist_figures(persist, &figures);
    if (!figures.damaged)
        return STATUS_OK;
    return error_set(err, STATUS_DATA, "%" PRIu64 " of %" PRIu64 " shards are damaged",
                     figures.damaged, figures.shards);
}

static int check_store(const char *folder, bool json, struct error *err) {
    struct files_system system;
    struct persist *persist = NULL;
    int status = files_system_look(&system, folder, err);
    if (status)
        return status;
    status = persist_look(&persist, &system.files, err);
    if (!status)
        status = persist_check(persist, err);
    if (!status)
        status = tell(persist, json, err);
    if (!status)
        status = verdict(persist, err);
    persist_close(persist);
    files_system_close(&system);
    return status ? error_context(err, "%s", folder) : STATUS_OK;
}

static int run_store(const struct subcommand *subcommand, char **operands, int count,
                     struct error *err) {
    const struct store_options *options = subcommand->options;
    (void)count;
    if (strcmp(operands[0], "check") != 0)
        return error_set(err, STATUS_USAGE, "store: '%s' is none of: check", operands[0]);
    return check_store(operands[1], options->json, err);
}

size_t store_subcommands(struct subcommand *subcommands, struct store_options *options) {
    const struct option_row rows[] = {
        FLAG(0, "json", &options->json, "print an object with all shards"),
    };
    const struct command command = {.name = PROGRAM " store",
                                    .synopsis = "[--json] check DIR",
                                    .about = "tell what is in a parameter server's store",
                                    .rows = rows,
                                    .row_count = sizeof rows / sizeof *rows,
                                    .operand = "DIR"};
    subcommand_set(subcommands, &command, options, run_store, 2, 2);
    return 1;
}
