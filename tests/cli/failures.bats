#!/usr/bin/env bats
# A run of real programs under adam-ctl up, whose parts are killed with kill -9 while it
# trains; and Ctrl-C.
load ../helper/common
load ../helper/casualties

EPOCHS=20

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 3000 --seed 3 --split test=0.2 -o digits.arec
    small_net
    casualties_conf
    # What the run reaches when nobody is killed.
    adam-ctl up -q run.conf --out whole --ps 2 --workers 3 --threads 1
    accuracy whole >expected
    workers_rest 1000
}

setup() {
    cp "$BATS_FILE_TMPDIR"/{digits*.arec,small.net,run.conf,expected} "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR"
}

teardown() {
    end_run
}

begin() {
    begin_run --ps 2 --workers 3 "$@"
}

# Samples that can be out on lease: of each worker the mini-batches that it has taken ahead,
# the one that it is at, and those of up to eight exchanges that are not over yet.
on_lease() {
    echo $((3 * (4 + 1 + 8 * 4) * 8))
}

@test "kill -9 of workers at any moment: the run goes on to the same accuracy" {
    begin
    moment 1 3
    kill_again worker-1
    moment 5 8
    kill_again worker-2
    moment 10 12
    kill_again worker-1
    # All at once.
    moment 13 15
    left 'worker-[0-9]' | xargs kill -KILL
    ends_well
    [ "$(finished)" -eq "$(wanted)" ]
    grep -q 'worker-2 was killed by signal 9' err
}

@test "kill -9 of the data server: no sample is lost, or doubled beyond what was out on lease" {
    begin
    moment 1 3
    kill_again serve-1
    moment 7 10
    kill_again serve-1
    moment 13 15
    kill_again serve-1
    ends_well
    # Its journal has every sample of every epoch, once.
    [ "$(finished)" -eq "$(wanted)" ]
    [ "$(tail -n 1 run/serve-1.cursor | cut -d ' ' -f 1-3)" = "at 1 $EPOCHS" ]
    # The workers have trained on each of them; on no more again than they held.
    echo "# trained on $(trained) of $(wanted)"
    [ "$(trained)" -ge "$(wanted)" ]
    [ "$(trained)" -le $(($(wanted) + 3 * $(on_lease))) ]
}

@test "kill -9 of the controller: it is back, and the run ends as it would have" {
    begin
    moment 1 3
    kill_again controller
    moment 7 12
    kill_again controller
    ends_well
    [ "$(finished)" -eq "$(wanted)" ]
}

@test "kill -9 of a parameter server: the run stops and says what to do; --resume goes on" {
    begin
    wait_for test -e run/latest
    moment 3 10
    # A model of one shard is with one of them.
    local server
    server=$(basename "$(grep -l 'adam-ps: holds' run/log/ps-*.log)" .log)
    kill -KILL "$(left "$server")"
    local since=$SECONDS
    wait_end
    cat err
    [ "$status" -eq 69 ]
    [ $((SECONDS - since)) -lt $((30 * ${SLOWER:-1})) ]
    none_left
    grep -q "parameter server [0-9]* ($server) at .* is gone, and with it its part of the weights; --resume goes on from run/ckpt-" err
    [ ! -e run/DONE ]
    begin --resume
    ends_well
}

@test "Ctrl-C: saved, status 75, no process left; --resume goes on" {
    begin
    moment 3 10
    [ "$(left | wc -l)" -eq 8 ]
    kill -INT "$run"
    wait_end
    cat err
    [ "$status" -eq 75 ]
    none_left
    [ -e run/latest/manifest.json ]
    begin --resume
    ends_well
}

@test "a second Ctrl-C ends all at once, and leaves no socket" {
    export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
    begin
    moment 1 4
    kill -STOP "$(left controller)" # it will not save
    kill -INT "$run"
    wait_for grep -q 'once more ends' err
    kill -INT "$run"
    wait_end
    [ "$status" -eq 130 ]
    none_left
    [ -d adam ]
    [ -z "$(ls adam)" ]
}
