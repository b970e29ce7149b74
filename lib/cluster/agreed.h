// The state that the controllers of a run agreed on, and the only way to change it: copy it, make
// the next state of the copy (the transitions of cluster/cluster.h), propose that. It is adopted
// when it is agreed, which is when it is on the disk of a majority. Until then nobody is told of
// it; if it fails the state is as it was.
//
//   struct cluster *next;
//   int status = agreed_draft(&agreed, &next, err);
//   if (!status)
//       status = cluster_enter(next, CLUSTER_TRAINING, err);
//   status = agreed_commit(&agreed, next, status, err);
//   // ...and only now log lines, answers and metrics that follow from it
//
// Call from one thread. Pointers into the state are valid until the next agreed_commit.
#ifndef ADAM_CLUSTER_AGREED_H
#define ADAM_CLUSTER_AGREED_H

#include "cluster/cluster.h"

struct error;

// Whoever can have a state agreed on, as the controllers of a run do.
struct agreement {
    void *self;
    // Proposes a JSON text, and waits until it is agreed on or cannot be any more.
    int (*propose)(void *self, const char *text, struct error *err);
};

struct agreed {
    const struct cluster *state; // NULL: none is agreed yet
    struct agreement agreement;
};

// Begins with the state of this text, which was agreed on; NULL: none was. STATUS_DATA when it is
// no state. Call agreed_close also after a failure.
int agreed_open(struct agreed *agreed, const struct agreement *agreement, const char *text,
                struct error *err);
void agreed_close(struct agreed *agreed);

// A copy of the state, for agreed_commit; or NULL.
int agreed_draft(const struct agreed *agreed, struct cluster **next, struct error *err);
// Proposes `next`, which comes from malloc and is taken over in any case (NULL: there is none).
// STATUS_OK: it is agreed, and the state. With `status`, the result of making it, other than
// STATUS_OK nothing is proposed and `status` returned. Else as the agreement's `propose`.
int agreed_commit(struct agreed *agreed, struct cluster *next, int status, struct error *err);

#endif
