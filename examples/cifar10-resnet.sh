#!/bin/sh
# A residual net of 20 layers for CIFAR-10 (He 2015, 4.2) on one machine:
#
#   examples/cifar10-resnet.sh TRAIN TEST [OUT]
#
# TRAIN and TEST are anything that adam-prep reads: tar files or folders with a
# folder a class, or the binary files. The runs go into OUT (cifar10-resnet-runs).
#   CIFAR_SEEDS    seeds, a run for each ("1")
#   CIFAR_THREADS  training threads (2)
#   CIFAR_EPOCHS   epochs (75)
#
# He trains 164 epochs with mini-batches of 128, the rate divided by 10 twice, for
# 91.25%. Here the rate follows a cosine, with Nesterov's momentum, and the samples of a
# mini-batch are shared among the threads: the same seed gives the same model. Of
# pictures that had been JPEGs of quality 75: test accuracy 88.76% after 164 epochs, and
# 87.98% after 75 with init=he in all convolutions, with seed 1.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: cifar10-resnet.sh TRAIN TEST [OUT]" >&2
    exit 2
fi
out=${3:-cifar10-resnet-runs}
mkdir -p "$out"
"$(dirname "$0")/resnet.sh" >"$out/resnet20.net"
adam-prep "$1" --codec raw -o "$out/train.arec" --force
adam-prep "$2" --codec raw -o "$out/test.arec" --force
for seed in ${CIFAR_SEEDS:-1}; do
    adam-worker --model "$out/resnet20.net" --data "$out/train.arec" --test "$out/test.arec" \
        --ops 'hflip p=0.5; pad 4; crop 32 random' --epochs "${CIFAR_EPOCHS:-75}" --batch 64 --sync \
        --optimizer nesterov --rate 0.05 --decay 0.0005 --schedule cosine --warmup 2 \
        --threads "${CIFAR_THREADS:-2}" --seed "$seed" --keep-last 1 --force --out "$out/run-$seed"
    adam-eval --model "$out/run-$seed/latest" --data "$out/test.arec" \
        --confusion "$out/confusion-$seed.tsv"
done
adam-ctl compare "$out"/run-* --sort top1
adam-ctl plot "$out"/run-* -o "$out/curves.svg"
