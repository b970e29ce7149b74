#!/usr/bin/env bash
# What a slow link between two workers that have a partition of a model each costs (Adam 3.2.5), with
# one and with four mini-batches in flight: "allow threads to process multiple images in parallel
# [...] to trigger progress on individual images based on arrival of data from remote machines".
# A switch between them holds every message for some milliseconds, more and more until one
# mini-batch in flight is 40% slower than without; then four lose less than 10%.
#
#   delay.sh            three turns of 4 s each: a minute and a half for each delay
#   delay.sh --quick    one turn of one delay: whether it all runs; its figures say little
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
export ROOT=$root PATH=${BUILD:-$root/build}:$PATH
export CONTROLLER=tcp://10.0.0.1:7000
turns=3 seconds=4 delays='2 2.5 3 3.5 4 5 6 8'
if [ "${1:-}" = --quick ]; then turns=1 seconds=2 delays=4; fi

# shellcheck disable=SC1091 # it is checked by itself
. "$root/tests/helper/netns.bash"

# The workers' own network. The kernel's choice of congestion control may pace what is sent, as
# bbr does, and then it is not the delay alone that is measured.
start_switch() { # MILLISECONDS
    local n
    coproc switch { exec python3 "$ROOT/tests/bench/slow_switch.py" 2 "$1"; }
    read -r _ <&"${switch[0]}"
    for n in 2 3; do
        ip link set "slow$((n - 1))" netns "m$n" name cable mtu 60000
        ip -n "m$n" addr add "10.0.1.$n/24" dev cable
        ip -n "m$n" link set cable up
        ip netns exec "m$n" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
    done
}

end_switch() {
    # shellcheck disable=SC2154 # coproc sets it
    kill "$switch_PID"
    wait "$switch_PID" 2>/dev/null || true
}

# Whether there are lines of training behind the first two, which do not count: at most a minute.
lines_count() {
    local looks
    for ((looks = 0; looks < 600; looks++)); do
        if [ "$(grep -c '"event":"train"' run/metrics.jsonl)" -gt 2 ]; then return; fi
        sleep 0.1
    done
    echo "in a minute the workers said nothing of their training" >&2
    return 1
}

# Samples a second, but for the first second, as the first worker says.
rate_of() {
    jq -s 'map(select(.event == "train"))[2:] | (map(.images_per_s * .seconds) | add) / (map(.seconds) | add)' \
        run/metrics.jsonl
}

# Prints samples a second.
train() { # FLIGHTS
    local n
    printf '%s\n' 'model = slow.net' 'data = train.arec' 'epochs = 1000000' 'epoch-end = 0.5' \
        'batch = 64' 'rate = 1e-6' 'partitions = 2' "in-flight = $1" 'workers = 1' \
        'metrics-every = 0.5' 'checkpoint-every = 0' 'eval-every = 0' >run.conf
    on 1 controller adam-ctl controller run.conf --out run --listen $CONTROLLER --insecure
    on 1 serve adam-serve train.arec --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    on 1 ps adam-ps --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    for n in 2 3; do
        on "$n" "worker-$n" adam-worker --controller $CONTROLLER --insecure --listen="tcp://10.0.1.$n:0"
    done
    said run/metrics.jsonl '"event":"train"' 60
    sleep "$seconds"
    lines_count
    rate_of
    end_all
}

median() {
    sort -g | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'
}

loss_of() { # FLIGHTS: share of its rate that it loses
    paste "$1.0" "$1.slow" | awk '{ print 1 - $2 / $1 }' | median
}

# What four lose where one loses 40%, between two delays.
between() {
    awk '{
        lost = $2 + ($4 - $2) * (0.4 - $1) / ($3 - $1)
        printf "where one loses 40%%, four lose %.1f%%: %s\n", 100 * lost, lost < 0.1 ? "met" : "MISSED: at most 10%"
    }'
}

measure() {
    local turn flights delay
    echo 0 | tee one.before >four.before
    for delay in $delays; do
        rm -f ./*.0 ./*.slow
        for ((turn = 0; turn < turns; turn++)); do
            for flights in 1 4; do
                start_switch 0
                train $flights >>$flights.0
                end_switch
                start_switch "$delay"
                train $flights >>$flights.slow
                end_switch
            done
        done
        printf '%3s ms: one mini-batch in flight %6.1f samples/s, loses %4.1f%%; four %6.1f, lose %4.1f%%\n' \
            "$delay" "$(median <1.0)" "$(loss_of 1 | awk '{ print 100 * $1 }')" \
            "$(median <4.0)" "$(loss_of 4 | awk '{ print 100 * $1 }')"
        loss_of 1 >one.now
        loss_of 4 >four.now
        if awk '{ exit !($1 >= 0.4) }' one.now; then
            paste one.before four.before one.now four.now | between
            return
        fi
        mv one.now one.before
        mv four.now four.before
    done
    echo "no delay costs one mini-batch in flight 40%"
}

folder=$(mktemp -d "${TMPDIR:-/tmp}/adam-delay.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >slow.net <<'NET'
input 1x64x64 ops='scale 1/255'
conv c1 maps=32 kernel=5 pad=2 act=relu cut=rows
maxpool size=2 cut=rows
conv c2 maps=64 kernel=3 pad=1 act=relu cut=rows
maxpool size=2 cut=rows
dense d1 units=256 act=relu cut=units
softmax units=10
NET
adam-prep draw 2000 --size 64 --seed 1 -q -o train.arec
user=()
if [ "$(id -u)" != 0 ]; then user=(--map-root-user); fi
export turns seconds delays
unshare "${user[@]}" --net --mount --pid --fork --kill-child --mount-proc \
    bash -euo pipefail -c "$(declare -f); netns_make 3; measure"
