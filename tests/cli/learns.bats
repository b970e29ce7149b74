#!/usr/bin/env bats
# A first run learns with default settings: initial weights, and many processes.
load ../helper/common

# The loss before anything is learned: tested behind steps too small to change a weight.
first_loss() { # NET DATA
    run_ok adam-worker --model "$ROOT/$1" --data "$2" --test "$2" --epochs 1 --rate 1e-30 \
        --threads 1 --out "first-${1##*/}"
    jq -r 'select(.event == "eval") | .loss' "first-${1##*/}/metrics.jsonl"
}

@test "the first loss is within 10% of the logarithm of the classes" {
    adam-prep draw -q 100 --seed 3 -o gray.arec
    adam-prep draw -q 100 --seed 3 --size 32 -o large.arec
    adam-prep -q large.arec --channels rgb -o rgb.arec
    local net
    for net in examples/mnist.net examples/digits.net tests/bench/learns/mlp.net; do
        first_loss $net gray.arec
    done >losses
    for net in examples/cifar10_full.net tests/bench/learns/vgg.net; do
        first_loss $net rgb.arec
    done >>losses
    cat losses
    awk '{ if ($1 < 0.9 * log(10) || $1 > 1.1 * log(10)) exit bad = 1; n++ } END { exit bad || n != 5 }' losses
}

# Seed 5 ends at 51% when all layers begin with He's or Glorot's weights.
@test "no seed dies of its initial weights at a rate at which others learn" {
    adam-prep draw -q 4000 --seed 3 -o train.arec
    adam-prep draw -q 500 --seed 4 -o test.arec
    local seed
    for seed in 1 5 8; do
        run_ok adam-worker --model "$ROOT/examples/mnist.net" --data train.arec --test test.arec \
            --sync --threads 1 --batch 64 --rate 0.02 --momentum 0.9 --epochs 1 --seed $seed --out run$seed
        jq -e '.top1 > 0.75' run$seed/DONE
    done
}

@test "with default settings four workers end near one, under each protocol" {
    adam-prep draw -q 6000 --seed 1 -o train.arec
    adam-prep draw -q 1000 --seed 2 -o test.arec
    run_ok adam-worker --model "$ROOT/examples/digits.net" --data train.arec --test test.arec \
        --epochs 8 --eval-every 0 --out one
    printf '%s\n' "model = $ROOT/examples/digits.net" 'data = train.arec' 'test = test.arec' \
        'epochs = 8' 'eval-every = 0' >many.conf
    local protocol
    for protocol in async softsync:1 hardsync; do
        run_ok adam-ctl up many.conf --workers 4 --threads 1 --set protocol=$protocol --out $protocol --quiet
        jq -n --slurpfile one one/DONE --slurpfile many $protocol/DONE '[$one[0].top1, $many[0].top1]'
        jq -en --slurpfile one one/DONE --slurpfile many $protocol/DONE '$many[0].top1 > $one[0].top1 - 0.06'
    done
}

@test "what was learnt from other pictures helps where there are few: examples/finetune.sh" {
    local seed
    for seed in 1 2; do
        run_ok env FINETUNE_SEED=$seed sh "$ROOT/examples/finetune.sh" runs
        cat <<<"$output"
        awk '/from the beginning/ { anew = $NF } /beginning with/ { tuned = $NF }
            END { exit !(anew > 0.5 && tuned > anew + 0.02) }' <<<"$output"
    done
}
