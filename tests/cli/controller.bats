#!/usr/bin/env bats
# The controller of a run of many processes, with real members: from the first weights to
# DONE, looked at and directed meanwhile, killed and started again.
load ../helper/common
load ../helper/run

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    digits_conf 1200 8
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    conf=$BATS_FILE_TMPDIR/run.conf
}

start_controller() {
    start adam-ctl controller "$conf" --out run "$@" 2>>controller.log
    controller=$pid
    wait_for adam-ctl status run
}

# Servers and $1 workers.
start_members() {
    local i
    for i in 1 2; do start adam-ps --controller @run/controller.port --name ps$i 2>ps$i.log; done
    start adam-serve "$BATS_FILE_TMPDIR/train.arec" --controller @run/controller.port \
        --cursor cursor --name serve 2>serve.log
    for ((i = 1; i <= $1; i++)); do
        start adam-worker --controller @run/controller.port --threads 1 --name w$i 2>w$i.log
        worker=$pid
    done
}

end_controller() {
    pid=$controller
    wait_end
    if [ "$status" -ne "$1" ]; then
        cat controller.log
        return 1
    fi
}

# How many members are in this state: at_least 2 worker working
at_least() {
    adam-ctl status run --json | is_true --argjson n "$1" --arg role "$2" --arg state "$3" \
        '[.members[] | select(.role == $role and .state == $state)] | length >= $n'
}

waits_for() {
    adam-ctl status run | grep -q "$1"
}

# The last line of metrics of an event, as jq shows $2 of it.
metric() {
    jq -c "select(.event == \"$1\" and .role == \"controller\") | $2" run/metrics.jsonl | tail -n 1
}

@test "a run by hand goes from the first weights to DONE, and its checkpoint is like any other" {
    start_controller
    start_members 2
    end_controller 0
    [ -e run/DONE ]
    [ ! -e run/controller.port ]
    [ "$(metric done .samples)" = 3600 ]
    [ "$(metric done .epoch)" = 3 ]
    run_ok adam-eval --model run/latest --data "$BATS_FILE_TMPDIR/test.arec" --json
    [ "$(jq .top1 <<<"$output")" = "$(metric eval .top1)" ]
    run_ok adam-ctl report run -o page.html
    run_status 73 adam-ctl controller "$conf" --out run
    [[ "$stderr" = *"holds a run that is done; --resume run goes on with it"* ]]
}

# Gives the state another stage: that of a controller that is killed there.
set_stage() {
    python - "$1" <<'END'
import re, sys, zlib
text = re.sub('"stage":"[a-z]*"', '"stage":"%s"' % sys.argv[1], open("run/controller.state").read())
body = re.sub(',"crc32":"[0-9a-f]*"}', '}', text.strip())
open("run/controller.state", "w").write('%s,"crc32":"%08x"}\n' % (body[:-1], zlib.crc32(body.encode())))
END
}

@test "a controller that was killed while the last members left comes back to the end" {
    start_controller
    start_members 1
    end_controller 0
    jq -e '.state.stage == "over"' run/controller.state
    set_stage stopping
    run_ok adam-ctl controller "$conf" --out run
    [[ "$stderr" = *"the run in run is done"* ]]
    jq -e '.state.stage == "over"' run/controller.state
    run_status 73 adam-ctl controller "$conf" --out run
}

# Every question to a run whose controller cannot answer ends with status $1, and says $2.
nobody_answers() {
    local question
    for question in status top checkpoint down prom set; do
        if [ $question = set ]; then
            run_status "$1" adam-ctl set run rate=0.1
        else
            run_status "$1" adam-ctl $question run
        fi
        [ -z "$output" ]
        [[ "$stderr" = "adam-ctl: error: "*"$2"* ]] || { echo "$stderr" && return 1; }
    done
}

@test "a run that is not there, is starting, has a dead controller or is over says so" {
    nobody_answers 66 "run: neither a run's folder nor an address"
    mkdir run
    nobody_answers 66 'run: no controller runs there: it has no controller.port'
    start_controller
    # Looked at and directed before anybody has joined.
    run_ok adam-ctl status run
    [[ "${lines[1]}" = controller*starting* ]]
    run_ok adam-ctl set run rate=0.1
    run_ok adam-ctl prom run
    run_status 69 adam-ctl checkpoint run
    [[ "$stderr" = *": not ready: starting" ]]
    kill -KILL "$controller"
    end_controller 137
    nobody_answers 69 'controller: ipc://'
    start_controller
    run_ok adam-ctl down run
    end_controller 75
    nobody_answers 66 'run: no controller runs there: it has no controller.port'
    touch run/DONE
    nobody_answers 66 'run: no controller runs there: the run is done'
}

# A member of `optimizer` in the metadata of checkpoint $1.
rule_in() {
    python - "$1/model.safetensors" "$2" <<'END'
import json, struct, sys
with open(sys.argv[1], "rb") as f:
    header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
print(format(json.loads(header["__metadata__"]["optimizer"])[sys.argv[2]], "g"))
END
}

@test "patience cannot be set in a run without a test set" {
    grep -v '^test' "$conf" >untested.conf
    sed -i "s|= \([a-z]*\.net\)|= $BATS_FILE_TMPDIR/\1|" untested.conf
    conf=untested.conf start_controller
    run_status 2 adam-ctl set run rate=0.5 patience=2
    [[ "$stderr" = *"patience needs tests: the run has no test set"* ]]
    run_ok adam-ctl set run patience=0
    run_ok adam-ctl down run
    end_controller 75
}

@test "status, set, checkpoint, prom and down: a run is looked at and directed" {
    start_controller --set epochs=100000
    run_ok adam-ctl status run
    [[ "${lines[1]}" = *"parameter servers: 0 of 2 have joined"* ]]
    run_status 69 adam-ctl checkpoint run
    start_members 2
    wait_for at_least 2 worker working
    run_ok adam-ctl set run rate=0.005 clip=3 eval-every=0.125
    run_status 2 adam-ctl set run rate=0.1 batch=4
    [[ "$stderr" = *"batch cannot change while the run goes on"* ]]
    run_status 2 adam-ctl set run rtae=1
    [[ "$stderr" = *"did you mean 'rate'"* ]]
    run_status 2 adam-ctl set run momentum=0.5
    [[ "$stderr" = *"optimizer cannot change while the run goes on: it is sgd, and would be momentum"* ]]
    jq -e '.state.settings | contains("rate=0.005\n") and contains("clip=3\n")
        and contains("eval-every=0.125\n")' run/controller.state
    run_ok adam-ctl checkpoint run
    [ -e "$output/model.safetensors" ]
    [ "$(rule_in "$output" clip)" = 3 ]
    run_ok adam-ctl prom @run/controller.port
    grep -qE '^adam_samples_total\{member="[0-9]+",role="worker",name="w1"\} [0-9]+$' <<<"$output"
    run_ok adam-ctl down run
    end_controller 75
    [ ! -e run/DONE ]
    [ "$(jq -r .state.stage run/controller.state)" = over ]
    [ "$(metric stop .reason)" = '"signal"' ]
    # The file's settings apply to a run that goes on; what differs from the checkpoint is said.
    stop_started
    start_controller --set epochs=100000
    start_members 1
    wait_for grep -q "going on from run" controller.log
    wait_for grep -q "rate is 0.02 now, was 0.005" controller.log
    grep -q "clip is 0 now, was 3" controller.log
    run ! grep -q "epochs is" controller.log
    run_ok adam-ctl down run --now
    end_controller 75
}

@test "a controller that is killed and started again goes on, and the run ends" {
    start_controller --set epochs=40
    start_members 2
    wait_for at_least 2 worker working
    kill_started "$controller"
    rm run/controller.port
    start_controller --set epochs=40
    grep -q "goes on: its controller was gone, not its members" controller.log
    end_controller 0
    [ "$(metric done .epoch)" = 40 ]
    [ "$(metric done .samples)" = 48000 ]
}

stands_still() {
    grep -q '^State:.*stopped' "/proc/$controller/status"
}

later_than() {
    [ $SECONDS -gt "$1" ]
}

@test "a controller that stood still in the middle of a step gives up nobody" {
    ${CC:-cc} -shared -fPIC -O1 -o stop.so "$ROOT/tests/helper/preload/fsync_stop.c" -ldl
    export LD_PRELOAD=$PWD/stop.so STOP_IF=$PWD/still \
        ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
    start_controller --set epochs=4000 --set copies=2 --set "silence=$SILENCE"
    unset LD_PRELOAD STOP_IF
    start_members 2
    wait_for at_least 2 worker working
    touch still
    start adam-worker --controller @run/controller.port --threads 1 --name late 2>late.log
    wait_for stands_still # it writes down that this one has joined
    wait_for later_than $((SECONDS + SILENCE))
    kill -CONT "$controller"
    wait_for at_least 3 worker working
    if grep -E 'vanished|is silent|is gone|hung up' controller.log; then return 1; fi
    grep -q 'this controller stood still for [0-9]* s' controller.log
    run_ok adam-ctl down run
    end_controller 75
}

@test "a run that lost a parameter server says which, and goes on from its checkpoint" {
    start_controller --set epochs=100000
    start_members 1
    wait_for at_least 1 worker working
    run_ok adam-ctl checkpoint run
    kill -KILL "${started[1]}"
    local begin=$SECONDS
    end_controller 69
    [ $((SECONDS - begin)) -le $((20 * ${SLOWER:-1})) ]
    grep -q "parameter server [0-9]* (ps1) at .* is gone, and with it its part of the weights" controller.log
    grep -q "goes on from run/ckpt-" controller.log
    pid=$worker
    wait_end
    [ "$status" -eq 69 ]
    grep -q "peer lost: parameter server [0-9]* (ps1)" w1.log
    rm -f controller.log cursor
    start_controller --set epochs=100000
    grep -q "going on from run" controller.log
    start_members 1
    wait_for at_least 1 worker working
    run_ok adam-ctl down run --now
    end_controller 75
}

@test "a parameter server that dies while another is waited for is replaced" {
    start_controller
    start adam-ps --controller @run/controller.port --name early 2>early.log
    wait_for grep -q 'parameter server [0-9]* (early) joined' controller.log
    kill -KILL "$pid"
    start_members 1
    end_controller 0
    grep -q 'parameter server [0-9]* (early) vanished' controller.log
    run ! grep 'part of the weights' controller.log
}

@test "when all processes died at once, the next start goes on from the checkpoint" {
    start_controller --set epochs=100000
    start_members 1
    wait_for at_least 1 worker working
    run_ok adam-ctl checkpoint run
    stop_started
    rm -f run/controller.port cursor
    start_controller --set epochs=100000
    grep -q "going on from run" controller.log
    start_members 1
    wait_for at_least 1 worker working
    run_ok adam-ctl down run --now
    end_controller 75
}

@test "a controller whose disk is full ends, and tells nobody what it could not write" {
    # Its log goes through a pipe, which has room; a write to a file fails and kills nobody.
    start bash -c 'trap "" XFSZ; exec adam-ctl controller "$0" --out run 2> >(exec cat >controller.log)' "$conf"
    controller=$pid
    wait_for adam-ctl status run
    run_ok adam-ctl set run rate=0.25
    cp run/controller.state before
    prlimit --pid "$controller" --fsize=0
    run_status 69 adam-ctl set run rate=0.5
    end_controller 74
    grep -q "error: .*controller.state.*: File too large" controller.log
    grep -q "set rate=0.25$" controller.log
    run ! grep -q "set rate=0.5" controller.log
    cmp run/controller.state before
    [ "$(ls run)" = "$(printf '%s\n' controller.state metrics.jsonl)" ]
}

@test "a start that fails leaves nothing that the next one takes for a run" {
    run_status 69 adam-ctl controller "$conf" --out run --listen ipc:///no/such/folder/socket
    start_controller --set batch=4
    jq -e '.state.settings | contains("batch=4\n")' run/controller.state
    run ! grep -q "its controller was gone" controller.log
    kill -INT "$controller"
    end_controller 75
}

@test "a controller that was killed before it saved left no run that has to be replaced" {
    mkdir -p run/ckpt-00000008
    echo '{"event":"start"}' >run/metrics.jsonl
    run_status 73 adam-ctl controller "$conf" --out run
    rmdir run/ckpt-00000008
    start_controller
    [ "$(grep -cx '{"event":"start"}' run/metrics.jsonl)" = 0 ]
    kill -INT "$controller"
    end_controller 75
}

@test "training begins when as many workers as the file wants have joined" {
    start_controller --set workers=2 --set protocol=hardsync --set epochs=1
    start_members 1
    wait_for at_least 1 worker starting
    wait_for waits_for 'workers: 1 of 2 have joined'
    start adam-worker --controller @run/controller.port --threads 1 --name w2 2>w2.log
    end_controller 0
    [ "$(jq -c 'select(.event == "start" and .role == "worker")' run/metrics.jsonl | wc -l)" = 2 ]
}

@test "hardsync goes on without a worker that vanished, or stops, and names it" {
    start_controller --set workers=2 --set protocol=hardsync --set epochs=100000
    start_members 2
    wait_for at_least 2 worker working
    kill -KILL "$worker"
    wait_for grep -q 'worker [0-9]* (w2) vanished' controller.log
    run_ok adam-ctl checkpoint run
    local before=$output
    wait_for newer_checkpoint "$before"
    run_ok adam-ctl set run on-peer-loss=stop
    start adam-worker --controller @run/controller.port --threads 1 --name w3 2>w3.log
    worker=$pid
    wait_for at_least 2 worker working
    kill -KILL "$worker"
    end_controller 69
    grep -q 'worker [0-9]* (w3) vanished' controller.log
    [ -e run/latest/model.safetensors ]
}

# Whether so many workers have left; a busy machine may have kept some silent too long.
have_left() {
    [ "$(grep -Ec 'worker .* (left|vanished): ' controller.log)" -ge "$1" ]
}

# Of those who are gone the last are remembered: who was there first is forgotten as it leaves.
@test "whoever leaves after many others have come and gone, the controller goes on" {
    start_controller --set workers=1 --set epochs=100000 --set metrics-every=0.1
    start_members 1
    local first=$worker i others=()
    wait_for grep -q '"event":"train"' run/metrics.jsonl
    for ((i = 1; i <= 33; i++)); do
        start adam-worker --controller @run/controller.port --threads 1 2>others.log
        others+=("$pid")
    done
    wait_for at_least 34 worker working
    kill -TERM "${others[@]}"
    wait_for have_left 33
    kill -TERM "$first"
    wait_for have_left 34
    run_ok adam-ctl down run
    end_controller 75
}

@test "layers that are to be factors are refused with clip, and with deltas that are no sums of products" {
    run_status 2 adam-ctl controller "$conf" --out run --set factors=d1 --set momentum=0.9
    [[ "$stderr" = *"factors=d1 and push=delta"* ]]
    run_status 2 adam-ctl controller "$conf" --out run --set factors=d1 --set push=gradient --set clip=1
    [[ "$stderr" = *"factors=d1 and clip=1"* ]]
    run_status 2 adam-ctl controller "$conf" --out run --set factors=d1 --set push=gradient --set max-staleness=4
    [[ "$stderr" = *"factors=d1 and max-staleness: the messages of a push would count as updates"* ]]
    run_status 2 adam-ctl controller "$conf" --out run --set factors=d1 --set push=gradient --set optimizer=adam
    [[ "$stderr" = *"factors=d1 and adam: "* ]]
    start_controller --set factors=d1 --set push=gradient
    run_status 2 adam-ctl set run max-staleness=4
    kill -INT "$controller"
    end_controller 75
}

@test "a bound on staleness cannot begin while layers push factors" {
    start_controller
    run_status 2 adam-ctl set run max-staleness=4
    [[ "$stderr" = *"as layers push factors"* ]]
    run_ok adam-ctl set run reference-batch=8
    kill -INT "$controller"
    end_controller 75
    rm -r run
    start_controller --set factors=none
    run_ok adam-ctl set run max-staleness=4
    kill -INT "$controller"
    end_controller 75
}

@test "a run of which all layers are frozen has nothing to learn" {
    run_status 2 adam-ctl controller "$conf" --out run --set '*.rate=0'
    [[ "$stderr" = *"digits.net are frozen: there is nothing to learn"* ]]
    [ ! -e run ]
}

@test "a mistake in the file is shown with its place; a folder has one controller" {
    printf 'model = a.net\nrte = 1\n' >bad.conf
    run_status 65 adam-ctl controller bad.conf --out run
    [ "${stderr_lines[0]}" = "bad.conf:2:1: error: unknown key 'rte'; did you mean 'rate'?" ]
    start_controller
    run_status 73 adam-ctl controller "$conf" --out run
    [[ "$stderr" = *"run/metrics.jsonl: another process is writing it"* ]]
    kill -INT "$controller"
    end_controller 75
}
