#!/usr/bin/env bats
# "In stochastic gradient descent the training inputs are processed in a random
# order. The inputs are processed one at a time with the following steps performed
# for each input to update the model weights." (Project Adam, 2.2)
load ../helper/common

# Trains on the samples in their order (that of a pipe) by mini-batches of $1.
train() { # BATCH RATE FOLDER
    adam-worker --model textbook.net --data - --labels y.npy --batch "$1" --rate "$2" \
        --threads 1 --quiet --out "$3" <x.npy
}

textbook() {
    python "$ROOT/tests/helper/textbook.py" "$@"
}

@test "at mini-batch 1, one thread does the updates of the paper's formulas, to rounding" {
    local level
    textbook make
    train 1 0 before
    for level in ref avx2 avx512; do
        ADAM_CPU=$level train 1 0.05 $level
        run_ok textbook 0.05 before $level
        # 48 updates in single precision, against the same in double.
        awk -v share="$output" 'BEGIN { exit !(share < 1e-5) }'
    done
    # Mini-batches of two, at twice the rate, go elsewhere: the test sees the difference.
    train 2 0.1 pairs
    run_ok textbook 0.05 before pairs
    awk -v share="$output" 'BEGIN { exit !(share > 1e-3) }'
}
