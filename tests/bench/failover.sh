#!/usr/bin/env bash
# Servers and controllers killed at random (Adam 3.3.3), while two workers add 1 to weights of every
# shard: the ledger must be exact, and the time without service short. Three controllers, four
# parameter servers, three copies of each bucket. Each time one parameter server, one controller,
# one of each, or two servers get SIGKILL, and are started again; the next time comes when each
# bucket has three copies again. Printed: how long the slowest shard did not answer after each.
#
#   failover.sh [KILLS [SEED]]     20 times, SEED 1: some minutes
#   failover.sh --quick            three
#   ACK=memory failover.sh         what is lost then is printed
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$root" && realpath "${BUILD:-build}")
export PATH=$build:$PATH
ledger=$build/tests/bench/ledger
kills=${1:-20} ack=${ACK:-replicated}
if [ "$kills" = --quick ]; then kills=3; fi
RANDOM=${2:-1}
folder=$(mktemp -d "${TMPDIR:-/tmp}/adam-failover.XXXXXX")
declare -A pids
dead=[]
cd "$folder"

end_all() {
    local name
    for name in "${!pids[@]}"; do kill -KILL "${pids[$name]}" 2>/dev/null || true; done
    for name in "${!pids[@]}"; do wait "${pids[$name]}" 2>/dev/null || true; done
    cd /
    rm -rf "$folder"
}
trap end_all EXIT

quorum=ipc://$folder/c1,ipc://$folder/c2,ipc://$folder/c3

start() { # NAME COMMAND...
    "${@:2}" >>"$1.out" 2>>"$1.log" &
    pids[$1]=$!
}

start_one() {
    case $1 in
    c*) start "$1" adam-ctl controller run.conf --out run --quorum "$quorum" \
        --listen "ipc://$folder/$1" ;;
    ps*) start "$1" adam-ps --controller "$quorum" --name "$1" --threads 1 ;;
    esac
}

# The numbers of members by their names.
numbers() {
    status | jq -c '[.members[] | select(.state != "gone" and (.name | IN($ARGS.positional[]))) | .member]' --args "$@"
}

# SIGKILL to all of these at once, and each is started again.
strike() {
    local name
    for name in "$@"; do kill -KILL "${pids[$name]}"; done
    for name in "$@"; do wait "${pids[$name]}" 2>/dev/null || true; done
    for name in "$@"; do start_one "$name"; done
}

status() { adam-ctl status "$quorum" --json 2>/dev/null; }

# Until the jq expression is true of the status, or a minute is over.
until_true() {
    local end=$((SECONDS + 60))
    until status | jq -e --argjson dead "$dead" "$1" >/dev/null; do
        if [ "$SECONDS" -gt "$end" ]; then
            echo "failover.sh: never came true: $1" >&2
            tail -n 5 ./*.log | tr "\r" "\n" | grep -v "^epoch " >&2
            exit 1
        fi
        sleep 0.1
    done
}

# Three copies of each bucket on the servers that live, and three controllers. Those that were killed
# had the numbers in $dead.
# shellcheck disable=SC2016 # variables of jq
whole='([.members[] | select(.role == "parameter server" and .state != "gone") | .member] - $dead) as $live
    | (.buckets | length > 0 and all(.joiner == null and (.secondaries | length) == 2
        and (([.primary] + .secondaries) - $live | length) == 0))
    and ($live | length) == 4
    and ([.members[] | select(.role == "controller" and .state != "gone")] | length) == 3'

adam-prep draw 200 --seed 3 -q -o digits.arec
cat >run.conf <<CONF
model = run.net
data = digits.arec
copies = 3
servers = 4
workers = 1
epochs = 1000000
ack = $ack
CONF
# Ten shards.
cat >run.net <<'END'
input 1x28x28
dense units=1500 act=relu
dense units=900 act=relu
softmax units=10
END
for name in c1 c2 c3 ps1 ps2 ps3 ps4; do start_one $name; done
start serve adam-serve digits.arec --controller "$quorum" --name serve
"$ledger" zero "$quorum" zero 2>zero.log
for name in w1 w2; do start $name "$ledger" push "$quorum" $name; done
until_true "$whole"

# Into $who, here and not in a subshell, which would draw anew.
draw_victims() {
    local server=ps$((1 + RANDOM % 4)) controller=c$((1 + RANDOM % 3))
    case $((RANDOM % 4)) in
    0) who=$controller ;;
    1) who="$server $controller" ;;
    2) who="$server ps$(((${server#ps} + RANDOM % 3) % 4 + 1))" ;;
    *) who=$server ;;
    esac
}

printf '%5s  %-12s %s\n' kill who 'seconds without service'
for ((i = 1; i <= kills; i++)); do
    draw_victims
    # shellcheck disable=SC2086 # names
    dead=$(numbers $who)
    before=$(date +%s.%N)
    # shellcheck disable=SC2086 # names
    strike $who
    until_true "$whole"
    sleep 0.5 # a round that waited has ended
    gap=$(cat w1.out w2.out | awk -v t="$before" '$1 == "round" && $2 + $3 > t && $3 > most { most = $3 }
        END { print most + 0 }')
    printf '%5d  %-12s %s\n' "$i" "${who// /,}" "$gap"
    echo "$gap" >>gaps
done

for name in w1 w2; do kill -TERM "${pids[$name]}"; done
for name in w1 w2; do wait "${pids[$name]}"; done
unset 'pids[w1]' 'pids[w2]'
pushed=$(cat w1.out w2.out | awk '$1 == "pushed" { n += $2 } END { print n + 0 }')
read -r _ least greatest < <("$ledger" sum "$quorum" sum 2>sum.log)
sort -g gaps | awk '{ at[NR] = $1 } END {
    p99 = int(NR * 0.99 + 0.999999); if (p99 > NR) p99 = NR
    printf "without service: median %.2f s, 99th percentile %.2f s, most %.2f s\n",
        at[int((NR + 1) / 2)], at[p99], at[NR] }'
echo "acknowledged to each weight: $pushed; in the weights: $least to $greatest"
if [ "$ack" = replicated ]; then [ "$least" = "$pushed" ] && [ "$greatest" = "$pushed" ]; fi
