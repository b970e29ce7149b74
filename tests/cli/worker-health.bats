#!/usr/bin/env bats
# adam-worker says why a run does not learn.
load ../helper/common
load ../helper/worker

setup() {
    cd "$BATS_TEST_TMPDIR"
    tiny_set
}

# Trains long enough to tell.
long() {
    run_ok tiny --threads 1 --epochs 60 --eval-every 0 --checkpoint-every 0 --out run "$@"
}

# How many lines of standard error have this text.
said() {
    grep -c -- "$1" <<<"$stderr"
}

@test "a loss that stays at that of guessing is said once, with the rate" {
    long --rate 1e-7
    [ "$(said "warning: ")" = 1 ]
    [[ "$stderr" = *", as of guessing among 3 classes: the rate (1e-07) is probably too low"* ]]
    # Within 1% of ln 3.
    sed -nE 's/.*the loss stays at ([0-9.]+),.*/\1/p' <<<"$stderr" |
        awk '{ n++; near = $1 >= 0.99 * log(3) && $1 <= 1.01 * log(3) } END { exit !(n == 1 && near) }'
}

@test "units that are dead in all samples are said once, with their layer and the cause" {
    long --rate 3
    [ "$(said "warning: ")" = 1 ]
    [[ "$stderr" = *"16 of the 16 units of layer d1 give 0 for each of 103 samples"*"the rate (3) is probably too high"* ]]
    long --rate 3 --force --sync
    [ "$(said "units of layer d1")" = 1 ]
}

@test "a run that learns is not warned, nor one that warms up" {
    long --rate 0.05
    [ "$(said "warning: ")" = 0 ]
    long --rate 0.001 --warmup 1000 --force
    [ "$(said "warning: ")" = 0 ]
}

@test "units whose biases have no gradient by design are not dead: frozen, or with a batchnorm behind" {
    tiny --epochs 1 --out start
    for layer in c1 d1 softmax1; do
        long --rate 0.05 --init-from start --freeze $layer --force
        [ "$(said "warning: ")" = 0 ]
    done
    # Others are found as before, whatever lies above them.
    long --rate 10 --freeze softmax1 --force
    [ "$(said "units of layer d1")" = 1 ]
    sed -i 's/^\(conv.*\) act=relu/\1\nbatchnorm b1 act=relu/' tiny.net
    for way in --batch=16 --sync; do
        long --rate 0.05 $way --force
        [ "$(said "warning: ")" = 0 ]
    done
    long --rate 3 --force
    [ "$(said "units of layer d1")" = 1 ]
}

@test "inputs without a scale are named when they stop the run from learning, or make it diverge" {
    sed -i 's/^input.*/input 1x8x8/' tiny.net
    long --rate 3
    [[ "$stderr" = *"inputs go up to 209: scale them, as in ops='scale 1/255' of the input; adam-prep stat prints"* ]]
    sed -i 's/act=relu/act=linear/' tiny.net
    run_status 3 tiny --rate 1e6 --epochs 60 --out diverged
    [[ "$stderr" = *"its inputs go up to "*": scale them"*"adam-prep stat prints"* ]]
}

@test "inputs that are no numbers are not blamed on the rate" {
    python -c 'import numpy as np
x = np.random.default_rng(1).random((60, 8, 8), np.float32)
x[31, 3, 3] = np.nan
np.save("x.npy", x); np.save("y.npy", np.arange(60) % 3)'
    for way in --batch=8 --sync; do
        run_status 3 adam-worker --model tiny.net --data x.npy --labels y.npy $way --out run --force
        [[ "$stderr" = *"its inputs are not all finite numbers: look at the data"* ]]
        [[ "$stderr" != *"lower --rate"* ]]
    done
}

@test "a net for more classes than there are is said" {
    tiny --epochs 1 --set softmax1.units=10 --out run 2>log
    grep -F "warning: the training set has 3 classes, but the last layer of tiny.net (line 5) has 10 units" log
}

@test "weights that are no numbers are refused, by name" {
    tiny --epochs 1 --out run
    python - <<'END'
import glob, json, struct
raw = bytearray(open("run/latest/model.safetensors", "rb").read())
end = 8 + int.from_bytes(raw[:8], "little")
at = end + json.loads(raw[8:end])["d1.weight"]["data_offsets"][0] + 40
raw[at:at + 4] = struct.pack("<f", float("nan"))
open("bad.safetensors", "wb").write(raw)
END
    run_status 65 adam-eval --model bad.safetensors --data test.idx --labels test.lab
    [[ "$stderr" = *"tensor 'd1.weight' has values that are no finite numbers"* ]]
}
