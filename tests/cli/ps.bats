#!/usr/bin/env bats
# adam-ps: how it is started, found, stopped and killed; what it says of whom it waits for;
# and strangers at its ports.
load ../helper/common

# Starts a server whose controller is not there; $pid is its process.
start_ps() {
    start adam-ps --controller @ctl.port --port-file ps.port --pid-file ps.pid "$@" 2>log
    wait_for test -e ps.port
}

# Line $1 of the port file.
address() {
    sed -n "$1p" ps.port
}

stop_ps() {
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
}

@test "it tells where it is: three addresses, its process, and a descriptor" {
    mkfifo ready
    exec 8<>ready
    start_ps --listen tcp://127.0.0.1:0 --ready-fd 9 9>ready
    read -r -t 60 <&8
    exec 8<&-
    [ "$(wc -l <ps.port)" -eq 3 ]
    [ "$(grep -c '^tcp://127\.0\.0\.1:[1-9][0-9]*$' ps.port)" -eq 3 ]
    [ "$(sort -u ps.port | wc -l)" -eq 3 ]
    [ "$(cat ps.pid)" = "$pid" ]
    grep -q "^adam-ps: listens at $(address 1) (training), $(address 2) (replication), $(address 3) (administration)" log
    stop_ps
    [ ! -e ps.port ]
    [ ! -e ps.pid ]
}

@test "each address can be bound to an interface of its own" {
    start_ps --listen tcp://127.0.0.1:0 --replication tcp://127.0.0.2:0 --admin tcp://127.0.0.3:0
    [[ $(address 1) = tcp://127.0.0.1:* ]]
    [[ $(address 2) = tcp://127.0.0.2:* ]]
    [[ $(address 3) = tcp://127.0.0.3:* ]]
    stop_ps
}

@test "without an address it listens at sockets that only this user can reach" {
    mkdir own
    XDG_RUNTIME_DIR=$PWD/own start_ps
    [ "$(address 1)" = "ipc://$PWD/own/adam/ps-$pid" ]
    [ "$(address 2)" = "ipc://$PWD/own/adam/ps-replication-$pid" ]
    [ "$(address 3)" = "ipc://$PWD/own/adam/ps-admin-$pid" ]
    [ "$(stat -c %a own/adam)" = 700 ]
    stop_ps
    [ -z "$(ls own/adam)" ]
}

@test "what a killed one leaves is no obstacle to the next" {
    mkdir own
    XDG_RUNTIME_DIR=$PWD/own start_ps
    local first=$pid
    kill -KILL "$pid"
    wait_end
    [ -e ps.port ]
    rm ps.port
    XDG_RUNTIME_DIR=$PWD/own start_ps
    [ "$(address 1)" = "ipc://$PWD/own/adam/ps-$pid" ]
    [ ! -e "own/adam/ps-$first" ]
    stop_ps
    start_ps --listen "ipc://$PWD/sock"
    kill -KILL "$pid"
    wait_end
    rm ps.port
    start_ps --listen "ipc://$PWD/sock"
    stop_ps
}

@test "after ten seconds it says whom it waits for" {
    echo tcp://127.0.0.1:9 >ctl.port
    start_ps --listen tcp://127.0.0.1:0
    wait_for grep -qi 'waiting for controller: no answer from tcp://127.0.0.1:9 (connection refused)' log
    stop_ps
}

@test "SIGINT ends it like SIGTERM" {
    start_ps
    kill -INT "$pid"
    wait_end
    [ "$status" -eq 75 ]
}

@test "an address that another has, or that is beyond this machine, is refused and named" {
    start_ps --listen tcp://127.0.0.1:0
    run_status 69 adam-ps --controller @ctl.port --listen "$(address 1)" --port-file other.port
    [[ $stderr = *"$(address 1)"* ]]
    [ ! -e other.port ]
    run_status 2 adam-ps --controller @ctl.port --listen tcp://0.0.0.0:0
    [[ $stderr = *"'tcp://0.0.0.0:0' can be reached from other machines"*--insecure* ]]
    run_status 2 adam-ps --controller tcp://example.org:1
    [[ $stderr = *"'tcp://example.org:1' can be reached from other machines"* ]]
    run_status 2 adam-ps --controller here
    run_status 2 adam-ps
    [[ $stderr = *"--controller is missing"* ]]
    run_status 2 adam-ps --controller @x one
    stop_ps
}

@test "a failed start leaves the files of another alone" {
    start_ps --listen tcp://127.0.0.1:0
    run_status 69 adam-ps --controller @ctl.port --listen "$(address 1)" --port-file ps.port --pid-file ps.pid
    [ "$(cat ps.pid)" = "$pid" ]
    [ "$(wc -l <ps.port)" -eq 3 ]
    stop_ps
}

@test "keys that are not there or not private are refused before anything is bound" {
    run_status 66 adam-ps --controller @ctl.port --keys none/n1.pem
    [[ $stderr = *none/*ca.crt* ]]
    run_status 2 adam-ps --controller @ctl.port --keys none/
    [[ $stderr = *"not named NAME.pem"* ]]
}

@test "bytes of strangers at each port harm nobody" {
    start_ps --listen tcp://127.0.0.1:0
    local line port
    for line in 1 2 3; do
        port=$(address "$line")
        port=${port##*:}
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            head -c 5000 /dev/urandom >"/dev/tcp/127.0.0.1/$port" || true
            { printf 'adam\1\0\1\1'; head -c 5000 /dev/urandom; } >"/dev/tcp/127.0.0.1/$port" || true
        done
        exec 7<>"/dev/tcp/127.0.0.1/$port" # one that says nothing at all
    done
    kill -0 "$pid"
    stop_ps
    exec 7>&-
}

start_controller() {
    printf 'input 1x1x4\nsoftmax units=2\n' >tiny.net
    printf 'model = tiny.net\nservers = 1\n' >run.conf
    start adam-ctl controller --out run run.conf 2>>ctl.log
    controller=$pid
}

is_member() {
    adam-ctl status run | grep -E '^parameter server +1 +one +waiting'
}

@test "it joins a run, survives the controller's death in its session, and ends as ordered" {
    start_controller
    start_ps --controller @run/controller.port --name one
    wait_for is_member
    kill_started "$controller"
    wait_for grep -q 'lost the controller: ' log
    local ps=$pid
    start_controller
    wait_for grep -q 'found controller ' log
    wait_for is_member
    kill -TERM "$controller"
    pid=$ps
    wait_end
    [ "$status" -eq 0 ]
}
