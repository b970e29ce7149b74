// A run as a batch script of Slurm.
#include <stdlib.h>
#include <string.h>

#include "launch/schedulers.h"
#include "launch/shell.h"

// Slurm tells the batch script alone (--signal=B:TERM), or all processes of the job, when
// it wants the nodes. To be told once, the controller is deaf to signals like all others,
// and the script asks it to stop: they end by its order, after it has saved.
static void put_stop(struct grow *out, const struct launch *launch) {
    shell_ask(out, launch);
    shell_watch(out, launch, "ask");
    grow_format(out, "\nasked=\ntrap stop TERM\nstop() {\n    [ ! \"$asked\" ] || return\n"
                     "    ask &\n    asked=$!\n}\n\n");
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
static void put_functions(struct grow *out, const struct launch *launch) {
    grow_format(out, "\nfunctions=$(cat <<'END'\n");
    shell_functions(out, launch);
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

// Controllers that are several must know each other's addresses before they begin. Jobs that share
// the node are not to have the same ones.
static void put_quorum(struct grow *out, const struct launch *launch) {
    const char *scheme = launch->keys ? "tls+tcp" : "tcp";
    grow_format(out,
                "port=$((2000 + SLURM_JOB_ID %% 1000)) # and a digit: the controller's number\n"
                "quorum=");
    for (int i = 1; i <= launch->controllers; i++)
        grow_format(out, "%s%s://$host:${port}%d", i > 1 ? "," : "", scheme, i);
    grow_format(out, "\nfor n in");
    for (int i = 1; i <= launch->controllers; i++)
        grow_format(out, " %d", i);
    grow_format(out, "; do\n");
}

static void put_own_address(struct grow *out, const struct launch *launch) {
    grow_format(out, " --quorum \"$quorum\" --listen \"%s://$host:$port$n\"",
                launch->keys ? "tls+tcp" : "tcp");
}

static void put_controllers(struct grow *out, const struct launch *launch) {
    struct launch open = *launch;
    struct words command = {0};
    bool several = launch_count(launch, PROTO_ROLE_CONTROLLER) > 1;
    open.resume = false;
    launch_command(&open, PROTO_ROLE_CONTROLLER, &command);
    put_beginning(out, launch);
    grow_format(out, "controllers=\n");
    if (several)
        put_quorum(out, launch);
    grow_format(out, "deaf=1 ");
    shell_keep(out, PROTO_ROLE_CONTROLLER, &command);
    if (several)
        put_own_address(out, launch);
    grow_format(out, " \"$@\"");
    put_log(out, launch, PROTO_ROLE_CONTROLLER);
    grow_format(out, " &\ncontrollers=\"$controllers $!\"\n%s", several ? "done\n" : "");
    words_free(&command);
}

static void put_step(struct grow *out, const struct launch *launch, const struct slurm *slurm,
                     enum proto_role role) {
    struct words command = {0};
    struct grow script = {0};
    launch_command(launch, role, &command);
    shell_lost(&script, launch);
    grow_format(&script, "\ndeaf=1 n=$((SLURM_PROCID + 1)) host=%s\n", slurm->host);
    shell_keep(&script, role, &command);
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
    put_functions(&out, launch);
    grow_format(&out, "host=%s\n", slurm->host);
    put_stop(&out, launch);
    put_controllers(&out, launch);
    grow_format(&out, "others=\n");
    for (size_t i = 1; i < LAUNCH_ROLES; i++)
        put_step(&out, launch, slurm, launch_roles[i]);
    shell_await(&out, launch);
    grow_put(&out, ending, sizeof ending - 1);
    return grow_take(&out);
}
