#include "doctor/findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/columns.h"
#include "core/error.h"
#include "core/mem.h"

static const char *const kind_names[] = {
    [FINDING_OK] = "ok", [FINDING_WARNING] = "warning", [FINDING_PROBLEM] = "problem"};

static struct finding *add_finding(struct findings *findings) {
    struct finding *items = mem_resize(findings->items, findings->count + 1, sizeof *items);
    if (!items) {
        findings->failed = true;
        return NULL;
    }
    findings->items = items;
    items[findings->count] = (struct finding){0};
    return &items[findings->count++];
}

static void put_finding(struct findings *findings, enum finding_kind kind, int status,
                        const char *where, const char *check, const char *format, va_list args) {
    struct finding *finding = add_finding(findings);
    struct grow text = {0};
    if (!finding)
        return;
    grow_vformat(&text, format, args);
    *finding = (struct finding){kind, status, mem_string(where), check, grow_take(&text)};
    findings->failed |= !finding->where || !finding->text;
    if (finding->text)
        finding->text[strcspn(finding->text, "\n")] = 0;
}

void findings_ok(struct findings *findings, const char *where, const char *check,
                 const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_finding(findings, FINDING_OK, STATUS_OK, where, check, format, args);
    va_end(args);
}

void findings_warn(struct findings *findings, const char *where, const char *check,
                   const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_finding(findings, FINDING_WARNING, STATUS_SKIPPED, where, check, format, args);
    va_end(args);
}

void findings_problem(struct findings *findings, int status, const char *where, const char *check,
                      const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_finding(findings, FINDING_PROBLEM, status, where, check, format, args);
    va_end(args);
}

void findings_error(struct findings *findings, const char *where, const char *check,
                    const struct error *err) {
    findings_problem(findings, err->status, where, check, "%s", err->text);
}

void findings_free(struct findings *findings) {
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].where);
        free(findings->items[i].text);
    }
    free(findings->items);
    *findings = (struct findings){0};
}

int findings_status(const struct findings *findings) {
    int status = STATUS_OK;
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding->kind == FINDING_PROBLEM)
            return finding->status;
        if (finding->kind == FINDING_WARNING)
            status = STATUS_SKIPPED;
    }
    return status;
}

char *findings_table(const struct findings *findings) {
    static const struct column titles[] = {
        {"RESULT", false}, {"WHERE", false}, {"CHECK", false}, {"FOUND", false}};
    struct columns table = {.column = titles, .count = sizeof titles / sizeof *titles};
    struct grow text = {.failed = findings->failed};
    for (size_t i = 0; !findings->failed && i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        columns_cell(&table, "%s", kind_names[finding->kind]);
        columns_cell(&table, "%s", finding->where);
        columns_cell(&table, "%s", finding->check);
        columns_cell(&table, "%s", finding->text);
    }
    columns_put(&table, &text);
    return grow_take(&text);
}

json_t *findings_json(const struct findings *findings) {
    json_t *checks = findings->failed ? NULL : json_array();
    for (size_t i = 0; checks && i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        json_append(&checks,
                    json_pack("{s:s, s:o, s:s, s:o, s:i}", "result", kind_names[finding->kind],
                              "where", json_text(finding->where), "check", finding->check, "found",
                              json_text(finding->text), "status", finding->status));
    }
    return checks ? json_pack("{s:i, s:o}", "status", findings_status(findings), "checks", checks)
                  : NULL;
}
