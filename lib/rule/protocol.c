#include "rule/protocol.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/text.h"

const char *const protocol_modulate_names[] = {"mean", "each", "none", NULL};
const char *const protocol_push_names[] = {"delta", "gradient", NULL};

static const char softsync[] = "softsync:";

int protocol_parse(struct protocol *protocol, const char *text, struct error *err) {
    size_t prefix = strlen(softsync);
    int64_t n = 0;
    if (!strcmp(text, "async"))
        protocol->kind = PROTOCOL_ASYNC;
    else if (!strcmp(text, "hardsync"))
        protocol->kind = PROTOCOL_HARDSYNC;
    else if (!strncmp(text, softsync, prefix) &&
             text_integer(text + prefix, strlen(text + prefix), &n) && n >= 1 && n <= UINT32_MAX)
        protocol->kind = PROTOCOL_SOFTSYNC;
    else
        return error_set(
            err, STATUS_USAGE,
            "protocol: is async, hardsync or softsync:N with N of at least 1, not '%s'", text);
    protocol->n = (uint32_t)n;
    return STATUS_OK;
}

void protocol_name(const struct protocol *protocol, char text[PROTOCOL_TEXT]) {
    switch (protocol->kind) {
    case PROTOCOL_ASYNC:
        snprintf(text, PROTOCOL_TEXT, "async");
        return;
    case PROTOCOL_HARDSYNC:
        snprintf(text, PROTOCOL_TEXT, "hardsync");
        return;
    case PROTOCOL_SOFTSYNC:
        snprintf(text, PROTOCOL_TEXT, "%s%u", softsync, protocol->n);
        return;
    }
}

uint32_t protocol_turns(const struct protocol *protocol, uint32_t workers) {
    uint32_t turns = protocol->kind == PROTOCOL_SOFTSYNC ? workers / protocol->n : workers;
    return turns ? turns : 1;
}

double protocol_factor(const struct protocol *protocol, uint64_t staleness) {
    if (protocol->modulate == MODULATE_EACH)
        return 1 / (1 + (double)staleness);
    if (protocol->modulate == MODULATE_MEAN && protocol->kind == PROTOCOL_SOFTSYNC)
        return 1 / (double)protocol->n;
    return 1;
}

double protocol_push_factor(const struct protocol *protocol, uint64_t batch, size_t workers) {
    if (protocol->kind != PROTOCOL_ASYNC || !protocol->reference_batch)
        return 1;
    double all = (double)protocol->reference_batch * (double)(workers ? workers : 1);
    return sqrt((double)batch / all);
}

bool protocol_measures(const struct protocol *protocol) {
    return protocol->kind == PROTOCOL_ASYNC && protocol->modulate == MODULATE_MEAN &&
           !protocol->reference_batch;
}

int protocol_copies(const struct protocol *protocol, enum protocol_push push, bool overlap) {
    if (protocol->kind == PROTOCOL_HARDSYNC)
        return 2;
    if (protocol->kind == PROTOCOL_ASYNC && push == PUSH_DELTA)
        return 3;
    return overlap ? 4 : 3;
}

double protocol_update_factor(const struct protocol *protocol, uint64_t samples) {
    if (protocol->kind == PROTOCOL_ASYNC || !protocol->reference_batch)
        return 1;
    double all = (double)samples * (protocol->kind == PROTOCOL_SOFTSYNC ? protocol->n : 1);
    return sqrt(all / (double)protocol->reference_batch);
}
