#!/usr/bin/env bats
# The benchmarks run, and compare what is the same. What they find is not tested
# here: it depends on the machine, and on what else it does.
load ../helper/common

setup() {
    cd "$ROOT"
    export BUILD=${BUILD#"$ROOT"/}
}

@test "every table of the compute core has its rows, filled" {
    python -c 'import torch'
    run_ok tests/bench/compute.sh --quick
    printf '%s\n' "$output"
    # train and predict: two mini-batches and the best; threads and memory: one.
    [ "$(grep -cE '^mnist +(1|16|best) +[0-9.]+ +[0-9.]+ +[0-9.]+ ' <<<"$output")" = 8 ]
    [ "$(grep -cE '^mnist +16 .* [0-9.]+ \([0-9]+\.\.[0-9]+\)$' <<<"$output")" = 1 ]
    [ "$(grep -cE '^mnist .*%.* (met|[0-9]+% short)$' <<<"$output")" -ge 1 ]
    [ "$(grep -cE '^mnist( +[0-9.]+){4} +(met|[0-9]+% short)( +[0-9.]+){3} +(met|[0-9]+% short)( +[0-9.]+){3}$' <<<"$output")" = 1 ]
    [ "$(grep -cE '^distbelief +16( +[0-9.]+){5} +1.7 (met|[0-9]+% short) +[0-9.]+$' <<<"$output")" = 1 ]
    [ "$(grep -c '^mnist: [0-9.]* s, [0-9.]* of the limit' <<<"$output")" = 1 ]
    [ "$(grep -c '^import torch: [0-9.]* s' <<<"$output")" = 1 ]
}

@test "without PyTorch the tables have our figures, and say in a word that they skip" {
    PYTHON=false run_ok tests/bench/compute.sh --quick train memory
    printf '%s\n' "$output"
    [ "$(grep -c 'skip: no PyTorch' <<<"$output")" = 2 ]
    [ "$(grep -cE '^mnist +(1|16|best) +[0-9.]+ +- +-' <<<"$output")" = 4 ]
}

@test "a model file of one's own can be measured" {
    cat >"$BATS_TEST_TMPDIR/own.net" <<'NET'
input 2x7x7
conv  maps=3 kernel=3 act=relu
softmax units=5
NET
    PYTHON=false run_ok python tests/bench/compute/train.py --quick "$BATS_TEST_TMPDIR/own.net"
    [ "$(grep -c '/own.net ' <<<"$output")" = 3 ]
}

@test "every table of a parameter server's core has its rows, filled" {
    run_ok tests/bench/ps.sh --quick
    printf '%s\n' "$output"
    # One push to a shard; four, applied by one thread; and by two.
    [ "$(grep -cE '^(deltas|gradients, (sgd|momentum|adagrad)) +1 +1( +[0-9.]+){4}$' <<<"$output")" = 4 ]
    [ "$(grep -cE '^(deltas|gradients, (sgd|momentum|adagrad)) +[12] +4( +[0-9.]+){5}  (met|missed)$' <<<"$output")" = 8 ]
    [ "$(grep -cE '^[0-9]+ x [0-9]+ x [0-9]+( +[0-9.]+){6}  (met|missed)$' <<<"$output")" = 3 ]
}

# One step of ours and of the net that the benchmark has PyTorch build, compared.
same_step() { # MODEL
    (
        cd "$BATS_TEST_TMPDIR"
        loss=$("$ROOT/$BUILD/tests/helper/net_step" "$1" 7 3 0.1 .)
        python "$ROOT/tests/helper/torch_step.py" "$1" . "$loss" 0.1
    )
}

@test "PyTorch's nets are ours in every layer" {
    python -c 'import torch'
    same_step "$ROOT/examples/mnist.net"
    same_step "$ROOT/examples/cifar10_full.net"
    same_step "$ROOT/tests/bench/compute/odd.net"
    # The large nets with fewer units and pixels: among many relus there is always one
    # whose sum is so near to 0 that rounding decides on which side.
    sed 's/units=3000/units=30/; s/3x227x227/3x67x67/' tests/bench/compute/alexnet.net >"$BATS_TEST_TMPDIR/alexnet.net"
    same_step "$BATS_TEST_TMPDIR/alexnet.net"
    sed -E 's/units=(2560|8192)/units=50/' examples/speech.net >"$BATS_TEST_TMPDIR/speech.net"
    same_step "$BATS_TEST_TMPDIR/speech.net"
}

@test "the store's table has its rows, filled" {
    TMPDIR=$BATS_TEST_TMPDIR run_ok tests/bench/store.sh --quick
    printf '%s\n' "$output"
    [ "$(grep -cE '^ +64 +(16|64) +[0-9]+ +[0-9.]+ +1\.[0-9]+$' <<<"$output")" = 2 ]
    [ "$(grep -c '64 MiB read at a start in [0-9.]* s$' <<<"$output")" = 2 ]
}

@test "power cuts: each moment has its row, and the run goes on from its stores" {
    if [ "${SAN:-}" ]; then skip "what is preloaded comes before a sanitizer"; fi
    TMPDIR=$BATS_TEST_TMPDIR run_ok tests/bench/powercut.sh --quick
    printf '%s\n' "$output"
    [ "$(grep -cE '^ +[12] +[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]+ +0\.5s  goes on from its stores$' <<<"$output")" = 2 ]
}

@test "failovers: whoever is killed, each acknowledged push is in the weights once" {
    TMPDIR=$BATS_TEST_TMPDIR run_ok tests/bench/failover.sh --quick
    printf '%s\n' "$output"
    [ "$(grep -cE '^ +[123]  (c|ps)[1-4][^ ]* +[0-9.]+$' <<<"$output")" = 3 ]
    [[ $output = *"without service: median "* ]]
}

@test "copies: what they cost is measured" {
    TMPDIR=$BATS_TEST_TMPDIR run_ok tests/bench/copies.sh --quick
    printf '%s\n' "$output"
    [ "$(grep -cE ' at (least|most) [0-9.]+: (met|missed by [0-9]+%)$' <<<"$output")" = 6 ]
}

@test "a slow link between partitions is measured, with one and four mini-batches in flight" {
    TMPDIR=$BATS_TEST_TMPDIR run_ok tests/bench/delay.sh --quick
    printf '%s\n' "$output"
    [ "$(grep -cE '^ *[0-9.]+ ms: one mini-batch in flight +[0-9.]+ samples/s, loses +-?[0-9.]+%; four +[0-9.]+, lose +-?[0-9.]+%$' <<<"$output")" = 1 ]
}

@test "the service's table has a row of each net, filled" {
    run_ok tests/bench/service.sh --quick
    printf '%s\n' "$output"
    [ "$(grep -cE '^(mnist|cifar10_full|resnet20)( +[0-9.]+){4}  (met|missed) +( +[0-9.]+){3}  (met|missed)$' <<<"$output")" = 4 ]
}
