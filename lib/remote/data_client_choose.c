// Which data server is asked next: the one that is least far, or, where all workers share
// every step, the one that all of them ask in this step.
#include <math.h>

#include "deal/dealer.h"
#include "remote/data_client_internal.h"

static bool is_linked(const struct source *source) {
    return source->listed && source->known && source->link && !source->broken;
}

// Whether it is out of reach and another serves what it did: it was started again, and
// the routes name it twice until the controller has missed the one that died.
static bool is_replaced(const struct data_client *client, const struct source *source) {
    if (!source->known || is_linked(source))
        return false;
    for (const struct source *other = client->sources; other; other = other->next)
        if (is_linked(other) && other->data.first == source->data.first &&
            other->data.samples == source->data.samples)
            return true;
    return false;
}

// No epoch begins before all data servers have told in which they are: one that is started again,
// or was out of reach when this worker began, may be in an earlier one.
bool client_epoch(const struct data_client *client, uint32_t *epoch) {
    bool any = false, all_known = true;
    *epoch = UINT32_MAX;
    for (const struct source *source = client->sources; source; source = source->next) {
        if (!source->listed || source->over || is_replaced(client, source))
            continue;
        any = true;
        all_known &= source->known;
        if (source->known && source->epoch < *epoch)
            *epoch = source->epoch;
    }
    if (!all_known && (!client->began || *epoch > client->figures.epoch))
        *epoch = client->began ? client->figures.epoch : UINT32_MAX;
    return any;
}

// --- the least far --------------------------------------------------------------------

static double progress_of(const struct source *source) {
    return (double)(source->position + source->awaited) / (double)source->data.samples;
}

uint32_t client_together(const struct data_client *client, const struct source *source) {
    return client->options.together
               ? dealer_together(source->data.samples, (uint32_t)client->options.batch,
                                 source->sample_bytes)
               : 1;
}

static bool want_more(const struct data_client *client, const struct source *source) {
    return client->under_way < client->options.ahead + (int)client_together(client, source) - 1;
}

// The least far of those that can be asked now.
static struct source *choose_least(const struct data_client *client, double now, double *soon) {
    struct source *best = NULL;
    uint32_t epoch;
    if (!client_epoch(client, &epoch))
        return NULL;
    for (struct source *source = client->sources; source; source = source->next) {
        if (!is_linked(source) || source->over || source->epoch != epoch ||
            source->flying >= LINK_WINDOW / 2 || (source->busy && source->flying > 0))
            continue;
        if (source->not_before > now)
            *soon = fmin(*soon, source->not_before);
        else if (!best || progress_of(source) < progress_of(best))
            best = source;
    }
    return best && want_more(client, best) ? best : NULL;
}

// --- rounds ---------------------------------------------------------------------------

// Whether there is, or may be, something in the present step.
static bool may_have(const struct data_client *client, const struct source *source,
                     uint32_t epoch) {
    return source->listed && !source->over && !(source->known && source->epoch > epoch) &&
           source->idle_at != client->step && !is_replaced(client, source);
}

static bool is_asked(const struct data_client *client, const struct source *source,
                     uint32_t epoch) {
    return is_linked(source) && may_have(client, source, epoch);
}

// All workers ask the same data server in the same step, each as often as it has samples,
// so that they meet in its rounds: the steps, spread evenly (by the golden ratio), fall into
// its share. Where it has nothing the next one follows.
static struct source *source_of_step(const struct data_client *client, uint32_t epoch) {
    double all = 0, place = (double)(client->step * UINT64_C(0x9e3779b97f4a7c15)) / 0x1p64;
    for (struct source *source = client->sources; source; source = source->next)
        all += is_asked(client, source, epoch) ? (double)source->data.samples : 0;
    struct source *found = NULL;
    place *= all;
    for (struct source *source = client->sources; source && (!found || place >= 0);
         source = source->next)
        if (is_asked(client, source, epoch)) {
            found = source;
            place -= (double)source->data.samples;
        }
    return found;
}

static struct source *choose_in_round(const struct data_client *client, double now, double *soon) {
    uint32_t epoch;
    if (client->step == 0 || client->under_way > 0 || !client_epoch(client, &epoch) ||
        epoch == UINT32_MAX)
        return NULL;
    struct source *source = source_of_step(client, epoch);
    if (!source || source->not_before <= now)
        return source;
    *soon = fmin(*soon, source->not_before);
    return NULL;
}

bool client_is_idle(const struct data_client *client) {
    uint32_t epoch;
    if (!client->options.rounds || client->step == 0 || client->under_way > 0 ||
        !client_epoch(client, &epoch))
        return false;
    for (const struct source *source = client->sources; source; source = source->next)
        if (may_have(client, source, epoch))
            return false;
    return true;
}

struct source *client_choose(const struct data_client *client, double now, double *soon) {
    return client->options.rounds ? choose_in_round(client, now, soon)
                                  : choose_least(client, now, soon);
}
