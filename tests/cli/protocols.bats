#!/usr/bin/env bats
# What the protocols promise, by runs of real processes (adam-consistency(7)).
load ../helper/common
load ../helper/run

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    digits_conf 6000 64
    echo 'eval-every = 0' >>run.conf
}

# Runs four workers under a protocol, and prints the mean staleness of their gradients and
# the share of them above 2n.
staleness() {
    adam-ctl up "$BATS_FILE_TMPDIR/run.conf" --out run --serve 1 --ps 2 --workers 4 --threads 1 \
        --set "protocol=$1" --force --quiet
    jq -rs --arg protocol "$1" --arg seed 1 -f "$ROOT/examples/protocols.jq" run/metrics.jsonl |
        cut -f 4,5
}

# A worker has one push in flight, so that the mean is bounded however the system lets workers run.
# That it is near n where they take turns is held by test_ps.
@test "under softsync:n gradients are stale by n at most, and hardly ever by more than 2n" {
    local n mean beyond
    for n in 1 4; do
        read -r mean beyond < <(staleness "softsync:$n")
        echo "softsync:$n: mean $mean, beyond 2n: $beyond"
        jq -ne --argjson n "$n" --argjson mean "$mean" --argjson beyond "$beyond" \
            '$mean > 0 and $mean < 1.25 * $n and $beyond < 0.1'
    done
}

@test "under hardsync no gradient is stale" {
    [ "$(staleness hardsync)" = "$(printf '0\t-')" ]
}

# The training of four workers leaves 200 digits with some mistakes at most.
@test "under each protocol the average of weights learns, and is what is tested and saved" {
    local protocol tested
    for protocol in async softsync:1 hardsync; do
        adam-ctl up "$BATS_FILE_TMPDIR/run.conf" --out run --serve 1 --ps 2 --workers 4 --threads 1 \
            --set "protocol=$protocol" --set ema=0.95 --set epochs=8 \
            --force --quiet
        tested=$(jq -s 'map(select(.event == "eval"))[-1].top1' run/metrics.jsonl)
        echo "$protocol: $tested"
        jq -ne --argjson top1 "$tested" '$top1 >= 0.9'
        adam-eval --model run --data "$BATS_FILE_TMPDIR/test.arec" --json -q |
            jq -e --argjson top1 "$tested" '(.top1 - $top1 | fabs) < 1e-6'
        [ "$(jq .run.settings.ema run/latest/manifest.json)" = 0.95 ]
    done
}

# Pushes of a run of one worker with these settings. A worker's last line of metrics, if it is the
# only one, is behind the answer to its last push.
pushes() {
    adam-ctl up "$BATS_FILE_TMPDIR/run.conf" --out run --serve 1 --ps 1 --workers 1 --threads 2 \
        --set servers=1 --set batch=24 --set epochs=1 --set metrics-every=3600 --set "$1" \
        --set "$2" --force --quiet
    jq -s 'map(select(.role == "worker" and .event == "train"))[-1].pushes' run/metrics.jsonl
}

# 6000 samples are 250 mini-batches of 24.
@test "a worker's pushes are its mini-batches divided by push-every, rounded up" {
    local settings
    for settings in push=delta push=gradient protocol=softsync:1; do
        [ "$(pushes "$settings" push-every=1)" = 250 ]
        [ "$(pushes "$settings" push-every=7)" = 36 ]
    done
    [ "$(pushes protocol=hardsync push-every=7)" = 250 ]
}

# Starts three workers with this warm start.
start_warm() {
    start adam-ctl up "$BATS_FILE_TMPDIR/run.conf" --out run --serve 1 --ps 1 --workers 3 \
        --threads 1 --set servers=1 --set workers=3 --set "warm-start=$1" --set epochs=1000 \
        --set metrics-every=0.1 --force --quiet 2>up.log
}

# How many workers have trained.
trained() {
    jq -s 'map(select(.role == "worker" and .event == "train" and .samples > 0).rank) |
        unique | length' run/metrics.jsonl
}

have_trained() {
    [ "$(trained)" -ge "$1" ]
}

# How many workers are seen to wait for the end of the warm start.
withheld() {
    adam-ctl status --json run |
        jq '.members | map(select(.waits_for == "the end of the warm start")) | length'
}

end_warm() {
    adam-ctl down --now run
    wait_end
    [ "$status" -eq 75 ]
}

@test "during a warm start one worker trains, and the others are seen to wait for its end" {
    start_warm 100000000
    wait_for have_trained 1
    [ "$(withheld)" = 2 ]
    end_warm
    [ "$(trained)" = 1 ]
}

@test "behind the warm start all workers train" {
    start_warm 2000
    wait_for have_trained 3
    [ "$(grep -c 'the warm start is over: all workers train' run/log/controller.log)" = 1 ]
    end_warm
}
