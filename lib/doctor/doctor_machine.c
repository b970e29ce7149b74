// A machine, by what its probe says.
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "core/error.h"
#include "doctor/doctor_internal.h"
#include "member/place.h"
#include "net/secrets.h"

static const char *probe_name(const struct probe *probe) {
    return probe->host ? probe->host->name : DOCTOR_HERE;
}

// Whether the machine can be reached, and its folder is there.
static bool check_ssh(struct probe *probe, struct findings *findings) {
    const char *name = probe_name(probe), *why = probe->said ? probe->said : "nothing is said";
    bool over = probe_ended(probe);
    if (over && WIFEXITED(probe->wait_status) && !WEXITSTATUS(probe->wait_status) &&
        probe->clock[0] > 0) {
        if (probe->host)
            findings_ok(findings, name, "ssh", "answers in %.1f s", probe->ended - probe->began);
        return true;
    }
    const char *check = probe->host ? "ssh" : "shell";
    if (over)
        findings_problem(findings, STATUS_UNAVAILABLE, name, check,
                         "no connection: %s; try ssh %s true", why, name);
    else
        findings_problem(findings, STATUS_UNAVAILABLE, name, check,
                         "no answer within %d s; try ssh %s true", PROBE_PATIENCE, name);
    return false;
}

static void check_machine_folder(const struct probe *probe, struct findings *findings) {
    if (!probe->host)
        return;
    if (probe->folder)
        findings_ok(findings, probe_name(probe), "folder", "the working folder is there");
    else
        findings_problem(findings, STATUS_NOINPUT, probe_name(probe), "folder",
                         "there is no folder of the same path as the present one: make it, or "
                         "share it");
}

// "adam-serve 0.1.0", and "" where there is none.
static void check_programs(const struct probe *probe, struct findings *findings) {
    const char *name = probe_name(probe);
    char wanted[64];
    size_t sound = 0;
    for (size_t i = 0; i < 3; i++) {
        const char *found = probe->versions[i], *program = probe_programs[i];
        snprintf(wanted, sizeof wanted, "%s %s", program, ADAM_VERSION);
        if (!*found)
            findings_problem(findings, STATUS_UNAVAILABLE, name, "programs",
                             "%s is not found: install it, or put its folder into PATH%s", program,
                             probe->host ? " for commands that come by ssh" : "");
        else if (strcmp(found, wanted) != 0)
            findings_problem(findings, STATUS_UNAVAILABLE, name, "programs",
                             "%s is another version than adam-ctl %s: install the same", found,
                             ADAM_VERSION);
        else
            sound++;
    }
    if (sound == 3)
        findings_ok(findings, name, "programs", "version %s of all", ADAM_VERSION);
}

static void check_machine_data(const struct doctor *doctor, const struct probe *probe,
                               struct findings *findings) {
    const struct launch *launch = doctor->launch;
    const char *missing = !probe->data                         ? launch->data
                          : launch->labels && !probe->labels   ? launch->labels
                          : launch->targets && !probe->targets ? launch->targets
                                                               : NULL;
    if (!probe->host || !probe->host->placed[PROTO_ROLE_DATA_SERVER])
        return;
    if (!missing)
        findings_ok(findings, probe_name(probe), "data", "%s can be read", launch->data);
    else
        findings_problem(findings, STATUS_NOINPUT, probe_name(probe), "data",
                         "cannot read %s: a data server runs there", missing);
}

// The script asked the clock there twice, between the moments that the clock here told.
static void check_clock(const struct probe *probe, struct findings *findings) {
    double least = probe->clock[1] - probe->ended, most = probe->clock[0] - probe->began;
    double apart = fmax(0, fmax(least, -most));
    if (!probe->host)
        return;
    if (apart > DOCTOR_SKEW)
        findings_warn(findings, probe_name(probe), "clock",
                      "%.0f s %s this machine's: logs and metrics will not fit, and certificates "
                      "may not count; set it by NTP",
                      apart, least > -most ? "ahead of" : "behind");
    else
        findings_ok(findings, probe_name(probe), "clock", "within %.1f s",
                    fmax(fabs(least), fabs(most)));
}

// Data servers write cursors, and all processes logs.
static void check_machine_space(const struct probe *probe, struct findings *findings) {
    const double least = 100e6;
    char text[DOCTOR_BYTES];
    if (!probe->host || !probe->folder || probe->space < 0)
        return;
    doctor_bytes(text, (double)probe->space);
    if ((double)probe->space < least)
        findings_warn(findings, probe_name(probe), "disk", "only %s free in the working folder",
                      text);
    else
        findings_ok(findings, probe_name(probe), "disk", "%s free", text);
}

// --- certificates -----------------------------------------------------------------------

static void check_certificate(const char *name, const char *path, const char *pem,
                              struct findings *findings) {
    struct secrets_dates dates;
    struct error err = {0};
    char until[SECRETS_DATE];
    const int64_t day = 24 * 60 * 60, now = time(NULL);
    if (secrets_dates(path, pem, &dates, &err) || secrets_in_time(path, &dates, now, &err)) {
        findings_error(findings, name, "keys", &err);
        return;
    }
    int64_t days = (dates.to - now + day - 1) / day; // that have begun
    secrets_date_text(until, dates.to);
    if (days < DOCTOR_DAYS)
        findings_warn(findings, name, "keys",
                      "%s expires in %lld days, on %s: make new keys with adam-ctl keys", path,
                      (long long)days, until);
    else
        findings_ok(findings, name, "keys", "%s is valid until %s", path, until);
}

static void check_keys(const struct doctor *doctor, const struct probe *probe,
                       const struct probe *here, struct findings *findings) {
    const char *keys = doctor->launch->keys, *name = probe_name(probe);
    if (!keys)
        return;
    struct secrets *secrets = NULL;
    struct error err = {0};
    if (!probe->host && place_keys(&secrets, keys, &err)) {
        findings_error(findings, name, "keys", &err);
        return;
    }
    secrets_close(secrets);
    const char *slash = strrchr(keys, '/');
    char authority[1024];
    snprintf(authority, sizeof authority, "%.*sca.crt", slash ? (int)(slash - keys) + 1 : 0, keys);
    if (!probe->keys || !probe->certificate)
        findings_problem(findings, STATUS_NOINPUT, name, "keys",
                         "cannot read %s: copy it there, with ca.crt", keys);
    else if (probe->exposed)
        findings_problem(findings, STATUS_DATA, name, "keys",
                         "%s: others may read this key; chmod 600 it", keys);
    else
        check_certificate(name, keys, probe->certificate, findings);
    if (!probe->authority)
        findings_problem(findings, STATUS_NOINPUT, name, "keys", "cannot read %s", authority);
    else if (here->authority && strcmp(probe->authority, here->authority) != 0)
        findings_problem(findings, STATUS_DATA, name, "keys",
                         "%s is of another authority than here: copy it from here", authority);
    else
        check_certificate(name, authority, probe->authority, findings);
    if (probe->certificate && probe->authority &&
        secrets_check_signer(keys, probe->certificate, authority, probe->authority, &err))
        findings_error(findings, name, "keys", &err);
}

// --- addresses --------------------------------------------------------------------------

// Others find its servers by this name.
static void check_machine_address(const struct probe *probe, struct findings *findings) {
    const struct host *host = probe->host;
    struct addrinfo *found = NULL;
    if (!host ||
        !(host->placed[PROTO_ROLE_DATA_SERVER] + host->placed[PROTO_ROLE_PARAMETER_SERVER]))
        return;
    int code = getaddrinfo(host->address, NULL, NULL, &found);
    if (code)
        findings_problem(findings, STATUS_UNAVAILABLE, host->name, "address",
                         "'%s' is not known here (%s): say address=NAME in its line", host->address,
                         gai_strerror(code));
    else
        findings_ok(findings, host->name, "address", "%s is known here", host->address);
    if (found)
        freeaddrinfo(found);
}

static void check_controller_reached(const struct doctor *doctor, const struct probe *probe,
                                     struct findings *findings) {
    if (probe->reach == PROBE_REACHES)
        findings_ok(findings, probe_name(probe), "controller", "%s is reached",
                    doctor->launch->dial);
    if (probe->reach == PROBE_FAILS)
        findings_problem(findings, STATUS_UNAVAILABLE, probe_name(probe), "controller",
                         "cannot reach %s: is that this machine's name there, and the port open "
                         "in the firewall?",
                         doctor->launch->dial);
}

// ----------------------------------------------------------------------------------------

void doctor_machine(const struct doctor *doctor, struct probe *probe, const struct probe *here,
                    struct findings *findings) {
    if (!check_ssh(probe, findings))
        return;
    check_machine_folder(probe, findings);
    check_programs(probe, findings);
    check_machine_data(doctor, probe, findings);
    check_clock(probe, findings);
    check_machine_space(probe, findings);
    check_keys(doctor, probe, here, findings);
    check_machine_address(probe, findings);
    check_controller_reached(doctor, probe, findings);
}
