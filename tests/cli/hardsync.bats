#!/usr/bin/env bats
# "(sigma, mu, lambda) = (0, mu, lambda) is equivalent to that of a single learner with
# mini-batch size mu x lambda" (Rudra eq. 7), by runs of real processes; and the warm start.
load ../helper/common

# An epoch is 15 steps of 64 samples and one of 40. The net is smooth: rounding errors stay
# as small as they are.
setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 1000 --seed 1 -o train.arec
    cat >smooth.net <<'NET'
input   1x28x28 ops='scale 1/255; mean 0.15; std 0.3'
dense d1   units=30 act=tanh
softmax    units=10
NET
    printf '%s\n' 'model = smooth.net' 'data = train.arec' 'epochs = 2' 'rate = 0.02' \
        'eval-every = 0' 'protocol = hardsync' >run.conf
    train one 1 64
}

# train OUT WORKERS BATCH [OPTION...]
train() {
    local out=$1 workers=$2 batch=$3
    shift 3
    timeout 120 adam-ctl up "$BATS_FILE_TMPDIR/run.conf" --out "$out" --serve 1 --ps 1 \
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

# "we send the activation and error gradient vectors to the parameter server machines where
# the matrix multiply can be performed locally" (Adam 3.2.6): in a mean as anywhere.
@test "gradients of a dense layer that come as factors make the same mean" {
    train factors 2 32 --set factors=d1
    alike "$BATS_FILE_TMPDIR/one" factors
}

# The first trains alone on 300 samples; nobody waits for the turn of the other.
@test "hardsync and softsync run to their end behind a warm start" {
    local protocol
    for protocol in hardsync softsync:1; do
        train "$protocol" 2 32 --set "protocol=$protocol" --set warm-start=300
        [ -e "$protocol/DONE" ]
    done
}
