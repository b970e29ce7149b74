#!/usr/bin/env bats
# Runs over machines with addresses of their own: what goes over their wires, cut cables,
# TLS between them.
load ../helper/common
load ../helper/netns

setup_file() {
    adam-prep draw 2000 --seed 1 -q -o "$BATS_FILE_TMPDIR/train.arec"
    adam-prep draw 2000 --seed 2 -q -o "$BATS_FILE_TMPDIR/test.arec"
    workers_rest 200
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    cp "$BATS_FILE_TMPDIR"/*.arec .
    cat >dense.net <<'END'
input   1x28x28 ops='scale 1/255; mean 0.15; std 0.3'
dense   d1 units=400 act=relu
softmax    units=10
END
    cat >run.conf <<'END'
model = dense.net
data = train.arec
test = test.arec
epochs = 4
epoch-end = 1
batch = 16
rate = 0.1
protocol = async
push = gradient
push-every = 1
pull-every = 5
END
}

export CONTROLLER=tcp://10.0.0.1:7000

# The controller and a data server on machine 1, a parameter server on machine 2.
start_servers() {
    on 1 controller adam-ctl controller run.conf --out run --listen $CONTROLLER --insecure "$@"
    on 1 serve adam-serve train.arec --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    on 2 ps adam-ps --controller $CONTROLLER --listen tcp://10.0.0.2:0 --insecure --name ps-1
}

start_worker() {
    on "$1" "worker-$1" adam-worker --controller $CONTROLLER --insecure --threads "${2:-1}" \
        --name "worker-$1"
}

count_bytes() { # [THREADS]
    start_servers
    start_worker 3 "${1:-1}"
    wait "${process[controller]}"
    wait
    traffic 3
}

top1() {
    jq -s 'map(select(.event == "eval"))[-1].top1' run/metrics.jsonl
}

# 2000 samples, 4 epochs, 16 a push: 500 pushes. The gradient of d1 has 784 x 400 floats,
# its factors 16 x (784 + 400).
@test "factors of a dense layer's gradient are k(M+N) numbers on the wire instead of MN, for the same accuracy" {
    local pushes=500 whole=$((4 * (785 * 400 + 401 * 10)))
    local factors=$((4 * (16 * (784 + 400) + 401 * 10)))
    echo 'factors = none' >>run.conf
    netns_run 3 count_bytes
    local none=$output none_top1
    none_top1=$(top1)
    rm -r run
    sed -i 's/^factors = .*/factors = d1/' run.conf
    netns_run 3 count_bytes
    echo "whole: $none bytes, top-1 $none_top1; factors: $output bytes, top-1 $(top1)"
    [ "$none" -gt $((pushes * whole)) ]
    [ "$none" -lt $((pushes * whole * 115 / 100)) ]
    [ "$output" -gt $((pushes * factors)) ]
    [ "$output" -lt $((pushes * factors * 130 / 100)) ]
    jq -en "$(top1) > 0.9 and $none_top1 > 0.9 and ($(top1) - $none_top1 | fabs) < 0.03"
}

# 125 mini-batches of 16 an epoch are 32 pushes, of 64 samples but for the last one: as products
# they have 2000 x (784 + 400) numbers.
@test "deltas of threads without locks send a dense layer's weights as k(M+N) numbers, for the same accuracy" {
    local pushes=128 whole=$((4 * (785 * 400 + 401 * 10)))
    local factors=$((4 * 4 * (2000 * (784 + 400) + 32 * 401 * 10)))
    sed -i 's/^push = .*/push = delta/; s/^push-every = .*/push-every = 4/' run.conf
    netns_run 3 count_bytes 2
    local sent=$output sent_top1
    sent_top1=$(top1)
    rm -r run
    echo 'factors = none' >>run.conf
    netns_run 3 count_bytes 2
    echo "whole: $output bytes, top-1 $(top1); factors: $sent bytes, top-1 $sent_top1"
    [ "$output" -gt $((pushes * whole)) ]
    [ "$output" -lt $((pushes * whole * 115 / 100)) ]
    [ "$sent" -gt "$factors" ]
    [ "$sent" -lt $((factors * 130 / 100)) ]
    jq -en "$(top1) > 0.9 and $sent_top1 > 0.9 and ($(top1) - $sent_top1 | fabs) < 0.03"
}

# Waits until the file has more lines that match than now.
more_lines() {
    local before
    before=$(grep -cE "$2" "$1")
    until [ "$(grep -cE "$2" "$1")" -gt "$before" ]; do
        sleep 0.05
    done
}

# A worker whose session is over joins anew.
joined_twice() {
    [ "$(grep -c 'worker-3) joined' controller.log)" = 2 ]
}

cut_worker() {
    start_servers --set epochs=1000
    start_worker 3
    said run/metrics.jsonl '"role":"worker".*"train"' 60
    unplug 3
    said controller.log 'worker.*worker-3.* vanished: nothing was heard of it' 10
    said worker-3.log 'lost the controller: tcp://10.0.0.1:7000: nothing was heard' 10
    plug 3
    wait_for joined_twice
    more_lines run/metrics.jsonl '"event":"train"'
    kill -TERM "${process[controller]}"
    wait "${process[controller]}" || [ $? = 75 ]
}

@test "a worker behind a cut cable is named within 10 s, and trains again when the cable is back" {
    netns_run 3 cut_worker
}

cut_server() {
    start_servers --set epochs=1000
    start_worker 3
    said run/metrics.jsonl '"role":"worker".*"train"' 60
    unplug 2
    said controller.log 'parameter server.*ps-1.* is silent' 10
    plug 2
    said controller.log 'ps-1.* is back' 20
    more_lines run/metrics.jsonl '"event":"train"'
    kill -TERM "${process[controller]}"
    wait "${process[controller]}" || [ $? = 75 ]
    wait "${process[worker-3]}"
}

@test "a parameter server behind a cut cable is named within 10 s, and the run goes on when the cable is back" {
    netns_run 3 cut_server
}

ends_with() {
    local status=0
    wait "${process[$2]}" || status=$?
    [ "$status" = "$1" ]
}

lose_server() {
    start_servers --set epochs=1000 --set server-patience=9
    start_worker 3
    said run/metrics.jsonl '"role":"worker".*"train"' 60
    unplug 2
    said controller.log 'parameter server.*ps-1.* at tcp://10.0.0.2:.* is gone, and with it its part' 60
    ends_with 69 controller
    ends_with 69 worker-3
    grep -q 'error: controller: .*parameter server.*ps-1.* at tcp://10.0.0.2:.* is gone' worker-3.log
}

@test "a parameter server whose cable stays cut is named, and ends the run with status 69" {
    netns_run 3 lose_server
}

# The second data server, on machine 2, has one half of the data.
cut_data_server() {
    on 1 controller adam-ctl controller run.conf --out run --listen $CONTROLLER --insecure \
        --set data-servers=2 --set epochs=30 --set push=delta
    on 1 ps adam-ps --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    on 1 serve-1 adam-serve train.arec --range 1/2 --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    on 2 serve-2 adam-serve train.arec --range 2/2 --controller $CONTROLLER --listen tcp://10.0.0.2:0 --insecure --name serve-2
    start_worker 3
    said run/metrics.jsonl '"role":"worker".*"train"' 60
    unplug 2
    said worker-3.log 'waiting for data server tcp://10.0.0.2:[0-9]*: ' 20
    said controller.log 'data server.*serve-2.* is silent.*waiting for it' 10
    plug 2
    said controller.log 'serve-2.* is back' 20
    wait "${process[controller]}"
    wait "${process[worker-3]}"
    [ -e run/DONE ]
    [ "$(jq -s 'map(select(.role == "controller").samples | numbers) | max' run/metrics.jsonl)" -eq $((30 * 2000)) ]
}

@test "a data server behind a cut cable: the workers wait for its half of the data, and train on all of it" {
    netns_run 3 cut_data_server
}

# Machines 2 and 3 have a cable of their own, over which they exchange what crosses the cut.
cut_bytes() {
    ip link add cable2 type veth peer name cable3
    for n in 2 3; do
        ip link set "cable$n" netns "m$n"
        ip -n "m$n" addr add "10.0.1.$n/24" dev "cable$n"
        ip -n "m$n" link set "cable$n" up
    done
    on 1 controller adam-ctl controller run.conf --out run --listen $CONTROLLER --insecure \
        --set model=cut.net --set partitions=2 --set workers=1 --set protocol=hardsync --set batch=50 --set test=train.arec
    on 1 serve adam-serve train.arec --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure
    on 1 ps adam-ps --controller $CONTROLLER --listen tcp://10.0.0.1:0 --insecure --name ps-1
    for n in 2 3; do
        on "$n" "worker-$n" adam-worker --controller $CONTROLLER --insecure --name "worker-$n" --listen="tcp://10.0.1.$n:0"
    done
    wait "${process[controller]}"
    wait
    [ -e run/DONE ]
    for way in tx rx; do
        ip netns exec m2 cat "/sys/class/net/cable2/statistics/${way}_bytes"
    done
}

@test "two workers with a partition each exchange the bytes that adam-ctl check foretells, to 2%" {
    cat >cut.net <<'END'
input   1x28x28 ops='scale 1/255; mean 0.15; std 0.3'
conv    c1 maps=12 kernel=5 act=relu cut=rows
maxpool    size=2 cut=rows
dense   d1 units=200 act=relu cut=units
dense   d2 units=100 act=relu cut=inputs
softmax    units=10
END
    netns_run 3 cut_bytes
    # 4 epochs of 2000 samples, 40 mini-batches each.
    adam-ctl check --partitions 2 -b 50 --json cut.net |
        jq '[.borders[] | .forward_bytes + .back_bytes] | add * 8000' >samples
    adam-ctl check --partitions 2 -b 50 --json cut.net | jq '.shared_bytes * 160' >weights
    local foretold counted
    foretold=$(($(cat samples) + $(cat weights)))
    counted=$(($(tail -n 2 <<<"$output" | paste -sd +)))
    echo "foretold $foretold, counted $counted"
    [ "$foretold" -gt 50000000 ]
    is_true --argjson counted "$counted" "\$counted / . | . > 0.99 and . < 1.02" <<<"$foretold"
}

@test "examples/netns.sh: four machines, TLS between them" {
    EPOCHS=2 PICTURES=1000 run_ok "$ROOT/examples/netns.sh"
    [[ "$output" = *$'machine\tsent\treceived'* ]]
    [[ "$output" = *top1* ]]
}
