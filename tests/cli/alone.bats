#!/usr/bin/env bats
# adam-ctl looks at a run of one process, and directs it, as it does a run of many.
load ../helper/common
load ../helper/worker

setup_file() {
    workers_rest 200
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    tiny_set
}

# Starts a run without end in folder run, and waits until it can be found.
start_alone() {
    start_tiny --epochs 1000000000 --eval-every 0 --checkpoint-every 0 "$@" --out run
    wait_for test -s run/controller.port
}

# Whether a process runs no more, though it may not have been waited for.
has_ended() {
    [ ! -e "/proc/$1/stat" ] || [[ "$(<"/proc/$1/stat")" = *") Z "* ]]
}

# Ends it by adam-ctl, which waits for that.
down() {
    run_ok adam-ctl down "$@" run
    has_ended "$pid"
    [ ! -e run/controller.port ]
    run_status 66 adam-ctl status run
    wait_end
    [ "$status" -eq 75 ]
}

trained_on() {
    adam-ctl status run --json | is_true --argjson n "$1" '.members[0].clock > $n'
}

# As the last line of the metrics says.
rate_is() {
    metrics run train rate | tail -n 1 | is_true --argjson rate "$1" '. == $rate'
}

# A member of `optimizer` in the metadata of checkpoint $1.
rule_in() {
    python - "$1/model.safetensors" "$2" <<'PYTHON'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
header = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
print(json.loads(header["__metadata__"]["optimizer"])[sys.argv[2]])
PYTHON
}

# The port file of a run with a live process, which answers.
answers() {
    run_ok adam-ctl status run
    [[ "${lines[1]}" =~ ^worker.*\ (working|saving)\  ]]
    [ ${#lines[@]} -eq 2 ]
}

@test "a run of one process shows itself as its only member" {
    start_alone --threads 1 --rate 0.02
    wait_for trained_on 2
    answers
    adam-ctl status run/ --json |
        is_true '.stage == "working" and (.members | length == 1) and (.members[0] |
            .role == "worker" and .rate > 0 and .loss > 0 and .samples >= .clock and .epoch > 0)'
    run_ok adam-ctl prom run
    [[ "$output" = *'adam_samples_total{member="1",role="worker"'* ]]
    run_status 69 adam-ctl status --buckets run
    [[ "$stderr" = *"this process trains alone"* ]]
    run_status 69 adam-eval --follow run --data test.idx --labels test.lab
    [[ "$stderr" = *"a worker answers there"* ]]
    adam-ctl top --every 0.1 run >top &
    watcher=$!
    wait_for grep -q '^worker' top
    down
    wait $watcher
}

@test "what is set holds for all threads at once, and in the checkpoint that the run goes on from" {
    for where in "--home shared" "--home copies" "--sync"; do
        rm -rf run
        start_alone --threads 3 --optimizer momentum $where
        wait_for trained_on 2
        # At a rate of 0 no weight changes any more.
        run_ok adam-ctl set run rate=0 momentum=0 schedule=exp:0.5
        run_ok adam-ctl checkpoint run
        first=$output
        [ "$(readlink run/latest)" = "${first#run/}" ]
        clock=$(jq .clock "$first/manifest.json")
        wait_for trained_on $((clock + 2))
        run_ok adam-ctl checkpoint run
        [ "$output" != "$first" ]
        tensors_of "$output/model.safetensors" | grep -v momentum >now
        tensors_of "$first/model.safetensors" | grep -v momentum | diff - now
        is_true '.run.settings | .rate == 0 and .momentum == 0 and .schedule == "exp:0.5"' \
            "$output/manifest.json"
        [ "$(rule_in "$output" momentum)" = 0.0 ]
        down
        rate_is 0
    done
    start adam-worker --resume run 2>log
    wait_for grep -q '"resumed":true' run/metrics.jsonl
    wait_for test -s run/controller.port
    run_ok adam-ctl set run rate=0.25 schedule=constant metrics-every=0.1
    wait_for rate_is 0.25
    down
    grep -q 'adam-worker: set rate=0.25 schedule=constant metrics-every=0.1$' log
}

@test "intervals that are set apply at once" {
    start_alone --threads 1
    run_ok adam-ctl set run keep-last=1
    for _ in 1 2; do
        run_ok adam-ctl checkpoint run
        wait_for trained_on "$(jq .clock run/latest/manifest.json)"
    done
    run_ok adam-ctl checkpoint run
    [ "$(echo run/ckpt-*)" = "$output" ]
    run_ok adam-ctl set run checkpoint-every=0.001m
    wait_for test ! -e "$output"
    down
}

@test "what cannot be set is refused, all of it" {
    start_alone --threads 1
    refused() {
        run_status 2 adam-ctl set run rate=0.5 "$1"
        [ "$stderr" = "adam-ctl: error: $2" ]
    }
    refused '' "'' is not KEY=VALUE"
    # A refusal in more words than one holds.
    run_status 2 timeout 60 adam-ctl set run "rate=0.$(printf '0%.0s' {1..3000})1"
    [[ "$stderr" = "adam-ctl: error: rate is a number of 0 to 1e+09, not '0.000"* ]]
    refused threads=2 'threads cannot change while the run goes on'
    refused home=copies 'home cannot change while the run goes on'
    refused push-every=3 'push-every is of runs of many processes: this one trains alone'
    refused momentum=0.5 'optimizer cannot change while the run goes on: it is sgd, and would be momentum'
    refused epsilon=0.1 '--epsilon has no meaning with --optimizer sgd'
    refused patience=2 'patience needs tests: the run has no test set'
    refused clip=-1 "clip is a number of 0 to 1e+09, not '-1'"
    refused rat=1 "unknown key 'rat'; did you mean 'rate'?"
    refused nonsense "'nonsense' is not KEY=VALUE"
    down
    is_true '.run.settings.rate == null' run/latest/manifest.json
}

@test "clip cannot be set for threads that go together over large dense layers, but for partitions" {
    write_large_net
    start_large() {
        start adam-worker --model large.net --data train.idx --labels train.lab --epochs 1000000000 \
            --eval-every 0 --checkpoint-every 0 "$@" --out run --force
        wait_for test -s run/controller.port
    }
    start_large --threads 2
    wait_for grep -q 'home":"joined"' run/metrics.jsonl
    run_status 2 adam-ctl set run clip=1
    [ "$stderr" = "adam-ctl: error: clip is not for threads that go together over large dense layers, as these do \
unless --home says otherwise; stop the run, and --resume it with --clip" ]
    down
    run_ok adam-worker --resume run --clip 1 --epochs 5
    [[ "$stderr" = *"(--home shared)"* ]]
    start_large --threads 2 --home joined
    run_status 2 adam-ctl set run clip=1
    [[ "$stderr" = *"--home joined is for --optimizer sgd without --clip"* ]]
    down
    start_large --partitions 2
    run_ok adam-ctl set run clip=1
    down
    is_true '.run.settings.clip == 1' run/latest/manifest.json
}

@test "adam-ctl down saves all and waits; --now saves nothing" {
    start_alone --threads 2
    wait_for trained_on 2
    down
    is_true '.clock > 2' run/latest/manifest.json
    [ "$(metrics run stop reason)" = '"signal"' ]
    saved=$(readlink run/latest)
    # The folder is free when adam-ctl is done.
    start adam-worker --resume run
    wait_for test -s run/controller.port
    wait_for trained_on "$(jq .clock run/latest/manifest.json)"
    down --now
    [ "$(readlink run/latest)" = "$saved" ]
    grep -c '"event":"checkpoint"' run/metrics.jsonl | grep -qx 1
}

# Beside who listens there.
has_caller() {
    [ "$(grep -c "$1" /proc/net/unix)" -ge 2 ]
}

@test "who asks a process that is killed hears of it; the next one is found in its place" {
    # A mini-batch lasts for seconds, so that who asks for a checkpoint waits.
    REST=500000 start_alone --threads 1
    socket=$(<run/controller.port)
    adam-ctl checkpoint run 2>log &
    asker=$!
    wait_for has_caller "${socket#ipc://}"
    kill -KILL "$pid"
    wait_end
    [ "$status" -eq 137 ]
    status=0
    wait $asker || status=$?
    [ "$status" -eq 69 ]
    [ ! -e run/latest ]
    run_status 69 adam-ctl down run
    [[ "$stderr" = *"$socket"* ]]
    export REST=200
    start adam-worker --resume run
    wait_for adam-ctl status run
    [ "$(<run/controller.port)" != "$socket" ]
    [ ! -e "${socket#ipc://}" ]
    port=$(<run/controller.port)
    # A second one is turned away, and changes nothing.
    run_status 73 adam-worker --resume run
    [[ "$stderr" = *"another process"* ]]
    run_status 73 tiny --out run --force
    [ "$(<run/controller.port)" = "$port" ]
    down
}

@test "callers who say nothing, or nonsense, or are no people, hinder nothing" {
    start_alone --threads 1
    run_ok python "$ROOT/tests/helper/peer.py" nuisance "$(<run/controller.port)"
    [ "$(grep -c '^refused 8 0 only an administrator may' <<<"$output")" = 3 ]
    [ "$(grep -c '^refused 3 ' <<<"$output")" = 3 ]
    [ "$(grep -c '^refused 20 ' <<<"$output")" = 2 ]
    [ "$(grep -c '^refused 8 0 this process trains alone' <<<"$output")" = 1 ]
    answers
    run_ok adam-ctl set run rate=0.125
    down
    is_true '.run.settings.rate == 0.125' run/latest/manifest.json
}

@test "in step, the same bytes come out whether it was looked at and saved or not" {
    REST=0 tiny --sync --threads 3 --epochs 30 --eval-every 0 --checkpoint-every 0 --out a
    REST=1000 start_tiny --sync --threads 2 --epochs 30 --eval-every 0 --checkpoint-every 0 --out b
    wait_for test -s b/controller.port
    run_ok adam-ctl checkpoint b
    while adam-ctl status b && adam-ctl checkpoint b; do true; done
    wait_end
    [ "$status" -eq 0 ]
    [ "$(grep -c '"event":"checkpoint"' b/metrics.jsonl)" -gt 1 ]
    same_model a b
}

@test "a silent pipe does not hold up who directs the run" {
    mkfifo pipe
    exec 9<>pipe
    start bash -c 'exec adam-worker --model tiny.net --data - --labels long.lab --threads 1 --out run <pipe'
    python - <<'PYTHON' >&9
import numpy as np, sys
count = 8000 # pictures; half of them come
open("long.lab", "wb").write(np.array([0x801, count], ">u4").tobytes() + bytes(count))
sys.stdout.buffer.write(np.array([0x803, count, 8, 8], ">u4").tobytes() + bytes(count * 32))
PYTHON
    wait_for test -s run/controller.port
    run_ok adam-ctl set run rate=0.5
    run_ok adam-ctl checkpoint run
    [ "$output" = "run/$(readlink run/latest)" ]
    down
    exec 9>&-
}

@test "what goes by parts of an epoch cannot be set for a pipe of unknown length" {
    mkfifo pipe
    exec 9<>pipe
    start bash -c 'exec adam-worker --model tiny.net --data - --threads 1 --out run <pipe'
    adam-prep train.idx --labels train.lab --copies 50 -q -o - | head -c 200000 >&9
    wait_for test -s run/controller.port
    for setting in warmup=1 schedule=cosine eval-every=0.5 checkpoint-every=0.25; do
        run_status 2 adam-ctl set run rate=0.5 $setting
        [ "$stderr" = "adam-ctl: error: ${setting%=*} needs to know how many samples will come, and standard \
input does not tell it: --spool FILE counts them first" ]
    done
    run_ok adam-ctl set run rate=0.25 eval-every=2
    down
    exec 9>&-
    is_true '.run.settings | .rate == 0.25 and .warmup == 0' run/latest/manifest.json
}

@test "a run in a folder with a long path is found; one whose socket has no place goes on" {
    long=$(printf 'x%.0s' {1..200})
    mkdir "$long"
    cd "$long"
    cp ../*.idx ../*.lab ../tiny.net .
    start_alone --threads 1
    cd ..
    run_ok adam-ctl status "$BATS_TEST_TMPDIR/$long/run"
    run_ok adam-ctl down "$BATS_TEST_TMPDIR/$long/run"
    wait_end
    run_ok env -u XDG_RUNTIME_DIR TMPDIR="/tmp/$long" adam-worker --model tiny.net --data train.idx \
        --labels train.lab --epochs 1 --out run
    [[ "$stderr" = *"warning: adam-ctl cannot direct this run: "*"too long for the path of a socket"* ]]
    [ -e run/DONE ]
}

@test "who asked for a checkpoint that cannot be written hears why, and so does who ended the run" {
    for question in checkpoint down; do
        rm -rf run
        start_alone --threads 1 --set d1.units=100
        prlimit --pid "$pid" --fsize=2000:2000
        run_status 69 adam-ctl $question run
        [[ "$stderr" = "adam-ctl: error: ipc://"*": cannot save run/ckpt-"* ]]
        wait_end
        [ "$status" -eq 74 ]
        [ ! -e run/latest ]
    done
}
