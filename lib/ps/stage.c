// The stage between applied and answered: "The primary machine replicates changes to shards within
// a bucket to all secondary machines via a 2 phase commit protocol" (Adam 3.3.3), and a push counts
// when they have it. So what is applied to a shard that has copies waits here, in the order of the
// shard's versions; under ack = durable what is applied to any shard waits, for the disks.
#include "ps/ps_internal.h"

static void append_staged(struct shard *shard, struct subrequest *sub) {
    sub->state = SUBREQUEST_STAGED;
    sub->next = NULL;
    *(shard->staged ? &shard->staged_last->next : &shard->staged) = sub;
    shard->staged_last = sub;
}

// Until all copies have been brought to one version there is none to tell.
void stage_subrequest(const struct ps *ps, struct shard *shard, struct subrequest *sub) {
    if (sub->version > shard_told(ps, shard))
        append_staged(shard, sub);
    else
        subrequest_done(sub);
}

void stage_release(const struct ps *ps, struct shard *shard) {
    for (struct subrequest *sub = shard->staged, *next; sub; sub = next) {
        next = sub->next;
        if (sub->version > shard_told(ps, shard))
            break;
        shard->staged = next;
        subrequest_done(sub);
    }
}

void stage_drop(struct shard *shard, enum proto_refusal code) {
    for (struct subrequest *next; shard->staged; shard->staged = next) {
        struct subrequest *sub = shard->staged;
        next = sub->next;
        subrequest_refuse(sub, (struct objection){code, sub->shard, ""});
    }
}

void stage_tell(struct ps *ps, uint32_t shard) {
    if (atomic_load(&ps->shards[shard].copied))
        ps->copies.applied(ps->copies.self, shard);
}
