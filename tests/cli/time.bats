#!/usr/bin/env bats
# adam-ctl time: where the time of a model goes. No test depends on speed.
load ../helper/common

@test "the table has a row a layer, and totals" {
    run_ok adam-ctl time "$ROOT/examples/mnist.net" --batch 2 --seconds 0
    [[ "${lines[0]}" =~ ^layer\ +type\ +output\ +layout\ +kernels\ +forward ]]
    [ -z "$stderr" ]
    echo "$output" >table
    grep -E '^c2 +conv +20x14x14 ' table
    grep -E '^total +' table
    grep -E '^training, mini-batch 2, one thread: [0-9.]+ samples/s, [0-9.]+ useful GFLOP/s$' table
    grep -E '^limits of one core \(.+\): [0-9.]+ GFLOP/s, weights read at [0-9.]+ GB/s$' table
    [ "$(wc -l <table)" -eq 13 ]
    # Columns stand below each other.
    [ "$(head -n 10 table | awk '{ print length($0) }' | sort -u | wc -l)" -eq 1 ]
}

@test "--json is one object whose figures agree" {
    run_ok adam-ctl time "$ROOT/examples/mnist.net" -b 3 --seconds 0 --json
    [ "${#lines[@]}" -eq 1 ]
    jq -e 'def near($a; $b): ($a - $b) | fabs <= 1e-6 * $b;
        .mode == "train" and .batch == 3 and .passes >= 5 and (.layers | length) == 8 and
        near([.layers[] | .forward_s + .backward_s + .update_s] | add; .seconds) and
        near([.layers[] | .forward_flops + .backward_flops] | add; .flops) and
        near(.samples_per_s * .seconds; 3) and
        near(.peak_share * .peak_flops * .seconds; .flops) and
        .layers[5].weight_bytes == 3 * 4 * 392000 and
        .layers[1].ways[1] == null and .layers[2].ways == [null, null, null]' <<<"$output"
}

@test "useful FLOPs are those of the published counts: no padding, no errors of the input" {
    # Per sample: MNIST 8.97 MFLOP, CIFAR-10 57.02, speech 248.3 (3 x forward less both).
    adam-ctl time "$ROOT/examples/mnist.net" --seconds 0 --json | is_true '.flops == 8969440'
    adam-ctl time "$ROOT/examples/cifar10_full.net" -b 2 --seconds 0 --json |
        is_true '(.flops / 2e6 * 100 | round) == 5702'
}

@test "--predict times the forward pass alone" {
    run_ok adam-ctl time "$ROOT/examples/mnist.net" --predict --seconds 0
    [[ "$output" != *backward* ]]
    [[ "$output" = *"prediction, mini-batch 1, one thread: "* ]]
    adam-ctl time "$ROOT/examples/mnist.net" --predict --seconds 0 --json |
        is_true '.mode == "predict" and .flops == 2 * (179560 + 819200 + 392000 + 160000 + 4000) and
            ([.layers[] | .backward_s + .update_s] | add) == 0'
}

kernels() {
    adam-ctl --version | sed -n 's/^kernels: \([a-z0-9]*\).*/\1/p'
}

# First ways of a layer of $1 at a mini-batch of $2.
way() {
    printf 'input 1024\ndense d units=%s\nsoftmax s units=10\n' "$1" >wide.net
    adam-ctl time wide.net "${@:3}" --batch "$2" --seconds 0 --json | jq -r '.layers[1].ways[0]'
}

@test "large dense layers of many samples are predicted by fewer products, where there are vectors" {
    local kept=strassen
    export ADAM_CPU
    for ADAM_CPU in ref avx2 avx512; do
        [ "$(kernels)" = ref ] && kept=product || kept=strassen
        [ "$(way 512 128 --predict)" = "$kept" ]
        [ "$(way 512 100 --predict)" != strassen ]
        [ "$(way 512 128)" != strassen ]
    done
}

@test "where bytes can be multiplied, they are predicted by those, at any mini-batch" {
    if [[ "$(kernels)" != *vnni ]]; then
        skip "this processor cannot"
    fi
    [ "$(way 1024 1 --predict)" = fixed ]
    [ "$(way 1024 100 --predict)" = fixed ]
    [ "$(way 1023 100 --predict)" != fixed ]
    [ "$(way 1024 100)" != fixed ]
    way 2048 4 --predict
    adam-ctl time wide.net --batch 1 --seconds 0 --predict --json >fixed
    ADAM_CPU=avx2 adam-ctl time wide.net --batch 1 --seconds 0 --predict --json >floats
    # Half of the bytes, and what is known of each unit.
    jq -es '(.[0].layers[1].weight_bytes / .[1].layers[1].weight_bytes) as $r | $r > 0.5 and $r < 0.51' fixed floats
}

@test "--set changes what is timed; mistakes are named" {
    adam-ctl time "$ROOT/examples/mnist.net" --set d2.units=7 --seconds 0 --json | is_true '.layers[6].output == [7, 1, 1]'
    run_status 2 adam-ctl time "$ROOT/examples/mnist.net" --set d9.units=7
    run_status 2 adam-ctl time
    run_status 66 adam-ctl time no.net
    run_status 74 bash -c "adam-ctl time --seconds 0 '$ROOT/examples/mnist.net' >/dev/full"
}
