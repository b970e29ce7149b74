#!/usr/bin/env bats
# adam-worker: stopping, going on, and all that can go wrong on the way.
load ../helper/common
load ../helper/worker

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
    tiny "$@" --eval-every 0 --checkpoint-every 0 --out a
    start_tiny "$@" --eval-every 0 --checkpoint-every 0 --out b
    for ((round = 1; round <= 3 || !torn; round++)); do
        stop_now
        if jq -e '.epoch != (.epoch | floor)' b/latest/manifest.json; then torn=1; fi
        start adam-worker --resume b
        wait_for resumed_times "$round"
    done
    wait_end
    [ "$status" -eq 0 ]
    [ -e b/DONE ]
    same_model a b
}

resumed_times() {
    [ "$(grep -c '"resumed":true' b/metrics.jsonl)" = "$1" ]
}

@test "one thread: stopped in mid-epoch and resumed, the same bytes come out" {
    stop_and_go --threads 1 --epochs 6000 --batch 3 --momentum 0.9 --ops 'noise 3; hflip p=0.3' \
        --schedule cosine --warmup 2
}

@test "adagrad too, in step with three threads" {
    stop_and_go --sync --threads 3 --epochs 2000 --batch 3 --optimizer adagrad
}

@test "a run of some epochs, resumed for more, is the run of all" {
    tiny --threads 1 --epochs 4 --out a
    tiny --threads 1 --epochs 2 --out b
    run_ok adam-worker --resume b --epochs 4
    [[ "$stderr" = *"--epochs is 4 now, was 2"* ]]
    same_model a b
    run_ok adam-worker --resume b
    [[ "$stderr" = *"nothing to do"* ]]
}

@test "what is given with --resume wins, and is said" {
    tiny --epochs 1 --rate 0.05 --out run
    run_ok adam-worker --resume run --epochs 2 --rate 0.02 --optimizer momentum
    [[ "$stderr" = *"--rate is 0.02 now, was 0.05"* ]]
    [[ "$stderr" = *"--optimizer is momentum now, was not given"* ]]
    [ "$(metrics run train rate | tail -n 1)" = 0.02 ]
    [ "$(metrics run start resumed | tr '\n' ' ')" = "false true " ]
    run_status 2 adam-worker --resume run --model tiny.net
}

@test "another training set is noticed" {
    tiny --epochs 1 --out run
    run_ok adam-worker --resume run --data test.idx --labels test.lab --epochs 2
    [[ "$stderr" = *"not the training set of before"* ]]
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
open(path, "wb").write(good[:-1])
r = subprocess.run(["adam-worker", "--resume", "run"], capture_output=True, text=True)
assert r.returncode == 65 and "bytes" in r.stderr, r
END
    run_status 66 adam-worker --resume nowhere
}
