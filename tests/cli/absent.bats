#!/usr/bin/env bats
# Data servers that are away for a while, or for good: workers wait for all of the data, and a run
# goes on without a part of it only when it was told so.
load ../helper/common

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 1000 --seed 3 --split test=0.2 -q -o digits.arec
    small_net
    printf '%s\n' 'model = small.net' 'data = digits.arec' 'test = digits-test.arec' \
        'rate = 0.02' 'batch = 8' 'epoch-end = 1' 'eval-every = 0' 'metrics-every = 0.1' \
        'data-servers = 2' "silence = $SILENCE" >run.conf
    workers_rest 200
}

setup() {
    cp "$BATS_FILE_TMPDIR"/{digits*.arec,small.net,run.conf} "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR"
}

samples() {
    adam-prep stat digits.arec --json | jq .samples
}

# The run NAME by hand: its controller is $ctl, its parameter server $ps, its data servers are
# $serve1 and $serve2, which keep no journal.
begin() {
    local name=$1
    shift
    controller "$name" "$@"
    start adam-ps --controller "@$name.port" 2>/dev/null
    ps=$pid
    serve "$name" 1
    serve1=$pid
    serve "$name" 2
    serve2=$pid
    worker "$name"
}
controller() {
    local name=$1
    shift
    start adam-ctl controller run.conf --out "$name" --port-file "$name.port" "$@" 2>>"$name.err"
    ctl=$pid
}
serve() {
    start adam-serve digits.arec --range "$2/2" --controller "@$1.port" 2>>"$1.serve.err"
}
worker() {
    start adam-worker --controller "@$1.port" --threads 1 2>>"$1.worker.err"
}

said() {
    grep -q -- "$@"
}
epoch_is() {
    [ "$(adam-ctl status "$1" --json | jq ".epoch >= $2")" = true ]
}
worker_waits() {
    [ "$(adam-ctl status "$1" --json | jq '.members | any(.role == "worker" and (.waits_for | test("data server")))')" = true ]
}
# How often an event is in the metrics.
count() {
    grep -c "\"event\":\"$2\"" "$1/metrics.jsonl"
}
finished() {
    jq -s 'map(select(.role == "controller").samples | numbers) | max' "$1/metrics.jsonl"
}
ended() {
    ! kill -0 "$ctl"
}
ends_with() {
    pid=$ctl
    wait_end
    [ "$status" -eq "$1" ]
}

@test "a data server that stands still for longer than it may be silent: workers wait for its part" {
    local protocol stopped=() controllers=()
    for protocol in async hardsync softsync:1; do
        local name=${protocol%:*}
        begin "$name" --set "protocol=$protocol" --set workers=1 --set epochs=40
        controllers+=("$ctl")
        stopped+=("$serve2")
    done
    for name in async hardsync softsync; do wait_for epoch_is $name 2; done
    kill -STOP "${stopped[@]}"
    for name in async hardsync softsync; do
        wait_for said 'data server .* is silent: .*; waiting for it for' $name.err
        wait_for said 'nothing was trained for 1[0-9] s: worker .*: data server ipc:' $name.err
        wait_for said 'waiting for data server ipc:' $name.worker.err
        run_ok adam-ctl status $name
        [[ $output == *'controller '*' data server '*', which has samples '*'nothing was trained for '[1-9]+([0-9])' s: worker '+([0-9])' ('*'): data server ipc:'* ]]
        [ "$(adam-ctl status $name --json | jq '.idle >= 10')" = true ]
        adam-ctl prom $name | grep -qE '^adam_idle_seconds [1-9][0-9]'
    done
    kill -CONT "${stopped[@]}"
    for ctl in "${controllers[@]}"; do ends_with 0; done
    for name in async hardsync softsync; do
        [ -e $name/DONE ]
        # Batches that were lost with the links are handed out again soon: the worker was not slow.
        if said 'nothing was trained for 80 s' $name.err; then return 1; fi
        [ "$(finished $name)" -eq $((40 * $(samples))) ]
        [ "$(count $name idle)" -ge 1 ]
        grep '"event":"idle"' $name/metrics.jsonl |
            jq -es 'length > 0 and all(.[]; .seconds >= 10 and (.workers | length) == 1 and
                (.workers[0].waits_for | startswith("data server ipc:")))'
        [ "$(count $name idle_over)" -eq "$(count $name idle)" ]
        jq -es '[.[] | select(.event == "idle" or .event == "idle_over").seconds] |
            [range(0; length; 2) as $i | .[$i + 1] > .[$i]] | all' $name/metrics.jsonl
        [ "$(count $name left_out)" -eq 0 ]
    done
}

@test "a data server that is killed, and started again late without a journal, goes on in the run's epoch" {
    begin run --set epochs=50
    wait_for epoch_is run 3
    kill -KILL "$serve2"
    # All that can be done without it is done.
    wait_for worker_waits run
    serve run 2
    ends_with 0
    [ -e run/DONE ]
    grep -q 'adam-serve: begins with epoch [0-9]*, in which the run is' run.serve.err
    [ "$(finished run)" -eq $((50 * $(samples))) ]
}

both_served_all() {
    [ "$(grep -c 'all epochs are served' run.serve.err)" -eq 2 ]
}

@test "a data server that dies when all is trained on, before the controller knows, and has no journal" {
    begin run --set epochs=3 --set workers=1
    wait_for said 'has joined\|joined$' run.err
    # A controller that stands still hears of nothing.
    wait_for said '"event":"train"' run/metrics.jsonl
    kill -STOP "$ctl"
    wait_for both_served_all
    kill -KILL "$serve1" "$serve2"
    kill -CONT "$ctl"
    serve run 1
    serve run 2
    ends_with 0
    [ -e run/DONE ]
}

@test "on-data-loss=end: behind data-patience the run saves, ends with 69 and says for whom; --resume goes on" {
    begin run --set epochs=100000 --set data-patience=0.5
    wait_for epoch_is run 2
    kill -KILL "$serve2"
    ends_with 69
    grep -qE 'error: waited [0-9]* s in vain for data server [0-9]* .*, which has samples [0-9]*\.\.[0-9]* of [0-9]*; --resume goes on with run' run.err
    [ -e run/latest/manifest.json ] && [ ! -e run/DONE ]
    local epoch
    epoch=$(jq '.epoch | floor' run/latest/manifest.json)
    stop_started
    begin run --resume run --set epochs=$((epoch + 3))
    ends_with 0
    [ -e run/DONE ]
}

@test "on-data-loss=continue: the run goes on without the part, and says which share of each epoch it left out" {
    begin run --set epochs=100000 --set data-patience=0.5 --set on-data-loss=continue
    wait_for epoch_is run 2
    kill -STOP "$serve2"
    wait_for said 'going on without data server .*: 50% of each epoch' run.err
    wait_for said '"event":"left_out"' run/metrics.jsonl
    run_ok adam-ctl status run
    [[ $output == *'50% of each epoch is left out'* ]]
    [ "$(adam-ctl status run --json | jq .left_out)" = 0.5 ]
    # What was left out does not hold up the epoch of tests and checkpoints: status has the same.
    wait_for epoch_is run 6
    adam-ctl checkpoint run
    [ "$(jq '.epoch - (.run.cursors[] | select(.first == 0) |
        .epoch + ([.finished[][1]] | add // 0) / .samples) | fabs < 1e-6' run/latest/manifest.json)" = true ]
    # Under its own name it is of no use any more; who takes its place begins with the run's epoch.
    kill -CONT "$serve2"
    pid=$serve2
    wait_end
    [ "$status" -eq 75 ]
    serve run 2
    wait_for said '"event":"data_back"' run/metrics.jsonl
    [ "$(adam-ctl status run --json | jq '.left_out == 0')" = true ]
    adam-ctl down run
    ends_with 75
    # Everything before the places in the checkpoint was trained on or left out.
    local left epochs
    left=$(jq -s 'map(select(.event == "left_out").left) | add' run/metrics.jsonl)
    jq -e ".samples + $left == ([.run.cursors[] | .epoch * .samples + ([.finished[][1]] | add // 0)] | add)" \
        run/latest/manifest.json
    [ "$(jq -s 'map(select(.event == "stop").samples)[0]' run/metrics.jsonl)" -le "$(jq .samples run/latest/manifest.json)" ]
    jq -se 'map(select(.event == "left_out")) |
        (.[0].share > 0 and .[0].share <= 0.5) and (.[1:] | all(.share == 0.5)) and
        (map(.of_epoch) == [range(.[0].of_epoch; .[0].of_epoch + length)])' run/metrics.jsonl
    [ "$(count run data_lost)" -eq 1 ]
    # A run that goes on from there counts on from what was trained.
    epochs=$(jq '[.run.cursors[].epoch] | max + 3' run/latest/manifest.json)
    stop_started
    begin run --resume run --set epochs="$epochs"
    ends_with 0
    [ $((left + $(finished run))) -eq $((epochs * $(samples))) ]
}

# A run of $1 with a worker and a parameter server, which wants one data server.
begin_without_data() {
    controller "$@" --set data-servers=1
    start adam-ps --controller "@$1.port" 2>/dev/null
    worker "$1"
}

@test "a range that no data server has is waited for, by its samples, before training begins" {
    begin_without_data run --set epochs=3
    serve run 1
    local half=$(($(samples) / 2))
    wait_for said "waiting for data servers: none has samples $half\.\.$(($(samples) - 1)) of $(samples) (another --range)" run.err
    run_ok adam-ctl status run
    [[ $output == *"none has samples $half.."* ]]
    [ "$(adam-ctl status run --json | jq .epoch)" = 0 ]
    serve run 2
    ends_with 0
    [ -e run/DONE ]
    [ "$(finished run)" -eq $((3 * $(samples))) ]
}

@test "on-data-loss=continue: a run begins without a range that nobody has, and says what it leaves out" {
    begin_without_data run --set epochs=100000 --set on-data-loss=continue --set data-patience=0.5
    serve run 2
    wait_for said 'going on without samples that no data server has, from 0 on: 50% of each epoch' run.err
    wait_for said '"event":"left_out"' run/metrics.jsonl
    jq -se 'map(select(.event == "left_out"))[0].share == 0.5' run/metrics.jsonl
    [ "$(adam-ctl status run --json | jq .left_out)" = 0.5 ]
    [ "$(count run data_lost)" -eq 1 ]
    # When it comes nothing is left out any more.
    serve run 1
    nothing_left_out() {
        [ "$(adam-ctl status run --json | jq .left_out)" = 0 ]
    }
    wait_for nothing_left_out
    wait_for said '"event":"data_back"' run/metrics.jsonl
    adam-ctl down run
    ends_with 75
}

# Cursors are taken before weights, so that those of the last checkpoint of a run may lack what its
# weights have: at the end they are taken again, though no weight has changed.
@test "a checkpoint of the same weights is written again where data servers are at another place" {
    begin run --set epochs=100000 --set checkpoint-every=0
    local place path work=$pid
    place() { jq -c '.run.cursors[] | select(.first > 0) | [.epoch, .finished]' run/latest/manifest.json; }
    wait_for epoch_is run 1
    kill -TERM "$work"
    wait_end
    run_ok adam-ctl checkpoint run
    path=$output
    place=$(place)
    run_ok adam-ctl checkpoint run
    [ "$output" = "$path" ] && [ "$(place)" = "$place" ]
    [ "$(count run checkpoint)" -eq 1 ]
    # It keeps no journal: it begins with an epoch that is not under way.
    kill_started "$serve2"
    serve run 2
    wait_for said 'begins with epoch' run.serve.err
    run_ok adam-ctl checkpoint run
    [ "$output" = "$path" ] && [ "$(place)" != "$place" ]
    [ "$(count run checkpoint)" -eq 2 ]
    adam-ctl down run
    ends_with 75
}

@test "two data servers that share some samples: the second waits, and each sample comes once" {
    controller run --set epochs=3
    start adam-ps --controller @run.port 2>/dev/null
    worker run
    serve run 1
    wait_for said 'data server [0-9]* .*joined' run.err
    start adam-serve digits.arec --range 1/3 --controller @run.port 2>spare.err
    wait_for said 'waiting for controller: .*busy: another data server serves these samples' spare.err
    kill "$pid"
    wait_end
    serve run 2
    ends_with 0
    [ "$(finished run)" -eq $((3 * $(samples))) ]
}

@test "a second data server of the same samples has to wait until the first is gone" {
    begin run --set epochs=100000
    wait_for epoch_is run 1
    start adam-serve digits.arec --range 2/2 --controller @run.port 2>spare.err
    local spare=$pid
    wait_for said 'waiting for controller: .*busy: another data server serves these samples' spare.err
    kill -KILL "$serve2"
    wait_for said 'adam-serve: begins with epoch\|member [0-9]*: serves' spare.err
    kill -0 "$spare"
    adam-ctl down run
    ends_with 75
}

# One of another data set, of samples that nobody else has; it ends.
stranger() {
    start adam-serve other.arec --range 2/2 --controller @run.port 2>other.err
    wait_end
    [ "$status" -eq 69 ]
}

@test "a data server of another data set is refused by a run that trains, with both named" {
    adam-prep draw 2000 --seed 4 -q -o other.arec
    begin run --set epochs=100000
    wait_for epoch_is run 1
    stranger
    said 'another data set than the run.s: 2000 samples, 10 classes or targets, digest .*, where the run has 8[0-9]* samples, 10 classes or targets, digest ' other.err
    # Also behind a controller that has read its record.
    kill_started "$ctl"
    controller run --set epochs=100000
    wait_for said 'the run in run goes on' run.err
    stranger
    said 'another data set than the run' other.err
    kill_started "$serve2"
    serve run 2
    wait_for said 'begins with epoch' run.serve.err
    adam-ctl down run
    ends_with 75
}

@test "a controller that is started again while a data server is away saves the run all the same" {
    begin run --set epochs=100000 --set checkpoint-every=100000
    wait_for epoch_is run 2
    kill_started "$serve2" "$ctl"
    controller run --set epochs=100000
    wait_for said 'the run in run goes on' run.err
    wait_for worker_waits run
    adam-ctl down run
    wait_for ended
    ends_with 75
    [ "$(jq '.epoch >= 2 and (.run.cursors | length == 2)' run/latest/manifest.json)" = true ]
}

@test "a parameter server that stands still while a controller is started again keeps its weights" {
    begin run --set epochs=100000 --set checkpoint-every=100000
    wait_for epoch_is run 2
    kill -STOP "$ps"
    kill_started "$ctl"
    controller run --set epochs=100000
    wait_for said 'the run in run goes on' run.err
    wait_for adam-ctl status run # by its own address, not by that of the one before
    local epoch
    epoch=$(adam-ctl status run --json | jq .epoch)
    kill -CONT "$ps"
    wait_for epoch_is run "$epoch + 1"
    adam-ctl down run
    ends_with 75
}

@test "where no data server can be asked, data-patience ends a run that cannot be saved, too" {
    begin run --set epochs=100000 --set checkpoint-every=100000 --set data-patience=2
    wait_for epoch_is run 2
    kill_started "$serve1" "$serve2" "$ctl"
    controller run
    wait_for said 'the run in run goes on' run.err
    wait_for adam-ctl status run # by its own address, not by that of the one before
    adam-ctl down run
    wait_for ended
    ends_with 69
    grep -q 'error: waited [0-9]* s in vain for data server .*, and nothing could be saved' run.err
    [ ! -e run/latest ]
}

@test "a data server that stood still while its run ended leaves when it goes on, and says why" {
    start adam-ctl controller run.conf --out run --set epochs=2 --set data-servers=1 \
        --set data-patience=0.5 --set on-data-loss=continue 2>run.err
    ctl=$pid
    wait_for test -s run/controller.port
    start adam-ps --controller @run/controller.port 2>ps.err
    serve run/controller 1
    serve run/controller 2
    serve2=$pid
    wait_for all_serve
    kill -STOP "$serve2"
    worker run/controller
    ends_with 0
    [ -e run/DONE ] && [ ! -e run/controller.port ]
    kill -CONT "$serve2"
    pid=$serve2
    wait_end
    [ "$status" -eq 0 ]
    said 'adam-serve: the run is done and its controller is gone: it has left run/controller.port' \
        run/controller.serve.err
}
all_serve() {
    [ "$(grep -c 'member [0-9]*: serves samples' run/controller.serve.err)" = 2 ]
}

@test "members wait for a controller that does not come back as long as controller-patience says" {
    begin run --set epochs=100000 --set controller-patience=1
    wait_for epoch_is run 1
    kill -KILL "$ctl"
    for pid in "$serve1" "$serve2" "${started[1]}" "${started[4]}"; do
        wait_end
        [ "$status" -eq 69 ]
    done
    for log in run.serve.err run.worker.err; do
        said 'error: controller: no answer for [0-9]* s, and controller-patience is 1 s: ' $log
    done
}
