#include "cluster/agreed.h"

#include <stdlib.h>
#include <string.h>

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

int agreed_open(struct agreed *agreed, const struct agreement *agreement, const char *text,
                struct error *err) {
    *agreed = (struct agreed){.agreement = *agreement};
    if (!text)
        return STATUS_OK;
    struct cluster *state = mem_zeroed(1, sizeof *state);
    int status = state ? cluster_read(state, text, strlen(text), err) : error_nomem(err);
    if (status)
        drop_draft(state);
    else
        adopt_draft(agreed, state);
    return status;
}

void agreed_close(struct agreed *agreed) {
    adopt_draft(agreed, NULL);
}

int agreed_draft(const struct agreed *agreed, struct cluster **next, struct error *err) {
    *next = mem_zeroed(1, sizeof **next);
    return *next ? cluster_copy(*next, agreed->state, err) : error_nomem(err);
}

static int propose_draft(const struct agreed *agreed, const struct cluster *next,
                         struct error *err) {
    char *text = cluster_write(next);
    const struct agreement *agreement = &agreed->agreement;
    int status = text ? agreement->propose(agreement->self, text, err) : error_nomem(err);
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
