#!/bin/bash
# Whole runs: a worker alone, and the same worker with a parameter server, a data server and
# a controller, in turns. Figures are of what lies between two lines of a run's metrics, the
# first one behind its first epoch and the last one, so that nothing of beginnings and ends, and
# nothing of another run, is in them.
#   runs.sh [ROUNDS [THREADS]]      (3, 2)
#   DATA  a folder with mnist.arec and cifar10.arec, else pictures of digits are drawn
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-3} threads=${2:-2} epochs=4
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

alone() { # NET DATA
    "$bin/adam-worker" -q --model "$1" --data "$2" --epochs "$epochs" --threads "$threads" \
        --rate 0.0001 --checkpoint-every 0 --metrics-every 0.1 --out "$work/run" --force &
    pids=($!)
}

together() { # NET DATA
    local port="$work/port"
    rm -f "$port"
    printf '%s\n' "model = $1" "epochs = $epochs" 'rate = 0.0001' 'checkpoint-every = 0' \
        'metrics-every = 0.1' >"$work/run.conf"
    "$bin/adam-ctl" controller "$work/run.conf" --out "$work/run" --port-file "$port" &
    pids=($!)
    while [ ! -s "$port" ]; do
        kill -0 $! || return 1
        sleep 0.02
    done
    "$bin/adam-ps" --controller "@$port" &
    pids+=($!)
    "$bin/adam-serve" "$2" --controller "@$port" &
    pids+=($!)
    "$bin/adam-worker" --controller "@$port" --threads "$threads" &
    pids+=($!)
}

# Processor time of the run's processes, in ticks.
ticks() {
    cat "${pids[@]/%//stat}" 2>/dev/null |
        awk '{ sub(/.*\) /, ""); sum += $12 + $13 } END { print sum + 0 }'
}

all_run() {
    local pid
    for pid in "${pids[@]}"; do
        [[ -e $pid/stat && $(<"$pid/stat") != *') Z '* ]] || return 1
    done
}

# While the run goes on: a line for each new one that the worker has written, with samples,
# seconds, and processor time by then.
follow() {
    local line point before=''
    cd /proc
    while all_run; do
        line=$(grep -s '"event":"train"' "$work/run/metrics.jsonl" | tail -n 1)
        if [ "$line" != "$before" ] && [[ $line = *'}' ]]; then
            point="$(jq -r '"\(.samples) \(.t)"' <<<"$line") $(ticks)"
            all_run || break # a process that has ended has no processor time
            echo "$point"
            before=$line
        fi
        sleep 0.02
    done 2>/dev/null
}

# Images a second of the clock, and of all processors.
rates() { # alone|together NET DATA IMAGES
    rm -rf "$work/run"
    "$1" "$2" "$3" >"$work/log" 2>&1
    (follow) >"$work/points"
    wait
    awk -v images="$4" -v tick="$(getconf CLK_TCK)" '
        $1 < images { next }
        !n++ { samples = $1; seconds = $2; ticks = $3 }
        { s = $1; t = $2; c = $3 }
        END { if (n < 2 || c <= ticks) exit 1
              print (s - samples) / (t - seconds), (s - samples) * tick / (c - ticks) }
    ' "$work/points" || {
        cat "$work/log" >&2
        return 1
    }
}

table() { # NAME NET
    local data="$work/$1.arec"
    local images
    images=$("$bin/adam-prep" stat --json "$data" | jq .samples)
    for ((i = 0; i < rounds; i++)); do
        rates alone "$2" "$data" "$images"
        rates together "$2" "$data" "$images"
    done | paste -d ' ' - - | awk -v name="$1" '
        { wall[NR] = $3 / $1; busy[NR] = $4 / $2
          printf "%-8s%12.0f%12.0f%8.2f%12.0f%12.0f%8.2f\n", name, $1, $3, wall[NR], $2, $4,
              busy[NR] }
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
