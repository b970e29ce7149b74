#!/usr/bin/env bats
# adam-worker: stopping, going on, and all that can go wrong on the way.
load ../helper/common
load ../helper/worker

setup_file() {
    workers_rest 200
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    tiny_set
}

# Sends TERM to the run that $pid is, which must save all and say so.
stop_now() {
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
}

# Starts, stops and resumes the run in folder b until it is done: three times, and until it was
# stopped within an epoch. It has epochs for that. The run in a is the same without a stop.
stop_and_go() {
    local round torn=0
    REST=0 tiny "$@" --eval-every 0 --checkpoint-every 0 --out a
    start_tiny "$@" --eval-every 0 --checkpoint-every 0 --out b
    for ((round = 1; round <= 3 || !torn; round++)); do
        stop_now
        if jq -e '.epoch != (.epoch | floor)' b/latest/manifest.json; then torn=1; fi
        start adam-worker --resume b
        wait_for resumed_times b "$round"
    done
    wait_end
    [ "$status" -eq 0 ]
    [ -e b/DONE ]
    same_model a b
}

resumed_times() {
    [ "$(grep -c '"resumed":true' "$1/metrics.jsonl")" = "$2" ]
}

@test "one thread: stopped in mid-epoch and resumed, the same bytes come out" {
    stop_and_go --threads 1 --epochs 1000 --batch 3 --momentum 0.9 --ops 'noise 3; hflip p=0.3' \
        --schedule cosine --warmup 2
}

@test "adagrad too, in step with three threads" {
    stop_and_go --sync --threads 3 --epochs 1000 --batch 3 --optimizer adagrad
}

@test "adam, with both of its means, and one that begins in a run of another rule" {
    stop_and_go --threads 1 --epochs 1000 --batch 3 --optimizer adam
    tiny --threads 1 --epochs 1 --out c
    adam-worker --resume c --optimizer adamw --epochs 3
    since=$(jq '.run.settings."state-since"' c/latest/manifest.json)
    [ "$since" = "$(jq .clock c/ckpt-*/manifest.json | sort -n | head -n 1)" ]
    adam-worker --resume c --epochs 4
    [ "$(jq '.run.settings."state-since"' c/latest/manifest.json)" = "$since" ]
}

@test "a run of some epochs, resumed for more, is the run of all" {
    tiny --threads 1 --epochs 4 --out a
    tiny --threads 1 --epochs 2 --out b
    run_ok adam-worker --resume b --epochs 4
    [[ "$stderr" = *"--epochs is 4 now, was 2"* ]]
    same_model a b
    [ "$(metrics b start 'epoch | floor' | xargs)" = "0 2" ]
    # With nothing to do its end stays as it is.
    cp b/metrics.jsonl before
    run_ok adam-worker --resume b
    [[ "$stderr" = *"nothing to do"* ]]
    cmp before b/metrics.jsonl
}

# A test set, many.idx, whose test lasts for long enough to be stopped.
many_tests() {
    python - <<'END'
import numpy as np
rng, count = np.random.default_rng(6), 10000
labels = rng.integers(0, 3, count, np.uint8)
open("many.lab", "wb").write(np.array([0x801, count], ">u4").tobytes() + labels.tobytes())
open("many.idx", "wb").write(np.array([0x803, count, 8, 8], ">u4").tobytes() + rng.bytes(count * 64))
END
}

# Starts the run $1 with more options, and stops it in the test behind epoch $2.
stop_in_test() {
    local run=$1 epoch=$2
    shift 2
    start_tiny --test many.idx --test-labels many.lab --threads 1 "$@" --out "$run"
    wait_for trained_for "$run" "$epoch"
    stop_now
    [ "$(metrics "$run" eval epoch | wc -l)" = $((epoch - 1)) ]
    jq -e ".epoch == $epoch and .run.owed" "$run/latest/manifest.json"
}

trained_for() {
    [ "$(metrics "$1" train 'epoch | floor' | tail -n 1)" = "$2" ]
}

# Whether the runs $1 and $2 ended alike.
same_end() {
    cmp "$1/DONE" "$2/DONE"
    same_model "$1" "$2"
    [ "$(jq .run "$1/latest/manifest.json")" = "$(jq .run "$2/latest/manifest.json")" ]
    [ "$(readlink "$1/best")" = "$(readlink "$2/best")" ]
}

@test "a test in which a run is stopped is done first when it goes on, the last one too" {
    local tests=(--test many.idx --test-labels many.lab --threads 1)
    many_tests
    REST=0 tiny "${tests[@]}" --epochs 2 --out a
    stop_in_test b 2 --epochs 2
    [ ! -e b/DONE ]
    REST=0 run_ok adam-worker --resume b
    [[ "$stderr" != *"nothing to do"* ]]
    same_end a b
    [ "$(metrics a eval loss)" = "$(metrics b eval loss)" ]
    # It counts for the patience of the run.
    REST=0 tiny "${tests[@]}" --epochs 9 --patience 1 --rate 0 --out c
    stop_in_test d 1 --epochs 9 --patience 1 --rate 0
    REST=0 adam-worker --resume d
    same_end c d
    # Stopped in the test again, it is still to be done.
    stop_in_test e 1 --epochs 2
    start adam-worker --resume e
    wait_for resumed_times e 1
    stop_now
    REST=0 adam-worker --resume e
    same_end a e
}

@test "a run that was killed between its last checkpoint and its end is ended when it goes on" {
    local REST=0 tests=(--test test.idx --test-labels test.lab --threads 1 --rate 0 --patience 3)
    tiny "${tests[@]}" --epochs 2 --out a
    ended_twice a
    # So is one that ended before its last epoch; no test counts twice.
    tiny "${tests[@]}" --epochs 9 --out b
    [ "$(metrics b done epoch | cut -c 1)" = 4 ]
    ended_twice b
    tiny --epochs 1 --out c
    ended_twice c
}

# Whether the finished run $1 ends as it did once it has lost its end.
ended_twice() {
    cp -a "$1" "$1.2"
    rm "$1.2/DONE"
    adam-worker --resume "$1.2"
    [ "$(metrics "$1.2" 'done' epoch | wc -l)" = 2 ]
    cmp "$1/DONE" "$1.2/DONE"
    same_model "$1" "$1.2"
    [ "$(jq .run "$1/latest/manifest.json")" = "$(jq .run "$1.2/latest/manifest.json")" ]
}

@test "what is given with --resume wins, and is said" {
    tiny --epochs 1 --rate 0.05 --out run
    run_ok adam-worker --resume run --epochs 2 --rate 0.02 --optimizer momentum
    [[ "$stderr" = *"--rate is 0.02 now, was 0.05"* ]]
    [[ "$stderr" = *"--optimizer is momentum now, was not given"* ]]
    [[ "$stderr" != *"of the model"* ]]
    [ "$(metrics run train rate | tail -n 1)" = 0.02 ]
    [ "$(metrics run start resumed | tr '\n' ' ')" = "false true " ]
    run_status 2 adam-worker --resume run --model tiny.net
    run_ok adam-worker --resume run --epochs 3 --set c1.act=tanh --set d1.units=16 --freeze d1
    [ "$(grep -c "of the model is" <<<"$stderr")" = 2 ]
    [[ "$stderr" = *"line 2 of the model is "*"act=tanh' now, was "*"act=relu'"* ]]
    [[ "$stderr" = *"line 4 of the model is "*"rate=0' now, was "* ]]
}

@test "a run goes on with an optimizer that lacks what the one of before was given" {
    tiny --epochs 1 --optimizer adam --momentum 0.8 --beta2 0.99 --epsilon 0.001 --out run
    run_ok adam-worker --resume run --epochs 2 --optimizer momentum
    [[ "$stderr" = *"--epsilon is 1e-08 now, was 0.001"* ]]
    [[ "$stderr" = *"--beta2 is not given now, was 0.99"* ]]
    [[ "$stderr" != *"--momentum is"* ]]
    run_ok adam-worker --resume run --epochs 3 --optimizer rmsprop
    [[ "$stderr" = *"--momentum is not given now, was 0.8"* ]]
    run_ok adam-worker --resume run --epochs 4 --optimizer sgd
    jq -e '.run.settings | has("momentum") or has("beta2") | not' run/latest/manifest.json
    # What is given now is meant.
    run_status 2 adam-worker --resume run --epochs 5 --momentum 0.9
    [[ "$stderr" = *"--momentum has no meaning with --optimizer sgd"* ]]
    # Where the momentum said which rule it was.
    tiny --epochs 1 --momentum 0.9 --out other
    run_ok adam-worker --resume other --epochs 2 --optimizer sgd
    [[ "$stderr" = *"--momentum is not given now, was 0.9"* ]]
}

@test "threads and homes of a run that goes on are refused where they have no meaning, or left out" {
    tiny --epochs 1 --partitions 2 --out cut
    run_status 2 adam-worker --resume cut --epochs 2 --threads 4
    [[ "$stderr" = *"each of the 2 partitions has a thread"*"leave out --threads"* ]]
    run_status 2 adam-worker --resume cut --epochs 2 --home copies
    [[ "$stderr" = *"leave out --home"* ]]
    run_ok adam-worker --resume cut --epochs 2 --partitions 1 --threads 2 --home copies
    [[ "$stderr" = *"2 threads, each on a copy"* ]]
    run_status 2 adam-worker --resume cut --epochs 3 --patience 2
    [[ "$stderr" = *"--patience needs tests"* ]]
    # Nobody gives these now.
    run_ok adam-worker --resume cut --epochs 3 --partitions 2
    [[ "$stderr" = *"--home is not given now, was copies"* ]]
    tiny --epochs 1 --sync --out step
    run_status 2 adam-worker --resume step --epochs 2 --home copies
    [[ "$stderr" = *"as it was begun with --sync; leave out --home"* ]]
    tiny --epochs 1 --home copies --out free
    run_ok adam-worker --resume free --epochs 2 --sync
    [[ "$stderr" = *"--home is not given now, was copies"* ]]
}

@test "labels of the set of before are not those of another one" {
    adam-prep train.idx --labels train.lab -q -o train.arec
    tiny --test test.idx --test-labels test.lab --epochs 1 --partitions 2 --in-flight 2 --out run
    run_status 0 adam-worker --resume run --data train.idx --test test.idx --epochs 1
    [[ "$stderr" != *labels* ]]
    run_ok adam-worker --resume run --data train.arec --test train.arec --partitions 1 --epochs 2
    for gone in labels=train.lab test-labels=test.lab; do
        [[ "$stderr" = *"--${gone%=*} is not given now, was ${gone#*=}"* ]]
    done
    [[ "$stderr" = *"--in-flight is 1 now, was 2"* ]]
    run_status 2 adam-worker --resume run --labels train.lab --epochs 3
}

@test "another training set is noticed" {
    tiny --epochs 1 --out run
    run_ok adam-worker --resume run --data test.idx --labels test.lab --epochs 2
    [[ "$stderr" = *"not the training set of before"* ]]
}

@test "the best on another test set no longer counts" {
    local tests=(--test test.idx --test-labels test.lab --rate 0 --threads 1)
    tiny "${tests[@]}" --epochs 3 --out run
    run_ok adam-worker --resume run --test train.idx --test-labels train.lab --epochs 5 --patience 2
    [[ "$stderr" = *"train.idx is not the test set of before"* ]]
    [[ "$stderr" = *"what was best on that test set, epoch 1, no longer counts"* ]]
    [[ "$stderr" != *"the run ends"* ]]
    jq -e '.run.best | .epoch == 4 and .worse == 1' run/latest/manifest.json
    jq -e '.epoch == 4' run/best/manifest.json
    # On the same one it counts.
    run_ok adam-worker --resume run --epochs 9
    [[ "$stderr" != *"no longer counts"* ]]
    jq -e '.run.best | .epoch == 4 and .worse == 2' run/latest/manifest.json
}

@test "SIGUSR1 saves, and the run goes on" {
    start_tiny --epochs 1000000000 --checkpoint-every 0 --out run
    [ ! -e run/latest ]
    kill -USR1 "$pid"
    wait_for test -e run/latest/manifest.json
    kill -0 "$pid"
    run_status 73 adam-worker --resume run
    [[ "$stderr" = *"another process"* ]]
    stop_now
}

@test "checkpoints come by the clock too" {
    start_tiny --epochs 1000000000 --eval-every 0 --checkpoint-every 0.002m --keep-last 1 --out run
    wait_for test -e run/latest/manifest.json
    wait_for replaced "$(readlink run/latest)"
    stop_now
}

# Whether checkpoint $1 went when a newer one came.
replaced() {
    [ "$(readlink run/latest)" != "$1" ] && [ ! -e "run/$1" ]
}

@test "SIGINT is a stop like SIGTERM" {
    start_tiny --epochs 1000000000 --checkpoint-every 0 --out run
    kill -INT "$pid"
    wait_end
    [ "$status" -eq 75 ]
    [ -e run/latest ]
    [ ! -e run/DONE ]
    [ "$(metrics run stop reason)" = '"signal"' ]
}

@test "a pipe that was trained on to its end is not trained on again" {
    adam-prep train.idx --labels train.lab -q -o train.arec
    adam-worker --model tiny.net --data - --test test.idx --test-labels test.lab --out run <train.arec
    cp -a run before
    run_ok adam-worker --resume run <train.arec
    [[ "$stderr" = *"nothing to train: standard input ends before sample 104, up to which all are done"* ]]
    same_model run before
    cmp run/DONE before/DONE
    [ "$(jq .run run/latest/manifest.json)" = "$(jq .run before/latest/manifest.json)" ]
    [ "$(metrics run done samples | xargs)" = "103 103" ]
}

@test "a silent pipe does not hold up a stop" {
    mkfifo pipe
    exec 9<>pipe
    # A shell gives its background jobs no standard input of their own.
    start bash -c 'exec adam-worker --model tiny.net --data - --labels long.lab --out run <pipe'
    python - <<'END' >&9
import numpy as np, sys
count = 8000 # pictures; half of them come
open("long.lab", "wb").write(np.array([0x801, count], ">u4").tobytes() + bytes(count))
sys.stdout.buffer.write(np.array([0x803, count, 8, 8], ">u4").tobytes() + bytes(count * 32))
END
    wait_for grep -q '"event":"start"' run/metrics.jsonl
    stop_now
    exec 9>&-
    [ -e run/latest ]
}

@test "a loss that is not finite ends with status 3; the good checkpoint stays" {
    tiny --epochs 1 --out run
    cp run/latest/model.safetensors good
    run_status 3 adam-worker --resume run --epochs 9 --rate 1e6 --decay 1
    [[ "$stderr" = *"no longer finite"*"last good checkpoint is run/latest"* ]]
    cmp good run/latest/model.safetensors
    [ "$(metrics run nan loss | wc -l)" = 1 ]
    [ "$(metrics run stop reason)" = '"nan"' ]
    run_status 3 tiny --sync --rate 1e6 --decay 1 --epochs 9 --out fresh
}

@test "a full disk ends with status 74; the good checkpoint stays" {
    start_tiny --epochs 1000000000 --checkpoint-every 1 --set d1.units=100 --out run 2>err
    wait_for test -e run/latest/manifest.json
    prlimit --pid "$pid" --fsize=2000:2000
    wait_end
    [ "$status" -eq 74 ]
    grep -q 'cannot save run/ckpt.*the last good checkpoint is run/latest' err
    run_ok adam-worker --resume run --epochs 1
    [ -z "$(find run -name '*.tmp')" ]
}

@test "a metrics file that cannot be written is said once, and the run goes on" {
    mkdir run
    ln -s /dev/full run/metrics.jsonl
    run_ok tiny --epochs 3 --force --out other
    rm other/metrics.jsonl
    ln -s /dev/full other/metrics.jsonl
    run_ok adam-worker --resume other --epochs 5
    [ "$(grep -c 'metrics.jsonl: No space left' <<<"$stderr")" = 1 ]
    [ "$(jq .epoch other/latest/manifest.json)" = 5 ]
}

@test "a reader of the log that goes away does not end the run" {
    tiny --epochs 3 --test test.idx --test-labels test.lab --out run 2> >(true)
    [ -e run/DONE ]
}

@test "a damaged checkpoint is refused, wherever the damage is" {
    tiny --epochs 1 --out run
    python - <<'END'
import os, subprocess
path = "run/latest/model.safetensors"
good = open(path, "rb").read()
places = list(range(0, 700, 97)) + list(range(700, len(good), 1999)) + [len(good) - 1]
for at in places:
    bad = bytearray(good)
    bad[at] ^= 1 << (at % 8)
    open(path, "wb").write(bad)
    r = subprocess.run(["adam-worker", "--resume", "run"], capture_output=True, text=True)
    assert r.returncode == 65 and "CRC-32" in r.stderr, (at, r)
    assert "no other checkpoint in run is sound" in r.stderr, r
open(path, "wb").write(good[:-1])
r = subprocess.run(["adam-worker", "--resume", "run"], capture_output=True, text=True)
assert r.returncode == 65 and "bytes" in r.stderr, r
END
    run_status 66 adam-worker --resume nowhere
    [[ "$stderr" = *"error: cannot open nowhere: No such file"* ]]
    # A folder in which nothing was begun.
    mkdir bare
    run_status 66 adam-worker --resume bare
    [[ "$stderr" = *"error: bare: there is no checkpoint in this folder"* ]]
    run_status 66 adam-eval --model bare --data test.idx --labels test.lab
    [[ "$stderr" = *"error: bare: there is no checkpoint in this folder"* ]]
}

@test "every flipped bit of a manifest is noticed; one of before, without a checksum, is read" {
    tiny --epochs 1 --out run
    python - <<'END'
import json, subprocess, zlib
path = "run/latest/manifest.json"
good = open(path, "rb").read()
def resume():
    return subprocess.run(["adam-worker", "--resume", "run"], capture_output=True, text=True)
lines = good.decode().splitlines(True)
assert lines[-2] == '  "crc32": "%08x"\n' % zlib.crc32("".join(lines[:-2]).encode()), lines[-2]
places = list(range(0, 8 * len(good), 53)) + list(range(8 * len(good) - 8 * 27, 8 * len(good), 5))
for at in places:
    bad = bytearray(good)
    bad[at // 8] ^= 1 << (at % 8)
    open(path, "wb").write(bad)
    r = resume()
    assert r.returncode == 65 and "manifest.json" in r.stderr, (at, r)
old = json.loads(good)
del old["crc32"]
open(path, "w").write(json.dumps(old))
assert resume().returncode == 65
old["v"] = 1
open(path, "w").write(json.dumps(old))
assert resume().returncode == 0
END
}

# The run of 3 epochs in the folder $1, whose newest checkpoint is damaged.
damaged_run() {
    tiny --epochs 3 --test test.idx --test-labels test.lab --out "$1" "${@:2}"
    printf xxxxxxxx | dd of="$1/latest/model.safetensors" bs=1 seek=3000 conv=notrunc status=none
    mapfile -t checkpoints < <(ls -d "$1"/ckpt-*)
}

@test "where the newest checkpoint is damaged, the newest sound one is named" {
    damaged_run run
    [ "${#checkpoints[@]}" = 3 ]
    run_status 65 adam-worker --resume run --epochs 4
    [[ "$stderr" = *"damaged"*"the newest sound checkpoint is ${checkpoints[1]}: give that"* ]]
    run_status 65 adam-eval --model run --data test.idx --labels test.lab
    [[ "$stderr" = *"the newest sound checkpoint is ${checkpoints[1]}: give that"* ]]
    rm "${checkpoints[1]}/manifest.json"
    run_status 65 adam-worker --resume run/latest
    [[ "$stderr" = *"the newest sound checkpoint is ${checkpoints[0]}: give that"* ]]
    rm -r "${checkpoints[2]}"
    run_status 66 adam-eval --model run --data test.idx --labels test.lab
    [[ "$stderr" = *"the newest sound checkpoint is ${checkpoints[0]}: give that"* ]]
}

@test "--resume with a checkpoint goes on in its run, and removes no sound one for a damaged one" {
    damaged_run run
    run_ok adam-worker --resume "${checkpoints[0]}" --epochs 2 --keep-last 1
    [ ! -e "${checkpoints[0]}" ]
    [ "$(readlink -f run/latest)" = "$(readlink -f "${checkpoints[1]}")" ]
    [ -e "${checkpoints[2]}" ] # newer, and perhaps wanted
    [ "$(metrics run start resumed | tail -n 1)" = true ]
    run_ok adam-eval --model run --data test.idx --labels test.lab
    (cd "${checkpoints[1]}" && adam-worker --resume . --epochs 4)
    [ "$(jq .epoch run/latest/manifest.json)" = 4 ]
    run_ok adam-eval --model run --data test.idx --labels test.lab
}

@test "a run killed before it pointed to its first checkpoint has that one" {
    tiny --epochs 1 --out run
    rm run/latest
    run_status 73 tiny --epochs 2 --out run
    run_ok adam-worker --resume run --epochs 2
    [ "$(jq .epoch run/latest/manifest.json)" = 2 ]
}

@test "a run killed before its first checkpoint begins anew, by --resume or the same command" {
    tiny --epochs 2 --threads 1 --set d1.units=17 --out whole
    for way in resume same; do
        start_tiny --epochs 1000000000 --checkpoint-every 0 --threads 1 --set d1.units=17 --out $way
        run_status 73 tiny --out $way
        [[ "$stderr" = *"another process"* ]]
        run_status 73 adam-worker --resume $way
        kill -KILL "$pid"
        wait "$pid" || true
    done
    run_ok adam-worker --resume resume --epochs 2 --checkpoint-every 1
    [[ "$stderr" = *"resume ended before its first checkpoint; it begins anew"* ]]
    [ "$(metrics resume start resumed)" = false ]
    run_ok tiny --epochs 2 --threads 1 --set d1.units=17 --out same
    [[ "$stderr" = *"same ended before its first checkpoint; it begins anew"* ]]
    same_model whole resume
    same_model whole same
    python - <<'END'
import subprocess
path = "same/start.json"
good = open(path, "rb").read()
subprocess.run("rm -r same/ckpt-* same/latest", shell=True, check=True)
for at in list(range(0, 8 * len(good), 211)) + [8 * len(good) - 100]:
    bad = bytearray(good)
    bad[at // 8] ^= 1 << (at % 8)
    open(path, "wb").write(bad)
    r = subprocess.run(["adam-worker", "--resume", "same"], capture_output=True, text=True)
    assert r.returncode == 65 and "start.json" in r.stderr, (at, r)
END
}

@test "--resume finds the data from another folder, and what was moved along with the run" {
    tiny --epochs 1 --test test.idx --test-labels test.lab --out run
    mkdir elsewhere
    (cd elsewhere && adam-worker --resume ../run --epochs 2) 2>log
    grep -F "note: --data train.idx is $PWD/train.idx, as the run was started there" log
    [ "$(jq .epoch run/latest/manifest.json)" = 2 ]
    tiny --epochs 1 --out moved
    mv train.idx train.lab elsewhere
    mv moved elsewhere
    (cd elsewhere && adam-worker --resume moved --epochs 2) 2>log
    [ "$(grep -c note: log)" = 0 ]
    rm elsewhere/train.idx
    cd elsewhere
    run_status 66 adam-worker --resume moved --epochs 3
}
