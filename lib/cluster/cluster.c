#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_internal.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/printable.h"

int cluster_open(struct cluster *cluster, struct proto_id run, const char *model_name,
                 const char *model, const char *settings, const char *resume, struct error *err) {
    *cluster = (struct cluster){
        .run = run,
        .next_member = 1,
        .next_session = 1,
        .members_epoch = 1,
        .settings_version = 1,
        .copies = 1,
        .partitions = 1,
        .model_name = mem_string(model_name),
        .model = mem_string(model),
        .settings = mem_string(settings),
        .resume = resume ? mem_string(resume) : NULL,
    };
    bool good =
        (cluster->resume || !resume) && cluster->model_name && cluster->model && cluster->settings;
    return good ? STATUS_OK : error_nomem(err);
}

// Of an array that may be empty.
static void *copy_array(const void *items, size_t count, size_t size) {
    void *copy = mem_array(count + 1, size);
    if (copy && count)
        memcpy(copy, items, count * size);
    return copy;
}

int cluster_copy(struct cluster *to, const struct cluster *from, struct error *err) {
    *to = *from;
    to->why = from->why ? mem_string(from->why) : NULL;
    to->resume = from->resume ? mem_string(from->resume) : NULL;
    to->model_name = mem_string(from->model_name);
    to->model = mem_string(from->model);
    to->settings = mem_string(from->settings);
    to->members = copy_array(from->members, from->member_count, sizeof *to->members);
    to->places = copy_array(from->places, from->place_count, sizeof *to->places);
    to->parts = copy_array(from->parts, from->part_count, sizeof *to->parts);
    bool good = (to->why || !from->why) && (to->resume || !from->resume) && to->model_name &&
                to->model && to->settings && to->members && to->places && to->parts;
    return good ? STATUS_OK : error_nomem(err);
}

void cluster_free(struct cluster *cluster) {
    free(cluster->why);
    free(cluster->resume);
    free(cluster->model_name);
    free(cluster->model);
    free(cluster->settings);
    free(cluster->members);
    free(cluster->places);
    free(cluster->parts);
    *cluster = (struct cluster){0};
}

const char *cluster_stage_name(enum cluster_stage stage) {
#define CLUSTER_AS_NAME(NAME, name) name,
    static const char *const names[] = {CLUSTER_STAGES(CLUSTER_AS_NAME)};
#undef CLUSTER_AS_NAME
    return stage < CLUSTER_STAGE_COUNT ? names[stage] : "unknown stage";
}

// --- members ------------------------------------------------------------------------------

const struct cluster_member *cluster_find(const struct cluster *cluster, uint64_t session) {
    for (size_t i = 0; i < cluster->member_count; i++)
        if (cluster->members[i].session == session && !cluster->members[i].gone)
            return &cluster->members[i];
    return NULL;
}

const struct cluster_member *cluster_numbered(const struct cluster *cluster, uint32_t number) {
    for (size_t i = 0; i < cluster->member_count; i++)
        if (cluster->members[i].number == number)
            return &cluster->members[i];
    return NULL;
}

size_t cluster_count(const struct cluster *cluster, enum proto_role role) {
    size_t count = 0;
    for (size_t i = 0; i < cluster->member_count; i++)
        count += cluster->members[i].role == role && !cluster->members[i].gone;
    return count;
}

// It is shown to people, and stored as JSON.
#define COPY(to, from) printable_copy(to, sizeof(to), (from).at, (from).length)

// Of those who are gone only the last are remembered.
static void forget_oldest(struct cluster *cluster) {
    size_t gone = 0, oldest = cluster->member_count;
    for (size_t i = cluster->member_count; i-- > 0;)
        if (cluster->members[i].gone && !cluster_serves(cluster, cluster->members[i].number) &&
            !cluster_part_of(cluster, cluster->members[i].number)) {
            gone++;
            oldest = i;
        }
    if (gone <= CLUSTER_GONE_MAX)
        return;
    size_t behind = --cluster->member_count - oldest;
    memmove(&cluster->members[oldest], &cluster->members[oldest + 1],
            behind * sizeof *cluster->members);
}

static struct cluster_member *living_member(struct cluster *cluster, uint32_t number) {
    for (size_t i = 0; i < cluster->member_count; i++)
        if (cluster->members[i].number == number && !cluster->members[i].gone)
            return &cluster->members[i];
    return NULL;
}

static void end_member(struct cluster *cluster, struct cluster_member *member) {
    member->gone = true;
    cluster->members_epoch++;
    if (member->role == PROTO_ROLE_DATA_SERVER && cluster->routes_epoch)
        cluster->routes_epoch++;
    forget_oldest(cluster);
}

void cluster_leave(struct cluster *cluster, uint32_t number) {
    struct cluster_member *member = living_member(cluster, number);
    if (!member)
        return;
    bool breaks = cluster_breaks_replica(cluster, member);
    uint32_t replica = member->replica;
    end_member(cluster, member);
    while (breaks && (member = cluster_worker_of(cluster, replica)))
        end_member(cluster, member);
}

// Parameter servers of this name whose buckets have moved away.
static bool is_drained(const struct cluster *cluster, const struct cluster_member *member,
                       const char *name) {
    return member->role == PROTO_ROLE_PARAMETER_SERVER && member->draining &&
           !strcmp(member->name, name) && !cluster_serves(cluster, member->number);
}

static bool goes_on_leaving(const struct cluster *cluster, const struct cluster_member *member) {
    bool server = member->role == PROTO_ROLE_PARAMETER_SERVER;
    for (size_t i = 0; server && i < cluster->member_count; i++)
        if (is_drained(cluster, &cluster->members[i], member->name))
            return true;
    return false;
}

void cluster_retire(struct cluster *cluster, uint32_t number) {
    const struct cluster_member *member = living_member(cluster, number);
    char name[PROTO_NAME_MAX + 1] = "";
    if (member)
        memcpy(name, member->name, sizeof name);
    bool drained = member && is_drained(cluster, member, name);
    cluster_leave(cluster, number);
    for (size_t i = 0; drained && i < cluster->member_count; i++)
        if (is_drained(cluster, &cluster->members[i], name)) {
            cluster->members[i].draining = false;
            cluster->members[i].left = true;
        }
}

void cluster_warm(struct cluster *cluster) {
    cluster->warm = true;
    cluster->members_epoch++;
}

// The member that listened at this address is gone.
static void replace_member(struct cluster *cluster, const struct proto_join *join) {
    char address[PROTO_ADDRESS_MAX + 1];
    COPY(address, join->training);
    for (size_t i = 0; *address && i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        if (!member->gone && member->role == join->role && !strcmp(member->training, address)) {
            cluster_leave(cluster, member->number);
            return;
        }
    }
}

int cluster_join(struct cluster *cluster, const struct proto_join *join,
                 const struct cluster_member **member, struct error *err) {
    size_t there = 0;
    replace_member(cluster, join);
    for (size_t i = 0; i < cluster->member_count; i++)
        there += !cluster->members[i].gone;
    if (there >= CLUSTER_MEMBERS_MAX)
        return error_set(err, STATUS_UNAVAILABLE, "there are %zu members already", there);
    struct cluster_member *more =
        mem_resize(cluster->members, cluster->member_count + 1, sizeof *more);
    if (!more)
        return error_nomem(err);
    cluster->members = more;
    struct cluster_member *new = &more[cluster->member_count++];
    *new = (struct cluster_member){
        .number = cluster->next_member++,
        .session = cluster->next_session++,
        .role = (enum proto_role)join->role,
        .threads = join->threads,
        .memory = join->memory < INT64_MAX ? join->memory : INT64_MAX,
        .first = join->first < INT64_MAX ? join->first : INT64_MAX,
        .samples = join->samples < INT64_MAX ? join->samples : INT64_MAX,
        .data = cluster_data_of(join),
        .stores = join->stores,
        .parts = join->parts,
    };
    COPY(new->name, join->name);
    COPY(new->training, join->training);
    COPY(new->replication, join->replication);
    COPY(new->administration, join->administration);
    new->draining = goes_on_leaving(cluster, new);
    cluster_take_place(cluster, new);
    *member = new;
    cluster->members_epoch++;
    if (join->role == PROTO_ROLE_DATA_SERVER && cluster->routes_epoch)
        cluster->routes_epoch++;
    return STATUS_OK;
}

const struct cluster_member *cluster_stored(const struct cluster *cluster,
                                            const struct proto_join *join) {
    char name[PROTO_NAME_MAX + 1];
    COPY(name, join->name);
    for (size_t i = 0; join->stores && i < cluster->member_count; i++) {
        const struct cluster_member *member = &cluster->members[i];
        if (member->stores && !strcmp(member->name, name) &&
            cluster_serves(cluster, member->number))
            return member;
    }
    return NULL;
}

void cluster_name(char text[128], const struct cluster_member *member) {
    snprintf(text, 128, "%s %u (%s)", proto_role_name(member->role), member->number, member->name);
}

// --- the run ------------------------------------------------------------------------------

// From each stage those that may follow.
#define BIT(stage) (1u << CLUSTER_##stage)
static const unsigned followers[CLUSTER_STAGE_COUNT] = {
    [CLUSTER_STARTING] = BIT(TRAINING) | BIT(STOPPING),
    [CLUSTER_TRAINING] = BIT(DRAINING) | BIT(STOPPING),
    [CLUSTER_DRAINING] = BIT(SAVING) | BIT(STOPPING),
    [CLUSTER_SAVING] = BIT(STOPPING),
    [CLUSTER_STOPPING] = BIT(OVER),
};

int cluster_enter(struct cluster *cluster, enum cluster_stage stage, struct error *err) {
    if (!(followers[cluster->stage] >> stage & 1))
        return error_set(err, STATUS_BUG, "a run that is %s cannot be %s next",
                         cluster_stage_name(cluster->stage), cluster_stage_name(stage));
    cluster->stage = stage;
    cluster->order++;
    return STATUS_OK;
}

int cluster_finish(struct cluster *cluster, struct error *err) {
    cluster->finished = true;
    return cluster_enter(cluster, CLUSTER_DRAINING, err);
}

int cluster_blame(struct cluster *cluster, int status, const char *why, struct error *err) {
    if (cluster->status != STATUS_OK && cluster->status != STATUS_STOPPED)
        return STATUS_OK;
    char *copy = mem_string(why);
    if (!copy)
        return error_nomem(err);
    free(cluster->why);
    cluster->status = status;
    cluster->why = copy;
    return STATUS_OK;
}

int cluster_settle(struct cluster *cluster, const char *settings, struct error *err) {
    char *copy = mem_string(settings);
    if (!copy)
        return error_nomem(err);
    free(cluster->settings);
    cluster->settings = copy;
    cluster->settings_version++;
    return STATUS_OK;
}
