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
several=(controller-1 controller-2 controller-3 "${all_parts[@]:1}")

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
    run_ok "$CTL" systemd run.conf --store=/fast/here --resume
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

@test "sh, systemd, Slurm: of a model that is cut there are as many workers, that listen" {
    run_ok "$CTL" sh run.conf --partitions 2 --workers 3
    [ "$(grep -cE 'keep 5 adam-worker .*--name worker-[1-6] --listen ' <<<"$output")" = 6 ]
    grep -qF -- '--set workers=3 --set partitions=2' <<<"$output"
    run_ok "$CTL" systemd run.conf --partitions 2 --workers 3
    grep -qE '^Wants=.*-worker@6\.service$' <<<"$output"
    grep -qE 'adam-worker .*--name worker-%i --listen$' <<<"$output"
    grep -qF -- '--set workers=3 --set partitions=2' <<<"$output"
    run_ok "$CTL" sbatch run.conf --insecure --partitions 2 --workers 3
    grep -qE '^srun .*--ntasks=6 ' <<<"$output"
    grep -qF -- '"--listen=tcp://$host:0"' <<<"$output"
    grep -qF -- '--set workers=3 --set partitions=2' <<<"$output"
}

@test "up, sh, systemd, Slurm: RUN.conf and --set say how many there are, unless an option does" {
    printf '%s\n' 'servers = 2' 'data-servers = 3' 'threads = 4' >>run.conf
    local kind
    for kind in "-n up" sh; do
        run_ok "$CTL" $kind run.conf --workers 2
        [ "$(grep -c 'adam-ps .*--name ps-' <<<"$output")" = 2 ]
        [ "$(grep -c 'adam-serve .*--range [123]/3' <<<"$output")" = 3 ]
        [ "$(grep -c 'adam-worker .*--threads 4' <<<"$output")" = 2 ]
        grep -q -- '--set servers=2 --set data-servers=3 ' <<<"$output"
        run_ok "$CTL" $kind run.conf --set servers=5 --set threads=6
        [ "$(grep -c 'adam-ps .*--name ps-' <<<"$output")" = 5 ]
        grep -q 'adam-worker .*--threads 6' <<<"$output"
        run_ok "$CTL" $kind run.conf --ps 1 --serve 1 -t 7
        [ "$(grep -c 'adam-ps .*--name ps-' <<<"$output")" = 1 ]
        grep -q -- '--set servers=1 --set data-servers=1 ' <<<"$output"
        grep -q 'adam-worker .*--threads 7' <<<"$output"
    done
    # The run waits for as many workers as the file says.
    run_ok "$CTL" -n up run.conf --set workers=3
    [ "$(grep -c 'adam-worker ' <<<"$output")" = 3 ]
    run_ok "$CTL" sh run.conf --set workers=3 --set partitions=2 --set threads=0
    [ "$(grep -c 'adam-worker ' <<<"$output")" = 6 ]
    run_ok "$CTL" -n up run.conf --set workers=3 --workers 2
    [ "$(grep -c 'adam-worker ' <<<"$output")" = 2 ]
    run_ok "$CTL" systemd run.conf
    grep -q '^Wants=.*-serve@3.service .*-ps@2.service' <<<"$output"
    grep -q 'adam-worker .*--threads 4' <<<"$output"
    run_ok "$CTL" sbatch run.conf --insecure
    grep -qx '#SBATCH --ntasks=6 --cpus-per-task=4' <<<"$output"
    run_ok "$CTL" -n up run.conf --copies 2
    run_status 2 "$CTL" -n up run.conf --partitions 2
    [[ "$stderr" = *"has a thread of its own; leave out threads" ]]
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

@test "sh: what ends with 75, as one that lost its session, is started again" {
    begin_sh
    local name old
    for name in worker-2 ps-1; do
        old=$(cat pids/$name)
        rm pids/$name
        echo 75 >ends/$name
        wait_for not_there "$old"
        rm ends/$name
        wait_for all_here $name
    done
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    none_left
}
not_there() {
    ! kill -0 "$1" 2>/dev/null
}

@test "sh: the last worker that cannot work ends the run, though others have left before" {
    begin_sh 2>err
    echo 0 >ends/worker-1
    wait_for not_here worker-1
    all_here controller serve-1 ps-1 ps-2 worker-2
    echo 65 >ends/worker-2
    wait_end
    [ "$status" -eq 65 ]
    [ -e saved ]
    grep -qx "worker ended with status 65, and the run with it; see run/log" err
    none_left
}

@test "sh: the last worker that leaves as it should ends nothing, though others could not work" {
    begin_sh 2>err
    echo 65 >ends/worker-1
    wait_for not_here worker-1
    echo 0 >ends/worker-2
    wait_for not_here worker-2
    sleep 2 # and watch has looked
    all_here controller serve-1 ps-1 ps-2
    echo 0 >ends/controller
    echo 0 >ends/all
    wait_end
    [ "$status" -eq 0 ]
    none_left
}

@test "sh: a server that cannot work ends the run, and so does the last worker" {
    local lost
    for lost in serve-1 ps-2; do
        rm -rf run calls ends/* pids/* terms saved over
        begin_sh 2>err
        echo 66 >ends/$lost
        wait_end
        [ "$status" -eq 66 ]
        [ -e saved ]
        [ "$(cat terms)" = controller ]
        grep -qx "${lost%-*} ended with status 66, and the run with it; see run/log" err
        none_left
    done
    rm -rf run calls ends/* pids/* terms saved over
    begin_sh 2>err
    echo 65 >ends/worker-1
    sleep 2
    all_here controller serve-1 ps-1 ps-2 worker-2
    echo 2 >ends/worker-2
    wait_end
    [ "$status" -eq 2 ]
    grep -qx "worker ended with status 2, and the run with it; see run/log" err
    none_left
}

@test "sh: several controllers are told, too, when a server cannot work" {
    begin_several_sh 2>err
    echo 65 >ends/ps-1
    wait_end
    [ "$status" -eq 65 ]
    grep -q ^controller- terms # more than one, if it takes long: it is told each second
    none_left
}

begin_several_sh() {
    "$CTL" sh run.conf --ps 2 --workers 2 --threads 1 --controllers 3 >bin/run.sh
    start sh "$PWD/bin/run.sh"
    wait_for all_here "${several[@]}"
}

@test "sh: several controllers are those of adam-ctl up, and one that is killed is itself again" {
    begin_several_sh
    if command -v shellcheck; then shellcheck -s sh -S error bin/run.sh; fi
    sort calls >calls.sh
    "$CTL" -n up run.conf --ps 2 --workers 2 --threads 1 --controllers 3 | sed -n 's/ &$//p' | sort | diff - calls.sh
    local old
    old=$(cat pids/controller-2)
    rm pids/controller-2
    kill -KILL "$old"
    wait_for all_here "${several[@]}"
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -e saved ]
    none_left
    [ "$(grep -c controller terms)" = 1 ] # whoever leads is told by command, none by a signal
}

@test "sh: the run has ended when most controllers have, and the last one is told" {
    begin_several_sh
    echo 3 >ends/controller-1
    wait_for not_here controller-1
    all_here "${several[@]:1}"
    echo 3 >ends/controller-3
    echo 0 >ends/serve-1
    wait_end
    [ "$status" -eq 3 ]
    none_left
    grep -qx controller-2 terms
}
not_here() {
    ! kill -0 "$(cat "pids/$1")" 2>/dev/null
}

@test "sh: a second signal ends several controllers and all others at once" {
    begin_several_sh
    rm bin/adam-ctl
    printf '#!/bin/sh\ntouch asked\n' >bin/adam-ctl # and nobody hears it
    chmod +x bin/adam-ctl
    kill -TERM "$pid"
    wait_for test -e asked
    kill -TERM "$pid"
    wait_end
    none_left
}

@test "sh, systemd, Slurm: 2 or 4 controllers are refused" {
    local kind
    for kind in sh systemd "sbatch --insecure"; do
        run_status 2 "$CTL" $kind run.conf --controllers 4
        [[ "$stderr" = *"--controllers 4: 3 survive the loss of one, 5 of two, and an even number gains nothing"* ]]
    done
}

@test "several controllers with a comma in their folder are told of the comma" {
    run_status 2 "$CTL" sh run.conf --controllers 3 --out a,b
    [[ "$stderr" = *"a comma in $PWD/a,b: "* ]]
    run_ok "$CTL" sh run.conf --out a,b
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

@test "systemd: a member that ends with 75, as one that lost its session, is started again" {
    write_units
    local role
    for role in serve@ ps@ worker@; do grep -qx RestartForceExitStatus=75 "units/adam-run-$role.service"; done
    if grep RestartForceExitStatus units/adam-run-controller.service; then return 1; fi
}

@test "systemd: several controllers are instances of one unit, and end by order before they are stopped" {
    need systemd-analyze
    local instances="adam-run-controller@1.service adam-run-controller@2.service adam-run-controller@3.service"
    write_units --controllers 3
    [ "$(cd units && echo *controller* *end*)" = "adam-run-controller@.service adam-run-end.service" ]
    XDG_RUNTIME_DIR=$PWD run systemd-analyze verify --man=no --recursive-errors=no units/adam-run.target \
        units/adam-run-{controller,serve,ps,worker}@1.service units/adam-run-end.service
    printf '%s\n' "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    grep -q "^Wants=$instances " units/adam-run.target
    grep -qx "Wants=adam-run-end.service" units/adam-run.target
    grep -q "^After=$instances adam-run-serve@1" units/adam-run-end.service
    grep -q "^ExecStart=.* --listen \"\?ipc://.*/run/controller-%i.socket\"\?$" units/adam-run-controller@.service
    run_ok systemd-analyze security --offline=true --threshold=30 units/adam-run-end.service
}

@test "systemd: names and folders with blanks and the like are escaped as systemd-escape does" {
    need systemd-analyze
    local name='a b%t@c\' unit kind unit_name='adam-a\x20b\x25t\x40c\x5c'
    local here="$PWD/in %h \\ "
    mkdir "$here"
    cp run.conf "$here/$name.conf"
    (cd "$here" && "$CTL" systemd "$name.conf" --controllers 3 --units ..)
    ls "$unit_name".target "$unit_name"-{ps,serve,worker,controller}@.service "$unit_name-end.service"
    grep -qF "Wants=$unit_name-controller@1.service " "$unit_name.target"
    grep -qxF "Wants=$unit_name-end.service" "$unit_name.target"
    grep -qxF "Description=The run in a b%%t@c\\/" "$unit_name.target"
    for unit in "$unit_name"-*.service; do
        grep -qxF "PartOf=$unit_name.target" "$unit"
        grep -qxF 'RuntimeDirectory=adam-a_x20b_x25t_x40c_x5c' "$unit"
        grep -qxF 'Environment=XDG_RUNTIME_DIR=%t/adam-a_x20b_x25t_x40c_x5c' "$unit"
        grep -qxF "WorkingDirectory=${here//%/%%}/" "$unit"
    done
    XDG_RUNTIME_DIR=$PWD run systemd-analyze verify --man=no --recursive-errors=no "$unit_name.target" \
        "$unit_name"-{controller,serve,ps,worker}@1.service "$unit_name-end.service"
    printf '%s\n' "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

# The folder below %t in the units of a run of that name.
runtime_of() {
    cp run.conf "$1.conf"
    "$CTL" systemd "$1.conf" | sed -n 's/^RuntimeDirectory=//p' | sort -u
}

@test "systemd: a long name of a run leaves room for the paths of sockets" {
    local long one other
    long=$(printf 'a-run-%.0s' {1..20})
    one=$(runtime_of "$long"1) other=$(runtime_of "$long"2)
    [[ "$one" = adam-a-run-* ]]
    [ "$one" != "$other" ]
    # Of 107 bytes /run/user/UID/ takes 21, and what the programs put behind it up to 50.
    [ "${#one}" -le 50 ]
}

@test "systemd: a name of which no unit can be is refused, and no unit is written" {
    local long blanks
    long=$(printf 'x%.0s' {1..231})
    mkdir units
    # adam-NAME-controller.service has 255 bytes, and then 256.
    run_ok "$CTL" systemd run.conf --out "$long" --units units
    [ -e "units/adam-$long-controller.service" ]
    rm units/*
    run_status 2 "$CTL" systemd run.conf --out "${long}x" --units units
    [[ "$stderr" = *"adam-ctl: error: adam-xxx"*": longer than the 255 bytes of a unit's name; choose a shorter name with --out"* ]]
    blanks=$(printf ' %.0s' {1..60})
    run_status 2 "$CTL" systemd run.conf --out "x${blanks}x" --units units
    [ -z "$(ls units)" ]
}

@test "sh, systemd, Slurm: a folder that would be more than one line is refused" {
    local kind
    mkdir $'x\nExecStartPre=no'
    cp run.conf x*
    cd x*
    for kind in sh systemd "sbatch --insecure" "-n up"; do
        run_status 2 "$CTL" $kind run.conf
        [[ "$stderr" = *"a control character in "* ]]
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

@test "systemd: units, which start again and again, cannot replace a run" {
    run_status 2 "$CTL" systemd run.conf --force
    [[ "$stderr" = *"unknown option '--force'"* ]]
}

@test "systemd: printed, each unit stands behind its name" {
    run_ok "$CTL" systemd run.conf
    [ "$(grep -c '^# adam-run.*\.\(service\|target\)$' <<<"$output")" = 5 ]
    [[ "$output" = *"--name worker-%i"* ]]
}

# --- Slurm --------------------------------------------------------------------------------

# With more options.
begin_job() {
    slurm_start
    "$CTL" sbatch run.conf --ps 2 --workers 2 --threads 2 --insecure --warning 30 "$@" >job.sh
    sbatch <job.sh
    wait_for all_here "${all_parts[@]}"
    job_is RUNNING
}

# It was queued again, and is there again, going on with what was saved.
goes_on() {
    wait_for job_is PENDING
    none_left
    [ -e saved ]
    [[ "$(cat terms)" = controller* ]]
    rm -f ends/* pids/* terms saved over downs
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

@test "Slurm: several controllers have addresses of the job, and one that is killed is itself again" {
    all_parts=("${several[@]}")
    begin_job --controllers 3
    local old list port
    port=$((2000 + $(squeue -h -o %i) % 1000))
    list=tcp://$(hostname):${port}1,tcp://$(hostname):${port}2,tcp://$(hostname):${port}3
    grep -q "adam-ctl controller run.conf .* --quorum $list --listen tcp://$(hostname):${port}2$" calls
    old=$(cat pids/controller-2)
    rm pids/controller-2
    kill -KILL "$old"
    wait_for all_here "${several[@]}"
    touch run/controller-2.state # what the next start of the job must not find
    scancel --batch --signal=TERM "$(squeue -h -o %i)"
    goes_on
    [ ! -e run/controller-2.state ]
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

@test "Slurm: a job with a server that cannot work ends, and is not queued again" {
    begin_job
    echo 66 >ends/serve-1
    wait_for job_is FAILED
    none_left
    [ -e saved ]
    grep -qx "serve ended with status 66, and the run with it; see run/log" *.log
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
