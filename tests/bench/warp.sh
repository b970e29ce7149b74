#!/bin/bash
# Rotate + crop + flip from memory, ours and OpenCV's warpAffine in turn, one
# process a core: the medians, and the median of the ratios of each turn.
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
# Of the figures given: the median, or the least, or the largest.
nth() {
    local which=$1
    shift
    printf '%s\n' "$@" | sort -n | awk -v which="$which" '{ v[NR] = $1 }
        END { print which == "least" ? v[1] : which == "most" ? v[NR] : v[int((NR + 1) / 2)] }'
}

if ! "$theirs" -c 'import cv2, numpy' 2>/dev/null; then
    echo "warp.sh: python3-opencv is not installed" >&2
    exit 69
fi
a=() b=() ratios=()
for ((r = 0; r < rounds; r++)); do
    a+=("$(together "$ours" "$seconds")")
    b+=("$(together "$theirs" "$here/warp_opencv.py" "$seconds")")
    ratios+=("$(awk -v x="${a[r]}" -v y="${b[r]}" 'BEGIN { printf "%.2f", x / y }')")
done
printf 'rotate+crop+flip, %d core(s): adam %.0f images/s, OpenCV %.0f images/s, ratio %s (%s..%s)\n' \
    "$cores" "$(nth middle "${a[@]}")" "$(nth middle "${b[@]}")" \
    "$(nth middle "${ratios[@]}")" "$(nth least "${ratios[@]}")" "$(nth most "${ratios[@]}")"
