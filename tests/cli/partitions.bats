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
dense   units=900 act=relu
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
    until status 2>status.log | jq -e "$1" >true.log; do
        if ((SECONDS - start >= 60 * ${SLOWER:-1})); then
            echo "never came true: $1"
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

@test "a parameter server behind a cut cable: others take over, and nothing acknowledged is lost or doubled" {
    netns_run 5 cut_cables
    [[ $output = *"in the weights"* ]]
}

@test "a parameter server that stands still: others take over, and it copies what it missed" {
    netns_run 5 stop_servers
    [[ $output = *"in the weights"* ]]
}
