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

echo "# $(find -L "$pictures" -type f | wc -l) photographs to 256x256, $threads threads;" \
    "pictures a second, and ratios of those and of processor time"
echo "#    ours   decode      PIL  of decode  (cpu)   x PIL  (cpu)"
for ((i = 0; i < rounds; i++)); do
    round | paste -s
done | awk '
    { wall_decode[NR] = $1 / $3; busy_decode[NR] = $2 / $4
      wall_pil[NR] = $1 / $5; busy_pil[NR] = $2 / $6
      printf "%9.1f%9.1f%9.1f%11.2f%7.2f%8.2f%7.2f\n", $1, $3, $5,
          wall_decode[NR], busy_decode[NR], wall_pil[NR], busy_pil[NR] }
    function median(a, n,   i, j, t) {
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
            if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
        return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
    }
    END { printf "median:%31.2f%7.2f%8.2f%7.2f\n", median(wall_decode, NR), median(busy_decode, NR),
              median(wall_pil, NR), median(busy_pil, NR)
          print "target:                           0.70           1.60" }'
