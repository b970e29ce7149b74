#!/usr/bin/env bats
# Copies of the weights over machines whose cables are pulled, and whose servers stand still: a
# ledger is kept of what was acknowledged (tests/bench/ledger.c), and must be exact.
load ../helper/common
load ../helper/netns

setup() {
    cd "$BATS_TEST_TMPDIR"
    LEDGER=$(cd "$ROOT" && realpath "$BUILD")/tests/bench/ledger
    export LEDGER CONTROLLER=tcp://10.0.0.1:7000
    adam-prep draw 100 --seed 1 -q -o train.arec
    cat >dense.net <<'END'
input   1x28x28
dense   units=3000 act=relu
softmax units=10
END
    cat >run.conf <<'END'
model = dense.net
data = train.arec
copies = 2
servers = 3
epochs = 1000000
END
}

# Controller and data server on machine 1, parameter servers on 2 to 4, who pushes on 5.
start_all() {
    local n
    on 1 controller adam-ctl controller run.conf --out run --listen $CONTROLLER --insecure
    on 1 serve adam-serve train.arec --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    for n in 2 3 4; do start_server "$n"; done
    ip netns exec m5 "$LEDGER" zero $CONTROLLER zero 2>zero.log
    on 5 pusher sh -c '"$LEDGER" push "$CONTROLLER" pusher >pushes'
}

# One that finds its session over ends, and whoever watches it starts it again.
start_server() {
    on "$1" "ps-$1" sh -c "until adam-ps --controller $CONTROLLER --listen tcp://10.0.0.$1:0 --insecure --name ps-$1; do sleep 0.2; done"
}

status() {
    ip netns exec m1 adam-ctl status $CONTROLLER --insecure --json
}

# Waits until the jq expression is true of the status.
until_true() {
    local start=$SECONDS
    until status 2>status.log | is_true "$1"; do
        if ((SECONDS - start >= 60 * ${SLOWER:-1})); then
            echo "never came true: $1"
            status | jq -c '([.members[] | {member, name, state}]), .buckets' || true
            return 1
        fi
        sleep 0.1
    done
}

export whole='([.members[] | select(.role == "parameter server" and .state != "gone" and .silent_ms < 2000) | .member]) as $live
    | ($live | length) == 3 and (.buckets | all(.joiner == null and (.secondaries | length) == 1
        and (([.primary] + .secondaries) - $live | length) == 0))'

# No bucket has this server, which may be gone by now, for a primary or secondary.
without() {
    until_true "[.members[] | select(.name == \"ps-$1\").member] as \$numbers
        | .buckets | all(([.primary] + .secondaries) as \$here | \$here - \$numbers == \$here)"
}

# What was acknowledged is in the weights, once.
balance() {
    local rounds least greatest
    pkill -TERM -P "${process[pusher]}" || kill -TERM "${process[pusher]}"
    wait "${process[pusher]}" || true
    rounds=$(awk '$1 == "pushed" { print $2 }' pushes)
    read -r _ least greatest < <(ip netns exec m5 "$LEDGER" sum $CONTROLLER sum 2>sum.log)
    echo "pushed $rounds, in the weights $least to $greatest"
    [ "$rounds" -gt 0 ] && [ "$least" = "$rounds" ] && [ "$greatest" = "$rounds" ]
}

cut_cables() {
    local n
    start_all
    until_true "$whole"
    for n in 2 3 4; do
        unplug "$n"
        without "$n"
        plug "$n"
        until_true "$whole"
    done
    balance
    jq -se 'map(select(.event == "places").taken_over) | add > 0' run/metrics.jsonl >true.log
}

stop_servers() {
    local n servers
    start_all
    until_true "$whole"
    for n in 2 3 4; do
        servers=$(pgrep -P "${process[ps-$n]}")
        kill -STOP "$servers"
        without "$n"
        kill -CONT "$servers"
        until_true "$whole"
    done
    balance
}

# m$1 sends to these machines no more: what it says goes nowhere, silently, and what they say comes.
deafen() {
    local to
    for to in "${@:2}"; do
        ip -n "m$1" neigh replace "10.0.0.$to" lladdr 02:00:00:00:00:99 dev eth0 nud permanent
    done
}
undeafen() {
    local to
    for to in "${@:2}"; do ip -n "m$1" neigh del "10.0.0.$to" dev eth0; done
}

# Neither says anything to the other.
part() {
    deafen "$1" "$2"
    deafen "$2" "$1"
}
unpart() {
    undeafen "$1" "$2"
    undeafen "$2" "$1"
}

# Of the ten shards (proto_bucket_of) none has a copy at both of these servers.
parted() {
    until_true "$(apart "$@" all)"
}

# The same as an expression; with "primary" of buckets of which one of the two is that, and all
# buckets of shards have so many secondaries.
apart() {
    local primary=true quiet=true
    if [ "$3" = primary ]; then
        primary='(.primary | IN($a[], $b[]))'
        quiet="all(.joiner == null and (.secondaries | length) == $4)"
    fi
    echo "[.members[] | select(.name == \"ps-$1\").member] as \$a
        | [.members[] | select(.name == \"ps-$2\").member] as \$b
        | [range(10) * 2654435769 % 4294967296 * 1024 / 4294967296 | floor] as \$used
        | [.buckets[] | . as \$at
            | select(any(\$used[]; \$at.first <= . and . < \$at.first + \$at.count))]
        | $quiet and (map(select($primary)) | all(([.primary] + .secondaries) as \$here
            | \$here - \$a == \$here or \$here - \$b == \$here))"
}

# A primary that hears the controller no more, while its secondaries hear it.
cut_from_controller() {
    local n
    start_all
    until_true "$whole"
    for n in 2 3 4; do
        deafen "$n" 1
        without "$n"
        undeafen "$n" 1
        until_true "$whole"
    done
    balance
}

# One that the controller hears, and that cannot say anything to the others.
cut_from_others() {
    local n others
    start_all
    until_true "$whole"
    for n in 2 3 4; do
        others=$(echo 2 3 4 | tr -d "$n")
        deafen "$n" $others
        for other in $others; do parted "$n" "$other"; done
        undeafen "$n" $others
        until_true "$whole"
    done
    balance
}

# Servers 2 and 3 are parted; the controller, the other servers and who pushes talk to both. Each
# bucket has all its copies while that lasts: the others have them instead.
bridge() {
    start_all
    until_true "$whole"
    part 2 3
    until_true "$(apart 2 3 primary "${1:-1}")"
    unpart 2 3
    until_true "$whole"
    balance
}

bridge_of_three() {
    sed -i 's/^copies = .*/copies = 3/; s/^servers = .*/servers = 4/' run.conf
    whole=${whole//== 3/== 4}
    whole=${whole//== 1/== 2}
    start_server 5
    bridge 2
}

# The clocks of all machines jump by a day and back, while a server is cut off.
jump() {
    local seconds
    ${CC:-cc} -shared -fPIC -D_GNU_SOURCE -o jump.so "$ROOT/tests/helper/preload/clock_jump.c"
    export CLOCK_JUMP=$PWD/off
    echo 0 >off
    LD_PRELOAD=$PWD/jump.so start_all
    until_true "$whole"
    for seconds in 86400 -86400 0; do
        echo "$seconds" >off
        until_true "$whole"
        unplug 3
        without 3
        plug 3
        until_true "$whole"
    done
    balance
    grep -q '"t":' run/metrics.jsonl
    jq -se 'map(.t) | max - min > 80000' run/metrics.jsonl >true.log # they did jump
}

# What was asked before who pushes and a server were parted arrives 12 s later, when it has been
# asked again.
late_requests() {
    local n
    start_all
    until_true "$whole"
    for n in 2 3 4; do
        part 5 "$n"
        sleep 12
        unpart 5 "$n"
    done
    until_true "$whole"
    balance
}

@test "a parameter server behind a cut cable: others take over, and nothing acknowledged is lost or doubled" {
    netns_run 5 cut_cables
    [[ $output = *"in the weights"* ]]
}

@test "a parameter server that stands still: others take over, and it copies what it missed" {
    netns_run 5 stop_servers
    [[ $output = *"in the weights"* ]]
}

@test "a primary that is cut from the controller alone: a secondary takes its place" {
    netns_run 5 cut_from_controller
    [[ $output = *"in the weights"* ]]
}

@test "a parameter server that cannot speak to the others: they go on without each other" {
    netns_run 5 cut_from_others
    [[ $output = *"in the weights"* ]]
}

@test "two parameter servers that everybody else can talk to, and that cannot talk to each other" {
    netns_run 5 bridge
    [[ $output = *"in the weights"* ]]
}

@test "the same, with three copies and four servers: each shard has three meanwhile" {
    netns_run 5 bridge_of_three
    [[ $output = *"in the weights"* ]]
}

@test "requests that arrive 12 seconds late are carried out once" {
    netns_run 5 late_requests
    [[ $output = *"in the weights"* ]]
}

@test "clocks of the wall that jump change nothing" {
    if [ "$SAN" ]; then skip "a sanitizer wants to be loaded first"; fi
    netns_run 5 jump
    [[ $output = *"in the weights"* ]]
}
