// What an examination found, check by check.
//
// Threads: findings belong to one thread.
#ifndef ADAM_DOCTOR_FINDINGS_H
#define ADAM_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/json.h"

struct error;

enum finding_kind {
    FINDING_OK,
    FINDING_WARNING, // the run would go, but not for long or not as it should
    FINDING_PROBLEM, // the run would end with `status`
};

struct finding {
    enum finding_kind kind;
    int status;        // of a problem
    char *where;       // machine
    const char *check; // static text
    char *text;        // what was found, and of a problem what to do
};

struct findings { // {0}: none yet
    struct finding *items;
    size_t count;
    bool failed; // memory ran out
};

// A line of text each; the functions copy it. The error's first line is enough of a problem.
void findings_ok(struct findings *findings, const char *where, const char *check,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
void findings_warn(struct findings *findings, const char *where, const char *check,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
void findings_problem(struct findings *findings, int status, const char *where, const char *check,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));
void findings_error(struct findings *findings, const char *where, const char *check,
                    const struct error *err);
void findings_free(struct findings *findings);

// Status of the first problem; STATUS_SKIPPED where there are only warnings, else STATUS_OK.
int findings_status(const struct findings *findings);
// A table, to be freed with free(), and an object; NULL when memory ran out.
char *findings_table(const struct findings *findings);
json_t *findings_json(const struct findings *findings);

#endif
