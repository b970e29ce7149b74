#!/usr/bin/env bats
# Every key of every line of metrics is in adam-metrics(5), and what stands there is written.
load ../helper/common
load ../helper/worker

# "event key" of each item of the manual: event "every" is for all lines.
manual_keys() {
    awk '
        $1 == ".Ss" { event = $2 == "Every" ? "every" : $3 == "" ? $2 : "" }
        $1 == ".Sh" { event = "" }
        $1 == ".It" && $2 == "Cm" && event {
            for (i = 3; i <= NF; i++) if ($i != ",") print event, $i
        }' "$ROOT/man/adam-metrics.5" | sort -u
}

# The same of lines that were written.
written_keys() {
    jq -r '.event as $event | keys[] | "\($event) \(.)"' "$@" | sort -u
}

# Lines of a worker that trains alone: to the end, stopped, and diverged.
alone() {
    adam-worker --model tiny.net --data train.idx --labels train.lab --test test.idx \
        --test-labels test.lab --epochs 2 --batch 8 --out alone "$@"
}

@test "the keys of adam-metrics(5) are those that programs write" {
    tiny_set
    printf '%s\n' 'model = tiny.net' 'data = train.idx' 'labels = train.lab' 'test = test.idx' \
        'test-labels = test.lab' 'epochs = 40' 'batch = 8' 'metrics-every = 0.1' >run.conf
    run_ok adam-ctl up run.conf --ps 2 --workers 2 --threads 1 --quiet
    run_ok alone --metrics-every 0.1
    run_status 3 alone --rate 1e9 --force --out diverged
    written_keys run/metrics.jsonl alone/metrics.jsonl diverged/metrics.jsonl >written
    manual_keys >told
    # What only failures write.
    grep -vx 'stop error' told | sed -n 's/^every //p' | sort -u >every
    # Nothing is written that is not told...
    while read -r event key; do
        grep -qx "$key" every || grep -qx "$event $key" told || echo "not told: $event $key"
    done <written >missing
    # ...nor told that is not written.
    while read -r event key; do
        [ "$event" = every ] || grep -qx "$event $key" written || echo "not written: $event $key"
    done < <(grep -vx 'stop error' told) >>missing
    cat missing
    [ ! -s missing ]
    [ "$(wc -l <told)" -gt 70 ]
}
