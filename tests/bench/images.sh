#!/bin/bash
# Photographs to 256x256: ours against PIL with draft decoding and against
# libjpeg-turbo that only decodes. The three take turns, round by round, so that
# a busy machine slows all of them; what counts is the median of the ratios.
#   images.sh [THREADS [ROUNDS [SECONDS]]]      (2, 5, 1)
#   ADAM_DATA  where imagenet-sample/ is (../shared/data)
set -eu
cd "$(dirname "$0")/../.."
threads=${1:-2} rounds=${2:-5} seconds=${3:-1}
pictures=${ADAM_DATA:-../shared/data}/imagenet-sample
bench=${BUILD:-build}/tests/bench/images
if [ ! -d "$pictures" ]; then
    echo "skip: no photographs in $pictures"
    exit 0
fi
make -s "$bench"

round() {
    "$bench" prepare "$threads" "$seconds" "$pictures"
    "$bench" decode "$threads" "$seconds" "$pictures"
    /usr/bin/python3 tests/bench/images_pil.py "$threads" "$seconds" "$pictures"
}

echo "# $(find -L "$pictures" -type f | wc -l) JPEG photographs to 256x256, $threads threads;" \
    "pictures/s: ours, decode only, PIL draft; ratios"
for ((i = 0; i < rounds; i++)); do
    round | paste -s
done | awk '
    { printf "%8.1f %8.1f %8.1f   %.2f of decode only, %.2f x PIL\n", $1, $2, $3, $1/$2, $1/$3
      decode[NR] = $1 / $2; pil[NR] = $1 / $3 }
    function median(a, n,   i, j, t) {
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
            if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
        return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
    }
    END { printf "median: %.2f of decode only (target 0.70), %.2f x PIL draft (target 1.60)\n",
              median(decode, NR), median(pil, NR) }'
