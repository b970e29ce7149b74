# Runs under adam-ctl up whose parts are killed while they train: `load ../helper/casualties`,
# and call end_run in teardown. Each run is a session of its own, by which its processes are
# counted.

# Starts the run of run.conf into run/, with more options; what it says goes to err.
begin_run() {
    start setsid adam-ctl up run.conf --threads 1 "$@" 2>err
    run=$pid
}
end_run() {
    # What a failed test leaves behind says what it waited for.
    if [ -z "${BATS_TEST_COMPLETED:-}" ] && [ "$run" ]; then
        timeout 10 adam-ctl status run || true
        tail -n 30 err
    fi
    if [ "$run" ]; then pkill -KILL -s "$run" || true; fi
    stop_started
}

# Writes run.conf, of small.net and digits.arec, for $EPOCHS epochs. No sample is left out of an
# epoch. The rate falls to nothing, so that the end is no moment of chance: at a constant one a run
# is now and then 5% and more below itself.
casualties_conf() {
    printf '%s\n' 'model = small.net' 'data = digits.arec' 'test = digits-test.arec' \
        'rate = 0.02' 'schedule = cosine' 'batch = 8' 'epoch-end = 1' "epochs = $EPOCHS" \
        'push-every = 4' 'eval-every = 10' 'metrics-every = 0.1' 'checkpoint-every = 1' \
        "silence = $SILENCE" >run.conf
}

# The processes of the run, or those of a part.
left() {
    pgrep -s "$run" ${1:+-f -- "--name $1( |\$)|adam-ctl $1 "}
}
none_left() {
    [ -z "$(left)" ]
}

# One of the data servers said of late that it has seen so many epochs.
epoch_is() {
    [ "$(grep '"event":"serve"' run/metrics.jsonl | tail -n 20 | jq -s "map(.epoch) | max >= $1")" = true ]
}

over_or_epoch_is() {
    ! kill -0 "$run" || epoch_is "$1"
}

# A moment between two epochs of the run, drawn anew each time; told when the test fails.
moment() {
    epoch=$(jq -n "$1 + ($2 - $1) * $RANDOM / 32768")
    echo "# at epoch $epoch"
    wait_for over_or_epoch_is "$epoch"
    kill -0 "$run"
}

# Kills a part, and waits until another process has its name.
another_is_there() {
    local now
    now=$(left "$1") && [ "$now" != "$2" ]
}
kill_again() {
    local old
    old=$(left "$1")
    echo "# kill -9 of $1: $old"
    kill -KILL "$old"
    wait_for another_is_there "$1" "$old"
}

# The run ends by itself, with this status and without a process left.
ends_with() {
    wait_end
    cat err
    [ "$status" -eq "$1" ]
    none_left
}
# It is done, as good as a run that nobody hurt.
ends_well() {
    ends_with 0
    [ -e run/DONE ]
    jq -ne "$(accuracy run) > $(cat expected) - 0.03"
}
accuracy() {
    adam-eval --model "$1/latest" --data digits-test.arec --json | jq .top1
}

# Samples of $EPOCHS epochs; those that the controller knows to be finished; those that were
# trained on, by all workers in all their lives, as far as they could still tell it.
wanted() {
    echo $((EPOCHS * $(adam-prep stat digits.arec --json | jq .samples)))
}
finished() {
    jq -s 'map(select(.role == "controller").samples | numbers) | max' "${1:-run}/metrics.jsonl"
}
trained() {
    jq -s 'map(select(.event == "train")) | group_by(.rank) | map(max_by(.step).samples) | add' \
        "${1:-run}/metrics.jsonl"
}
