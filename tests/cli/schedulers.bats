#!/usr/bin/env bats
# A run as a script for sh, as units of systemd and as a job of Slurm: each is run, or
# checked, by what it is written for.
load ../helper/common
load ../helper/parts
load ../helper/slurm

setup() {
    cd "$BATS_TEST_TMPDIR"
    pretend
}

teardown() {
    if [ -e slurm ]; then slurm_stop; fi
    stop_started
    parts_left | xargs -r kill -KILL || true
}

all_parts=(controller serve-1 ps-1 ps-2 worker-1 worker-2)

# --- sh -----------------------------------------------------------------------------------

begin_sh() {
    "$CTL" sh run.conf --ps 2 --workers 2 --threads 1 >bin/run.sh
    start sh "$PWD/bin/run.sh"
    wait_for all_here "${all_parts[@]}"
}

@test "sh: the script is sound, and the same run as adam-ctl up" {
    begin_sh
    if command -v shellcheck; then shellcheck -s sh -S error bin/run.sh; fi
    echo 3 >ends/controller
    echo 0 >ends/all
    wait_end
    [ "$status" -eq 3 ]
    none_left
    sort calls >calls.sh
    "$CTL" -n up run.conf --ps 2 --workers 2 --threads 1 | sed -n 's/ &$//p' | sort | diff - calls.sh
}

@test "sh, systemd, Slurm: servers have stores, which make way for those of a new run" {
    run_ok "$CTL" sh run.conf --ps 2 --store --flush 2s
    [[ "$output" = *"mkdir -p run/log run/store"* ]]
    grep -qF -- "--name ps-2 --store run/store/ps-2 --aside --flush 2s" <<<"$output"
    run_ok "$CTL" sh run.conf --store=/fast
    grep -qF -- "--name ps-1 --store /fast/ps-1 --flush 1s" <<<"$output"
    run_ok "$CTL" systemd run.conf --store=/fast/here --force
    grep -qF -- "--name ps-%i --store /fast/here/ps-%i --aside --flush 1s" <<<"$output"
    [ "$(grep -cx "ReadWritePaths=$PWD/run /fast/here" <<<"$output")" = 1 ]
    [ "$(grep -cx "ReadWritePaths=$PWD/run" <<<"$output")" = 3 ]
    run_ok "$CTL" systemd run.conf --store
    [ "$(grep -cx "ReadWritePaths=$PWD/run" <<<"$output")" = 4 ]
    run_ok "$CTL" sbatch run.conf --insecure --store
    grep -qF -- '--store "run/store/ps-$n" --aside --flush 1s' <<<"$output"
    run_ok "$CTL" sbatch run.conf --insecure --store --set ack=durable
    run_status 2 "$CTL" sh run.conf --flush 1s
}

@test "sh: SIGTERM stops it through the controller, and none is left" {
    begin_sh
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -e saved ]
    none_left
    [ "$(cat terms)" = controller ]
}

@test "sh: what is killed is started again" {
    begin_sh
    local name old
    for name in worker-2 serve-1 ps-1 controller; do
        old=$(cat pids/$name)
        rm pids/$name
        kill -KILL "$old"
        wait_for all_here $name
    done
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    none_left
}

# --- systemd ------------------------------------------------------------------------------

# The units of a run whose names have all that must be escaped.
write_units() {
    local folder="a %odd \$folder"
    mkdir -p "$folder/run" units
    cp run.conf "$folder/"
    (cd "$folder" && "$CTL" systemd run.conf --ps 2 --workers 2 --threads 1 --set "rate=0.5" --units ../units "$@")
}

@test "systemd: its own checker accepts the units" {
    need systemd-analyze
    local kind
    for kind in "" --user; do
        write_units $kind
        [ "$(cd units && echo *)" = "adam-run-controller.service adam-run-ps@.service adam-run-serve@.service adam-run-worker@.service adam-run.target" ]
        XDG_RUNTIME_DIR=$PWD run systemd-analyze verify $kind --man=no --recursive-errors=no units/adam-run.target \
            units/adam-run-controller.service units/adam-run-{serve,ps,worker}@1.service
        printf '%s\n' "$output"
        [ "$status" -eq 0 ]
        [ -z "$output" ]
        rm -r units
    done
}

@test "systemd: what the services may do is little" {
    need systemd-analyze
    write_units
    # Of 10; a service without any restriction has 9.6.
    run_ok systemd-analyze security --offline=true --threshold=30 units/adam-run-worker@1.service
    grep -qx 'User=.*' units/adam-run-ps@.service
    grep -qx 'After=adam-run-serve@1.service adam-run-ps@1.service adam-run-ps@2.service adam-run-worker@1.service adam-run-worker@2.service' units/adam-run-controller.service
}

@test "systemd: printed, each unit stands behind its name" {
    run_ok "$CTL" systemd run.conf
    [ "$(grep -c '^# adam-run.*\.\(service\|target\)$' <<<"$output")" = 5 ]
    [[ "$output" = *"--name worker-%i"* ]]
}

# --- Slurm --------------------------------------------------------------------------------

begin_job() {
    slurm_start
    "$CTL" sbatch run.conf --ps 2 --workers 2 --threads 2 --insecure --warning 30 >job.sh
    sbatch <job.sh
    wait_for all_here "${all_parts[@]}"
    job_is RUNNING
}

# It was queued again, and is there again, going on with what was saved.
goes_on() {
    wait_for job_is PENDING
    none_left
    [ -e saved ]
    [ "$(cat terms)" = controller ]
    rm -f ends/* pids/* terms saved
    scancel --name other 2>/dev/null || true
    wait_for all_here "${all_parts[@]}"
    grep -q 'adam-ctl controller run.conf.* --resume run$' calls
    echo 0 >ends/controller
    echo 0 >ends/all
    wait_for job_is COMPLETED
    none_left
}

@test "Slurm: a job runs to its end" {
    begin_job
    grep -q "name ps-2 --listen tcp://$(hostname):0 --insecure" calls
    grep -q 'adam-serve train.arec --controller @run/controller.port .*--range 1/1' calls
    echo 0 >ends/controller
    echo 0 >ends/all
    wait_for job_is COMPLETED
    none_left
    grep -q 'worker-2 is here' run/log/worker-2.log
}

@test "Slurm: told to stop, it saves, is queued again and goes on" {
    begin_job
    scancel --batch --signal=TERM "$(squeue -h -o %i)"
    goes_on
}

@test "Slurm: preempted by Slurm, it saves, is queued again and goes on" {
    begin_job
    sbatch -J other -p high --exclusive --wrap 'sleep 1000'
    wait_for grep -q . saved
    wait_for other_runs
    job_is PENDING
    scancel --name other
    goes_on
}
other_runs() {
    [ "$(squeue -h -n other -o %T)" = RUNNING ]
}

@test "Slurm: put back into the queue by hand, it saves and goes on" {
    begin_job
    scontrol requeue "$(squeue -h -o %i)"
    goes_on
}

@test "Slurm: cancelled, it ends for good" {
    begin_job
    scancel "$(squeue -h -o %i)"
    wait_for job_is CANCELLED
    wait_for none_left
}
