#!/usr/bin/env bats
# Stores of parameter servers: adam-ps --store, adam-ctl store, and adam-store(5) from another hand.
load ../helper/common
load ../helper/run

store_file() {
    python "$ROOT/tests/helper/store_file.py" "$@"
}

# Starts a server $1 of the run whose controller is at ctl.port, with the store $1.store.
start_server() {
    start adam-ps --controller @ctl.port --name "$1" --store "$1.store" --flush 0.05s "${@:2}" 2>"$1.log"
}

# Data and run file of a run of one server; $1 epochs, and more lines of the file.
write_run() {
    adam-prep draw 400 --seed 1 -o train.arec
    printf '%s\n' "model = $ROOT/examples/digits.net" 'data = train.arec' "epochs = ${1:-4}" 'batch = 8' \
        'rate = 0.02' 'servers = 1' 'metrics-every = 0.1' "${@:2}" >run.conf
}

# Such a run, of a server with a store, and no worker yet.
begin_run_with_store() {
    write_run "$@"
    start adam-ctl controller run.conf --out run --port-file ctl.port 2>ctl.log
    controller=$pid
    start_server ps-0
    server=$pid
    start adam-serve --controller @ctl.port train.arec 2>serve.log
}

@test "a store that was written as adam-store(5) says is read, with its failed group left out" {
    store_file write other
    run_ok adam-ctl store check other
    [[ ${lines[0]} = "server ps-0 of run 000102030405060708090a0b0c0d0e0f" ]]
    [[ ${lines[1]} = "4 shards, "* ]]
    [ "${#lines[@]}" -eq 2 ]
    run_ok adam-ctl store check --json other
    jq -e '.server == "ps-0" and .run == "000102030405060708090a0b0c0d0e0f" and .segments == 2 and
        .damaged == 0 and .torn == 0' <<<"$output"
    jq -e '[.shards[] | [.shard, .version, .epoch, .bucket, .segment, .damaged]] ==
        [[0,2,3,4294967295,1,false],[1,1,3,4294967295,2,false],
         [2,4,3,4294967295,2,false],[7,1,3,4294967295,1,false]]' <<<"$output"
}

@test "damage is named by shard, with status 65; a torn tail is no damage" {
    store_file write other
    store_file flip other/00000001.log $((4 * 4096 + 3)) # payload of shard 7
    run_status 65 adam-ctl store check other
    [[ ${lines[2]} = "shard 7 is damaged: 00000001.log" ]]
    [[ $stderr = *"other: 1 of 4 shards are damaged"* ]]
    run_status 65 adam-ctl store --json check other
    jq -e '[.shards[] | select(.damaged).shard] == [7]' <<<"$output"
    store_file write other
    store_file flip other/00000002.log $((6 * 4096 + 20)) # the last commit record
    store_file flip other/00000002.log $((2 * 4096 + 3)) # payload of shard 1
    run_ok adam-ctl store check other
    [[ ${lines[1]} = "2 shards, "* ]]
    [[ ${lines[2]} = *"records of an incomplete group at the end"* ]]
}

@test "what is no store is said to be none" {
    mkdir empty
    run_status 66 adam-ctl store check empty
    [[ $stderr = *"empty: no store is here"* ]]
    run_status 66 adam-ctl store check missing
    run_status 2 adam-ctl store repair empty
    store_file write other
    printf 2 | dd of=other/00000001.log bs=1 seek=7 conv=notrunc status=none
    run_status 65 adam-ctl store check other
    [[ $stderr = *"later version"* ]]
}

@test "the end of a run is in the store, to the last push" {
    begin_run_with_store
    start adam-worker --controller @ctl.port 2>worker.log
    wait_end
    pid=$controller
    wait_end
    pid=$server
    wait_end
    [ "$status" -eq 0 ]
    run_ok adam-ctl store check ps-0.store
    [[ ${lines[0]} = "server ps-0 of run "* ]]
    [[ ${lines[1]} = "1 shards, "* ]]
    # Every update is in the store, and the weights are those of the last checkpoint.
    jq -s 'map(select(.event == "ps")) | last' run/metrics.jsonl >line
    jq -e '.flushed > 0 and .stored >= .flushed and .flush_failures == 0 and
        (.dirty_bytes > 0 or .at_risk == 0)' line
    adam-ctl store check --json ps-0.store >store.json
    [ "$(jq .shards[0].version store.json)" -ge "$(jq .step line)" ]
    store_file read ps-0.store >states
    [ "$(wc -l <states)" -eq 1 ]
    read -r shard version _ floats sum pushes <states
    [ "$shard" -eq 0 ]
    [ "$version" -eq "$(jq .shards[0].version store.json)" ]
    [ "$pushes" -ge 1 ]
    python - run/latest/model.safetensors "$floats" "$sum" <<'END'
import json, struct, sys
import numpy
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
tensors = {k: v for k, v in header.items() if k != "__metadata__"}
count = sum((v["data_offsets"][1] - v["data_offsets"][0]) // 4 for v in tensors.values())
total = sum(numpy.frombuffer(data, "<f4", (v["data_offsets"][1] - v["data_offsets"][0]) // 4,
                             8 + size + v["data_offsets"][0]).astype(float).sum() for v in tensors.values())
assert count == int(sys.argv[2]), (count, sys.argv[2])
assert abs(total - float(sys.argv[3])) < 1e-3, (total, sys.argv[3])
END
}

@test "a store is one process's, and one server's of one run" {
    begin_run_with_store
    wait_for grep -q 'holds 82934 parameters' ps-0.log
    run_status 73 adam-ps --controller @ctl.port --store ps-0.store
    [[ $stderr = *"ps-0.store: another process uses this store"* ]]
    run_status 69 adam-ctl store check ps-0.store
    wait_for grep -qa adamlog1 ps-0.store/00000001.log
    kill -KILL "$server" "$controller"
    wait_for adam-ctl store check ps-0.store
    # The next run has a new id.
    rm ctl.port
    start adam-ctl controller run.conf --out again --port-file ctl.port 2>ctl.log
    run_status 65 adam-ps --controller @ctl.port --name ps-0 --store ps-0.store
    [[ $stderr = *"another run"* ]]
    run_status 65 adam-ps --controller @ctl.port --name ps-1 --store ps-0.store
    [[ $stderr = *"another server"*"'ps-0'"* ]]
    # That of another run can be set aside.
    local old
    old=$(adam-ctl store check --json ps-0.store | jq -r .run)
    start_server ps-0 --aside
    wait_for grep -q 'what another run left in ps-0.store is now ps-0.store.old' ps-0.log
    wait_for grep -q 'serves a model of 82934 parameters' ps-0.log
    [ "$(adam-ctl store check --json ps-0.store.old | jq -r .run)" = "$old" ]
    [ ! -e ps-0.store/00000001.log ]
}

@test "a store that cannot be made is said so" {
    touch file
    run_status 73 adam-ps --controller @ctl.port --store file
    run_status 73 adam-ps --controller @ctl.port --store file/store
    [[ $stderr = *"file/store"* ]]
}

# A run of one server that has weights and trains.
begin_training_with_store() {
    begin_run_with_store 100000
    start adam-worker --controller @ctl.port --threads 1 2>worker.log
    wait_for trained 0
}

trained() {
    [ "$(adam-ctl status run --json | jq --argjson n "$1" '.epoch > $n')" = true ]
}

@test "a run whose only parameter server is killed goes on when it is back with its store" {
    begin_training_with_store
    for round in 1 2 3; do
        before=$(adam-ctl status run --json | jq .epoch)
        kill -KILL "$server"
        pid=$server
        wait_end # it has the store until then
        if [ $round -eq 1 ]; then
            wait_for grep -q "parameter server .* is gone, its shards are in its store; waiting for it for 30 s" ctl.log
        fi
        start_server ps-0 --aside # this run's own stays
        server=$pid
        wait_for grep -q "has 1 shards from its store" ps-0.log
        wait_for trained "$(jq -n "$before + 1")"
    done
    [ "$(grep -c "goes on with the store of parameter server" ctl.log)" -eq 3 ]
    run_ok adam-ctl down run
    pid=$controller
    wait_end
    [ "$status" -eq 75 ]
    [ -e run/latest ]
    [ "$(jq -s 'map(select(.event == "ps_returned" and .member > .before and .name == "ps-0")) | length' run/metrics.jsonl)" -eq 3 ]
}

@test "a server without the store of who is lost takes nothing over, and the run ends" {
    begin_training_with_store
    run_ok adam-ctl set run server-patience=9
    kill -KILL "$server"
    start adam-ps --controller @ctl.port --name other --store other.store 2>other.log
    pid=$controller
    wait_end
    [ "$status" -eq 69 ]
    grep -q "and with it its part of the weights" ctl.log
}

@test "a server that comes back without what it had stored says which shards it lacks" {
    begin_training_with_store
    run_ok adam-ctl set run server-patience=9
    kill -KILL "$server"
    rm -r ps-0.store
    start_server ps-0
    wait_end
    [ "$status" -eq 65 ]
    grep -q "ps-0.store has no weights for 1 of the 1 shards that are held here, and nobody gave them" ps-0.log
    pid=$controller
    wait_end
    [ "$status" -eq 69 ]
}

@test "a primary that comes back without its store, before its copies do, takes nothing from them" {
    begin_run_with_store 100000 'copies = 2'
    wait_for grep -q "ps-0) joined" ctl.log
    start_server ps-1
    copy=$pid
    start adam-worker --controller @ctl.port --threads 1 2>worker.log
    wait_for trained 1
    stored() { adam-ctl store check --json ps-1.store | is_true '.shards | length == 1'; }
    kill -KILL "$server" "$copy"
    wait_for stored
    # The server of the first bucket, which is that of the only shard, was the first to come.
    rm -r ps-0.store
    start_server ps-0
    wait_for grep -q "(ps-0) has a store without any shard of this run" ctl.log
    before=$(adam-ctl status run --json | jq .epoch)
    start_server ps-1
    wait_for grep -q "has 1 shards from its store" ps-1.log
    wait_for trained "$(jq -n "$before + 1")"
    # The one that came first copies it.
    whole() { adam-ctl status run --json | is_true '.buckets | all(.joiner == null and (.secondaries | length) == 1)'; }
    wait_for whole
    run_ok adam-ctl down run
    pid=$controller
    wait_end
    [ "$status" -eq 75 ]
    jq -es 'map(select(.event == "eval" or .event == "ps_returned")) | length > 0' run/metrics.jsonl
    [ -e run/latest ]
}

@test "a server that is stopped while its disk is full says by its status that its store lacks something" {
    unshare --user --map-root-user --mount true || skip "no mount namespaces here"
    write_run 100000
    mkdir disk
    start adam-ctl controller run.conf --out run --port-file ctl.port 2>ctl.log
    start unshare --user --map-root-user --mount bash -c '
        mount -t tmpfs -o size=1m none disk &&
            exec adam-ps --controller @ctl.port --name ps-0 --store disk/store --flush 0.05s' 2>ps-0.log
    server=$pid
    start adam-serve --controller @ctl.port train.arec 2>serve.log
    start adam-worker --controller @ctl.port --threads 1 2>worker.log
    wait_for grep -q "No space left on device" ps-0.log
    kill -TERM "$server"
    pid=$server
    wait_end
    cat ps-0.log
    [ "$status" -eq 74 ]
    grep -q "error: [0-9]* bytes of shards are not in the store: .*No space left on device" ps-0.log
}

@test "two servers with stores have two names" {
    begin_training_with_store
    start adam-ps --controller @ctl.port --name ps-0 --store more.store 2>more.log
    wait_for grep -q "another parameter server with a store has this name: give each its own --name" more.log
}

@test "where workers share steps a lost step is not waited for" {
    write_run 100000 'protocol = hardsync'
    start adam-ctl controller run.conf --out run --port-file ctl.port 2>ctl.log
    controller=$pid
    start_server ps-1
    server=$pid
    start adam-serve --controller @ctl.port train.arec 2>serve.log
    start adam-worker --controller @ctl.port --threads 1 2>worker.log
    wait_for trained 0
    kill -KILL "$server"
    pid=$controller
    wait_end
    [ "$status" -eq 69 ]
}
