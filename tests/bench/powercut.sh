#!/usr/bin/env bash
# Power cuts of a whole run at random moments (Adam 3.3.2: "the window of potential data loss").
# All processes are killed in the same moment, what their stores had not synced is dropped, sector
# by sector (tests/bench/powercut/lossy_disk.c), and adam-ctl up --resume alone must go on in the
# same run. Printed for each moment: how many updates and seconds of training were lost, of the
# server that lost most, beside the window.
#
#   powercut.sh [MOMENTS [SEED]]    20 moments, SEED 1: some minutes
#   powercut.sh --quick             two
#   FLUSH=1s powercut.sh            another window; the default is 0.5s
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=${BUILD:-$root/build}:$PATH
moments=${1:-20} seed=${2:-1} flush=${FLUSH:-0.5s}
if [ "$moments" = --quick ]; then moments=2; fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/adam-powercut.XXXXXX")
up=

# Those of the run, by the folder that they work in.
members() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/cwd")" = "$folder" ] || continue
        case $(tr '\0' ' ' 2>/dev/null <"$process/cmdline") in adam-*) echo "${process#/proc/}" ;; esac
    done
}

# Sets $at to the moment.
cut_power() {
    local victims
    victims=$(members)
    at=$(date +%s.%N)
    # shellcheck disable=SC2086 # numbers
    kill -KILL $victims 2>/dev/null || true
    while [ "$(members)" ]; do sleep 0.05; done
}
trap 'cut_power; cd /; rm -rf "$folder"' EXIT

cd "$folder"
${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE -o lossy.so "$root/tests/bench/powercut/lossy_disk.c" -ldl
adam-prep draw 1500 --seed 3 --split test=0.2 -q -o digits.arec
cat >two.net <<'END'
input   1x28x28 ops='scale 1/255; mean 0.16; std 0.24'
dense      units=680 act=relu
softmax    units=10
END
printf '%s\n' 'model = two.net' 'data = digits.arec' 'rate = 0.02' 'batch = 8' 'epochs = 1000000' \
    'checkpoint-every = 100000' 'metrics-every = 0.1' 'push-every = 2' >run.conf

start_run() {
    LD_PRELOAD=$folder/lossy.so adam-ctl up run.conf --ps 2 --threads 1 --store --flush "$flush" "$@" 2>err &
    up=$!
    disown "$up"
}

# The version up to which server $1 has been seen since line $2 of the metrics.
seen() {
    [ -e run/metrics.jsonl ] || { echo 0 && return; }
    tail -n "+$2" run/metrics.jsonl | jq -s --arg name "$1" \
        'map(select(.event == "ps" and .name == $name) | .step) | max // 0'
}

# Waits until training goes on from where it is; the number of the first line of metrics since.
await_training() {
    local from=$1 tries=0 before=
    until [ "$(seen ps-1 "$from")" -gt "${before:-0}" ] && [ "$before" ]; do
        before=$(seen ps-1 "$from")
        sleep 0.2
        if ! kill -0 "$up" 2>/dev/null || [ $((tries += 1)) -gt 600 ]; then
            cat err >&2
            echo 'the run does not go on' >&2
            exit 1
        fi
    done
}

lines() {
    if [ -e run/metrics.jsonl ]; then wc -l <run/metrics.jsonl; else echo 0; fi
}

# What server $1 lost: updates beyond version $2 that it was seen to have, and the seconds at $3, the
# cut, since it was last seen at that version or an older one: at most so many. What it had is in
# the metrics of the time before, from line $4 on.
loss() {
    tail -n "+$4" before.jsonl | jq -rs --arg name "$1" --argjson has "$2" --argjson at "$3" '
        map(select(.event == "ps" and .name == $name)) | (map(.step) | max) as $had |
        (map(select(.step <= $has).t) | max) as $last |
        "\([$had - $has, 0] | max) \($at - $last)"'
}

printf '%7s %8s %8s %9s %9s %9s  %s\n' moment sectors version updates seconds window 'goes on'
RANDOM=$seed
first=$(lines)
start_run
worst=0
for ((moment = 1; moment <= moments; moment++)); do
    await_training $((first + 1))
    sleep "$((RANDOM % 3)).$((RANDOM % 1000 + 1000))"
    cut_power
    read -r sectors _ < <(python3 "$root/tests/bench/powercut/lossy_disk.py" $((seed * 1000 + moment)) \
        run/store/ps-1 run/store/ps-2)
    cp run/metrics.jsonl before.jsonl
    before=$first first=$(lines)
    start_run --resume
    await_training $((first + 1))
    updates=0 seconds=0
    for server in ps-1 ps-2; do
        has=$(sed -n "s/^adam-ctl: $server: .* of versions [0-9]* to \([0-9]*\).*/\1/p" err)
        read -r more longer < <(loss "$server" "${has:-0}" "$at" $((before + 1)))
        updates=$((more > updates ? more : updates))
        seconds=$(printf '%s\n%s\n' "$seconds" "$longer" | sort -g | tail -n 1)
    done
    printf '%7s %8s %8s %9s %9.2f %9s  %s\n' "$moment" "$sectors" "$has" "$updates" "$seconds" \
        "$flush" "$(grep -o 'goes on from its stores' err || grep -o 'not going on.*' err)"
    grep -q 'goes on from its stores' err
    worst=$(printf '%s\n%s\n' "$worst" "$seconds" | sort -g | tail -n 1)
done
printf 'at most %.2f s of training were lost in %s power cuts; the window is %s and the time of a write\n' \
    "$worst" "$moments" "$flush"
