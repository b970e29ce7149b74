#!/usr/bin/env bats
# Figures of a run: every key of every line of metrics is in adam-metrics(5), and what stands
# there is written; how members are doing, for people and for Prometheus.
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

# A run to its end in the folder stored, of one parameter server, which has a store.
run_with_store() {
    (cat run.conf && echo 'servers = 1') >stored.conf
    start adam-ctl controller stored.conf --out stored --port-file port 2>err
    local controller=$pid
    start adam-ps --controller @port --store store 2>ps.err
    start adam-serve --controller @port train.idx --labels train.lab 2>serve.err
    run_ok adam-worker --controller @port --threads 1
    pid=$controller
    wait_end
}

# Runs whose samples have several classes each, or numbers.
with_targets() {
    python - <<'END'
import numpy as np
for name, count in ("train", 103), ("test", 60):
    np.save(name + ".npy", (np.arange(3 * count) % 7 > 2).reshape(count, 3).astype(np.uint8))
END
    local way
    for way in logistic linear; do
        sed "s/^softmax/$way/" tiny.net >$way.net
        run_ok adam-worker --model $way.net --data train.idx --targets train.npy --test test.idx \
            --test-targets test.npy --epochs 1 --out $way
    done
}

@test "the keys of adam-metrics(5) are those that programs write" {
    tiny_set
    printf '%s\n' 'model = tiny.net' 'data = train.idx' 'labels = train.lab' 'test = test.idx' \
        'test-labels = test.lab' 'epochs = 40' 'batch = 8' 'metrics-every = 0.1' >run.conf
    run_ok adam-ctl up run.conf --ps 2 --workers 2 --threads 1 --quiet
    run_ok alone --metrics-every 0.1 --freeze c1
    run_ok alone --metrics-every 0.1 --partitions 2 --out cut
    run_status 3 alone --rate 1e6 --decay 1 --force --out diverged
    run_with_store
    with_targets
    written_keys {logistic,linear}/metrics.jsonl run/metrics.jsonl {alone,cut}/metrics.jsonl diverged/metrics.jsonl stored/metrics.jsonl >written
    manual_keys >told
    # What only failures write; absent.bats reads that of data that are away, store.bats that of
    # servers that come back, powercut.bats that of runs that do, copies.bats that of copies.
    grep -vxE 'stop error|(refused|idle|idle_over|left_out|ps_returned|revived|places|ps_lost|drain|drained) .*' told | sed -n 's/^every //p' | sort -u >every
    # Nothing is written that is not told...
    while read -r event key; do
        grep -qx "$key" every || grep -qx "$event $key" told || echo "not told: $event $key"
    done <written >missing
    # ...nor told that is not written.
    while read -r event key; do
        [ "$event" = every ] || grep -qx "$event $key" written || echo "not written: $event $key"
    done < <(grep -vxE 'stop error|(refused|idle|idle_over|left_out|ps_returned|revived|places|ps_lost|drain|drained) .*' told) >>missing
    cat missing
    [ ! -s missing ]
    [ "$(wc -l <told)" -gt 70 ]
}

# A run without end, of a model of one shard, with two parameter servers and one worker.
run_on() {
    tiny_set
    printf '%s\n' 'model = tiny.net' 'data = train.idx' 'labels = train.lab' 'epochs = 1000000' \
        'batch = 8' 'servers = 2' >run.conf
    http=$(free_port)
    start adam-ctl controller run.conf --out run --http "127.0.0.1:$http" --port-file port 2>err
    controller=$pid
    wait_for adam-ctl status run
    for name in 1 2; do start adam-ps --controller @port --name ps-$name 2>ps-$name.log; done
    start adam-serve train.idx --labels train.lab --controller @port
    start adam-worker --controller @port --threads 1 --name 'a "b\c'
    wait_for is_pushed
}

is_pushed() {
    adam-ctl status run --json | is_true '[.members[].pushes] | add > 0'
}

# The text format of Prometheus, version 0.0.4, as its documentation has it; and what its
# advice on names says: seconds and bytes, counters end in _total.
check_prometheus() { # FILE
    python - "$1" <<'END'
import re, sys
family, seen, samples = None, set(), set()
label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
text = open(sys.argv[1], encoding='utf-8').read()
assert text.endswith('\n')
lines = text[:-1].split('\n')
for number, line in enumerate(lines):
    if line.startswith('# HELP '):
        family = re.fullmatch(r'# HELP (adam_[a-z_]+) [^\n]*[a-z].*', line)[1]
        assert family not in seen, 'twice: ' + family
        seen.add(family)
        kind = re.fullmatch(r'# TYPE (\S+) (counter|gauge)', lines[number + 1])
        assert kind[1] == family
        assert family.endswith('_total') == (kind[2] == 'counter'), line
        assert not re.search('milli|micro|kilo|mega|minutes', family), line
    elif not line.startswith('# TYPE '):
        sample = re.fullmatch(r'([a-z_]+)((?:\{' + label + '(?:,' + label + r')*\})?) (\S+)', line)
        assert sample, line
        assert sample[1] == family, 'away from its family: ' + line
        assert sample[1] + sample[2] not in samples, 'twice: ' + line
        samples.add(sample[1] + sample[2])
        float(sample[3])
run = {'adam_idle_seconds', 'adam_left_out_ratio'} # all else is of each member
members = seen - run
assert run < seen and run < samples
assert len(members) > 10 and len(samples - run) >= 5 * len(members), (members, len(samples))
END
}

# The page is made anew once a second.
is_served() {
    curl -sSf -D head -o served "http://127.0.0.1:$http/metrics" &&
        grep -q '^adam_pushes_total{.*role="worker".*} [1-9]' served
}

# All lines of a run's metrics are whole, and tell what it came to.
are_whole() {
    jq -c . "$1/metrics.jsonl" >lines
    [ "$(wc -l <lines)" -eq "$(wc -l <"$1/metrics.jsonl")" ]
    adam-ctl compare "$1" --json | jq -e --argjson epoch "$2" ".runs[0].epoch == \$epoch"
}

@test "a line that was cut is no part of the metrics any more when the run goes on" {
    tiny_set
    printf '%s\n' 'model = tiny.net' 'data = train.idx' 'labels = train.lab' 'batch = 8' >run.conf
    run_ok adam-ctl up run.conf --threads 1 --quiet --set epochs=1
    run_ok alone
    truncate -s -30 {run,alone}/metrics.jsonl
    run_ok adam-worker --resume alone --epochs 3
    run_ok adam-ctl up run.conf --threads 1 --quiet --set epochs=2 --resume
    are_whole alone 3
    are_whole run 2
    # And one that is the only one, longer than what is read at a time.
    head -c 9000 /dev/zero | tr '\0' x >alone/metrics.jsonl
    run_ok adam-worker --resume alone --epochs 4
    are_whole alone 4
}

@test "Prometheus can read what adam-ctl prom prints, and what the controller serves" {
    need curl
    run_on
    run_ok adam-ctl prom run
    printf '%s\n' "$output" >printed
    check_prometheus printed
    grep -qF 'role="worker",name="a \"b\\c"' printed
    wait_for is_served
    grep -qi '^content-type: text/plain; version=0.0.4' head
    check_prometheus served
    # Members have the same names on both ways.
    diff <(sed -n 's/^adam_state\({.*}\).*/\1/p' printed | sort) \
        <(sed -n 's/^adam_state\({.*}\).*/\1/p' served | sort)
    if command -v promtool >/dev/null; then
        promtool check metrics <printed
        promtool check metrics <served
    fi
}

pushes_every() { # WORKERS, MINI-BATCHES: so many workers' last lines say so
    jq -se --argjson workers "$1" --argjson every "$2" '
        [.[] | select(.role == "worker" and .event == "train")] | group_by(.rank) | map(last)
        | map(select(.push_every == $every)) | length == $workers' run/metrics.jsonl
}

# 2048 samples of one worker; of two together 64 at first and 128 later; in mini-batches of 8.
@test "a worker that trains alone pushes less often than each of two, from when the other comes or goes" {
    run_on
    run_ok adam-ctl set run metrics-every=0.1
    wait_for pushes_every 1 256
    start adam-worker --controller @port --threads 1 --name another
    another=$pid
    wait_for pushes_every 2 8
    kill "$another"
    wait_for pushes_every 1 256
}

one_is_idle() {
    [ "$(adam-ctl status run | grep -c 'waiting .* nothing: it holds no shard$')" = 1 ]
}

@test "a parameter server without a shard is idle, and waits for nobody" {
    run_on
    wait_for one_is_idle
    [[ "$(adam-ctl status run)" != *"weights from the controller"* ]]
    [ "$(cat ps-?.log | grep -c 'idle: holds no shard of the model')" = 1 ]
}

# Pages on a terminal of 60 columns and 12 rows.
on_terminal() {
    start script -qefc "stty cols 70 rows 12; $*" terminal >/dev/null
}

@test "top draws within the terminal, and ends with the run; the last line knows the epoch" {
    need script
    run_on
    on_terminal adam-ctl top --every 0.1 run
    top=$pid
    wait_for grep -q 'ps-[12] waits for nothing: it holds no shard' terminal
    wait_for grep -q '^.*epoch [0-9.]*  loss [0-9.]*  1 worker  [0-9]* images/s  wait [0-9]*%' terminal
    run_ok adam-ctl down run
    pid=$controller
    wait_end
    [ "$status" -eq 75 ]
    pid=$top
    wait_end
    [ "$status" -eq 0 ]
    tr -d '\r' <terminal | sed 's/\x1b\[[A-Z]//g' | grep -v '^Script ' >plain
    grep -q '^ROLE ' plain
    run ! grep -E '^.{70}' plain
    jq -e 'select(.event == "stop") | .epoch > 0 and .samples > 0' run/metrics.jsonl
}
