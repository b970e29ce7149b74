#!/bin/sh
# The same net under every protocol, through one data server, parameter servers and
# workers on this machine (Rudra 3.1 and 5.1, Adam 4.3.3):
#
#   examples/protocols.sh mnist FOLDER [OUT]          FOLDER has MNIST's four files
#   examples/protocols.sh cifar10 TRAIN TEST [OUT]    as examples/cifar10.sh takes them
#
# Prints a table, a line a run: protocol, seed, final test accuracy, mean staleness,
# share of updates staler than 2n (of softsync:n), images a second. Runs go into OUT (protocols-runs).
# On two cores, seed 1, four workers, final test accuracy; in brackets mean staleness and
# the share of updates staler than 2n:
#
#                one machine   hardsync   softsync:1            softsync:4            async
#   MNIST        99.4          99.38      99.38 (0.88, 0.02%)   99.41 (3.8, 0.4%)     99.37
#   CIFAR-10     80.5..80.9    80.63      80.46 (0.91, 0.02%)   80.71 (3.9, 1.2%)     80.69
#
# MNIST with EPOCHS=20, CIFAR-10 with 40. Rudra's figure 5, why softsync divides the rate by
# n: MNIST under softsync:4 with EPOCHS=3 and SETTINGS="rate=0.4" reaches 99.1%, and with
# SETTINGS="rate=0.4 modulate=none" 11.4%, no better than guessing.
#
#   PROTOCOLS   which ("async softsync:1 softsync:4 hardsync")
#   SEEDS       which ("1")
#   WORKERS     of one thread each (4)
#   SERVERS     parameter servers (2)
#   EPOCHS      of each run (MNIST 30, CIFAR-10 40)
#   SETTINGS    more KEY=VALUE of adam-run(5), for all runs ("")
set -eu

usage() {
    echo "usage: protocols.sh mnist FOLDER [OUT] | cifar10 TRAIN TEST [OUT]" >&2
    exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
workers=${WORKERS:-4}

# idx FOLDER SET KIND: a file of MNIST, under the names that it is published with.
idx() {
    for file in "$1/$2-$3"-ubyte.gz "$1/$2-$3"-ubyte "$1/$2.$3"-ubyte; do
        [ -e "$file" ] && echo "$file" && return
    done
    echo "protocols.sh: $1 has no $2-$3-ubyte" >&2
    exit 66
}

mnist() {
    mkdir -p "$out"
    adam-prep "$(idx "$1" train images-idx3)" --labels "$(idx "$1" train labels-idx1)" -o "$out/train.arec" --force
    adam-prep "$(idx "$1" t10k images-idx3)" --labels "$(idx "$1" t10k labels-idx1)" -o "$out/test.arec" --force
    cat >"$out/run.conf" <<END
model = $here/mnist.net
data = train.arec
test = test.arec
epochs = ${EPOCHS:-30}
schedule = cosine
warmup = 1
decay = 0.0005
d1.dropout = 0.5
d2.dropout = 0.5
keep-last = 1
END
    mini_batch=16 rate=0.1 async='rate=0.05'
}

cifar10() {
    mkdir -p "$out"
    adam-prep "$1" --codec raw -o "$out/train.arec" --force
    adam-prep "$2" --codec raw -o "$out/test.arec" --force
    cat >"$out/run.conf" <<END
model = $here/cifar10_full.net
data = train.arec
test = test.arec
ops = hflip p=0.5; pad 2; crop 32 random
epochs = ${EPOCHS:-40}
schedule = cosine
warmup = 1
momentum = 0.9
decay = 0.001
input.ops = mean 125.3,123.0,113.9; std 63,62,67
c1.init = he
c2.init = he
c3.init = he
softmax1.decay = 0.01
keep-last = 1
END
    mini_batch=8 rate=0.008 async='rate=0.002 push-every=1'
}

# One run, and its line of the table.
run() {
    protocol=$1 seed=$2
    folder=$out/$(echo "$protocol" | tr : -)-$seed
    case $protocol in async) own=$async ;; *) own=rate=$rate ;; esac
    set --
    for setting in protocol="$protocol" seed="$seed" batch="$mini_batch" $own ${SETTINGS:-}; do
        set -- "$@" --set "$setting"
    done
    adam-ctl up "$out/run.conf" --out "$folder" --serve 1 --ps "${SERVERS:-2}" \
        --workers "$workers" --threads 1 "$@" --force --quiet
    jq -rs --arg protocol "$protocol" --arg seed "$seed" -f "$here/protocols.jq" "$folder/metrics.jsonl"
}

[ $# -ge 1 ] || usage
net=$1
shift
case $net in
mnist)
    [ $# -ge 1 ] || usage
    out=${2:-protocols-runs}
    mnist "$1"
    ;;
cifar10)
    [ $# -ge 2 ] || usage
    out=${3:-protocols-runs}
    cifar10 "$1" "$2"
    ;;
*) usage ;;
esac
printf 'protocol\tseed\ttop1\tstaleness\tbeyond 2n\timages/s\n'
for protocol in ${PROTOCOLS:-async softsync:1 softsync:4 hardsync}; do
    for seed in ${SEEDS:-1}; do
        run "$protocol" "$seed"
    done
done
