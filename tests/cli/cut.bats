#!/usr/bin/env bats
# Models that are cut over partitions: what adam-ctl check says of them, and their training.
load ../helper/common
load ../helper/worker

setup() {
    cd "$BATS_TEST_TMPDIR"
    tiny_set
}

@test "check shows what each partition has, and what crosses the borders" {
    cat >cut.net <<'NET'
input 3x8x6
conv c1 maps=4 kernel=3 pad=1 cut=rows
maxpool p1 size=2 cut=rows
dense d1 units=10 cut=inputs
softmax s1 units=4 cut=units
NET
    adam-ctl check --partitions 2 --batch 16 cut.net | sed 's/  [0-9]*K   /  MEMORY   /' >table
    # The samples are partition 0's: it sends a strip of them, and the row above. Of c1 no row is
    # seen by windows of both. Sums are 5 of the 10 units, and the softmax reads all 10.
    diff table - <<'END'
line  layer  type     cut     partition  has        parameters  connections  activations  forward  back
   1  input  input    none            0  all                 0            0         9.0K        0     0
                                      1  -                   0            0            0      360     0
   2  c1     conv     rows            0  rows 0-3          112         2592         6.0K        0     0
                                      1  rows 4-7          112         2592         6.0K        0     0
   3  p1     maxpool  rows            0  rows 0-1            0            0         1.5K        0     0
                                      1  rows 2-3            0            0         1.5K        0     0
   4  d1     dense    inputs          0  units 0-4         245          240          320       40    40
                                      1  units 5-9         245          240          320       40    40
   5  s1     softmax  units           0  units 0-1          22           20          128        8     0
                                      1  units 2-3          22           20          128        8     0

partition  parameters  connections  memory  forward  back
        0         379         2852    MEMORY       48    40
        1         379         2852    MEMORY      408    40

bytes of a sample that cross borders:
from 0 to 1: 408 forward, 40 back
from 1 to 0: 48 forward, 40 back
weights of several partitions, exchanged for each mini-batch: 448
expected speed-up: 0.66 of 2, a byte that crosses a border taken for 32 multiplications
copies of the weights: 1 in a process alone; of a run's worker 3 with async, 2 with hardsync, 3 with softsync
END
}

@test "the parts are all of the model, and what comes is what goes" {
    local n
    for n in 1 2 3 7; do
        adam-ctl check --partitions $n --batch 16 --json "$ROOT/examples/alexnet.net" |
            is_true --argjson n $n --argjson whole "$(adam-ctl check --json "$ROOT/examples/alexnet.net")" '
            (.partitions | length == $n) and
            ([.partitions[].connections] | add / $whole.connections | . >= 1 and . < 1.05) and
            ([.partitions[].parameters] | add) == $whole.parameters + .shared_bytes / 4 * ($n - 1) and
            ([.partitions[].forward_bytes] | add) == ([.borders[].forward_bytes] | add // 0) and
            ([.partitions[].back_bytes] | add) == ([.borders[].back_bytes] | add // 0) and
            .speed_up <= $n and .speed_up > 0.7 * $n and .copies.hardsync == 2'
    done
}

@test "a layer that cannot be cut as the model says is named, with its line" {
    printf 'input 20\ndense d1 units=8 cut=rows\nsoftmax units=3\n' >bad.net
    run_status 65 adam-ctl check bad.net
    [[ "$stderr" = *"bad.net:2:18: error: dense: cut=rows is not for this layer, but units or none"* ]]
    [[ "$stderr" = *"2 | dense d1 units=8 cut=rows"* ]]
    printf 'input 20\nsoftmax units=3 cut=inputs\n' >bad.net
    run_status 65 adam-worker --model bad.net --data train.idx --labels train.lab --out run
    [[ "$stderr" = *"bad.net:2:17: error: softmax: cut=inputs is not for this layer, but units or none"* ]]
    printf 'input 3x9x9\nconv maps=4 kernel=3\nlayernorm cut=maps\nsoftmax units=3 cut=inputs\n' >bad.net
    run_status 65 adam-ctl check bad.net
    [[ "$stderr" = *"layernorm: cut=maps is not for this layer, but none"* ]]
    run_status 2 adam-ctl check --set layernorm1.cut=none --set conv1.cut=inputs bad.net
    [[ "$stderr" = *"conv: cut=inputs is not for this layer, but rows, maps or none"* ]]
    run_status 2 adam-ctl check --set layernorm1.cut=sideways bad.net
    [[ "$stderr" = *"sideways"* ]]
}

@test "partitions train, stop and go on with another number of them" {
    run_ok tiny --test test.idx --test-labels test.lab --epochs 12 --rate 0.05 --partitions 3 --in-flight 2 --out run
    [[ "$stderr" = *"3 partitions of the model, 2 mini-batches in flight"* ]]
    [ "$(metrics run start home)" = '"partitions"' ]
    [ "$(metrics run start threads)" = 3 ]
    [ "$(metrics run start in_flight)" = 2 ]
    [ "$(metrics run done top1)" = 1 ]
    [ "$(metrics run done samples)" = $((12 * 103)) ]
    [ "$(metrics run done step)" = $((12 * 7)) ]
    run_ok adam-worker --resume run --partitions 2 --epochs 14
    run_ok adam-worker --resume run --partitions 1 --epochs 16
    [ "$(metrics run done top1 | tail -n 1)" = 1 ]
}

@test "partitions learn from mixed samples, and from targets" {
    run_ok tiny --test test.idx --test-labels test.lab --epochs 20 --rate 0.05 --mixup 0.2 --ema 0.9 \
        --partitions 2 --in-flight 3 --clip 5 --out mixed
    [ "$(metrics mixed done top1)" = 1 ]
    python - <<'END'
import numpy as np
for name in "train", "test":
    labels = np.frombuffer(open(name + ".lab", "rb").read()[8:], np.uint8)
    np.save(name + ".npy", np.stack([labels == 0, labels == 1, labels == 2, labels > 0], 1).astype(np.float32))
END
    local way
    for way in logistic linear; do
        sed "s/^softmax .*/$way units=4/" tiny.net >$way.net
        run_ok adam-worker --model $way.net --data train.idx --targets train.npy --test test.idx \
            --test-targets test.npy --epochs 30 --rate 0.05 --sync --partitions 3 --in-flight 2 --out $way
        run_ok adam-worker --model $way.net --data train.idx --targets train.npy --test test.idx \
            --test-targets test.npy --epochs 30 --rate 0.05 --sync --threads 1 --out whole-$way
    done
    metrics logistic done map | is_true '. > 0.95'
    metrics linear done r2 | is_true '. > 0.5'
    # Nothing is random but the order of sums.
    python - <<'END'
import json
def losses(run):
    return [e["loss"] for e in map(json.loads, open(f"{run}/metrics.jsonl")) if e["event"] == "eval"]
for way in "logistic", "linear":
    for cut, whole in zip(losses(way), losses("whole-" + way), strict=True):
        assert abs(cut - whole) < 1e-3 * (abs(whole) + 0.1), (way, cut, whole)
END
}

@test "partitions that are stopped save all that they have" {
    start_tiny --partitions 2 --epochs 1000000000 --eval-every 0 --checkpoint-every 0 --out run
    wait_for grep -q '"event":"train"' run/metrics.jsonl
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    run_ok adam-worker --resume run --epochs 1
    run_ok adam-eval --model run --data test.idx --labels test.lab
}

@test "partitions have threads and weights of their own" {
    run_status 2 tiny --partitions 2 --threads 3 --out run
    [[ "$stderr" = *"leave out --threads"* ]]
    run_status 2 tiny --partitions 2 --home copies --out run
    [[ "$stderr" = *"leave out --home"* ]]
    run_status 2 tiny --partitions 65 --out run
    run_status 2 tiny --in-flight 0 --out run
    run_status 2 adam-worker --controller ipc:///nowhere --partitions 2
    [[ "$stderr" = *"leave out --partitions"* ]]
}

@test "examples/papers/adam-fig10.sh widens a model, whole and cut, and draws its speed" {
    WIDTHS="1 2" PARTITIONS="1 3" SAMPLES=64 EPOCHS=1 run_ok "$ROOT/examples/papers/adam-fig10.sh" out
    [ "$(grep -cE '^ +[13] +[12] +[0-9.]+ +[0-9.]+ +[0-9]+$' <<<"$output")" -ge 3 ]
    [ -e out/3-1/DONE ]
    python - out/fig10.svg <<'END'
import sys, xml.etree.ElementTree as tree
svg = tree.parse(sys.argv[1]).getroot()
space = "{http://www.w3.org/2000/svg}"
assert len(svg.findall(space + "circle")) >= 3
assert sum("part" in (text.text or "") for text in svg.findall(space + "text")) == 2
END
}
