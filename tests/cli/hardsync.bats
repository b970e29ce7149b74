#!/usr/bin/env bats
# "(sigma, mu, lambda) = (0, mu, lambda) is equivalent to that of a single learner with
# mini-batch size mu x lambda" (Rudra eq. 7), by runs of real processes; the warm start; and
# parts that are killed with kill -9 at any moment.
load ../helper/common
load ../helper/casualties

EPOCHS=40

# An epoch is 15 steps of 64 samples and one of 40. The net is smooth: rounding errors stay
# as small as they are.
setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 1000 --seed 1 -o digits.arec
    adam-prep draw 400 --seed 2 -o digits-test.arec
    cat >smooth.net <<'NET'
input   1x28x28 ops='scale 1/255; mean 0.15; std 0.3'
dense d1   units=30 act=tanh
softmax    units=10
NET
    printf '%s\n' 'model = smooth.net' 'data = digits.arec' 'epochs = 2' 'rate = 0.02' \
        'eval-every = 0' 'protocol = hardsync' 'modulate = none' "silence = $SILENCE" >run.conf
    train one 1 64
    # What the longer runs below come to when nobody is killed.
    train whole 1 48 --set "epochs=$EPOCHS"
    accuracy whole >expected
    workers_rest 300
}

setup() {
    cp "$BATS_FILE_TMPDIR"/{digits*.arec,smooth.net,run.conf,expected} "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR"
}

teardown() {
    end_run
}

# train OUT WORKERS BATCH [OPTION...]
train() {
    local out=$1 workers=$2 batch=$3
    shift 3
    timeout 120 adam-ctl up run.conf --out "$out" --serve 1 --ps 1 \
        --workers "$workers" --threads 1 --set "batch=$batch" "$@" --quiet
}

# The greatest difference of two runs' weights is below 1e-5.
alike() {
    python3 - "$1/latest/model.safetensors" "$2/latest/model.safetensors" <<'PYTHON'
import json, struct, sys

def floats(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    names = sorted(name for name in header if name != "__metadata__")
    spans = [header[name]["data_offsets"] for name in names]
    return [x for a, b in spans for x in struct.unpack("<%df" % ((b - a) // 4), data[8 + size + a:8 + size + b])]

a, b = floats(sys.argv[1]), floats(sys.argv[2])
worst = max(abs(x - y) for x, y in zip(a, b, strict=True))
print(len(a), "weights differ by up to", worst)
assert len(a) > 20000 and worst < 1e-5
PYTHON
}

@test "two workers of 32 learn what one of 64 does, each time" {
    local i
    for i in 1 2 3; do
        train "two-$i" 2 32
        alike "$BATS_FILE_TMPDIR/one" "two-$i"
    done
}

# One worker of a run has the mini-batches of one machine.
@test "data servers change pictures and workers mix them as one machine does, whatever the protocol" {
    local protocol options=(--model smooth.net --data digits.arec --epochs 2 --rate 0.02 --batch 64
        --threads 1 --eval-every 0 --metrics-every 3600 --quiet)
    unset LD_PRELOAD # nothing here has to last
    local ops='randaugment; perspective 0.3 p=0.5; blur 0.5..2 p=0.5; erase noise p=0.5'
    adam-worker "${options[@]}" --mixup 0.4 --ops "$ops" --out mixed
    for protocol in hardsync async; do
        train $protocol 1 64 --set mixup=0.4 --set "ops=$ops" --set protocol=$protocol
        alike mixed $protocol
    done
    # Under softsync the gradients are of weights that are a step old: the losses are nearly the same,
    # where those without mixing are a tenth less.
    adam-worker "${options[@]}" --cutmix 1 --out cut
    train softsync 1 64 --set cutmix=1 --set protocol=softsync:1 --set metrics-every=3600
    local cut softsync
    cut=$(jq -s 'map(select(.event == "train").loss) | add / length' cut/metrics.jsonl)
    softsync=$(jq -s 'map(select(.event == "train" and .role == "worker"))[-1].loss' softsync/metrics.jsonl)
    jq -ne "($cut - $softsync | fabs) < 0.02"
}

# "we send the activation and error gradient vectors to the parameter server machines where
# the matrix multiply can be performed locally" (Adam 3.2.6): in a mean as anywhere.
# A gradient of d1 has 784 x 30 numbers; factors have 784 + 30 of each sample.
@test "gradients of a dense layer that come as factors make the same mean, of fewer bytes" {
    train factors 4 16 --set factors=d1
    alike "$BATS_FILE_TMPDIR/one" factors
    local numbers=$((2 * 1000 * (784 + 30))) sent
    sent=$(all_sent factors)
    echo "sent $sent bytes; the factors of all samples are $numbers numbers of 4"
    [ "$sent" -gt $((4 * numbers)) ]
    [ "$sent" -lt $((4 * numbers * 11 / 10)) ]
}

# Bytes that all workers of a run have sent to the parameter servers.
all_sent() {
    jq -s 'map(select(.event == "train")) | group_by(.rank) | map(last.sent) | add' "$1/metrics.jsonl"
}

# The first trains alone on 300 samples; nobody waits for the turn of the other.
@test "hardsync and softsync run to their end behind a warm start" {
    local protocol
    for protocol in hardsync softsync:1; do
        train "$protocol" 2 32 --set "protocol=$protocol" --set warm-start=300
        [ -e "$protocol/DONE" ]
    done
}

# A longer run of three workers, of which no sample is left out.
long() {
    begin_run --ps 1 --workers 3 --set batch=16 --set "epochs=$EPOCHS" --set epoch-end=1 \
        --set metrics-every=0.1 "$@"
}

# The last lines of the journals of two data servers.
served() {
    printf 'at %s\n' "1 $EPOCHS" "1 $EPOCHS"
}

@test "two data servers: each sample of their ranges is trained on once an epoch" {
    long --serve 2
    ends_well
    [ "$(tail -qn 1 run/serve-*.cursor)" = "$(served)" ]
    [ "$(finished)" -eq "$(wanted)" ]
    [ "$(trained)" -eq "$(wanted)" ]
}

@test "kill -9 of workers: the others go on without them, and every sample is trained on" {
    long
    moment 1 8
    kill_again worker-1
    moment 10 20
    # At once: one trains alone, or all wait until the controller misses them.
    left 'worker-[23]' | xargs kill -KILL
    ends_well
    [ "$(finished)" -eq "$(wanted)" ]
    local name
    for name in worker-1 worker-2 worker-3; do
        grep -q "worker [0-9]* ($name) vanished" err
    done
}

@test "kill -9 of a worker with on-peer-loss=stop: the run ends, and names it" {
    long --set on-peer-loss=stop
    moment 1 20
    kill -KILL "$(left worker-2)"
    ends_with 69
    grep -q 'error: .*worker [0-9]* (worker-2) vanished' err
    [ -e run/latest/manifest.json ]
}

@test "kill -9 of data servers: no sample is lost, or doubled beyond what was out on lease" {
    # Of each worker the mini-batch that it is at, the one behind it, and the one before
    # it, of which the data server has not heard yet that it is finished.
    local on_lease=$((3 * 3 * 16))
    long --serve 2
    moment 1 10
    kill_again serve-1
    moment 15 30
    kill_again serve-2
    ends_well
    [ "$(finished)" -eq "$(wanted)" ]
    [ "$(tail -qn 1 run/serve-*.cursor)" = "$(served)" ]
    echo "# trained on $(trained) of $(wanted)"
    [ "$(trained)" -ge "$(wanted)" ]
    [ "$(trained)" -le $(($(wanted) + 2 * on_lease)) ]
}
