// What the files that answer requests share: controller_answers.c (all, by whose they are),
// controller_members.c (of members about themselves), controller_status.c (what there is to know).
// Only the controller's thread uses it.
#ifndef ADAM_ROLE_CONTROLLER_CONTROLLER_ANSWERS_INTERNAL_H
#define ADAM_ROLE_CONTROLLER_CONTROLLER_ANSWERS_INTERNAL_H

#include "role/controller/controller_internal.h"

struct error;

// --- controller_answers.c -----------------------------------------------------------------------

// As whom the asker was welcomed.
enum proto_role answers_role(const struct queued_request *queued);
// Answers it, and returns STATUS_OK: who asks may be gone. What is too large is refused.
int answers_send(const struct queued_request *queued, uint16_t type, const void *message);
int answers_done(const struct queued_request *queued);
int answers_refuse(const struct queued_request *queued, enum proto_refusal code, const char *text);
// Whether parameter servers keep their own parts of checkpoints.
bool answers_keep_parts(const struct settings *settings);

// As controller_answer, of one kind each; the queued stays the caller's.

// --- controller_members.c -----------------------------------------------------------------------

int controller_answer_join(struct controller *c, struct queued_request *queued, struct error *err);
int controller_answer_heartbeat(struct controller *c, struct queued_request *queued,
                                struct error *err);
int controller_answer_leave(struct controller *c, struct queued_request *queued, struct error *err);

// --- controller_status.c ------------------------------------------------------------------------

int controller_answer_get_routes(struct controller *c, struct queued_request *queued,
                                 struct error *err);
int controller_answer_get_places(struct controller *c, struct queued_request *queued);
int controller_answer_get_run(struct controller *c, struct queued_request *queued,
                              struct error *err);
int controller_answer_get_status(struct controller *c, struct queued_request *queued,
                                 struct error *err);

#endif
