// adam-ctl doctor: what would end or hinder a run, before it begins.
#include "doctor/doctor.h"
#include "adam-ctl/request.h"
#include "cli/talk.h"
#include "core/error.h"

static int print_findings(const struct findings *findings, bool json, struct error *err) {
    return json ? print_json(findings_json(findings), err)
                : print_text(findings_table(findings), err);
}

// The table has said what is wrong; this is for those who read only the end.
static int verdict(const struct findings *findings, struct error *err) {
    size_t warnings = 0, problems = 0;
    for (size_t i = 0; i < findings->count; i++) {
        warnings += findings->items[i].kind == FINDING_WARNING;
        problems += findings->items[i].kind == FINDING_PROBLEM;
    }
    int status = findings_status(findings);
    if (problems)
        return error_set(err, status, "%zu problem%s would end this run", problems,
                         problems == 1 ? "" : "s");
    if (warnings)
        talk_note(PROGRAM, "%zu warning%s; the run would start", warnings,
                  warnings == 1 ? "" : "s");
    return status;
}

static int run_doctor(const struct subcommand *subcommand, char **operands, int count,
                      struct error *err) {
    const struct launch_options *options = subcommand->options;
    struct request request;
    struct findings findings = {0};
    (void)count;
    int status = request_open(&request, options, operands[0], err);
    if (!status)
        status = request_find_programs(err);
    const struct doctor doctor = {&request.launch, &request.file,
                                  options->hosts ? &request.hosts : NULL};
    if (!status)
        status = doctor_examine(&doctor, &findings, err);
    if (!status)
        status = print_findings(&findings, options->json, err);
    if (!status)
        status = verdict(&findings, err);
    findings_free(&findings);
    request_free(&request);
    return status;
}

size_t doctor_subcommands(struct subcommand *subcommands, struct launch_options *o) {
    const struct option_row rows[] = {
        UP_ROWS(o),
        NETWORK_KEYS(o),
        FLAG(0, "json", &o->json, "print an object of all checks"),
    };
    const struct command command = {.name = PROGRAM " doctor",
                                    .synopsis = "[--hosts FILE] [options] RUN.conf",
                                    .about = "look for what would end a run, before it begins",
                                    .rows = rows,
                                    .row_count = sizeof rows / sizeof *rows,
                                    .operand = "FILE"};
    subcommand_set(&subcommands[0], &command, o, run_doctor, 1, 1);
    return 1;
}
