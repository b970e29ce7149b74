#!/usr/bin/env bash
# What copies of the weights cost (Adam 3.3.3), in one run: eight workers that push whole shards as
# fast as they are answered, with one copy of the weights, and with three under ack = memory and
# ack = replicated, in turns. Machines are network namespaces; replication has a network of its own.
#
#   updates     pushes a second, of all workers, and beside those of one copy
#   cpu         pushes for a second of the primary's processor time, likewise
#   replicated  bytes that the primary sends to the copies for each byte that is pushed to it
#   training    bytes that come to the primary at the interface for workers, for each byte pushed
#   answered    a push of three weights to a shard, over a switch that takes 50 ms: in round trips
#
#   copies.sh            five turns of 4 s each: two minutes
#   copies.sh --quick    one turn: whether it all runs; its figures say little
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
export ROOT=$root PATH=${BUILD:-$root/build}:$PATH
LEDGER=$(realpath "${BUILD:-$root/build}")/tests/bench/ledger
export LEDGER CONTROLLER=tcp://10.0.0.1:7000
turns=5 seconds=4
if [ "${1:-}" = --quick ]; then turns=1 seconds=1; fi

# shellcheck disable=SC1091 # it is checked by itself
. "$root/tests/helper/netns.bash"

status() {
    ip netns exec m1 adam-ctl status $CONTROLLER --insecure --json 2>status.log
}

# Waits until the jq expression is true of the status.
until_true() {
    until status | jq -e "$1" >true.log; do sleep 0.1; done
}

# COPIES ACK: controller and data server on machine 1, parameter servers on 2 to 4.
start_run() {
    local n replication
    printf '%s\n' 'model = shard.net' 'data = train.arec' "copies = $1" "ack = $2" 'servers = 3' \
        'epochs = 1000000' >run.conf
    on 1 controller adam-ctl controller run.conf --out run --listen $CONTROLLER --insecure
    on 1 serve adam-serve train.arec --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    for n in 2 3 4; do
        replication=10.1.0.$n
        if ! ip -n "m$n" link show eth1 >/dev/null 2>&1; then replication=10.0.0.$n; fi
        on "$n" "ps-$n" adam-ps --controller $CONTROLLER --listen "tcp://10.0.0.$n:0" \
            --replication "tcp://$replication:0" --insecure --name "ps-$n" --threads 1
    done
    ip netns exec m5 "$LEDGER" zero $CONTROLLER zero 2>zero.log
    until_true ".buckets[0] | (.secondaries | length) == $1 - 1 and .joiner == null"
}

acknowledged() {
    tail -qn 1 pushes-* | awk '{ n += $2 } END { print n + 0 }'
}

# Of the primary on machine $1: rounds, clock ticks of its processor time, bytes from workers, bytes
# to copies; and the time.
counters() {
    local ticks
    # shellcheck disable=SC2154 # netns.bash has it
    ticks=$(awk '{ print $14 + $15 }' "/proc/$(pgrep -P "${process[ps-$1]}" || echo "${process[ps-$1]}")/stat")
    echo "$(acknowledged) $ticks $(traffic "$1" rx) $(cat_replicated "$1") $(date +%s.%N)"
}
cat_replicated() {
    ip netns exec "m$1" cat /sys/class/net/eth1/statistics/tx_bytes
}

# COPIES ACK: one line, "pushes/s pushes/cpu-second replicated training".
load() {
    local worker primary before after
    start_run "$1" "$2"
    for worker in 1 2 3 4 5 6 7 8; do
        on 5 "pusher-$worker" sh -c "exec '$LEDGER' load $CONTROLLER pusher-$worker >pushes-$worker"
    done
    for worker in 1 2 3 4 5 6 7 8; do until [ -s "pushes-$worker" ]; do sleep 0.05; done; done
    primary=$(status | jq -r '.buckets[0].primary as $n | .members[] | select(.member == $n).name')
    before=$(counters "${primary#ps-}")
    sleep "$seconds"
    after=$(counters "${primary#ps-}")
    end_all
    rm pushes-*
    awk -v a="$before" -v b="$after" -v hz="$(getconf CLK_TCK)" -v bytes=$((256330 * 4)) 'BEGIN {
        split(a, x); split(b, y)
        n = y[1] - x[1]
        printf "%.1f %.2f %.3f %.3f\n", n / (y[5] - x[5]), n * hz / (y[2] - x[2]),
            (y[4] - x[4]) / (n * bytes), (y[3] - x[3]) / (n * bytes) }'
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# COLUMN FILE [FILE]: the median of the column, or of its ratios.
column() {
    if [ $# -eq 2 ]; then
        awk -v c="$1" '{ print $c }' "$2"
    else
        paste "$2" "$3" | awk -v c="$1" '{ print $c / $(c + 4) }'
    fi | median
}

# NAME VALUE "WORD TARGET": how it stands.
compare() {
    awk -v name="$1" -v value="$2" -v word="$3" -v target="$4" 'BEGIN {
        met = word == "least" ? value >= target : value <= target
        printf "%-44s %8.3f   at %s %s: %s\n", name, value, word, target,
            met ? "met" : sprintf("missed by %.0f%%", 100 * (value > target ? value / target - 1 : 1 - value / target)) }'
}

second_network() {
    local n
    ip link add second type bridge
    ip link set second up
    for n in 2 3 4; do
        ip link add "copy$n" type veth peer name eth1 netns "m$n"
        ip link set "copy$n" master second up
        ip -n "m$n" addr add "10.1.0.$n/24" dev eth1
        ip -n "m$n" link set eth1 up
    done
}

print_costs() {
    local turn
    for ((turn = 0; turn < turns; turn++)); do
        load 1 memory >>one.costs
        load 3 memory >>memory.costs
        load 3 replicated >>replicated.costs
    done
    echo "Pushes of 1 MB by eight workers, each answered before the next; medians of $turns turns."
    printf '%-44s %8s   %s\n' '' 'a second' 'for a second of the primary (cpu)'
    for kind in one memory replicated; do
        printf '  %-42s %8.1f   %8.1f\n' "$kind" "$(column 1 $kind.costs)" "$(column 2 $kind.costs)"
    done
    compare "ack = memory, cpu, of one copy" "$(column 2 memory.costs one.costs)" least 0.85
    compare "ack = replicated, updates, of one copy" "$(column 1 replicated.costs one.costs)" least 0.5
    compare "ack = memory, replicated bytes a byte" "$(column 3 memory.costs)" most 1
    compare "ack = replicated, replicated bytes a byte" "$(column 3 replicated.costs)" most 1
    compare "training bytes a byte, of one copy" "$(column 4 replicated.costs one.costs)" most 1.02
}

# Over the switch that takes 50 ms: a round trip is 100 ms.
print_round_trips() {
    local n
    coproc switch { exec python3 "$ROOT/tests/bench/slow_switch.py" 5 50; }
    read -r _ <&"${switch[0]}"
    for n in 1 2 3 4 5; do
        ip -n "m$n" link del eth0
        ip link set "slow$n" netns "m$n" name eth0
        ip -n "m$n" addr add "10.0.0.$n/24" dev eth0
        ip -n "m$n" link set eth0 up
        ip -n "m$n" link del eth1 2>/dev/null || true
    done
    start_run 3 replicated
    on 5 pusher sh -c "exec '$LEDGER' push $CONTROLLER pusher >small"
    until [ -s small ] && [ "$(grep -c '^round' small)" -ge $((5 * turns)) ]; do sleep 0.1; done
    compare "a push of three weights, in round trips" \
        "$(awk '$1 == "round" { print $3 / 0.1 }' small | median)" most 3
    end_all
}

measure() {
    second_network
    print_costs
    print_round_trips
}

folder=$(mktemp -d "${TMPDIR:-/tmp}/adam-copies.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf '%s\n' 'input 1x16x16' 'dense units=960 act=relu' 'softmax units=10' >shard.net
adam-prep draw 100 --size 16 --seed 1 -q -o train.arec
user=()
if [ "$(id -u)" != 0 ]; then user=(--map-root-user); fi
export turns seconds
unshare "${user[@]}" --net --mount --pid --fork --kill-child --mount-proc \
    bash -euo pipefail -c "$(declare -f); netns_make 5; measure"
