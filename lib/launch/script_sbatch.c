// A run as a batch script of Slurm.
#include <stdlib.h>
#include <string.h>

#include "launch/schedulers.h"
#include "launch/shell.h"

// Slurm tells the batch script alone (--signal=B:TERM), or all processes of the job, when
// it wants the nodes. To be told once, the controller is deaf to signals like all others,
// and the script asks it to stop: they end by its order, after it has saved.
static void put_stop(struct grow *out, const struct launch *launch) {
    struct words down = {0};
    words_add(&down, "adam-ctl");
    words_add(&down, "down");
    words_add(&down, launch->folder);
    launch_secrets(launch, &down);
    grow_format(
        out, "asked=\ntrap stop TERM\nstop() {\n    [ ! \"$asked\" ] || return\n    asked=1\n    ");
    shell_line(out, &down);
    grow_format(out, " &\n}\n\n");
    words_free(&down);
}

// A job that Slurm itself ends or queues again is no longer RUNNING.
static const char ending[] = //
    "# 75: stopped and saved. 69: a node was lost, and what was saved last is there.\n"
    "case $result in\n"
    "75) more=1 ;;\n"
    "69) more=$((${SLURM_RESTART_COUNT:-0} < 10)) ;;\n"
    "*) more=0 ;;\n"
    "esac\n"
    "if [ \"$more\" = 1 ] && [ \"$(squeue -h -j \"$SLURM_JOB_ID\" -o %T)\" = RUNNING ]; then\n"
    "    scontrol requeue \"$SLURM_JOB_ID\"\n"
    "fi\n"
    "exit \"$result\"\n";

static void put_directives(struct grow *out, const struct launch *launch,
                           const struct slurm *slurm) {
    int tasks = launch->data_servers + launch->parameter_servers + launch->workers;
    grow_format(out, "#!/bin/sh\n#SBATCH --job-name=");
    words_quote(out, slurm->name);
    grow_format(out, "\n#SBATCH --chdir=");
    words_quote(out, slurm->folder);
    grow_format(out,
                "\n"
                "#SBATCH --output=%%x-%%j.log --open-mode=append\n"
                "#SBATCH --ntasks=%d --cpus-per-task=%d\n"
                "#SBATCH --requeue\n"
                "#SBATCH --signal=B:TERM@%d\n"
                "# A run with %d data servers, %d parameter servers and %d workers; made by "
                "adam-ctl sbatch.\n"
                "# Preempted or out of time, it saves itself and is queued again.\n"
                "set -u\n",
                tasks, launch->threads ? launch->threads : 1, slurm->warning, launch->data_servers,
                launch->parameter_servers, launch->workers);
    shell_prepare(out, launch);
}

// The functions twice: here, and as text for the shells of the steps.
static void put_functions(struct grow *out) {
    grow_format(out, "\nfunctions=$(cat <<'END'\n");
    shell_functions(out);
    grow_format(out, "END\n)\neval \"$functions\"\n\n");
}

static void put_log(struct grow *out, const struct launch *launch, enum proto_role role) {
    struct words log = {0};
    launch_log(launch, role, 0, &log);
    grow_format(out, " >>");
    shell_line(out, &log);
    grow_format(out, " 2>&1");
    words_free(&log);
}

// It goes on with what the folder holds, unless that was to be replaced and this is the
// job's first time.
static void put_beginning(struct grow *out, const struct launch *launch) {
    struct words latest = {0}, folder = {0};
    words_format(&latest, "%s/latest", launch->folder);
    words_add(&folder, launch->folder);
    if (launch->force) {
        grow_format(out, "if [ \"${SLURM_RESTART_COUNT:-0}\" = 0 ]; then\n    ");
        shell_forget(out, launch);
        grow_format(out, "fi\n");
    }
    grow_format(out, "if [ -e ");
    shell_line(out, &latest);
    grow_format(out, " ]; then\n    set -- --resume ");
    shell_line(out, &folder);
    grow_format(out, "\nelse\n    ");
    shell_forget(out, launch);
    grow_format(out, "fi\n");
    words_free(&latest);
    words_free(&folder);
}

static void put_controller(struct grow *out, const struct launch *launch) {
    struct launch open = *launch;
    struct words command = {0};
    open.resume = false;
    launch_command(&open, PROTO_ROLE_CONTROLLER, &command);
    put_beginning(out, launch);
    grow_format(out, "leads=1 deaf=1 ");
    shell_keep(out, LAUNCH_AGAIN, &command);
    grow_format(out, " \"$@\"");
    put_log(out, launch, PROTO_ROLE_CONTROLLER);
    grow_format(out, " &\ncontroller=$!\n");
    words_free(&command);
}

static void put_step(struct grow *out, const struct launch *launch, const struct slurm *slurm,
                     enum proto_role role) {
    struct words command = {0};
    struct grow script = {0};
    launch_command(launch, role, &command);
    grow_format(&script, "deaf=1 n=$((SLURM_PROCID + 1)) host=%s\n", slurm->host);
    shell_keep(&script, launch_policy(role), &command);
    put_log(&script, launch, role);
    grow_format(out,
                "srun --exact --ntasks=%d --cpus-per-task=%d --kill-on-bad-exit=0 sh -c "
                "\"$functions\"'\n'",
                launch_count(launch, role), launch->threads ? launch->threads : 1);
    char *text = grow_take(&script);
    out->failed |= !text;
    words_quote(out, text ? text : "");
    grow_format(out, " &\nothers=\"$others $!\"\n");
    free(text);
    words_free(&command);
}

char *schedulers_sbatch(const struct launch *launch, const struct slurm *slurm) {
    struct grow out = {0};
    put_directives(&out, launch, slurm);
    put_functions(&out);
    grow_format(&out, "host=%s\n", slurm->host);
    put_stop(&out, launch);
    put_controller(&out, launch);
    grow_format(&out, "others=\n");
    for (size_t i = 1; i < LAUNCH_ROLES; i++)
        put_step(&out, launch, slurm, launch_roles[i]);
    shell_await(&out);
    grow_put(&out, ending, sizeof ending - 1);
    return grow_take(&out);
}
