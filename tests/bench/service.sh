#!/usr/bin/env bash
# The prediction service (adam-eval --listen) against adam-eval itself, over loopback, on all
# processors: the one who asks takes its share of them. For each net
#   own       pictures a second of adam-eval, from a folder
#   each      pictures of a request
#   service   the same from 64 connections; its target is 80% of own
#   p99       of requests at half of the service's load, in milliseconds; its target are 10
#             predictions of each picture, as long as adam-eval takes with one thread, one by one
# The two take turns; what counts is the median of the ratios.
#
#   service.sh [--quick]     two and a half minutes; some seconds
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$root" && realpath "${BUILD:-build}")
export PATH=$build:$PATH
ask=$build/tests/bench/ask
nets=(mnist cifar10_full resnet20)
several=4 # pictures of a request
turns=5 seconds=2 pictures=5000
if [ "${1:-}" = --quick ]; then turns=1 seconds=0.5 pictures=500; fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/adam-service.XXXXXX")
service=
cd "$folder"

end_all() {
    if [ "$service" ]; then kill "$service" 2>/dev/null || true; fi
    cd /
    rm -rf "$folder"
}
trap end_all EXIT

# Gray digits as PNG, and noise in colour as JPEG; a run of each net, hardly trained.
make_runs() {
    adam-prep draw "$pictures" --seed 1 -o mnist.pictures/ -q
    /usr/bin/python3 - "$pictures" <<'END'
import os, sys
from PIL import Image
for i in range(int(sys.argv[1])):
    folder = f"cifar10_full.pictures/{i % 10}"
    os.makedirs(folder, exist_ok=True)
    Image.frombytes("RGB", (32, 32), os.urandom(3072)).save(f"{folder}/{i}.jpg")
END
    mkdir nets
    cp "$root"/examples/{mnist,cifar10_full}.net nets
    "$root/examples/resnet.sh" >nets/resnet20.net
    cp -r cifar10_full.pictures resnet20.pictures
    local net
    for net in "${nets[@]}"; do
        adam-worker --model "nets/$net.net" --data "$net.pictures" --epochs 1 \
            --rate 1e-6 --out "$net.run" -q
    done
}

# Pictures a second of adam-eval, without its start.
own() { # NET OPTION...
    adam-eval --model "$1.run" --data "$1.pictures" "${@:2}" 2>&1 >/dev/null |
        sed -n 's/.* \([0-9.]*\) samples\/s$/\1/p'
}

# Answers a second, and the median and 99th percentile of their times.
asked() { # NET PICTURES RATE
    local url
    url=$(cat url)
    url=${url#http://}
    # shellcheck disable=SC2046 # paths without blanks
    "$ask" "${url%:*}" "${url##*:}" 64 "$seconds" "$3" "$2" $(find "$1.pictures" -name '*.?*g' | head -n 1000)
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

measure() { # NET PICTURES
    local turn one own rate p99
    one=$(own "$1" --threads 1 --batch 1)
    adam-eval --model "$1.run" --listen http://127.0.0.1:0 --port-file url -q &
    service=$!
    until [ -s url ]; do sleep 0.05; done
    asked "$1" "$2" 0 >/dev/null
    : >turns
    for ((turn = 0; turn < turns; turn++)); do
        own=$(own "$1")
        rate=$(asked "$1" "$2" 0 | cut -d ' ' -f 1)
        p99=$(asked "$1" "$2" "$(awk -v r="$rate" 'BEGIN { print r / 2 }')" | cut -d ' ' -f 3)
        echo "$own $rate $p99" >>turns
    done
    kill "$service"
    wait "$service" || true
    service=
    awk -v each="$2" '{ print $2 * each / $1 }' turns | median >ratio
    awk '{ print $3 }' turns | median >p99
    awk -v net="$1" -v each="$2" -v one="$one" -v ratio="$(cat ratio)" -v p99="$(cat p99)" '
        { own += $1; rate += $2 * each }
        END { times = p99 * one / each / 1000
            printf "%-13s %4d %8.0f %8.0f %6.2f  %-6s %9.3f %7.3f %6.1f  %s\n", net, each, own / NR,
                rate / NR, ratio, (ratio >= 0.8 ? "met" : "missed"), 1000 / one, p99, times,
                (times <= 10 ? "met" : "missed") }' turns
}

make_runs
printf '%-13s %4s %8s %8s %6s  %-6s %9s %7s %6s\n' net each own service ratio '' 'one (ms)' 'p99' times
for net in "${nets[@]}"; do measure "$net" 1; done
measure mnist $several
