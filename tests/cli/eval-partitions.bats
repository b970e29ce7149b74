#!/usr/bin/env bats
# adam-eval --partitions: a model in several processes, none of which has all of it, says what it
# says whole.
load ../helper/common

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 400 --seed 3 --split test=0.3 -q -o digits.arec
    adam-prep draw 30 --seed 4 -q -o pictures/
    find "$PWD/pictures" -name '*.png' | sort >list
    # Each way of cutting a layer; of so small a net one partition would have all.
    cat >kinds.net <<'NET'
input     1x28x28 ops='scale 1/255'
conv      c1 maps=9 kernel=5 pad=2 act=relu cut=rows
batchnorm b1 cut=maps
maxpool   p1 size=2 cut=rows
lrn       size=3
conv      c2 maps=9 kernel=3 pad=1 cut=maps
add       sum from=c2,p1 act=relu
conv      c3 maps=6 kernel=3 stride=2 act=gelu cut=rows
groupnorm groups=3 cut=maps
avgpool   size=2
dense     d1 units=31 act=relu dropout=0.5 cut=inputs
softmax   s1 units=10 cut=units
NET
    adam-worker -q --model kinds.net --data digits.arec --epochs 2 --rate 0.05 --threads 1 --out kinds
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    made=$BATS_FILE_TMPDIR
    test_data=$made/digits-test.arec
}

# Whether two tables of all scores have the same samples, labels and predictions, and scores within
# 1e-5 (1e-5 of the value, where that is larger).
same_scores() {
    python - "$@" <<'END'
import csv, sys
one, other = ([row for row in csv.reader(open(path), delimiter="\t")] for path in sys.argv[1:])
assert len(one) == len(other) > 2 and one[0] == other[0]
texts = sum(name in ("key", "label", "predicted") for name in one[0])
for a, b in zip(one[1:], other[1:]):
    assert a[:texts] == b[:texts], (a, b)
    for x, y in zip(map(float, a[texts:]), map(float, b[texts:])):
        assert abs(x - y) <= 1e-5 * max(1, abs(x)), (a, b)
END
}

# Starts adam-eval with more options, on paths that come through descriptor $to, as far as its first
# answer in `predicted`; $children are the processes of its other partitions.
begin() {
    mkfifo pipe
    start bash -c "exec adam-eval --model '$made/kinds' --files-from - $* <pipe >predicted 2>err"
    exec {to}>pipe
    head -n 1 "$made/list" >&"$to"
    said 1
    children=$(pgrep -P "$pid")
}
said() { # NUMBER of answers
    answers() { [ "$(grep -c . predicted)" -eq "$1" ]; }
    wait_for answers "$1"
}

@test "scores and figures are those of the whole model, for any number of partitions and threads" {
    run_ok adam-eval --model "$made/kinds" --data "$test_data" --exact --per-sample whole.tsv --json
    jq . <<<"$output"
    whole=$output
    for n in 2 3 5; do
        run_ok adam-eval --model "$made/kinds" --data "$test_data" --partitions $n --batch 7 \
            --threads $((n - 1)) --per-sample "$n.tsv" --json
        same_scores whole.tsv "$n.tsv"
        jq -es '.[0] as $a | .[1] | .samples == $a.samples and .top1 == $a.top1
            and .top5 == $a.top5 and (.loss - $a.loss | fabs) < 1e-5' <<<"$whole $output"
    done
}

@test "pictures from a pipe are predicted at once, one a line" {
    begin --partitions 2
    for n in 2 3; do
        sed -n "${n}p" "$made/list" >&"$to"
        said $n
    done
    exec {to}>&-
    wait_end
    [ "$status" -eq 0 ]
    head -n 3 "$made/list" | adam-eval --model "$made/kinds" --files-from - --exact >whole
    cut -f 1,2 whole | diff - <(cut -f 1,2 predicted)
}

@test "numbers and several classes have the figures of the whole model, too" {
    for kind in linear logistic; do
        sed "s/^softmax .*/$kind units=3 cut=units/" "$made/kinds.net" >$kind.net
        python - "$kind" <<'END'
import sys
import numpy as np
random = np.random.default_rng(1)
for name, n in (("train", 280), ("test", 120)):
    values = random.standard_normal((n, 3)).astype(np.float32)
    if sys.argv[1] == "logistic":
        values = (values > 0).astype(np.float32)
    np.save(f"{name}-{sys.argv[1]}.npy", values)
    np.save(f"{name}.npy", random.integers(0, 255, (n, 28, 28)).astype(np.uint8))
END
        adam-worker -q --model $kind.net --data train.npy --targets train-$kind.npy --epochs 1 --rate 0.001 \
            --out "run-$kind"
        run_ok adam-eval --model "run-$kind" --data test.npy --targets test-$kind.npy --exact --json \
            --per-sample "$kind.tsv"
        whole=$output
        run_ok adam-eval --model "run-$kind" --data test.npy --targets test-$kind.npy --partitions 3 --json \
            --per-sample "$kind-3.tsv"
        same_scores "$kind.tsv" "$kind-3.tsv"
        jq -es '.[0] as $a | .[1] as $b | ($a | keys) == ($b | keys)
            and ([$a | to_entries[] | select(.value | numbers) | (.value - $b[.key] | fabs) < 1e-4] | all)' \
            <<<"$whole $output"
    done
}

@test "a checkpoint in parts is read by each process for itself" {
    python "$ROOT/tests/helper/parts.py" split "$made/kinds/latest/model.safetensors" parted
    index=parted/model.safetensors.index.json
    adam-eval --model "$made/kinds" --data "$test_data" --exact --per-sample whole.tsv
    adam-eval --model $index --data "$test_data" --partitions 2 --per-sample parted.tsv
    same_scores whole.tsv parted.tsv
    rm parted/model-00002-of-00002.safetensors
    run_status 66 adam-eval --model $index --data "$test_data" --partitions 2
    [[ $stderr = *"model-00002-of-00002.safetensors"* ]]
}

@test "where no process may hold the model several may" {
    if [ "$SAN" ]; then skip "a sanitizer has memory of its own"; fi
    large_net
    adam-worker -q --model large.net --data "$test_data" --epochs 1 --threads 1 --out large
    small() { (ulimit -d 70000 && adam-eval --model large --data "$test_data" --threads 1 --json "$@"); }
    run_status 74 small
    [[ $stderr = *"out of memory"* ]]
    run_ok small --partitions 4
    parted=$output
    run_ok adam-eval --model large --data "$test_data" --json
    jq -es '.[0].top1 == .[1].top1' <<<"$output $parted"
}

@test "kill -9 of a partition's process: it is said, status 69, and no process is left" {
    begin --partitions 3 --threads 1
    read -r victim other < <(echo $children)
    kill -KILL "$victim"
    cat "$made/list" >&"$to" || true
    exec {to}>&-
    wait_end
    cat err
    [ "$status" -eq 69 ]
    grep -q "partition [12] of the model (process $victim) was killed by signal 9" err
    if kill -0 "$other" 2>/dev/null; then false; fi
}

@test "kill -9 of who has the samples: no process is left" {
    begin --partitions 3 --threads 2
    [ "$(wc -w <<<"$children")" -eq 2 ]
    kill -KILL "$pid"
    none() { ! kill -0 $children; }
    wait_for none
    exec {to}>&-
}

@test "a partition's process that stands still is waited for by name" {
    begin --partitions 2 --threads 1
    kill -STOP "$children"
    cat "$made/list" >&"$to"
    exec {to}>&-
    waits() { grep -q "waits for partition 1 of the model (process $children)" err; }
    wait_for waits
    kill -CONT "$children"
    wait_end
    [ "$status" -eq 0 ]
    said $(($(wc -l <"$made/list") + 1))
}

@test "one that stands still before it has read its part is, too" {
    ${CC:-cc} -shared -fPIC -O1 -o stop.so "$ROOT/tests/helper/preload/fork_stop.c" -ldl
    start env LD_PRELOAD="$PWD/stop.so" ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        adam-eval --model "$made/kinds" --data "$test_data" --partitions 2 2>err
    waits() { grep -q "waits for partition 1 of the model (process [0-9]*)" err; }
    wait_for waits
    kill -CONT "$(pgrep -P "$pid")"
    wait_end
    [ "$status" -eq 0 ]
    grep -q "top-1" err
}

@test "what does not go with partitions is refused" {
    run_status 2 adam-eval --model "$made/kinds" --listen http://127.0.0.1:0 --partitions 2
    [[ $stderr = *"--partitions does not go with --listen"* ]]
    run_status 2 adam-eval --follow "$made/kinds" --data "$test_data" --partitions 2
    [[ $stderr = *"--partitions does not go with --follow"* ]]
    run_status 2 adam-eval --model "$made/kinds" --data "$test_data" --features p1 --out f.arec --partitions 2
    [[ $stderr = *"--partitions does not go with --features"* ]]
    run_status 2 adam-eval --model "$made/kinds" --data "$test_data" --partitions 65
}

@test "a damaged checkpoint is refused as ever, with the sound one of its run" {
    cp -r "$made/kinds" damaged
    damaged=$(readlink -f damaged/latest/model.safetensors)
    printf xxxxxxxx | dd of="$damaged" bs=1 seek=$(($(stat -c %s "$damaged") - 40)) conv=notrunc status=none
    run_status 65 adam-eval --model damaged --data "$test_data" --partitions 2
    [[ $stderr = *"damaged: its CRC-32"* ]]
}
