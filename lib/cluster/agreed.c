#include "cluster/agreed.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

static void drop_draft(struct cluster *cluster) {
    if (cluster)
        cluster_free(cluster);
    free(cluster);
}

static void adopt_draft(struct agreed *agreed, struct cluster *next) {
    drop_draft((struct cluster *)agreed->state);
    agreed->state = next;
}

int agreed_open(struct agreed *agreed, const char *path, struct error *err) {
    size_t size;
    *agreed = (struct agreed){0};
    int status = record_open(&agreed->record, path, err);
    const char *text = status ? NULL : record_state(agreed->record, &size);
    if (!text)
        return status;
    struct cluster *state = mem_zeroed(1, sizeof *state);
    status = state ? cluster_read(state, text, size, err) : error_nomem(err);
    if (status)
        drop_draft(state);
    else
        adopt_draft(agreed, state);
    return status;
}

void agreed_close(struct agreed *agreed) {
    adopt_draft(agreed, NULL);
    record_close(agreed->record);
    agreed->record = NULL;
}

int agreed_draft(const struct agreed *agreed, struct cluster **next, struct error *err) {
    *next = mem_zeroed(1, sizeof **next);
    return *next ? cluster_copy(*next, agreed->state, err) : error_nomem(err);
}

static int propose_draft(const struct agreed *agreed, const struct cluster *next,
                         struct error *err) {
    char *text = cluster_write(next);
    int status = text ? record_propose(agreed->record, text, err) : error_nomem(err);
    free(text);
    return status;
}

int agreed_commit(struct agreed *agreed, struct cluster *next, int status, struct error *err) {
    if (!status)
        status = propose_draft(agreed, next, err);
    if (status)
        drop_draft(next);
    else
        adopt_draft(agreed, next);
    return status;
}
