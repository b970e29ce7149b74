# A Slurm of one's own: slurmctld and slurmd on this machine, below the present folder and
# on ports of their own, for this user. One node that says it has 16 processors, and two
# partitions: jobs of "high" preempt those of "low", which have GraceTime to go.
# `load ../helper/slurm`; slurm_start, and slurm_stop in teardown.
slurm_start() {
    need slurmctld slurmd sbatch squeue
    mkdir -p slurm/state slurm/spool
    local ports
    read -ra ports < <(python - <<'END'
import socket
found = [socket.socket() for _ in range(2)]
for s in found:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in found))
END
    )
    cat >slurm/slurm.conf <<END
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$PWD/slurm/state
SlurmdSpoolDir=$PWD/slurm/spool
SlurmctldPidFile=$PWD/slurm/slurmctld.pid
SlurmdPidFile=$PWD/slurm/slurmd.pid
SlurmctldLogFile=$PWD/slurm/slurmctld.log
SlurmdLogFile=$PWD/slurm/slurmd.log
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=20
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
END
    export SLURM_CONF=$PWD/slurm/slurm.conf
    start slurmctld -D >slurm/slurmctld.out 2>&1
    wait_for scontrol ping
    start slurmd -D >slurm/slurmd.out 2>&1
    wait_for slurm_idle
}

slurm_idle() {
    [ "$(sinfo -h -o %T | sort -u)" = idle ]
}

# The state of the job "run", as squeue has it.
job_state() {
    squeue -h -t all -n run -o %T
}
job_is() {
    [ "$(job_state)" = "$1" ]
}

slurm_stop() {
    local daemon
    squeue -h -o %i 2>/dev/null | xargs -r scancel --full --signal=KILL 2>/dev/null || true
    squeue -h -o %i 2>/dev/null | xargs -r scancel 2>/dev/null || true
    wait_for slurm_idle || true
    for daemon in slurmd slurmctld; do
        [ -s slurm/$daemon.pid ] && kill "$(cat slurm/$daemon.pid)" && wait_for not_there slurm/$daemon.pid
    done
    return 0
}
not_there() {
    [ ! -e "$1" ]
}
