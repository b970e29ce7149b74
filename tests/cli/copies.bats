#!/usr/bin/env bats
# Copies of each part of the weights on several parameter servers: any of them may be killed, or
# drained and switched off, and the run goes on.
load ../helper/common
load ../helper/run

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    digits_conf 1200 8
    sed -i '/^servers/d' run.conf
    workers_rest 500
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    conf=$BATS_FILE_TMPDIR/run.conf
}

# Starts a run of $1 copies on $2 servers with more options, as far as epoch 1.
begin() {
    start adam-ctl up "$conf" --out run --copies "$1" --ps "$2" --workers 2 --threads 1 -q "${@:3}" 2>up.log
    up=$pid
    wait_for beyond 1
}

beyond() {
    adam-ctl status run --json >status.json 2>err && jq -e --argjson epoch "$1" '.epoch != null and .epoch > $epoch' status.json >epoch
}

# The process of server $1 of this run.
server_pid() {
    pgrep -P "$up" -f -- " --name $1( |\$)"
}

kill_server() {
    kill -KILL "$(server_pid "$1")"
}

lost() {
    jq -es --arg name "$1" 'any(.[]; .event == "ps_lost" and .name == $name)' run/metrics.jsonl >lost
}

# Each bucket has this many members, and none moves.
has_members() {
    adam-ctl status run --json >status.json || return
    jq -e --argjson wanted "$1" '.buckets | all(.joiner == null and 1 + (.secondaries | length) == $wanted)' \
        status.json >members
}

# Trains on, to an accuracy above $1 (0.93) that such a run has, and is saved. Of a run that stands
# still no epoch ends; how long all of them take is nobody's concern. One test alone may be of a
# worse moment.
ends_well() {
    local epoch last
    epoch=$(jq '.epoch // 0 | floor' status.json)
    last=$((epoch + 2 > 12 ? epoch + 2 : 12))
    for ((; epoch <= last; epoch++)); do wait_for beyond "$epoch"; done
    run_ok adam-ctl down run
    pid=$up
    wait_end
    cat up.log
    [ "$status" -eq 75 ]
    [ -e run/latest ]
    jq -c 'select(.event == "eval") | [.epoch, .top1, .loss]' run/metrics.jsonl
    jq -es --argjson least "${1:-0.93}" 'map(select(.event == "eval").top1)[-3:] | max > $least' run/metrics.jsonl
}

# Of buckets on servers by name: how many does server $1 have?
buckets_of() {
    adam-ctl status run --json |
        jq --arg name "$1" '(.members[] | select(.role == "parameter server" and .name == $name and .state != "gone").member) as $n |
            [.buckets[] | select(.primary == $n or .joiner == $n or (.secondaries | index($n))).count] | add // 0'
}

@test "as many parameter servers as copies are needed" {
    run_status 2 adam-ctl up "$conf" --out run --copies 3 --ps 2
    [[ $stderr = *"--copies 3: as many parameter servers must be there, and --ps starts 2"* ]]
    run_status 2 adam-ctl up "$conf" --out run --set copies=2
    [[ $stderr = *"copies=2: as many parameter servers must be there, and --ps starts 1"* ]]
    for copies in 0 4 x; do run_status 2 adam-ctl up "$conf" --out run --copies $copies --ps 5; done
    run_ok adam-ctl -n up "$conf" --out run --copies 3 --ps 3
    [[ $output = *"--copies 3"* ]]
    run_ok adam-ctl -n up "$conf" --out run --ps 3
    [[ $output != *"--copies"* ]]
}

@test "kill -9 of a parameter server: others have its part, and the run goes on" {
    for protocol in async hardsync softsync:1; do
        begin 3 3 --set epochs=100000 --set protocol="$protocol"
        run_ok adam-ctl status run
        [[ $output = *"SECONDARY OF"* ]]
        kill_server ps-1
        wait_for lost ps-1
        # The one that was started again has its share.
        wait_for has_members 3
        ends_well
        mv run "run-${protocol%:*}"
    done
    # What happened is in the metrics, as adam-metrics(5) says. (Whether a secondary takes over, or
    # the server is back before and gone for good, depends on who is faster.)
    cat run-*/metrics.jsonl >all
    jq -es 'map(select(.event == "places")) | (map(.completed) | add) > 0 and all(has("taken_over") and has("dropped"))' all
    jq -es 'map(select(.event == "ps_lost")) | length >= 3 and all(.name == "ps-1" and .member > 0)' all
}

# Of a frozen layer the average is its weights, which no update would bring back.
@test "copies of a part have the average of its weights" {
    load ../helper/worker
    sed '0,/^dense .*/s//& rate=0/' "$ROOT"/examples/digits.net >frozen.net
    frozen=$(awk '/rate=0/ { print $2 }' frozen.net)
    sed "s,^model.*,model = $PWD/frozen.net," "$conf" >"$BATS_FILE_TMPDIR"/frozen.conf
    # Momentum makes steps ten times as long.
    conf=$BATS_FILE_TMPDIR/frozen.conf begin 2 2 --set epochs=100000 --set ema=0.99 \
        --set optimizer=momentum --set rate=0.002
    kill_server ps-1
    wait_for lost ps-1
    wait_for has_members 2
    ends_well 0.9 # with fewer weights that learn
    averages run >far
    cat far
    [ "$(grep -c . far)" -ge 4 ]
    awk -v frozen="$frozen" '{ still = index($1, frozen ".") == 1 } still != ($2 == 0) { exit 1 }' far
}

@test "two of three servers killed at once: the run goes on with the third copy" {
    begin 3 3 --set epochs=100000
    kill -KILL "$(server_pid ps-1)" "$(server_pid ps-2)"
    wait_for has_members 3
    ends_well
}

@test "servers killed one after the other: each is replaced, and nothing is lost" {
    begin 2 3 --set epochs=100000
    for name in ps-1 ps-2 ps-3; do
        kill_server $name
        wait_for lost $name
        wait_for has_members 2
    done
    ends_well
}

# A worker pulls behind each of its pushes, which come to the shard in three messages.
@test "with ack=memory weights are as new as with one copy, and the run outlives its primaries" {
    begin 2 3 --set epochs=100000 --set ack=memory --set push=gradient --set push-every=1 \
        --set pull-every=1 --workers 1
    for name in ps-1 ps-2 ps-3; do
        kill_server $name
        wait_for lost $name
        wait_for has_members 2
    done
    ends_well
    jq -es 'map(select(.event == "ps" and .staleness_counts != null).staleness_counts | to_entries[]) |
        (map(.key * .value) | add) / (map(.value) | add) < 9' run/metrics.jsonl
}

@test "while the only controller stands still its copies take no pushes; then the run goes on" {
    begin 2 2 --set epochs=100000
    controller=$(pgrep -P "$up" -f '^adam-ctl controller ')
    kill -STOP "$controller"
    wait_for grep -q 'waiting for parameter server .*: busy' run/log/worker-1.log
    kill -CONT "$controller"
    ends_well
}

@test "all servers killed at once come back with their stores, and the run goes on" {
    begin 3 3 --set epochs=100000 --store --flush 0.1s
    kill -KILL "$(server_pid ps-1)" "$(server_pid ps-2)" "$(server_pid ps-3)"
    back() { grep -q "goes on with the store" run/log/controller.log; }
    wait_for back
    wait_for has_members 3
    ends_well
}

@test "a server that is drained may be switched off, also where nothing has copies" {
    begin 1 2 --set epochs=100000
    run_status 69 adam-ctl drain run ps-7
    [[ $stderr = *"no parameter server is called ps-7"* ]]
    run_ok adam-ctl drain run ps-2
    [ "$output" = "ps-2 has left, and may be switched off" ]
    run_ok adam-ctl drain run ps-2 # nothing is left to be done
    [ "$output" = "ps-2 has left, and may be switched off" ]
    [ -z "$(buckets_of ps-2)" ] # no such server is there
    [ "$(buckets_of ps-1)" -eq 1024 ]
    run_status 69 adam-ctl drain run ps-1
    [[ $stderr = *"no other server can take the buckets of ps-1"* ]]
    jq -es 'map(select(.event == "drain" or .event == "drained")) | map([.name, .buckets]) == [["ps-2", 512], ["ps-2", 0]]' run/metrics.jsonl
    # Nobody starts it again, also not with a controller that lost what it knew of the others.
    wait_for grep -q "ps-2 was drained, and has left; the run goes on without it" up.log
    [ -z "$(server_pid ps-2)" ]
    kill -KILL "$(pgrep -P "$up" -f "adam-ctl controller")"
    wait_for grep -q "the run in run goes on" run/log/controller.log
    wait_for beyond 0
    wait_for beyond "$(jq ".epoch + 3" status.json)"
    [ "$(grep -c "serves a model" run/log/ps-2.log)" -eq 1 ]
    # Started by hand, it has a share as any that joins.
    start adam-ps --controller @run/controller.port --name ps-2 2>ps-2.log
    by_hand=$pid
    shared() { [ "$(buckets_of ps-2)" -eq 512 ] && [ "$(buckets_of ps-1)" -eq 512 ]; }
    wait_for shared
    run_ok adam-ctl drain run ps-2
    pid=$by_hand
    wait_end
    [ "$status" -eq 1 ]
    run_ok adam-ctl down run
    pid=$up
    wait_end
    [ "$status" -eq 75 ]
}

@test "a server that was drained, and is killed before it has left, leaves when it is started again" {
    begin 2 3 --set epochs=100000
    kill -STOP "$(server_pid ps-2)"
    run_ok adam-ctl drain run ps-2 --no-wait
    wait_for grep -q "(ps-2) has no bucket any more, and leaves" run/log/controller.log
    kill -KILL "$(server_pid ps-2)"
    wait_for grep -q "ps-2 was drained, and has left; the run goes on without it" up.log
    [ "$(grep -c "serves a model" run/log/ps-2.log)" -eq 2 ]
    # Started by hand after that, it has a share.
    start adam-ps --controller @run/controller.port --name ps-2 2>ps-2.log
    shared() { [ "$(buckets_of ps-2)" -gt 0 ]; }
    wait_for shared
    run_ok adam-ctl down --now run
    pid=$up
    wait_end
    [ "$status" -eq 75 ]
}

@test "status says bucket by bucket who has it" {
    begin 2 3 --set epochs=100000
    run_ok adam-ctl status run --buckets
    [[ ${lines[0]} = *BUCKETS*EPOCH*PRIMARY*SECONDARIES* ]]
    [ "${#lines[@]}" -gt 3 ]
    jq -e '[.buckets[].count] | add == 1024' status.json
    run_ok adam-ctl drain run ps-3 --no-wait
    run_ok adam-ctl drain run ps-3 # on its way, or done
    [ -z "$(buckets_of ps-3)" ]
    run_status 69 adam-ctl drain run ps-2
    [[ $stderr = *"each is to be on 2 servers, and 1 would be left"* ]]
    run_ok adam-ctl down --now run
    pid=$up
    wait_end
    [ "$status" -eq 75 ]
}
