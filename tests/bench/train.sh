#!/bin/bash
# Training steps of one thread against PyTorch's on the same processor, in turns,
# round by round; what counts is the median of the ratios. PyTorch runs as fast as
# it is known to: one thread, channels_last, memory kept by malloc.
#   train.sh [ROUNDS [SECONDS [BATCH...]]]      (3, 1, 1 4 16 64)
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-3} seconds=${2:-1}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 1 4 16 64
nets='mnist cifar10_full'
bench=${BUILD:-build}/tests/bench/train
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "skip: no PyTorch (python3-torch) to measure against"
    exit 0
fi
make -s "$bench"

torch() {
    MALLOC_MMAP_THRESHOLD_=8000000000 MALLOC_TRIM_THRESHOLD_=16000000000 \
        MALLOC_TOP_PAD_=268435456 /usr/bin/python3 tests/bench/train_torch.py "$@"
}

echo "# one thread, $rounds rounds of $seconds s; ratios of samples a second, and of those of"
echo "# processor time; $("${BUILD:-build}/adam-ctl" --version | tail -1)"
echo "net            batch      ours   PyTorch   ratio   (cpu)"
for batch; do
    for net in $nets; do
        for ((i = 0; i < rounds; i++)); do
            "$bench" "$seconds" "$batch" "examples/$net.net"
            torch "$seconds" "$batch" "$net"
        done | paste - - | awk -v net="$net" -v batch="$batch" '
            { ours[NR] = $1; theirs[NR] = $3; wall[NR] = $1 / $3; busy[NR] = $2 / $4 }
            function median(a, n,   i, j, t) {
                for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
                    if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
                return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
            }
            END { printf "%-14s %5d %9.0f %9.0f %7.2f %7.2f\n", net, batch, median(ours, NR),
                      median(theirs, NR), median(wall, NR), median(busy, NR) }'
    done
done
