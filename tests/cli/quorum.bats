#!/usr/bin/env bats
# Three controllers of one run: any of them may die, stand still or be told to stop, and the run
# goes on with the others.
load ../helper/common
load ../helper/run

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    digits_conf 1200 8
    workers_rest 300
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    conf=$BATS_FILE_TMPDIR/run.conf
    quorum=ipc://$PWD/c1,ipc://$PWD/c2,ipc://$PWD/c3
    controllers=()
    apart=
}

# Controller $1, with more options. Its folder is `run`, as that of the others, or apart from theirs.
start_controller() {
    local id=$1 out=run
    shift
    if [ "$apart" ]; then out=run-$id; fi
    start adam-ctl controller "$conf" --out "$out" --set workers=1 --listen "ipc://$PWD/c$id" \
        --quorum "$quorum" "$@" 2>>"c$id.log"
    controllers[id]=$pid
}

start_controllers() {
    local id
    for id in 1 2 3; do start_controller "$id" "$@"; done
    wait_for adam-ctl status run
}

start_members() {
    local i
    for i in 1 2; do start adam-ps --controller @run/controller.port --name ps$i 2>ps$i.log; done
    start adam-serve "$BATS_FILE_TMPDIR/train.arec" --controller @run/controller.port \
        --cursor cursor --name serve 2>serve.log
    start adam-worker --controller @run/controller.port --threads 1 --name w 2>w.log
}

# The number of the controller that leads.
leader() {
    adam-ctl status run --json >status.json &&
        jq -er '.members[0].address | capture("c(?<n>[0-9])$").n' status.json
}

# One leads, whose number is in the file `leads`.
one_leads() {
    leader >leads
}

another_leads() {
    local now
    now=$(leader) && [ "$now" != "$1" ]
}

beyond() {
    [ "$(adam-ctl status run --json | jq --argjson epoch "$1" '.epoch > $epoch')" = true ]
}

standbys() {
    local n
    n=$(adam-ctl status run --json |
        jq '[.members[] | select(.name == "standby" and .state == "waiting")] | length')
    [ "$n" = "$1" ]
}

says() {
    grep -q "$1" "$2"
}

# All controllers have ended with this status.
end_controllers() {
    local id
    for id in 1 2 3; do
        pid=${controllers[id]}
        wait_end
        if [ "$status" -ne "$1" ]; then
            echo "controller $id: $status"
            cat c"$id".log
            return 1
        fi
    done
}

@test "a run whose leader is killed again and again trains each sample, and is done" {
    # A takeover lasts as long as some epochs, and longer where programs are slow.
    local epochs=$((${SLOWER:-1} > 1 ? 60 : 20))
    start_controllers --set epochs=$epochs
    start_members
    for round in 1 2 3; do
        wait_for beyond "$((2 * round - 1))"
        wait_for one_leads
        before=$(<leads)
        kill_started "${controllers[before]}"
        wait_for another_leads "$before"
        start_controller "$before" --set epochs=$epochs
        wait_for standbys 2
    done
    end_controllers 0
    [ -e run/DONE ]
    [ ! -e run/controller.port ]
    [ "$(jq -s 'map(select(.event == "done" and .role == "controller")) | last.samples' run/metrics.jsonl)" -eq $((1200 * epochs)) ]
}

@test "adam-ctl up starts the controllers, and starts again the one that is killed" {
    start adam-ctl up "$conf" --out run --controllers 3 --ps 2 --set epochs=400 -q 2>up.log
    up=$pid
    wait_for beyond 0
    [ "$(adam-ctl status run --json | jq '[.members[] | select(.role == "controller")] | length')" -eq 3 ]
    socket=$(adam-ctl status run --json | jq -r '.members[0].address')
    kill -KILL "$(pgrep -f -- "--listen $socket")"
    wait_for says "controller-[123] was killed by signal 9 (Killed); starts again in 0.5 s" up.log
    wait_for standbys 2
    run_ok adam-ctl down run
    pid=$up
    wait_end
    [ "$status" -eq 75 ]
    [ -e run/latest ]
}

@test "as a script for sh: the controller that is killed is itself again, and SIGTERM saves the run" {
    adam-ctl sh "$conf" --out run --controllers 3 --ps 2 --set epochs=4000 >run.sh
    start sh run.sh
    wait_for beyond 0
    kill -KILL "$(pgrep -f -- "--listen ipc://$PWD/run/controller-1.socket")"
    wait_for says "status 137; again in 1 s" run/log/controller-1.log
    wait_for standbys 2
    if grep "has no record" run/log/*.log; then return 1; fi
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -e run/latest ]
}

# What systemd would start: of unit $1 instance $2.
start_unit() {
    start sh -c "exec $(sed -n 's/^ExecStart=//p' "units/adam-run-$1@.service" | sed "s/%i/$2/g")" 2>>"unit-$1-$2.log"
}

@test "as units of systemd: the controller that is killed is itself again, and the end saves the run" {
    local id
    mkdir units run
    adam-ctl systemd "$conf" --out run --controllers 3 --ps 1 --threads 1 --set epochs=4000 --units units
    for id in serve ps worker; do start_unit $id 1; done
    for id in 1 2 3; do
        start_unit controller $id
        controllers[id]=$pid
    done
    wait_for beyond 0
    wait_for standbys 2
    kill_started "${controllers[1]}"
    start_unit controller 1
    controllers[1]=$pid
    wait_for standbys 2
    # Quotes and doubled dollars are systemd's.
    eval "$(sed -n 's/^ExecStop=//p' units/adam-run-end.service | sed 's/"/'"'"'/g; s/\$\$/$/g')" 2>end.log
    end_controllers 75
    [ -e run/latest ]
}

@test "SIGTERM to adam-ctl up saves the run, whoever leads" {
    start adam-ctl up "$conf" --out run --controllers 3 --ps 2 --set epochs=400 -q 2>up.log
    wait_for beyond 0
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -e run/latest ]
}

@test "a run that was stopped goes on from its checkpoint when its controllers are started again" {
    start_controllers --set epochs=4000
    start_members
    wait_for beyond 0
    run_ok adam-ctl down run
    end_controllers 75
    start_controllers --set epochs=4000
    start_members
    wait_for beyond 0
    grep -q "going on from run" c?.log
    run_ok adam-ctl down run
    end_controllers 75
}

# What controller $1 tells Prometheus.
page() {
    curl -sSf --max-time 10 "$(<run/controller-"$1".http)/metrics"
}
has_page() {
    page "$1" | grep -q '^adam_epoch{'
}
has_empty_page() {
    [ "$(page "$1" | wc -c)" -eq 0 ]
}

@test "a leader that stood still finds another one, and stands by" {
    start_controllers --set epochs=4000 --http 127.0.0.1:0
    start_members
    wait_for beyond 0
    wait_for one_leads
    before=$(<leads)
    kill -STOP "${controllers[before]}"
    wait_for another_leads "$before"
    kill -CONT "${controllers[before]}"
    wait_for says "controller $before leads no more" "c$before.log"
    wait_for standbys 2
    wait_for one_leads
    wait_for has_page "$(<leads)"
    for id in 1 2 3; do
        if [ "$id" != "$(<leads)" ]; then wait_for has_empty_page "$id"; fi # not of when it led
    done
    run_ok adam-ctl down run
    end_controllers 75
}

@test "without a majority the run trains on, and is directed again when there is one" {
    start_controllers --set epochs=4000
    start_members
    wait_for beyond 0
    wait_for one_leads
    last=$(<leads)
    for id in 1 2 3; do
        if [ "$id" != "$last" ]; then kill_started "${controllers[id]}"; fi
    done
    wait_for says "waiting for controllers: no majority of 3 agrees on a leader; nothing is heard of" "c$last.log"
    run_status 69 adam-ctl status run
    for id in 1 2 3; do
        if [ "$id" != "$last" ]; then start_controller "$id" --set epochs=4000; fi
    done
    wait_for standbys 2
    run_ok adam-ctl down run
    end_controllers 75
    ! grep "worker.*vanished" c?.log
}

down_or_over() {
    adam-ctl down run || ! kill -0 "${controllers[$(<leads)]}"
}

@test "adam-ctl down is answered when the others have agreed on the end, and not before" {
    start_controllers --set epochs=4000
    start_members
    wait_for beyond 0
    wait_for standbys 2
    wait_for one_leads
    local others=() id
    for id in 1 2 3; do
        if [ "$id" != "$(<leads)" ]; then others+=("${controllers[id]}"); fi
    done
    kill -STOP "${others[@]}"
    run_status 69 adam-ctl down "ipc://$PWD/c$(<leads)"
    kill -CONT "${others[@]}"
    wait_for down_or_over # it may have been agreed on all the same
    end_controllers 75
    [ -e run/latest ]
}

@test "one that is told to stop while it stands by leaves the others to go on" {
    start_controllers --set epochs=4000
    start_members
    wait_for standbys 2
    wait_for one_leads
    first=$(<leads)
    other=$((first % 3 + 1))
    kill -TERM "${controllers[other]}"
    pid=${controllers[other]}
    wait_end
    [ "$status" -eq 75 ]
    says "told to stop while it stood by; the run goes on without it" "c$other.log"
    wait_for standbys 1
    [ -s run/controller.port ]
    start_controller "$other" --set epochs=4000
    wait_for standbys 2
    run_ok adam-ctl down run
    end_controllers 75
}

@test "one that lost its record has no vote, until it is told to rejoin" {
    start_controllers --set epochs=4000
    start_members
    wait_for standbys 2
    wait_for one_leads
    first=$(<leads)
    other=$((first % 3 + 1))
    third=$((other % 3 + 1))
    kill_started "${controllers[other]}"
    rm run/controller-"$other".state
    start_controller "$other" --set epochs=4000
    wait_for says "has no record of the run that the others have, and so no vote" "c$other.log"
    [ ! -e run/controller-"$other".state ]
    kill_started "${controllers[other]}"
    start_controller "$other" --set epochs=4000 --rejoin
    wait_for test -e run/controller-"$other".state
    # It counts: with it the rest is a majority.
    kill_started "${controllers[third]}"
    wait_for one_leads
    before=$(<leads)
    kill_started "${controllers[before]}"
    start_controller "$third" --set epochs=4000
    wait_for another_leads "$before"
    start_controller "$before" --set epochs=4000
    wait_for standbys 2 # else the run may be over before it takes part, and it waits for the others
    run_ok adam-ctl down run
    end_controllers 75
}

# The metrics of controller $1's folder, or its copy of them, tell of a test of an epoch from $2 on.
tells_of() {
    jq -se --argjson epoch "$2" 'any(.[]; .event == "eval" and .epoch >= $epoch)' \
        run-"$1"/"$3" >/dev/null
}

# Whether what controller $1 has of the metrics is what $2 has.
copies() {
    cmp -n "$(wc -c <run-"$1"/controller-"$1".metrics)" run-"$1"/controller-"$1".metrics run-"$2"/metrics.jsonl
}

# Those that do not lead have copies that tell of the first epoch. Another may lead by now.
all_others_have_copies() {
    one_leads || return
    local id
    for id in 1 2 3; do
        [ "$id" = "$(<leads)" ] || tells_of "$id" 1 "controller-$id.metrics" || return
    done
}

@test "metrics outlive the machine of the controller that led" {
    apart=yes
    local id
    for id in 1 2 3; do start_controller "$id" --set epochs=4000; done
    wait_for adam-ctl status "$quorum"
    mkdir run
    cp run-1/controller.port run
    start_members
    wait_for all_others_have_copies
    before=$(<leads)
    head -c 1000 run-"$before"/metrics.jsonl >first
    kill_started "${controllers[before]}"
    rm -r run-"$before" # and the disk
    wait_for another_leads "$before"
    now=$(leader)
    cmp -n 1000 first run-"$now"/metrics.jsonl
    tells_of "$now" 1 metrics.jsonl
    epoch=$(jq -s 'map(.epoch // 0) | max + 1' run-"$now"/metrics.jsonl)
    wait_for tells_of "$now" "$epoch" metrics.jsonl
    # Who comes back without a disk gets all of it; the one that stood by, too, of the new leader.
    start_controller "$before" --set epochs=4000 --rejoin
    for id in $before $((6 - before - now)); do
        wait_for tells_of "$id" "$epoch" "controller-$id.metrics"
        # What it had of the leader before stays until all of the new one's is there.
        wait_for copies "$id" "$now"
        cmp -n 1000 first run-"$id"/controller-"$id".metrics
    done
    run_ok adam-ctl plot run-"$now" -o curves.svg
    run_ok adam-ctl down run-"$now"
    end_controllers 75
}

@test "whoever writes the record of a controller is alone" {
    start_controllers
    run_status 73 adam-ctl controller "$conf" --out run --listen "ipc://$PWD/c1" --quorum "$quorum"
    [[ "$stderr" = *"run/controller-1.state.lock: another process is this controller"* ]]
}

@test "controllers that disagree on who they are do not hear each other" {
    start_controllers
    start adam-ctl controller "$conf" --out other --listen "ipc://$PWD/c4" \
        --quorum "ipc://$PWD/c1,ipc://$PWD/c2,ipc://$PWD/c4" 2>c4.log
    wait_for says "nothing is heard of controller 1 (.*c1), controller 2 (.*c2)" c4.log
}

@test "members take a list of addresses, and a person one of them" {
    start_controllers
    start adam-ps --controller "$quorum" --name ps1 2>ps1.log
    joined() {
        adam-ctl status run --json | is_true 'any(.members[]; .name == "ps1" and .state != "gone")'
    }
    wait_for joined
    run_ok adam-ctl status "$quorum"
    # Prometheus takes no series that is told twice.
    run_ok adam-ctl prom run
    [ -z "$(sed -n 's/^\(adam_[^ ]*{.*}\) .*/\1/p' <<<"$output" | sort | uniq -d)" ]
    wait_for one_leads
    first=$(<leads)
    run_ok adam-ctl status "ipc://$PWD/c$first"
    run_status 69 adam-ctl status "ipc://$PWD/c$((first % 3 + 1))"
    [[ "$stderr" = *"not the leader: ipc://$PWD/c$first"* ]]
}

@test "lists that make no quorum are refused" {
    run_status 2 adam-ctl controller "$conf" --out run --listen ipc:///a --quorum ipc:///a,ipc:///b
    [[ "$stderr" = *"--quorum: 2 controllers; 3 survive the loss of one, 5 of two, and an even number gains nothing"* ]]
    run_status 2 adam-ctl controller "$conf" --out run --listen ipc:///a --quorum ipc:///a,ipc:///b,ipc:///a
    [[ "$stderr" = *"--quorum: ipc:///a is named twice"* ]]
    run_status 2 adam-ctl controller "$conf" --out run --listen ipc:///d --quorum ipc:///a,ipc:///b,ipc:///c
    [[ "$stderr" = *"--quorum: this controller's own address, --listen ipc:///d, is not among them"* ]]
    run_status 2 adam-ctl controller "$conf" --out run --listen tcp://127.0.0.1:0 \
        --quorum tcp://127.0.0.1:0,ipc:///b,ipc:///c
    [[ "$stderr" = *"--quorum: others cannot dial tcp://127.0.0.1:0"* ]]
    run_status 2 adam-ctl up "$conf" --controllers 2
    run_status 2 adam-ctl up "$conf" --controllers 3 --listen ipc:///a
    [[ "$stderr" = *"--controllers 3: --listen has 1 addresses; it needs one for each, with commas between"* ]]
}
