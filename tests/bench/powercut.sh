#!/usr/bin/env bash
# Power cuts of a whole run at random moments (Adam 3.3.2: "the window of potential data loss").
# All processes are killed in the same moment, what their stores had not synced is dropped, sector
# by sector (tests/bench/powercut/lossy_disk.c), and adam-ctl up --resume alone must go on in the
# same run. Printed for each moment: how many updates and seconds of training were lost, of the
# server that lost most, beside the window.
#
# With ACK=durable a ledger is kept instead (ledger.c): how often 1 was added to weights of every
# shard, as two pushers had heard when they were killed with all others, and what is in the weights
# afterwards. Nothing acknowledged may be lost, and nothing but what was on its way may be more.
#
#   powercut.sh [MOMENTS [SEED]]    20 moments, SEED 1: some minutes
#   powercut.sh --quick             two
#   FLUSH=1s powercut.sh            another window; the default is 0.5s
#   ACK=durable COPIES=3 powercut.sh        the ledger; COPIES, 1 otherwise, of each part of the weights
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=${BUILD:-$root/build}:$PATH
moments=${1:-20} seed=${2:-1} flush=${FLUSH:-0.5s} ack=${ACK:-replicated} copies=${COPIES:-1}
servers=2
if [ "$copies" = 3 ]; then servers=3; fi
if [ "$moments" = --quick ]; then moments=2; fi
ledger=$(realpath "${BUILD:-$root/build}")/tests/bench/ledger
folder=$(mktemp -d "${TMPDIR:-/tmp}/adam-powercut.XXXXXX")
up=

# Those of the run, by the folder that they work in.
members() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/cwd")" = "$folder" ] || continue
        case $(tr '\0' ' ' 2>/dev/null <"$process/cmdline") in
        adam-* | *ledger\ tell*) echo "${process#/proc/}" ;;
        esac
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
# Beside the ledger there is a worker, whose pushes change nothing.
rate=0.02
if [ "$ack" = durable ]; then rate=0; fi
printf '%s\n' 'model = two.net' 'data = digits.arec' "rate = $rate" 'batch = 8' 'epochs = 1000000' \
    'checkpoint-every = 100000' 'metrics-every = 0.1' 'push-every = 2' "ack = $ack" >run.conf

start_run() {
    LD_PRELOAD=$folder/lossy.so adam-ctl up run.conf --ps $servers --copies "$copies" --threads 1 --store --flush "$flush" "$@" 2>err &
    up=$!
    disown "$up"
}

# The version up to which server $1 (any: whichever) has been seen since line $2 of the metrics.
seen() {
    [ -e run/metrics.jsonl ] || { echo 0 && return; }
    tail -n "+$2" run/metrics.jsonl | jq -s --arg name "$1" \
        'map(select(.event == "ps" and ($name == "any" or .name == $name)) | .step) | max // 0'
}

# Waits until training goes on from where it is; the number of the first line of metrics since. With
# copies a server may be the primary of no shard.
await_training() {
    local from=$1 tries=0 before=
    until [ "$(seen any "$from")" -gt "${before:-0}" ] && [ "$before" ]; do
        before=$(seen any "$from")
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
# cut, since it was last seen at that version or an older one, or since the beginning: at most so
# many. What it had is in the metrics of the time before, from line $4 on.
loss() {
    tail -n "+$4" before.jsonl | jq -rs --arg name "$1" --argjson has "$2" --argjson at "$3" '
        (map(.t) | min) as $begin |
        map(select(.event == "ps" and .name == $name)) | (map(.step) | max) as $had |
        (map(select(.step <= $has).t) | max // $begin) as $last |
        "\([$had - $has, 0] | max) \($at - $last)"'
}

cut_disks() { # MOMENT
    python3 "$root/tests/bench/powercut/lossy_disk.py" $((seed * 1000 + $1)) run/store/ps-*[0-9]
}

# --- the ledger -------------------------------------------------------------------------------

pushers="w1 w2"

start_pushers() {
    local name
    for name in $pushers; do
        "$ledger" tell @run/controller.port "$name" >>"$name.out" 2>>"$name.log" &
        disown $!
    done
}

# Each was told that so many more of its rounds were acknowledged since the last time.
acknowledged() {
    local name
    for name in $pushers; do
        awk '$1 == "acknowledged" { n = $2 } END { print n + 0 }' "$name.out"
        : >"$name.out"
    done | awk '{ n += $1 } END { print n }'
}

keep_ledger() {
    local moment known=0 least greatest sectors worst=0
    start_run
    await_training 1
    "$ledger" zero @run/controller.port zero 2>zero.log
    printf '%7s %8s %12s %12s %12s %5s\n' moment sectors acknowledged least greatest lost
    for ((moment = 1; moment <= moments; moment++)); do
        start_pushers
        sleep "$((1 + RANDOM % 3)).$((RANDOM % 1000 + 1000))"
        cut_power
        known=$((known + $(acknowledged)))
        read -r sectors _ < <(cut_disks "$moment")
        first=$(lines)
        start_run --resume
        await_training $((first + 1))
        grep -q 'goes on from its stores' err
        read -r _ least greatest < <("$ledger" sum @run/controller.port sum 2>sum.log)
        lost=$((known > least ? known - least : 0))
        printf '%7s %8s %12s %12s %12s %5s\n' "$moment" "$sectors" "$known" "$least" "$greatest" "$lost"
        [ "$greatest" -le $((known + 2 * moment)) ]
        worst=$((lost > worst ? lost : worst))
    done
    printf 'at most %s acknowledged pushes of %s were lost in %s power cuts, with %s of each part\n' \
        "$worst" "$known" "$moments" "$copies"
    [ "$worst" = 0 ] && [ "$known" -gt 0 ]
}

RANDOM=$seed
if [ "$ack" = durable ]; then
    keep_ledger
    exit
fi

# --- the window -------------------------------------------------------------------------------

printf '%7s %8s %8s %9s %9s %9s  %s\n' moment sectors version updates seconds window 'goes on'
first=$(lines)
start_run
worst=0
for ((moment = 1; moment <= moments; moment++)); do
    await_training $((first + 1))
    sleep "$((RANDOM % 3)).$((RANDOM % 1000 + 1000))"
    cut_power
    read -r sectors _ < <(cut_disks "$moment")
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
