#!/usr/bin/env bats
# adam-eval --follow: a run is tested while it is trained, and in the end.
load ../helper/common

setup_file() {
    adam-prep draw 2000 --seed 1 -q -o "$BATS_FILE_TMPDIR/train.arec"
    adam-prep draw 500 --seed 2 -q -o "$BATS_FILE_TMPDIR/test.arec"
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp "$BATS_FILE_TMPDIR"/*.arec .
    cat >run.conf <<END
model = $ROOT/examples/digits.net
data = train.arec
test = test.arec
epochs = ${epochs:-3}
batch = 8
rate = 0.02
END
}

# A run of one process of each role.
start_run() {
    adam-ctl controller run.conf --out run --port-file ctl.port "$@" >ctl.log 2>&1 &
    controller=$!
    wait_for [ -e ctl.port ]
    adam-serve train.arec --controller @ctl.port >serve.log 2>&1 &
    adam-ps --controller @ctl.port >ps.log 2>&1 &
    adam-worker --controller @ctl.port --threads 1 >worker.log 2>&1 &
}

have_joined() { # COUNT
    [ "$(grep -c ' joined' ctl.log)" = "$1" ]
}

@test "it prints a line of metrics for each test, ends with the run, and the last one is of the final weights" {
    start_run
    run_ok adam-eval --follow @ctl.port --data test.arec --every 0.2s
    wait "$controller"
    echo "$output" >lines
    [ "$(wc -l <lines)" -ge 2 ]
    jq -se 'all(.[]; .v == 1 and .role == "evaluator" and .event == "eval" and .samples_tested == 500)' lines
    jq -se '[.[].step] == ([.[].step] | sort)' lines
    jq -se '.[-1] | .epoch > 2.7 and .samples >= 5400' lines
    adam-eval --model run --data test.arec --json -q >final
    diff <(jq -s '.[-1] | .top1, .top5' lines) <(jq '.top1, .top5' final)
}

# With so high a share it is far behind where weights move fast.
@test "and of their average, where one is kept" {
    start_run --set ema=0.9999 --set push=gradient --set epochs=1
    run_ok adam-eval --follow @ctl.port --data test.arec --every 0.2s
    wait "$controller"
    adam-eval --model run --data test.arec --json -q >final
    diff <(echo "$output" | jq -s '.[-1] | .top1, .loss * 1e6 | round') <(jq '.top1, .loss * 1e6 | round' final)
}

@test "an interrupt ends it at once with 75, and the run does not mind" {
    start_run --set epochs=1000
    env --default-signal=INT adam-eval --follow @ctl.port --data test.arec --every 1h >lines 2>eval.log &
    local eval=$!
    wait_for [ -s lines ]
    kill -INT $eval
    local ended=0
    wait $eval || ended=$?
    [ "$ended" = 75 ]
    wait_for grep -q 'evaluator.*left' ctl.log
    kill -TERM "$controller"
    wait "$controller" || [ $? = 75 ]
}

@test "a run is followed by its folder; over before the first look, its end is told" {
    # So short a run that the silence of who is stopped meanwhile is not the end of its session.
    adam-prep draw 64 --seed 3 -q -o short.arec
    sed -i '/^test/d; s/^epochs.*/epochs = 1/' run.conf
    adam-ctl controller run.conf --out run --port-file ctl.port >ctl.log 2>&1 &
    controller=$!
    wait_for [ -e ctl.port ]
    env --default-signal=INT adam-eval --follow run/ --data test.arec --every 1h >lines 2>eval.log &
    local eval=$!
    adam-serve short.arec --controller @ctl.port >serve.log 2>&1 &
    adam-worker --controller @ctl.port --threads 1 >worker.log 2>&1 &
    wait_for have_joined 3 # without a parameter server nothing begins
    kill -STOP $eval
    adam-ps --controller @ctl.port >ps.log 2>&1 &
    # Nobody is left who could say how far the data were read.
    wait_for grep -q 'data server.*left' ctl.log
    kill -CONT $eval
    wait $eval
    wait "$controller"
    jq -se 'length > 0 and all(.[]; .epoch == 1 and .samples == 64 and .step > 1)' lines
    grep -q 'epoch 1: top-1' eval.log
}

@test "what cannot be followed is refused" {
    run_status 66 adam-eval --follow run/ --data test.arec
    [[ "$stderr" = *"run/: neither a run's folder nor an address"* ]]
    mkdir run
    run_status 66 adam-eval --follow run/ --data test.arec
    [[ "$stderr" = *"run/: no controller runs there: it has no controller.port"* ]]
    touch run/DONE
    run_status 66 adam-eval --follow run/ --data test.arec
    [[ "$stderr" = *"run/: no controller runs there: the run is done"* ]]
    run_status 2 adam-eval --follow @ctl.port --data test.arec --model run
    [[ "$stderr" = *"has its own model"* ]]
    run_status 2 adam-eval --follow @ctl.port --data -
    [[ "$stderr" = *"--follow needs --data"* ]]
    run_status 2 adam-eval --follow @ctl.port --data test.arec --every 0
    [[ "$stderr" = *"needs a time such as 30s, 1.5m or 2h"* ]]
    run_status 2 adam-eval --follow tcp://10.1.2.3:7000 --data test.arec
    [[ "$stderr" = *"--insecure"* ]]
}
