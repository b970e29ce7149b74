#include "doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "doctor/doctor_internal.h"

void doctor_bytes(char text[DOCTOR_BYTES], double bytes) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(text, DOCTOR_BYTES, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

// This machine, and each host that a process was dealt to.
static int start_probes(const struct doctor *doctor, struct probe *probes, struct error *err) {
    size_t hosts = doctor->hosts ? doctor->hosts->count : 0;
    int status = probe_start(&probes[0], doctor->launch, NULL, err);
    for (size_t i = 0; !status && i < hosts; i++)
        status = probe_start(&probes[i + 1], doctor->launch, &doctor->hosts->items[i], err);
    return status;
}

// Each is asked in every round: a probe has ended when that was seen first.
static bool probes_have_ended(struct probe *probes, size_t count) {
    bool all = true;
    for (size_t i = 0; i < count; i++)
        all &= probe_ended(&probes[i]);
    return all;
}

static void wait_for_probes(struct probe *probes, size_t count) {
    const double until = clock_seconds() + PROBE_PATIENCE, pause = 0.01;
    while (!probes_have_ended(probes, count) && clock_seconds() < until)
        usleep((useconds_t)(pause * 1e6));
}

int doctor_examine(const struct doctor *doctor, struct findings *findings, struct error *err) {
    size_t count = 1 + (doctor->hosts ? doctor->hosts->count : 0);
    struct probe *probes = mem_zeroed(count, sizeof *probes);
    struct plan plan = {0};
    int listener = -1;
    int status = probes ? plan_make(&plan, doctor->launch, doctor->hosts, err) : error_nomem(err);
    plan_free(&plan);
    if (!status)
        doctor_run(doctor, findings, &listener);
    if (!status)
        status = start_probes(doctor, probes, err);
    if (!status) {
        wait_for_probes(probes, count);
        for (size_t i = 0; i < count; i++)
            doctor_machine(doctor, &probes[i], &probes[0], findings);
    }
    for (size_t i = 0; probes && i < count; i++)
        probe_close(&probes[i]);
    if (listener >= 0)
        close(listener);
    free(probes);
    return status;
}
