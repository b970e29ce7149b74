// The parts of the data, and the data servers that serve them.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_internal.h"
#include "core/error.h"
#include "core/mem.h"

static int add_part(struct cluster *cluster, const struct cluster_part *part, struct error *err) {
    struct cluster_part *more = mem_resize(cluster->parts, cluster->part_count + 1, sizeof *more);
    if (!more)
        return error_nomem(err);
    cluster->parts = more;
    more[cluster->part_count++] = *part;
    return STATUS_OK;
}

// Behind a record that does not tell it: that of the first who does.
static void settle_data(struct cluster *cluster, const struct cluster_member *member) {
    if (cluster->data.whole == 0)
        cluster->data = member->data;
}

int cluster_divide(struct cluster *cluster, struct error *err) {
    int status = STATUS_OK;
    cluster->part_count = 0;
    cluster->data = (struct cluster_data){0};
    for (size_t i = 0; !status && i < cluster->member_count; i++) {
        const struct cluster_member *m = &cluster->members[i];
        const struct cluster_part part = {m->first, m->samples, m->number, 0, false};
        if (m->role != PROTO_ROLE_DATA_SERVER || m->gone)
            continue;
        settle_data(cluster, m);
        status = add_part(cluster, &part, err);
    }
    return status;
}

struct cluster_data cluster_data_of(const struct proto_join *join) {
    if (join->role != PROTO_ROLE_DATA_SERVER)
        return (struct cluster_data){0};
    return (struct cluster_data){.whole = join->whole < INT64_MAX ? join->whole : INT64_MAX,
                                 .digest = join->digest,
                                 .classes = join->classes};
}

int cluster_check_data(const struct cluster *cluster, const struct proto_join *join,
                       struct error *err) {
    const struct cluster_data run = cluster->data, its = cluster_data_of(join);
    bool same = run.whole == its.whole && run.digest == its.digest && run.classes == its.classes;
    if (same || join->role != PROTO_ROLE_DATA_SERVER || !cluster->part_count || !run.whole)
        return STATUS_OK;
    return error_set(err, STATUS_DATA,
                     "it serves another data set than the run's: %" PRIu64 " samples, %" PRIu32
                     " classes or targets, digest %08" PRIx32 ", where the run has %" PRIu64
                     " samples, %" PRIu32 " classes or targets, digest %08" PRIx32,
                     its.whole, its.classes, its.digest, run.whole, run.classes, run.digest);
}

const struct cluster_part *cluster_part_of(const struct cluster *cluster, uint32_t number) {
    for (size_t i = 0; i < cluster->part_count; i++)
        if (cluster->parts[i].member == number)
            return &cluster->parts[i];
    return NULL;
}

// --- how far they are -------------------------------------------------------------------------

// Workers begin an epoch when all parts have ended the one before. So where some of an epoch is
// finished, the one before is over everywhere.
static uint32_t epoch_behind_all(const struct cluster *cluster) {
    double most = 0;
    for (size_t i = 0; i < cluster->part_count; i++)
        if (!cluster->parts[i].out)
            most = fmax(most, ceil(cluster->parts[i].epoch) - 1);
    return (uint32_t)most;
}

// The epoch that the workers are in.
static uint32_t epoch_of_all(const struct cluster *cluster) {
    double least = INFINITY;
    for (size_t i = 0; i < cluster->part_count; i++)
        if (!cluster->parts[i].out)
            least = fmin(least, cluster->parts[i].epoch);
    return isfinite(least) ? (uint32_t)least : 0;
}

uint32_t cluster_part_epoch(const struct cluster *cluster, const struct cluster_part *part) {
    uint32_t own = (uint32_t)part->epoch;
    uint32_t all = part->out ? epoch_of_all(cluster) : epoch_behind_all(cluster);
    return own > all ? own : all;
}

bool cluster_part_told(double *epoch, double told) {
    double before = floor(*epoch);
    if (told >= before)
        *epoch = told;
    return floor(*epoch) > before;
}

uint64_t cluster_samples(const struct cluster *cluster, bool out) {
    uint64_t sum = 0;
    for (size_t i = 0; i < cluster->part_count; i++)
        if (cluster->parts[i].out || !out)
            sum += cluster->parts[i].samples;
    return sum;
}

// --- who has them -----------------------------------------------------------------------------

static bool overlaps(uint64_t first, uint64_t samples, const struct proto_join *join) {
    if (samples == 0 || join->samples == 0)
        return false;
    return first < join->first ? join->first - first < samples
                               : first - join->first < join->samples;
}

static bool has_address(const struct cluster_member *member, const struct proto_join *join) {
    return join->training.length > 0 && strlen(member->training) == join->training.length &&
           !memcmp(member->training, join->training.at, join->training.length);
}

static bool is_data_server(const struct cluster_member *member) {
    return member->role == PROTO_ROLE_DATA_SERVER && !member->gone;
}

// Before there are parts: whether no data server that is there has some of the samples.
static bool nobody_has(const struct cluster *cluster, const struct proto_join *join,
                       cluster_absent *absent, const void *self) {
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *m = &cluster->members[i];
        if (is_data_server(m) && overlaps(m->first, m->samples, join) && !has_address(m, join) &&
            !absent(self, m))
            return false;
    }
    return true;
}

bool cluster_vacant(const struct cluster *cluster, const struct proto_join *join,
                    cluster_absent *absent, const void *self, const struct cluster_part **vacant) {
    bool taken = false;
    *vacant = NULL;
    if (cluster->part_count == 0)
        return nobody_has(cluster, join, absent, self);
    for (size_t i = 0; i < cluster->part_count; i++) {
        const struct cluster_part *part = &cluster->parts[i];
        const struct cluster_member *member = cluster_numbered(cluster, part->member);
        bool same = part->first == join->first && part->samples == join->samples;
        if (!overlaps(part->first, part->samples, join))
            continue;
        bool again = member && !member->gone && has_address(member, join);
        if (same && !*vacant && (!member || again || part->out || absent(self, member)))
            *vacant = part;
        taken = true;
    }
    return *vacant || !taken;
}

// Another data server that has some of the samples of member `number`; NULL: there is none.
static const struct cluster_member *rival_of(const struct cluster *cluster, uint32_t number) {
    const struct cluster_member *member = cluster_numbered(cluster, number);
    const struct proto_join its = {.first = member->first, .samples = member->samples};
    for (size_t i = 0; i < cluster->member_count; i++) {
        const struct cluster_member *m = &cluster->members[i];
        if (m->number != number && is_data_server(m) && overlaps(m->first, m->samples, &its))
            return m;
    }
    return NULL;
}

void cluster_outlive(struct cluster *cluster, uint32_t number) {
    const struct cluster_member *rival;
    while ((rival = rival_of(cluster, number)))
        cluster_leave(cluster, rival->number);
}

static struct cluster_part *find_part(struct cluster *cluster, uint32_t number) {
    for (size_t i = 0; i < cluster->part_count; i++)
        if (cluster->parts[i].member == number)
            return &cluster->parts[i];
    return NULL;
}

int cluster_take_part(struct cluster *cluster, uint32_t before, uint32_t number,
                      struct error *err) {
    const struct cluster_member *member = cluster_numbered(cluster, number);
    settle_data(cluster, member);
    if (!before) {
        // As one that was left out, it begins with the epoch that the run is in.
        const struct cluster_part new = {member->first, member->samples, number, 0, true};
        int status = add_part(cluster, &new, err);
        if (status)
            return status;
    }
    struct cluster_part *part = find_part(cluster, before ? before : number);
    double epoch = fmax(part->epoch, cluster_part_epoch(cluster, part));
    if (part->out)
        cluster->skipped += (uint64_t)llround((epoch - part->epoch) * (double)part->samples);
    part->epoch = epoch;
    part->member = number;
    part->out = false;
    cluster_leave(cluster, before);
    cluster->routes_epoch++;
    return STATUS_OK;
}

void cluster_leave_out(struct cluster *cluster, uint32_t number) {
    struct cluster_part *part = find_part(cluster, number);
    if (!part)
        return;
    // Its last report may be older than what the others show to be over.
    part->epoch = fmax(part->epoch, cluster_part_epoch(cluster, part));
    part->out = true;
    cluster_leave(cluster, number);
    cluster->routes_epoch++;
}
