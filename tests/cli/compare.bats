#!/usr/bin/env bats
# adam-ctl compare: what it shows of runs is what their metrics say, in the order asked for.
load ../helper/common
load ../helper/run

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# told NAME LINE...: a run whose metrics are these, each line after its common members.
told() {
    mkdir -p "$1"
    local line
    for line in "${@:2}"; do
        printf '{"v": 1, "role": "worker", "rank": 0, %s}\n' "$line"
    done >"$1/metrics.jsonl"
}

three_runs() {
    told a '"t": 100, "event": "start", "model": "nets/small.net", "parameters": 1200' \
        '"t": 110, "event": "eval", "step": 10, "epoch": 1, "samples": 500, "top1": 0.5, "loss": 1.25' \
        '"t": 120, "event": "eval", "step": 20, "epoch": 2, "samples": 1000, "top1": 0.75, "loss": 1.5' \
        '"t": 125, "event": "done", "step": 20, "epoch": 2, "samples": 1000, "top1": 0.75, "seconds": 25'
    told b '"t": 100, "event": "start", "model": "large.net", "parameters": 90000' \
        '"t": 150, "event": "eval", "step": 9, "epoch": 1.5, "samples": 600, "top1": 0.875, "loss": 0.5' \
        '"t": 160, "event": "stop", "step": 10, "epoch": 1.75, "samples": 600, "reason": "signal"'
    told c '"t": 100, "event": "start", "model": "small.net", "parameters": 1200' \
        '"t": 101, "event": "train", "step": 5, "epoch": 0.5, "samples": 250, "loss": 2, "rate": 0.1' \
        '"t": 102, "event": "nan", "step": 6, "epoch": 0.6, "samples": 300, "loss": null'
}

@test "each run is a line of what its metrics say" {
    three_runs
    run_ok adam-ctl compare a/ b c/metrics.jsonl
    diff - <(tr -s ' ' <<<"$output" | sed 's/ $//') <<'END'
run model end parameters epoch seconds images/s loss top1 at
a small.net done 1200 2.00 25.0 40 1.2500 0.7500 2.00
b large.net stopped 90000 1.75 60.0 10 0.5000 0.8750 1.50
c/metrics.jsonl small.net diverged 1200 0.60 2.0 150 - - -
END
}

@test "the best come first by any column, and runs that lack it last" {
    three_runs
    local key order
    while read -r key order; do
        [ "$(adam-ctl compare c a b --sort "$key" --json | jq -r '[.runs[].run] | join(" ")')" = "$order" ] ||
            { echo "$key"; return 1; }
    done <<'END'
top1 b a c
loss b a c
images/s c a b
seconds c a b
epoch c b a
parameters c a b
at b a c
END
    [ "$(adam-ctl compare c a b --json | jq -r '[.runs[].run] | join(" ")')" = "c a b" ]
    run_status 2 adam-ctl compare a --sort top2
    [[ $stderr = *images/s* ]]
}

@test "runs of several classes, or of numbers, have columns of their own" {
    told m '"t": 100, "event": "start", "model": "m.net", "parameters": 12' \
        '"t": 110, "event": "eval", "step": 10, "epoch": 1, "samples": 50, "map": 0.75, "loss": 0.5' \
        '"t": 120, "event": "eval", "step": 20, "epoch": 2, "samples": 100, "map": 0.625, "loss": 0.75'
    told n '"t": 100, "event": "start", "model": "n.net", "parameters": 12' \
        '"t": 110, "event": "eval", "step": 10, "epoch": 1, "samples": 50, "mae": 2, "r2": -0.5, "loss": 4' \
        '"t": 120, "event": "eval", "step": 20, "epoch": 2, "samples": 100, "mae": 1, "r2": 0.25, "loss": 1'
    run_ok adam-ctl compare m n
    diff - <(tr -s ' ' <<<"$output" | sed 's/ $//') <<'END'
run model end parameters epoch seconds images/s loss top1 map r2 at
m m.net not ended 12 2.00 20.0 5 0.5000 - 0.7500 - 1.00
n n.net not ended 12 2.00 20.0 5 1.0000 - - 0.2500 2.00
END
    [ "$(adam-ctl compare m n --sort r2 --json | jq -c '[.runs[] | .run, .map, .r2]')" = '["n",null,0.25,"m",0.75,null]' ]
    adam-ctl compare n | grep -q 'top1  *r2  *at'
}

@test "of runs/* what is no run is skipped with a word, and the status is 1" {
    three_runs
    mkdir -p runs/empty runs/none
    mv a b runs
    echo 'what I tried' >runs/notes.txt
    : >runs/none/metrics.jsonl
    run_status 1 adam-ctl compare runs/*
    [ "$(cut -d' ' -f1 <<<"$output" | xargs)" = "run runs/a runs/b" ]
    [ "$(grep -c '^adam-ctl: skipped: ' <<<"$stderr")" -eq 3 ]
    for name in empty none notes.txt; do grep -q "skipped: .*runs/$name" <<<"$stderr"; done
    run_status 1 adam-ctl compare runs/* --json
    [ "$(jq -c '[.runs[].run]' <<<"$output")" = '["runs/a","runs/b"]' ]
    run_status 1 adam-ctl plot runs/* -o curves.svg
    grep -q 'skipped: .*runs/notes.txt' <<<"$stderr"
    adam-ctl plot runs/a runs/b | cmp - curves.svg
    # One that is not there, or is damaged, is a mistake; and so is a list without a run.
    run_status 66 adam-ctl compare runs/a nowhere
    run_status 65 adam-ctl compare runs/notes.txt
    run_status 65 adam-ctl compare runs/none runs/notes.txt
    [[ $stderr = *"none of them is a run"* ]]
    echo '{"v":1,' >>runs/b/metrics.jsonl
    run_status 65 adam-ctl compare runs/*
    [[ $stderr = *"runs/b/metrics.jsonl:4: "* ]]
}

@test "JSON has the figures, and null for what is not known" {
    three_runs
    adam-ctl compare a c --json >both.json
    jq -e '.runs[0] == {run: "a", model: "small.net", end: "done", parameters: 1200, epoch: 2, seconds: 25,
        images_per_s: 40, loss: 1.25, top1: 0.75, map: null, r2: null, best_epoch: 2}' both.json
    jq -e '.runs[1] | .top1 == null and .loss == null and .best_epoch == null' both.json
}

@test "a run that is real is told as its metrics do, and one that is not is an error" {
    small_run "$BATS_TEST_TMPDIR" >log 2>&1
    top1=$(jq -s '[.[] | select(.event == "eval") | .top1] | max' run/metrics.jsonl)
    adam-ctl compare run/ --json |
        jq -e --argjson top1 "$top1" '.runs[0] | (.top1 - $top1 | fabs) < 1e-8 and .end == "done" and .epoch == 2'
    run_status 66 adam-ctl compare run/ nowhere
    [ -z "$output" ]
    [[ $stderr = *nowhere* ]]
    run_status 2 adam-ctl compare
}
