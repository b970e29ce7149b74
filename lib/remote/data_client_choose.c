// Which data server is asked next: the one that is least far, or, where all workers share
// every step, the one that all of them ask in this step.
#include <math.h>

#include "deal/dealer.h"
#include "remote/data_client_internal.h"

static bool is_linked(const struct data_peer *server) {
    return server->listed && server->known && server->link && !server->broken;
}

// Whether it is out of reach and another serves what it did: it was started again, and
// the routes name it twice until the controller has missed the one that died.
static bool is_replaced(const struct data_client *client, const struct data_peer *server) {
    if (!server->known || is_linked(server))
        return false;
    for (const struct data_peer *other = client->servers; other; other = other->next)
        if (is_linked(other) && other->data.first == server->data.first &&
            other->data.samples == server->data.samples)
            return true;
    return false;
}

// No epoch begins before all data servers have told in which they are: one that is started again,
// or was out of reach when this worker began, may be in an earlier one.
bool client_epoch(const struct data_client *client, uint32_t *epoch) {
    bool any = false, all_known = true;
    *epoch = UINT32_MAX;
    for (const struct data_peer *server = client->servers; server; server = server->next) {
        if (!server->listed || server->over || is_replaced(client, server))
            continue;
        any = true;
        all_known &= server->known;
        if (server->known && server->epoch < *epoch)
            *epoch = server->epoch;
    }
    if (!all_known && (!client->began || *epoch > client->figures.epoch))
        *epoch = client->began ? client->figures.epoch : UINT32_MAX;
    return any;
}

// --- the least far --------------------------------------------------------------------

static double progress_of(const struct data_peer *server) {
    return (double)(server->position + server->samples_asked) / (double)server->data.samples;
}

uint32_t client_together(const struct data_client *client, const struct data_peer *server) {
    return client->options.together
               ? dealer_together(server->data.samples, (uint32_t)client->options.batch,
                                 server->sample_bytes)
               : 1;
}

static bool want_more(const struct data_client *client, const struct data_peer *server) {
    return client->under_way < client->options.ahead + (int)client_together(client, server) - 1;
}

// The least far of those that can be asked now.
static struct data_peer *choose_least(const struct data_client *client, double now, double *soon) {
    struct data_peer *best = NULL;
    uint32_t epoch;
    if (!client_epoch(client, &epoch))
        return NULL;
    for (struct data_peer *server = client->servers; server; server = server->next) {
        if (!is_linked(server) || server->over || server->epoch != epoch ||
            server->in_flight >= LINK_WINDOW / 2 || (server->busy && server->in_flight > 0))
            continue;
        if (server->not_before > now)
            *soon = fmin(*soon, server->not_before);
        else if (!best || progress_of(server) < progress_of(best))
            best = server;
    }
    return best && want_more(client, best) ? best : NULL;
}

// --- rounds ---------------------------------------------------------------------------

// Whether there is, or may be, something in the present step.
static bool may_have(const struct data_client *client, const struct data_peer *server,
                     uint32_t epoch) {
    return server->listed && !server->over && !(server->known && server->epoch > epoch) &&
           server->idle_at != client->step && !is_replaced(client, server);
}

static bool is_asked(const struct data_client *client, const struct data_peer *server,
                     uint32_t epoch) {
    return is_linked(server) && may_have(client, server, epoch);
}

// All workers ask the same data server in the same step, each as often as it has samples,
// so that they meet in its rounds: the steps, spread evenly (by the golden ratio), fall into
// its share. Where it has nothing the next one follows.
static struct data_peer *server_of_step(const struct data_client *client, uint32_t epoch) {
    double all = 0, place = (double)(client->step * UINT64_C(0x9e3779b97f4a7c15)) / 0x1p64;
    for (struct data_peer *server = client->servers; server; server = server->next)
        all += is_asked(client, server, epoch) ? (double)server->data.samples : 0;
    struct data_peer *found = NULL;
    place *= all;
    for (struct data_peer *server = client->servers; server && (!found || place >= 0);
         server = server->next)
        if (is_asked(client, server, epoch)) {
            found = server;
            place -= (double)server->data.samples;
        }
    return found;
}

static struct data_peer *choose_in_round(const struct data_client *client, double now,
                                         double *soon) {
    uint32_t epoch;
    if (client->step == 0 || client->under_way > 0 || !client_epoch(client, &epoch) ||
        epoch == UINT32_MAX)
        return NULL;
    struct data_peer *server = server_of_step(client, epoch);
    if (!server || server->not_before <= now)
        return server;
    *soon = fmin(*soon, server->not_before);
    return NULL;
}

bool client_is_idle(const struct data_client *client) {
    uint32_t epoch;
    if (!client->options.rounds || client->step == 0 || client->under_way > 0 ||
        !client_epoch(client, &epoch))
        return false;
    for (const struct data_peer *server = client->servers; server; server = server->next)
        if (may_have(client, server, epoch))
            return false;
    return true;
}

struct data_peer *client_choose(const struct data_client *client, double now, double *soon) {
    return client->options.rounds ? choose_in_round(client, now, soon)
                                  : choose_least(client, now, soon);
}
