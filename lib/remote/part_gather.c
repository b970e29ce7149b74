#include "remote/part_gather.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"
#include "net/link.h"
#include "proto/kept.h"
#include "run/checkpoint_parts.h"
#include "store/crc.h"
#include "store/output.h"

enum { PATIENCE = 10000, CHUNK = 1 << 22 }; // milliseconds for a dial; bytes that are asked for

// A file that is fetched.
struct fetch {
    const char *name, *server;
    uint64_t bytes;
    uint32_t crc;
    struct proto_read_part ask;
    bool refused; // the server is there, and does not give it
};

static int dial(struct link **link, const struct part_gather *g, const char *address,
                struct error *err) {
    const struct link_options options = {.keys = g->keys, .insecure = g->insecure};
    return link_dial(link, address, &options, g->hello, PATIENCE, NULL, err);
}

// --- who has what -----------------------------------------------------------------------

static int ask_name(struct part_holder *holder, struct link *link, struct error *err) {
    const struct proto_get_status message = {0};
    struct link_request request = {.type = PROTO_TYPE_GET_STATUS, .message = &message};
    struct kept *answer;
    int status = link_call_kept(link, &request, &answer, err);
    if (status)
        return status;
    const struct proto_list *members = &answer->message.status.members;
    if (answer->type == PROTO_TYPE_STATUS && members->count == 1) {
        const struct proto_member *self = members->at;
        printable_copy(holder->name, sizeof holder->name, self->name.at, self->name.length);
    } else {
        status = error_set(err, STATUS_UNAVAILABLE, "%s does not tell its name", holder->address);
    }
    kept_drop(answer);
    return status;
}

int part_holder_ask(struct part_holder *holder, const struct proto_server *server,
                    const struct part_gather *gather, struct error *err) {
    struct link *link;
    printable_copy(holder->address, sizeof holder->address, server->administration.at,
                   server->administration.length);
    int status = dial(&link, gather, holder->address, err);
    if (status)
        return status;
    status = ask_name(holder, link, err);
    link_close(link);
    return status;
}

static const struct part_holder *find_holder(const struct part_gather *g, const char *name) {
    for (size_t i = 0; i < g->count; i++)
        if (!strcmp(g->holders[i].name, name))
            return &g->holders[i];
    return NULL;
}

int part_drop(const struct part_gather *gather, const struct proto_server *server,
              const struct proto_drop_parts *message, struct error *err) {
    char address[PROTO_ADDRESS_MAX + 1];
    struct link_request request = {.type = PROTO_TYPE_DROP_PARTS, .message = message};
    struct link *link;
    printable_copy(address, sizeof address, server->administration.at,
                   server->administration.length);
    int status = dial(&link, gather, address, err);
    if (status)
        return status;
    status = link_call(link, &request, NULL, err);
    link_close(link);
    return status ? error_context(err, "%s", address) : STATUS_OK;
}

// --- a part -----------------------------------------------------------------------------

static int refuse_answer(struct fetch *fetch, const struct kept *answer, struct error *err) {
    const struct proto_refused *refused = &answer->message.refused;
    fetch->refused = answer->type == PROTO_TYPE_REFUSED && refused->code == PROTO_REFUSAL_STORAGE;
    return answer->type == PROTO_TYPE_REFUSED
               ? error_set(err, STATUS_UNAVAILABLE, "%s: %.*s", proto_refusal_name(refused->code),
                           (int)refused->text.length, refused->text.at)
               : error_set(err, STATUS_UNAVAILABLE, "answered with '%s' for a part of '%s'",
                           proto_message_name(answer->type), fetch->server);
}

// The next bytes, as many as were asked for.
static int fetch_bytes(struct fetch *fetch, struct link *link, unsigned char *bytes,
                       struct error *err) {
    uint64_t left = fetch->bytes - fetch->ask.offset;
    fetch->ask.bytes = left < CHUNK ? (uint32_t)left : CHUNK;
    struct link_request request = {.type = PROTO_TYPE_READ_PART,
                                   .message = &fetch->ask,
                                   .into = bytes,
                                   .room = fetch->ask.bytes};
    struct kept *answer;
    int status = link_call_kept(link, &request, &answer, err);
    if (status)
        return status;
    if (answer->type != PROTO_TYPE_PART)
        status = refuse_answer(fetch, answer, err);
    else if (answer->message.part.size != fetch->bytes || request.received != fetch->ask.bytes)
        status =
            error_set(err, STATUS_DATA, "it has %" PRIu64 " bytes where the manifest says %" PRIu64,
                      answer->message.part.size, fetch->bytes);
    kept_drop(answer);
    return status;
}

static int fetch_all(struct fetch *fetch, struct link *link, struct output *output,
                     struct error *err) {
    unsigned char *bytes = mem_array(CHUNK, 1);
    uint32_t crc = 0;
    int status = bytes ? STATUS_OK : error_nomem(err);
    while (!status && fetch->ask.offset < fetch->bytes) {
        status = fetch_bytes(fetch, link, bytes, err);
        if (!status)
            status = output_write(output, bytes, fetch->ask.bytes, err);
        crc = status ? crc : crc32_of(crc, bytes, fetch->ask.bytes);
        fetch->ask.offset += fetch->ask.bytes;
    }
    free(bytes);
    if (!status && crc != fetch->crc)
        status = error_set(err, STATUS_DATA,
                           "it is damaged: its CRC-32 is %08" PRIx32
                           " where the manifest says %08" PRIx32,
                           crc, fetch->crc);
    return status;
}

static int fetch_over(struct fetch *fetch, struct link *link, const char *folder,
                      struct error *err) {
    struct output *output;
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, fetch->name) < 0)
        return error_nomem(err);
    int status = output_open(&output, path, false, err);
    free(path);
    if (status)
        return status;
    status = fetch_all(fetch, link, output, err);
    if (!status)
        return output_close(output, err);
    output_abort(output);
    return status;
}

static int fetch_part(const struct part_gather *g, struct fetch *fetch, const char *folder,
                      struct error *err) {
    const struct part_holder *holder = find_holder(g, fetch->server);
    struct link *link;
    if (!holder)
        return error_set(err, STATUS_UNAVAILABLE,
                         "parameter server '%s', which has %s, is not there", fetch->server,
                         fetch->name);
    int status = dial(&link, g, holder->address, err);
    if (!status) {
        status = fetch_over(fetch, link, folder, err);
        link_close(link);
    }
    return status ? error_context(err, "%s of parameter server '%s'", fetch->name, fetch->server)
                  : STATUS_OK;
}

// --- all of them ------------------------------------------------------------------------

static int refuse_manifest(struct error *err) {
    return error_set(err, STATUS_DATA, "the manifest tells of no parts that servers could have");
}

// A name of a part as we write it, so that no other file can be meant.
static bool read_part_name(struct fetch *fetch) {
    char name[CHECKPOINT_PART_NAME];
    if (sscanf(fetch->name, "model-%5" SCNu32 "-of-%5" SCNu32, &fetch->ask.part,
               &fetch->ask.parts) != 2)
        return false;
    checkpoint_part_name(name, fetch->ask.part, fetch->ask.parts);
    return !strcmp(name, fetch->name);
}

static int read_entry(struct fetch *fetch, const json_t *manifest, const json_t *entry,
                      struct error *err) {
    const json_t *bytes = json_object_get(entry, "bytes");
    const char *crc = json_string_value(json_object_get(entry, "crc32"));
    char end;
    fetch->name = json_string_value(json_object_get(entry, "name"));
    bool known = fetch->name && crc && json_is_integer(bytes) && json_integer_value(bytes) >= 0 &&
                 sscanf(crc, "%8" SCNx32 "%c", &fetch->crc, &end) == 1 && read_part_name(fetch) &&
                 checkpoint_manifest_token(manifest, fetch->ask.run.bytes, fetch->ask.token.bytes);
    fetch->bytes = (uint64_t)json_integer_value(bytes);
    return known ? STATUS_OK : refuse_manifest(err);
}

static bool is_there(const char *folder, const char *name) {
    char *path = NULL;
    bool there = asprintf(&path, "%s/%s", folder, name) >= 0 && access(path, F_OK) == 0;
    free(path);
    return there;
}

int part_gather(const struct part_gather *gather, const json_t *manifest, const char *folder,
                struct error *err) {
    const json_t *files = json_object_get(manifest, "files");
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < json_array_size(files); i++) {
        const json_t *entry = json_array_get(files, i);
        struct fetch fetch = {.server = json_string_value(json_object_get(entry, "server"))};
        if (!fetch.server)
            continue;
        status = read_entry(&fetch, manifest, entry, err);
        if (!status && !is_there(folder, fetch.name))
            status = fetch_part(gather, &fetch, folder, err);
        if (gather->refused)
            *gather->refused |= fetch.refused;
    }
    return status;
}
