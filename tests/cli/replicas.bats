#!/usr/bin/env bats
# Runs whose model is cut over several workers, which are one replica of it (adam-run(5)).
load ../helper/common
load ../helper/casualties
load ../helper/worker

EPOCHS=20

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 2000 --seed 3 --split test=0.2 -o digits.arec
    # Layers cut by rows, by maps, by units and by inputs, and one that nobody shares.
    cat >small.net <<'NET'
input   1x28x28 ops='scale 1/255; mean 0.16; std 0.24'
conv    c1 maps=6 kernel=5 stride=2 act=relu cut=rows
maxpool    size=2
conv    c2 maps=8 kernel=3 act=relu cut=maps
dense   d1 units=40 act=relu cut=units dropout=0.1
dense   d2 units=30 act=relu cut=inputs
softmax    units=10
NET
    casualties_conf
}

setup() {
    cp "$BATS_FILE_TMPDIR"/{digits*.arec,small.net,run.conf} "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR"
}

teardown() {
    end_run
}

# The largest difference of two runs' weights is at most that share of the largest weight.
differ_by() { # RUN RUN SHARE
    python - "$@" <<'END'
import json, struct, sys
import numpy as np
def weights(run):
    data = open(run + "/latest/model.safetensors", "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8:8 + size])
    tensors.pop("__metadata__", None)
    return np.concatenate([np.frombuffer(data[8 + size:][slice(*tensors[name]["data_offsets"])], np.float32)
                           for name in sorted(tensors)])
one, other = weights(sys.argv[1]), weights(sys.argv[2])
share = abs(one - other).max() / abs(other).max()
print(sys.argv[1], share)
sys.exit(not share <= float(sys.argv[3]))
END
}

# 20 updates, of all samples together 640.
updates() { # RUN OPTIONS...
    run_ok adam-ctl up -q run.conf --set data=few.arec --set epochs=2 --set rate=0.01 --set schedule=constant \
        --set protocol=hardsync --set eval-every=0 --out "$@"
}

@test "under hardsync replicas of any number of partitions train what whole workers do" {
    adam-prep draw 320 --seed 5 -o few.arec
    local rule
    for rule in sgd adam; do
        updates one-$rule --workers 1 --threads 1 --set batch=32 --set optimizer=$rule
        updates two-$rule --workers 1 --partitions 2 --set batch=32 --set optimizer=$rule
        updates three-$rule --workers 1 --partitions 3 --set batch=32 --set in-flight=2 --set optimizer=$rule --ps 2
        differ_by two-$rule one-$rule 1e-5
        differ_by three-$rule one-$rule 1e-5
    done
    updates whole --workers 2 --threads 1 --set batch=16 --set clip=0.5
    updates replicas --workers 2 --partitions 2 --set batch=16 --set clip=0.5
    differ_by replicas whole 1e-5
    # The first worker of a replica tells of what all of it trained on.
    [ "$(trained replicas)" -eq 640 ]
}

@test "replicas learn by every protocol, and what they save goes on with another number of partitions" {
    local settings
    for settings in 'protocol=async' 'protocol=async push=gradient' 'protocol=softsync:2' 'protocol=async in-flight=3 optimizer=momentum rate=0.005'; do
        rm -rf run
        # shellcheck disable=SC2086
        run_ok adam-ctl up -q run.conf --workers 2 --partitions 2 $(printf -- '--set %s ' $settings)
        echo "$settings: $(jq -c . run/DONE)"
        [ "$(jq '.top1 > 0.85' run/DONE)" = true ]
    done
    run_ok adam-ctl up -q run.conf --resume --workers 1 --partitions 3 --set epochs=$((EPOCHS + 2)) --set optimizer=momentum --set rate=0.005
    is_true ".epoch == $EPOCHS + 2" <run/DONE
    [ "$(jq '.top1 > 0.85' run/DONE)" = true ]
    run_ok adam-worker --resume run --epochs $((EPOCHS + 3)) --partitions 2
}

@test "status shows who has which partition, and what a replica without all of them waits for" {
    start setsid adam-ctl up run.conf --workers 1 --partitions 3 --set epochs=1000 2>err
    run=$pid
    wait_for epoch_is 1
    adam-ctl status run --json >status
    is_true '[.members[] | select(.role == "worker") | [.replica, .partition]] | sort == [[0, 0], [0, 1], [0, 2]]' <status
    is_true '[.members[] | select(.role == "worker" and .partition > 0) | .samples] | add == 0' <status
    adam-ctl status run | grep -q 'REPLICA/PARTITION'
    adam-ctl status run | grep -Eq '^worker .* 0/2( |$)'
    # One more than a replica has: nobody has the other partitions of its own.
    start adam-worker --controller @run/controller.port --name more --listen 2>more.err
    local more=$pid
    more_waits() {
        adam-ctl status run --json | jq -e '.members[] | select(.name == "more") | .replica == 1 and .state == "waiting" and
            (.waits_for | test("workers for the other partitions of its replica"))' >&2
    }
    wait_for more_waits
    wait_for grep -q 'waiting for workers for the other partitions of its replica' more.err
    run_status 69 adam-worker --controller @run/controller.port --name none
    [[ $stderr = *'start them with --listen ADDRESS'* ]]
    kill -INT "$more"
    wait "$more" || [ $? -eq 75 ]
    adam-ctl down run
    pid=$run
    wait_end
    [ "$status" -eq 75 ]
    none_left
}

# What two replicas of two partitions reach when nobody is disturbed; then begins another such run.
begin_replicas() {
    adam-ctl up -q run.conf --out whole --workers 2 --partitions 2
    accuracy whole >expected
    workers_rest 1000
    start setsid adam-ctl up run.conf --workers 2 --partitions 2 2>err
    run=$pid
}

@test "a partition that is killed ends its replica's work; the other goes on, and it is formed anew" {
    begin_replicas
    moment 1 2
    kill_again worker-1
    moment 5 6
    kill_again worker-4
    moment 9 10
    kill_again worker-2
    moment 13 14
    kill_again worker-3
    ends_well
    [ "$(finished)" -eq "$(wanted)" ]
    grep -q 'lacks a partition: its other workers join anew' err
}

@test "settings change, a partition that stands still ends its replica, and a controller may die" {
    begin_replicas
    moment 1 2
    adam-ctl set run rate=0.019
    changed() { [ "$(grep -l 'the settings have changed' run/log/worker-*.log | wc -l)" -eq 4 ]; }
    wait_for changed
    moment 5 6
    local stopped
    stopped=$(left worker-2)
    kill -STOP "$stopped"
    wait_for grep -q 'lacks a partition: its other workers join anew' err
    kill -CONT "$stopped"
    moment 12 13
    kill_again controller
    ends_well
    [ "$(finished)" -eq "$(wanted)" ]
}

# Runs what adam-ctl up would, but controller and workers with less memory than the model needs:
# large_net's. (A server reserves addresses for all of it, and fills its own.)
limited_up() { # OPTIONS...
    cat >limited <<'END'
small() (
    ulimit -s 512
    ulimit -d 78000
    exec "$@"
)
END
    adam-ctl up -n "$@" | sed -E 's/^adam-(ctl|worker) /small &/' >>limited
    bash -e limited 2>limited.log || { cat limited.log && return 1; }
}

@test "a model that no process may hold is trained, tested, saved, and evaluated; and goes on" {
    if [ "$SAN" ]; then skip "a sanitizer has memory of its own"; fi
    large_net
    small() { (ulimit -s 512 && ulimit -d 78000 && exec "$@"); }
    run_status 74 small adam-worker --model large.net --data digits.arec --threads 1 --out alone
    [[ $stderr = *"out of memory"* ]]
    adam-prep draw 160 --seed 5 -o few.arec
    printf '%s\n' 'model = large.net' 'data = few.arec' 'test = digits-test.arec' 'rate = 0.01' 'batch = 16' \
        'protocol = hardsync' 'ema = 0.9' 'partitions = 5' >large.conf
    limited_up large.conf --ps 2 --out run --set epochs=1
    is_true '.epoch == 1' <run/DONE
    run_ok small adam-eval --model run --data digits-test.arec --partitions 4 --threads 1 --json
    is_true ".top1 == $(jq .top1 run/DONE)" <<<"$output"
    # No file is left of what the controller tested and saved from.
    [ -z "$(find run -name '.scratch*')" ]
    limited_up large.conf --ps 2 --out run --resume --set epochs=2
    is_true '.epoch == 2' <run/DONE
    # So do parts that the servers write.
    rm -r run
    limited_up large.conf --ps 2 --out run --set epochs=1 --set checkpoint-parts=shared --set optimizer=momentum --set rate=0.001
    is_true '.epoch == 1' <run/DONE
    [ -f run/latest/model.safetensors.index.json ]
    run_ok small adam-eval --model run --data digits-test.arec --partitions 4 --threads 1 --json
    is_true ".top1 == $(jq .top1 run/DONE)" <<<"$output"
}

@test "what does not go with partitions is refused, with what to do" {
    run_status 2 adam-ctl up -q run.conf --partitions 2 --threads 2
    [[ $stderr = *"each of the 2 partitions has a thread of its own; leave out --threads"* ]]
    run_status 2 adam-ctl controller run.conf --out run --set partitions=2 --set factors=d1
    [[ $stderr = *"factors=d1 and partitions=2: parts of a dense layer are sent as they are"* ]]
    run_status 2 adam-ctl controller run.conf --out run --set partitions=2 --set threads=2
    [[ $stderr = *"threads=2 and partitions=2: each partition has a thread of its own"* ]]
    run_status 2 adam-worker --model small.net --data digits.arec --out none --listen
    [[ $stderr = *"--listen is for workers of a run: --controller ADDR"* ]]
}
