#!/bin/bash
# Rotate + crop + flip from memory, ours and OpenCV's warpAffine in turn, one
# process a core, and the ratio of the medians.
#   warp.sh [CORES] [ROUNDS] [SECONDS]
# Needs python3-opencv.
set -u
cores=${1:-1} rounds=${2:-5} seconds=${3:-1}
here=$(dirname "$0")
ours=${BUILD:-build}/tests/bench/warp
theirs=/usr/bin/python3

# Runs a command on every core at once and prints the sum of their figures.
together() {
    for ((i = 0; i < cores; i++)); do "$@" & done | awk '{ s += $1 } END { print s }'
}
median() {
    sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

if ! "$theirs" -c 'import cv2, numpy' 2>/dev/null; then
    echo "warp.sh: python3-opencv is not installed" >&2
    exit 69
fi
a=() b=()
for ((r = 0; r < rounds; r++)); do
    a+=("$(together "$ours" "$seconds")")
    b+=("$(together "$theirs" "$here/warp_opencv.py" "$seconds")")
done
x=$(printf '%s\n' "${a[@]}" | median)
y=$(printf '%s\n' "${b[@]}" | median)
awk -v x="$x" -v y="$y" -v n="$cores" \
    'BEGIN { printf "rotate+crop+flip, %d core(s): adam %.0f images/s, OpenCV %.0f images/s, ratio %.2f\n", n, x, y, x / y }'
