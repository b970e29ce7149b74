#!/bin/bash
# Whole runs: a worker alone, and the same worker with a parameter server, a data server and
# a controller, in turns. Figures are of the epochs of a long run beyond those of a short
# one, so that nothing of beginnings and ends is in them.
#   runs.sh [ROUNDS [THREADS]]      (3, 2)
#   DATA  a folder with mnist.arec and cifar10.arec, else pictures of digits are drawn
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-3} threads=${2:-2} short=1 long=4
bin=$PWD/${BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

prepare() { # NAME COUNT SIZE COLOURS
    if [ -n "${DATA:-}" ]; then
        ln -s "$(realpath "$DATA")/$1.arec" "$work/"
        return
    fi
    "$bin/adam-prep" draw -q "$2" --size "$3" -o "$work/drawn.arec" --force
    "$bin/adam-prep" -q "$work/drawn.arec" --channels "$4" --codec raw -o "$work/$1.arec"
}

alone() { # NET DATA EPOCHS
    "$bin/adam-worker" -q --model "$1" --data "$2" --epochs "$3" --threads "$threads" \
        --rate 0.0001 --checkpoint-every 0 --out "$work/alone" --force
}

together() { # NET DATA EPOCHS
    local port="$work/port"
    rm -rf "$port" "$work/run"
    printf '%s\n' "model = $1" "epochs = $3" 'rate = 0.0001' 'checkpoint-every = 0' >"$work/run.conf"
    "$bin/adam-ctl" controller "$work/run.conf" --out "$work/run" --port-file "$port" &
    while [ ! -s "$port" ]; do
        kill -0 $! || return 1
        sleep 0.02
    done
    "$bin/adam-ps" --controller "@$port" &
    "$bin/adam-serve" "$2" --controller "@$port" &
    if ! "$bin/adam-worker" --controller "@$port" --threads "$threads"; then
        jobs -p | xargs kill
        wait
        return 1
    fi
    wait
}

# Seconds of the clock, and of processors: those of children that were waited for count.
cost() {
    local TIMEFORMAT='%R %U %S'
    { time "$@" >"$work/log" 2>&1; } 2>&1 || {
        cat "$work/log" >&2
        return 1
    }
}

round() { # NET DATA
    for epochs in $short $long; do
        cost alone "$1" "$2" "$epochs"
        cost together "$1" "$2" "$epochs"
    done | paste -s
}

table() { # NAME NET
    local data="$work/$1.arec"
    local images
    images=$("$bin/adam-prep" stat --json "$data" | jq .samples)
    for ((i = 0; i < rounds; i++)); do
        round "$2" "$data"
    done | awk -v name="$1" -v images=$((images * (long - short))) '
        { alone = $7 - $1; together = $10 - $4
          busy_alone = $8 + $9 - $2 - $3; busy_together = $11 + $12 - $5 - $6
          wall[NR] = alone / together; busy[NR] = busy_alone / busy_together
          printf "%-8s%12.0f%12.0f%8.2f%12.0f%12.0f%8.2f\n", name, images / alone,
              images / together, wall[NR], images / busy_alone, images / busy_together, busy[NR] }
        function median(a, n,   i, j, t) {
            for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++)
                if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
            return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
        }
        function judge(x) { return x >= 0.85 ? "met" : sprintf("%.0f%% of it", 100 * x / 0.85) }
        END { w = median(wall, NR); b = median(busy, NR)
              printf "median: %32.2f%32.2f\n", w, b
              printf "target: %32s%32s\n", "0.85 " judge(w), "0.85 " judge(b) }'
}

prepare mnist 60000 28 gray
prepare cifar10 50000 32 rgb
echo "# one worker of $threads threads, alone and with one server of each kind: images a second, and"
echo "# images a second of processor time, that of all processes"
echo "#            alone    together   ratio       alone    together   (cpu)"
table mnist "$PWD"/examples/mnist.net
table cifar10 "$PWD"/examples/cifar10_full.net
