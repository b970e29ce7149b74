#include "cluster/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/json.h"
#include "core/mem.h"
#include "store/crc.h"
#include "store/output.h"
#include "store/stream.h"

enum {
    VERSION = 1,
    STATE_MAX = (1 << 20) - 64, // what the message `paxos` carries
    FILE_MAX = 2 << 20,
};

struct record {
    char *path;
    struct paxos *paxos;
    bool stopped; // it could not remember what it promised: it takes part no more
    void (*send)(void *self, const struct proto_paxos *message);
    void *self;
};

static uint64_t milliseconds_now(void) {
    return (uint64_t)(clock_seconds() * 1000);
}

// --- the file -----------------------------------------------------------------------------

// The sum over all that stands before it.
static int seal_record(json_t *object, char crc[16], struct error *err) {
    char *text = json_line(object);
    if (!text)
        return error_nomem(err);
    snprintf(crc, 16, "%08" PRIx32, crc32_of(0, text, strlen(text)));
    free(text);
    return STATUS_OK;
}

static int write_text(const char *path, const char *text, struct error *err) {
    struct output *output;
    int status = output_open(&output, path, true, err);
    if (status)
        return status;
    status = output_write(output, text, strlen(text), err);
    if (!status)
        status = output_write(output, "\n", 1, err);
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

static int save_record(const struct record *record, struct error *err) {
    struct paxos_record kept = paxos_record(record->paxos);
    json_t *state = NULL;
    char crc[16], *text = NULL;
    int status = STATUS_OK;
    if (kept.state.length)
        status = json_read(&state, (const char *)kept.state.bytes, kept.state.length, err);
    json_t *object =
        json_pack("{s:i, s:I, s:I, s:I, s:o}", "v", VERSION, "promised", (json_int_t)kept.promised,
                  "accepted", (json_int_t)kept.accepted, "version", (json_int_t)kept.state.version,
                  "state", state ? state : json_null());
    if (!status)
        status = object ? seal_record(object, crc, err) : error_nomem(err);
    if (!status && !json_object_set_new(object, "crc32", json_string(crc)))
        text = json_line(object);
    if (!status)
        status = text ? write_text(record->path, text, err) : error_nomem(err);
    json_decref(object);
    free(text);
    return status;
}

static int damaged_record(const char *path, struct error *err) {
    return error_set(err, STATUS_DATA,
                     "%s: damaged: a controller that forgot what it promised must not go on; "
                     "start a new run from the last checkpoint",
                     path);
}

static bool read_count(const json_t *object, const char *name, uint64_t *value) {
    const json_t *found = json_object_get(object, name);
    *value = (uint64_t)json_integer_value(found);
    return json_is_integer(found) && json_integer_value(found) >= 0;
}

// The record of a file's text; its state is *text, to be freed.
static int parse_record(json_t *object, const char *path, struct paxos_record *kept, char **text,
                        struct error *err) {
    char crc[16], given[16] = "";
    uint64_t version = 0;
    const char *sum = json_string_value(json_object_get(object, "crc32"));
    snprintf(given, sizeof given, "%s", sum ? sum : "");
    if (!json_is_object(object) || json_object_del(object, "crc32"))
        return damaged_record(path, err);
    int status = seal_record(object, crc, err);
    if (status)
        return status;
    const json_t *state = json_object_get(object, "state");
    if (strcmp(crc, given) != 0 || !read_count(object, "v", &version) || version != VERSION ||
        !read_count(object, "promised", &kept->promised) ||
        !read_count(object, "accepted", &kept->accepted) ||
        !read_count(object, "version", &kept->state.version) ||
        !(json_is_object(state) || json_is_null(state)))
        return damaged_record(path, err);
    if (json_is_null(state))
        return STATUS_OK;
    *text = json_line(state);
    kept->state.bytes = (const uint8_t *)*text;
    kept->state.length = *text ? (uint32_t)strlen(*text) : 0;
    return *text ? STATUS_OK : error_nomem(err);
}

static int load_text(const char *path, char **text, size_t *size, struct error *err) {
    struct stream *stream;
    int status = stream_open(&stream, path, err);
    if (status)
        return status;
    *text = mem_array(FILE_MAX, 1);
    status = *text ? stream_read(stream, *text, FILE_MAX, size, err) : error_nomem(err);
    stream_close(stream);
    return status;
}

static int load_record(const char *path, struct paxos_record *kept, char **state,
                       struct error *err) {
    char *text = NULL;
    size_t size = 0;
    json_t *object = NULL;
    int status = load_text(path, &text, &size, err);
    if (!status)
        status = json_read(&object, text, size, err);
    if (status == STATUS_DATA)
        status = damaged_record(path, err);
    if (!status)
        status = parse_record(object, path, kept, state, err);
    json_decref(object);
    free(text);
    return status;
}

// --- the register -------------------------------------------------------------------------

static int check_stopped(const struct record *record, struct error *err) {
    return record->stopped
               ? error_set(err, STATUS_IO, "%s could not be written before", record->path)
               : STATUS_OK;
}

static void send_messages(const struct record *record, const struct paxos_output *output,
                          bool accepts) {
    for (uint32_t i = 0; record->send && i < output->count; i++)
        if (accepts == (output->messages[i].step == PROTO_PAXOS_ACCEPT))
            record->send(record->self, &output->messages[i]);
}

// The others write what they accept while this one does.
static int keep_step(struct record *record, const struct paxos_output *output, struct error *err) {
    send_messages(record, output, true);
    int status = output->persist ? save_record(record, err) : STATUS_OK;
    record->stopped = status != STATUS_OK;
    if (!status)
        send_messages(record, output, false);
    return status;
}

int record_tick(struct record *record, struct paxos_output *output, struct error *err) {
    int status = check_stopped(record, err);
    *output = (struct paxos_output){0};
    if (status)
        return status;
    paxos_tick(record->paxos, milliseconds_now(), output);
    return keep_step(record, output, err);
}

int record_receive(struct record *record, const struct proto_paxos *message,
                   struct paxos_output *output, struct error *err) {
    int status = check_stopped(record, err);
    *output = (struct paxos_output){0};
    if (status)
        return status;
    paxos_receive(record->paxos, message, milliseconds_now(), output);
    return keep_step(record, output, err);
}

int record_propose(struct record *record, const char *state, struct paxos_output *output,
                   struct error *err) {
    size_t size = strlen(state);
    *output = (struct paxos_output){0};
    if (size > STATE_MAX)
        return error_set(err, STATUS_DATA, "the state of the run has %zu bytes, at most %d fit",
                         size, STATE_MAX);
    int status = check_stopped(record, err);
    if (!status)
        status =
            paxos_propose(record->paxos, state, (uint32_t)size, milliseconds_now(), output, err);
    return status ? status : keep_step(record, output, err);
}

double record_due(const struct record *record) {
    uint64_t now = milliseconds_now(), due = paxos_deadline(record->paxos);
    return due > now ? (double)(due - now) / 1000 : 0;
}

// One member alone leads at once.
static int start_record(struct record *record, const struct record_options *options,
                        const struct paxos_record *kept, struct error *err) {
    const struct paxos_config config = {
        .id = options->id,
        .members = options->members,
        .seed = options->start,
        .heartbeat = RECORD_HEARTBEAT,
        .election = RECORD_ELECTION,
        .state_max = STATE_MAX,
        .start = options->start,
        .rejoin = options->rejoin,
    };
    struct paxos_output output;
    int status = paxos_open(&record->paxos, &config, kept, milliseconds_now(), err);
    return status || options->members > 1 ? status : record_tick(record, &output, err);
}

bool record_exists(const char *path) {
    return access(path, F_OK) == 0 || errno != ENOENT;
}

int record_open(struct record **out, const char *path, const struct record_options *options,
                struct error *err) {
    struct record *record = mem_zeroed(1, sizeof *record);
    struct paxos_record kept = {0};
    char *state = NULL;
    if (!record || !(record->path = mem_string(path))) {
        record_close(record);
        return error_nomem(err);
    }
    record->send = options->send;
    record->self = options->self;
    bool there = record_exists(path);
    int status = there ? load_record(path, &kept, &state, err) : STATUS_OK;
    if (!status)
        status = start_record(record, options, there ? &kept : NULL, err);
    free(state);
    if (status)
        record_close(record);
    else
        *out = record;
    return status;
}

int record_look(const char *path, struct record_glance *glance, struct error *err) {
    struct paxos_record kept = {0};
    *glance = (struct record_glance){0};
    int status = load_record(path, &kept, &glance->state, err);
    if (status) {
        free(glance->state);
        glance->state = NULL;
        return status;
    }
    glance->accepted = kept.accepted;
    glance->version = kept.state.version;
    return STATUS_OK;
}

void record_close(struct record *record) {
    if (!record)
        return;
    paxos_close(record->paxos);
    free(record->path);
    free(record);
}

const struct paxos *record_paxos(const struct record *record) {
    return record->paxos;
}

const char *record_state(const struct record *record, size_t *size) {
    struct paxos_state state;
    if (record->stopped || !paxos_committed(record->paxos, &state) || state.length == 0)
        return NULL;
    *size = state.length;
    return (const char *)state.bytes;
}
