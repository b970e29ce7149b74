// Requests of tests, and what is answered to them.
#ifndef ADAM_TESTS_ANSWERS_H
#define ADAM_TESTS_ANSWERS_H

#include "core/error.h"
#include "net/link.h"
#include "proto/kept.h"

// Waits for the answer: the refusal's code, or none. *kept (or NULL) is the answer. err->status:
// there was none.
static inline enum proto_refusal answer_of(struct link *link, struct link_request *request,
                                           struct kept **kept, struct error *err) {
    struct kept *answer;
    *err = (struct error){0};
    if (link_call_kept(link, request, &answer, err))
        return PROTO_REFUSAL_NONE;
    enum proto_refusal code = answer->type == PROTO_TYPE_REFUSED
                                  ? (enum proto_refusal)answer->message.refused.code
                                  : PROTO_REFUSAL_NONE;
    if (kept)
        *kept = answer;
    else
        kept_drop(answer);
    return code;
}

#endif
