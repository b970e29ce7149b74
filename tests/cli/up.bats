#!/usr/bin/env bats
# adam-ctl up: starts and watches the parts of a run, and leaves none.
load ../helper/common
load ../helper/parts

setup() {
    cd "$BATS_TEST_TMPDIR"
    pretend
}

teardown() {
    stop_started
    parts_left | xargs -r kill -KILL || true
}

# Starts a run of 1 data server, 2 parameter servers and 2 workers, and waits for all.
begin() {
    start "$CTL" up run.conf --ps 2 --workers 2 "$@" 2>err
    wait_for all_here controller serve-1 ps-1 ps-2 worker-1 worker-2
}

# The run comes to its end: the controller's status is $1, and the others leave in peace.
finish() {
    echo "${1:-0}" >ends/controller
    echo 0 >ends/all
    wait_end
}

@test "every part is started by a command that a person could type, and logged" {
    begin --threads 3 --set rate=0.5
    finish 0
    [ "$status" -eq 0 ]
    none_left
    diff <(sort calls) - <<'END'
adam-ctl controller run.conf --out run --set workers=2 --set rate=0.5 --set servers=2 --set data-servers=1 --port-file run/controller.port --ready-fd 3
adam-ps --controller @run/controller.port --name ps-1
adam-ps --controller @run/controller.port --name ps-2
adam-serve train.arec --controller @run/controller.port --name serve-1 --range 1/1 --cursor run/serve-1.cursor
adam-worker --controller @run/controller.port --name worker-1 --threads 3
adam-worker --controller @run/controller.port --name worker-2 --threads 3
END
    [ "$(cd run/log && echo *)" = "controller.log ps-1.log ps-2.log serve-1.log worker-1.log worker-2.log" ]
    grep -q 'ps-2 is here' run/log/ps-2.log
    # What the controller says is shown; what the others say is not.
    grep -q 'controller is here' err
    ! grep -q 'ps-2 is here' err
}

@test "-n prints the commands; pasted into a shell they are the run" {
    run_ok "$CTL" -n up run.conf --ps 2 --workers 2 --threads 1
    [ -z "$stderr" ]
    [ ! -e run ]
    printf '%s\n' "$output" >by-hand
    [ "$("$CTL" up --dry-run run.conf --ps 2 --workers 2 --threads 1)" = "$output" ]
    start sh by-hand
    wait_for all_here controller serve-1 ps-1 ps-2 worker-1 worker-2
    finish 0
    sort calls >calls.by-hand
    rm -r calls ends/* run pids/*
    begin --threads 1
    finish 0
    sed 's/ --ready-fd 3$//' calls | sort | diff - calls.by-hand
}

@test "paths that begin with a dash are no options of the parts" {
    printf 'model = small.net\ndata = -t.arec\n' >-r.conf
    run_ok "$CTL" -n up --store=-s -f -- -r.conf
    printf '%s\n' "$output" >by-hand
    start sh by-hand
    wait_for all_here controller serve-1 ps-1 worker-1
    [ -d ./-r/log ] && [ -d ./-s ]
    finish 0
    grep -qx 'adam-ctl controller \./-r\.conf --out \./-r .*' calls
    grep -q '^adam-serve \./-t\.arec ' calls
    run_ok "$CTL" sh --out=-o -- -r.conf
    [[ "$output" = *"mkdir -p ./-o/log"* ]]
}

@test "-n with stores: pasted, servers set those of another run aside, as adam-ctl up does" {
    local how
    for how in "--store" "--store -f" "--store=/fast -f"; do
        run_ok "$CTL" -n up run.conf $how
        grep -q -- '^adam-ps .* --name ps-1 --store [a-z/]*/ps-1 --aside --flush 1s &$' <<<"$output"
    done
    run_ok "$CTL" -n up run.conf --store=/fast
    run ! grep -- --aside <<<"$output"
}

@test "the status of the run is the controller's" {
    local code
    for code in 3 65 69; do
        rm -rf run pids/* ends/*
        begin
        finish $code
        [ "$status" -eq $code ]
        none_left
        grep -q "ended with status $code; see run/log/controller.log" err
    done
}

@test "a controller that does not start is all that is heard of" {
    echo 65 >ends/controller
    run_status 65 "$CTL" up run.conf --ps 2
    [[ "$stderr" = *"controller is here"*"status 65; see run/log/controller.log"* ]]
    [ "$(grep -c . calls)" = 1 ]
}

@test "SIGINT, SIGTERM and SIGHUP stop it through the controller: saved, status 75, none left" {
    local number
    for number in INT TERM HUP; do
        rm -rf run saved over terms pids/* ends/*
        begin
        kill -$number "$pid"
        wait_end
        [ "$status" -eq 75 ]
        [ -e saved ]
        none_left
        # Nobody but the controller was told by a signal, and it only once.
        [ "$(cat terms)" = controller ]
        # It is told once, by the controller.
        [ "$(grep -c stopping err)" = 1 ]
        [ "$(grep -c stopped err)" = 1 ]
        [ "$(tail -n 1 err)" = "adam-ctl: stopped; --resume goes on with run" ]
    done
}

@test "a second signal ends all at once" {
    begin
    kill -STOP "$(cat pids/controller)" # it will not save
    kill -INT "$pid"
    wait_for grep -q 'once more ends' err
    kill -INT "$pid"
    wait_end
    [ "$status" -eq 130 ]
    none_left
}

# A process that takes long to die, for its memory must be given back: started by worker-1.
gone() {
    ! kill -0 "$1" 2>/dev/null
}

@test "when adam-ctl up has ended all that its parts had started is gone, too" {
    cat >slow <<'END'
import os, time
room = bytearray(300 << 20)
with open("pids/slow.new", "w") as f:
    f.write(str(os.getpid()))
os.rename("pids/slow.new", "pids/slow")
time.sleep(1000)
END
    rm bin/adam-worker
    cat >bin/adam-worker <<'END'
#!/bin/bash
/usr/bin/python3 slow &
exec -a "$0" bin/part "$@"
END
    chmod +x bin/adam-worker
    start "$CTL" up run.conf 2>err
    wait_for test -e pids/slow
    kill -STOP "$(cat pids/controller)"
    kill -TERM "$pid"
    wait_for grep -q 'once more ends' err
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 143 ]
    gone "$(cat pids/slow)"
    [ ! -e run/controller.port ]
}

@test "kill -9 of adam-ctl up leaves no process" {
    begin
    kill -KILL "$pid"
    wait_for none_left
    [ ! -e saved ]
}

@test "a reader of the messages who goes away does not end the run" {
    mkfifo pipe
    start bash -c 'exec "$CTL" up run.conf --ps 2 --workers 2 2>pipe'
    head -c 1 pipe >first
    wait_for all_here controller serve-1 ps-1 ps-2 worker-1 worker-2
    kill -KILL "$(cat pids/worker-1)"
    rm pids/worker-1
    wait_for all_here worker-1
    finish 0
    [ "$status" -eq 0 ]
}

# Kills a part with kill -9, and waits until it is there again.
kill_again() {
    local old
    old=$(cat "pids/$1")
    rm "pids/$1"
    kill -KILL "$old"
    wait_for all_here "$1"
}

@test "members and the controller are started again, and it is said" {
    begin
    local name
    for name in worker-2 serve-1 ps-2 controller; do
        kill_again $name
        grep -q "^adam-ctl: $name was killed by signal 9 (Killed); starts again in 0.5 s" err
    done
    # What it said last is shown.
    grep -q 'worker-2| worker-2 is here' err
    # A controller finds what it wrote down, and goes on with the run.
    [ "$(grep -c "controller run.conf" calls)" = 2 ]
    # It still hears of a stop.
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -e saved ]
    none_left
}

@test "who left in peace is started again after the controller, which may have to begin anew" {
    begin
    echo 0 >ends/worker-1
    wait_for gone "$(cat pids/worker-1)"
    rm ends/worker-1 pids/worker-1
    run ! grep worker-1 err
    kill_again controller
    wait_for all_here worker-1
    finish 0
    [ "$status" -eq 0 ]
    none_left
}

@test "a stop while the controller is away waits for it" {
    begin
    local old
    old=$(cat pids/controller)
    kill -KILL "$old"
    wait_for grep -q 'controller was killed' err
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -e saved ]
    none_left
}

@test "a stop that a controller did not live to obey is told to the next one" {
    begin
    local old
    old=$(cat pids/controller)
    kill -STOP "$old" # it is told, and does nothing
    kill -TERM "$pid"
    wait_for grep -q 'once more ends' err
    kill -KILL "$old"
    wait_end
    [ "$status" -eq 75 ]
    [ -e saved ]
    none_left
}

@test "a worker that cannot work is given up, and the last one ends the run" {
    begin
    echo 65 >ends/worker-1
    wait_for grep -q 'worker-1 ended with status 65; the run goes on without it' err
    echo 66 >ends/worker-2
    wait_end
    [ "$status" -eq 66 ]
    none_left
    grep -q 'worker-2 ended with status 66; see run/log/worker-2.log' err
}

@test "what dies at once is started a bounded number of times" {
    begin
    echo 70 >ends/worker-1
    wait_for grep -q 'worker-1 ended with status 70; starts again in 4 s' err
    echo 70 >ends/serve-1
    wait_for grep -q 'worker-1 ended with status 70 after 5 restarts; the run goes on without it' err
    [ "$(grep -c 'worker-1 .*starts again' err)" = 5 ]
    [ "$(grep -c 'name worker-1' calls)" = 6 ]
    all_here worker-2
    # A run cannot do without its data server.
    wait_end
    [ "$status" -eq 69 ]
    [[ "$(tail -n 1 err)" = "adam-ctl: error: serve-1 ended with status 70 after 5 restarts; see run/log/serve-1.log; when the cause is removed, --resume goes on with run" ]]
}

@test "a parameter server that cannot work ends the run with its status" {
    begin
    echo 65 >ends/ps-2
    wait_end
    [ "$status" -eq 65 ]
    none_left
    grep -q 'ps-2 ended with status 65; see run/log/ps-2.log' err
}

@test "a run that is there is not replaced without a word" {
    mkdir run
    echo x >run/metrics.jsonl
    touch run/latest
    run_status 73 "$CTL" up run.conf
    [[ "$stderr" = *"--resume"*"--force"* ]]
    [ ! -e calls ]
    touch run/serve-1.cursor run/controller.state
    begin --force
    [ "$(cd run && echo *)" = "controller.port log" ]
    finish 0
    # What goes on keeps what is saved, but nobody is there whom a state could speak of.
    rm ends/*
    echo x >run/metrics.jsonl
    touch run/controller.state run/latest
    begin --resume
    [ "$(cd run && echo *)" = "controller.port latest log metrics.jsonl" ]
    grep -q 'controller run.conf.*--resume run --ready-fd' calls
    finish 0
    run_status 2 "$CTL" up run.conf --force --resume
}

@test "a run that ended before anything was saved begins anew by the same command" {
    mkdir run
    echo x >run/metrics.jsonl
    touch run/serve-1.cursor
    begin
    [ "$(cd run && echo *)" = "controller.port log" ]
    finish 0
    [ "$status" -eq 0 ]
}

@test "--resume of a run that ended before anything was saved begins it anew" {
    run_status 66 "$CTL" up run.conf --resume
    [[ "$stderr" = *"no run to go on with: run: No such file"* ]]
    mkdir run
    touch run/metrics.jsonl run/serve-1.cursor
    begin --resume
    [ "$(cd run && echo *)" = "controller.port log" ]
    run ! grep -- --resume calls
    finish 0
    [ "$status" -eq 0 ]
}

@test "a missing program is named" {
    rm bin/adam-ps
    ln -s /nonexistent bin/adam-ps
    PATH=$PWD/bin:/usr/bin:/bin
    # Whatever lies beside adam-ctl would be found too.
    cp "$CTL" own-ctl
    run_status 69 ./own-ctl up run.conf
    [[ "$stderr" = *"cannot start adam-ps: No such file"* ]]
    none_left
}

@test "mistakes are named before anything is started" {
    run_status 66 "$CTL" up nowhere.conf
    echo 'dta = x' >bad.conf
    run_status 65 "$CTL" up bad.conf
    [[ "$stderr" = *"bad.conf:1:"*"did you mean 'data'"* ]]
    echo 'model = x' >bad.conf
    run_status 65 "$CTL" up bad.conf
    [[ "$stderr" = *"no data = FILE"* ]]
    run_status 2 "$CTL" up run.conf --listen tcp://node7:7000
    [[ "$stderr" = *"--insecure"* ]]
    [ ! -e calls ]
}

# A pretended ssh: the other side is here, and dies with the connection. Who uses a shared
# one must find it there.
pretend_ssh() {
    cat >bin/ssh <<'END'
#!/bin/bash
echo $$ >pids/ssh-$$
while [ "$1" = -o ]; do
    case $2 in ControlPath=*) socket=${2#*=} ;; esac
    shift 2
done
case $1 in
-N)
    if [ "$2" = -f ]; then shift; fi
    echo "$2 connection" >>ssh-hosts
    if [ "$1" = -f ]; then touch "$socket"; exit; fi
    sleep 0.2
    touch "$socket"
    trap 'rm "$socket"; exit 255' TERM
    while :; do sleep 0.1; done
    ;;
-O)
    rm "$socket"
    ;;
-tt)
    case $3 in
    *adam-ctl*) [ ! "${socket-}" ] || exit 254 ;; # a controller has its own
    *) [ -e "$socket" ] || exit 254 ;;
    esac
    echo "$2 ${3##*--name }" >>ssh-hosts
    exec script -qec "$3" /dev/null
    ;;
*)
    echo "$1 $2" >>ssh-clears
    exec sh -c "$2"
    ;;
esac
END
    chmod +x bin/ssh
}

hosts_file() {
    cat >hosts <<'END'
# one for the servers
n01 roles=serve,ps address=127.0.0.1
me@n02 roles=ps,worker address=localhost slots=2 threads=2
END
}

@test "-n with hosts prints a connection a host, and what goes through it; pasted they are the run" {
    need script
    pretend_ssh
    hosts_file
    run_ok "$CTL" up -n run.conf --hosts hosts --listen tcp://127.0.0.1:7000 --ps 2
    [ "$(grep -c '^ssh .* -tt .*</dev/null &$' <<<"$output")" = 5 ]
    [ "$(grep -cE '^ssh .* -N -f (n01|me@n02)$' <<<"$output")" = 2 ]
    [ "$(grep -cE '^ssh .* -O exit (n01|me@n02)$' <<<"$output")" = 2 ]
    # A person can read them: no quotes within quotes.
    [ -z "$(grep -F "\\'" <<<"$output")" ]
    grep -qF " n01 'cd $PWD && mkdir -p run && env TERM=dumb adam-ps --controller tcp://127.0.0.1:7000 --name ps-1 --listen tcp://127.0.0.1:0; exit' </dev/null &" <<<"$output"
    start sh -c "$output"
    wait_for all_here controller serve-1 ps-1 ps-2 worker-1 worker-2
    finish 0
    [ "$(grep -c connection ssh-hosts)" = 2 ]
}

@test "with hosts a store is on the host of its server, which makes way for it" {
    need script
    pretend_ssh
    hosts_file
    local up=("$CTL" up run.conf --hosts hosts --listen tcp://127.0.0.1:7000 --ps 2)
    run_ok "${up[@]}" -n --store
    grep -qF "adam-ps --controller tcp://127.0.0.1:7000 --name ps-1 --listen tcp://127.0.0.1:0 --store run/store/ps-1 --aside --flush 1s; exit'" <<<"$output"
    grep -qF -- "--store run/store/ps-2 --aside --flush 1s; exit'" <<<"$output"
    # Here nothing is made for it.
    [[ "$output" = "mkdir -p run/log"$'\n'* ]]
    # In a folder that the user names what another run left stays, unless this one replaces it.
    run_ok "${up[@]}" -n --store=/fast --flush 2s
    grep -qF -- "--store /fast/ps-1 --flush 2s; exit'" <<<"$output"
    run_ok "${up[@]}" -n --store=/fast --force
    grep -qF -- "--store /fast/ps-1 --aside --flush 1s; exit'" <<<"$output"
    start "${up[@]}" --store 2>err
    wait_for all_here controller serve-1 ps-1 ps-2 worker-1 worker-2
    finish 0
    [ "$status" -eq 0 ]
    grep -q 'adam-ps .*--name ps-2 .*--store run/store/ps-2 --aside --flush 1s' calls
    [ ! -e run/store ]
}

# Three machines of four take controllers.
controller_hosts() {
    cat >hosts <<'END'
n01 roles=controller,serve,ps address=127.0.0.1
n02 roles=serve,ps,worker address=127.0.0.2
n03 roles=controller address=localhost
n04 roles=controller,worker slots=2 address=127.0.0.4
END
}

@test "with --controllers 3 --hosts controllers are on three hosts, and all others know them" {
    need script
    pretend_ssh
    controller_hosts
    local quorum=tcp://127.0.0.1:7000,tcp://localhost:7000,tcp://127.0.0.4:7000
    run_ok "$CTL" up -n run.conf --controllers 3 --hosts hosts --ps 2
    [ "$(grep -c '^ssh .* -tt .* adam-ctl controller .*</dev/null &$' <<<"$output")" = 3 ]
    grep -qF " -tt n03 'cd $PWD && mkdir -p run && env TERM=dumb adam-ctl controller run.conf --out run --set workers=3 --set servers=2 --set data-servers=1 --quorum $quorum --port-file run/controller.port --listen tcp://localhost:7000; exit' </dev/null &" <<<"$output"
    grep -qF " n03 'cd $PWD && mkdir -p run && rm -f run/controller-2.state' </dev/null" <<<"$output"
    grep -qxF "printf '%s\\n' ${quorum//,/ } >run/controller.port" <<<"$output"
    grep -q "adam-worker --controller $quorum --name worker-3" <<<"$output"
    # Told where, they are there; who is of no host is here.
    run_ok "$CTL" up -n run.conf --controllers 3 --hosts hosts --listen tcp://127.0.0.4:1,tcp://127.0.0.9:2,tcp://127.0.0.1:3
    [ "$(grep -c '^ssh .* -tt n0[14] .* adam-ctl controller ' <<<"$output")" = 2 ]
    [ "$(grep -c '^adam-ctl controller .* --listen tcp://127.0.0.9:2 &$' <<<"$output")" = 1 ]
    # What is to be replaced goes there, too; what is to go on stays, and they say what there is.
    run_ok "$CTL" up -n run.conf --controllers 3 --hosts hosts --force
    grep -qF " && rm -f run/controller-1.state && rm -f run/DONE run/latest run/metrics.jsonl run/serve-1.cursor && rm -rf run/ckpt-*' </dev/null" <<<"$output"
    run_ok "$CTL" up -n run.conf --controllers 3 --hosts hosts --resume
    run ! grep -q 'controller-.*\.state' <<<"$output"
    run_status 2 "$CTL" up -n run.conf --controllers 5 --hosts hosts
    [[ "$stderr" = *"--controllers 5: as many hosts must take the role controller, and 3 do; say roles=controller, or --listen" ]]
}

@test "controllers on hosts begin without an earlier run's record, and their status is the run's" {
    need script
    pretend_ssh
    controller_hosts
    mkdir run
    touch run/controller-1.state run/controller-3.state
    start "$CTL" up run.conf --controllers 3 --hosts hosts --ps 2 2>err
    wait_for all_here controller-1 controller-2 controller-3 serve-1 ps-1 ps-2 worker-1 worker-2 worker-3
    [ "$(cut -d' ' -f1 ssh-clears | tr '\n' ' ')" = "n01 n03 n04 " ]
    [ ! -e run/controller-1.state ] && [ ! -e run/controller-3.state ]
    [ "$(grep -c 'adam-ctl controller .*--listen tcp://\(127.0.0.1\|localhost\|127.0.0.4\):7000' calls)" = 3 ]
    echo 3 | tee ends/controller-{1,2,3}
    finish
    [ "$status" -eq 3 ]
    none_left
}

@test "mistakes in --hosts are named before anything is started" {
    hosts_file
    run_status 2 "$CTL" up -n run.conf --hosts hosts
    [[ "$stderr" = *"--listen tcp://HOST:PORT"* ]]
    run_status 2 "$CTL" up -n run.conf --hosts hosts --listen tcp://127.0.0.1:7000 --workers 3
    [[ "$stderr" = *"3 workers are more than the hosts have slots (2)"* ]]
    run_status 2 "$CTL" up -n run.conf --hosts hosts --listen tcp://head:7000
    [[ "$stderr" = *"--insecure"* ]]
    # Addresses that would be another machine's own.
    echo 'n03 slots=1' >>hosts
    run_status 2 "$CTL" up -n run.conf --hosts hosts --insecure --listen tcp://127.0.0.1:7000 --workers 3
    [[ "$stderr" = *"other machines cannot reach the controller by --listen tcp://127.0.0.1:7000; say the name"* ]]
    run_status 2 "$CTL" up -n run.conf --hosts hosts --insecure --listen tcp://head:7000 --workers 3
    [[ "$stderr" = *"other machines cannot reach the servers on n01 by the address '127.0.0.1'; say address=NAME"* ]]
    # Addresses that are nobody's.
    local any
    for any in 0.0.0.0 '*' '[::]'; do
        run_status 2 "$CTL" up -n run.conf --hosts hosts --insecure --listen "tcp://$any:7000"
        [[ "$stderr" = *"--listen tcp://$any:7000 cannot be found by other hosts; say the name"* ]]
    done
    for any in 0.0.0.0 '*' :: '[::]'; do
        echo "n01 address=$any" >any
        run_status 65 "$CTL" up -n run.conf --hosts any --insecure --listen tcp://head:7000
        [[ "$stderr" = *"any:1: error: needs the name or number that others reach this host by, not '$any'"* ]]
    done
    printf '%s\n' 'n01 roles=serve,ps' 'localhost roles=worker' >hosts
    run_ok "$CTL" up -n run.conf --hosts hosts --insecure --listen tcp://head:7000
    echo 'n03 slot=2' >>hosts
    run_status 65 "$CTL" up -n run.conf --hosts hosts --listen tcp://127.0.0.1:7000
    [[ "$stderr" = *"hosts:3: error: keys are slots"*"'slot'"* ]]
}

begin_on_hosts() {
    need script
    pretend_ssh
    hosts_file
    start "$CTL" up run.conf --hosts hosts --listen tcp://127.0.0.1:7000 --ps 2 2>err
    wait_for all_here controller serve-1 ps-1 ps-2 worker-1 worker-2
}

@test "with hosts all but the controller runs there, and ends with the run" {
    begin_on_hosts
    [ "$(sort ssh-hosts | cut -d' ' -f1,2 | tr '\n' ' ')" = "me@n02 connection me@n02 ps-2 me@n02 worker-1 me@n02 worker-2 n01 connection n01 ps-1 n01 serve-1 " ]
    grep -q 'adam-worker --controller tcp://127.0.0.1:7000 --name worker-2 --threads 2' calls
    grep -q 'adam-ps --controller tcp://127.0.0.1:7000 --name ps-2 --listen tcp://localhost:0' calls
    # A worker is started again on its host.
    kill_again worker-1
    grep -q '^adam-ctl: worker-1 on n02 was killed by signal 9 (Killed); starts again in 0.5 s' err
    finish 0
    [ "$status" -eq 0 ]
    none_left
    [ "$(grep -c 'worker-1 is here' run/log/worker-1.log)" = 2 ]
}

@test "what dies on a host is named with it, and is treated as what dies here" {
    begin_on_hosts
    echo 70 >ends/worker-1
    wait_for grep -q 'worker-1 on n02 ended with status 70 after 5 restarts; the run goes on without it' err
    [ "$(grep -c 'worker-1 on n02 ended with status 70; starts again' err)" = 5 ]
    grep -q '^adam-ctl: worker-1| worker-1 is here$' err
    echo 65 >ends/ps-1
    wait_end
    [ "$status" -eq 65 ]
    none_left
    grep -q '^adam-ctl: ps-1| ps-1 is here$' err
    grep -q '^adam-ctl: error: ps-1 on n01 ended with status 65; see run/log/ps-1.log$' err
}

@test "kill -9 of adam-ctl up leaves no process on the hosts either" {
    begin_on_hosts
    kill -KILL "$pid"
    wait_for none_left
}

@test "keys are made for each name, said, and never overwritten" {
    run_ok "$CTL" keys secrets node1 node2
    [ "$output" = "secrets/ca.key
secrets/ca.crt
secrets/node1.pem
secrets/node2.pem" ]
    sha256sum secrets/* >sums
    run_status 73 "$CTL" keys secrets node1
    sha256sum --quiet -c sums
    run_ok "$CTL" keys secrets node3 --days 9
    [ "$output" = secrets/node3.pem ]
    run_status 2 "$CTL" keys secrets
    run_status 2 "$CTL" keys secrets ../x
}
