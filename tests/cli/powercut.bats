#!/usr/bin/env bats
# All processes of a run die at once: adam-ctl up --resume goes on from the parameter servers'
# stores, in the same run, or says why it goes on from the last checkpoint.
load ../helper/common
load ../helper/working_here

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 1500 --seed 3 --split test=0.2 -o digits.arec
    # Three shards: two for ps-1, one for ps-2, or the other way round.
    cat >two.net <<'END'
input   1x28x28 ops='scale 1/255; mean 0.16; std 0.24'
dense      units=680 act=relu
softmax    units=10
END
    printf '%s\n' 'model = two.net' 'data = digits.arec' 'test = digits-test.arec' 'rate = 0.02' \
        'batch = 8' 'epochs = 30' 'eval-every = 5' 'checkpoint-every = 100000' \
        'metrics-every = 0.1' >run.conf
    workers_rest 300
}

setup() {
    cp "$BATS_FILE_TMPDIR"/* "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR"
}

teardown() {
    end_members
}

begin() {
    start adam-ctl up run.conf --ps 2 --threads 1 --store --flush 0.05s "$@" 2>err
}

# All that server $1 had at version $2 is in its store: it has written its shards since it said so.
is_stored() {
    jq -se --arg name "$1" --argjson least "$2" 'map(select(.event == "ps" and .name == $name)) |
        last as $now | map(select(.step >= $least)) | first as $past |
        $past != null and $now.flushed >= $past.flushed + 3 * 1048576' run/metrics.jsonl
}

# The version of the newest checkpoint.
saved_version() {
    basename "$(readlink run/latest)" | sed 's/^ckpt-0*//'
}

# A checkpoint that is written now is well beyond version $1.
is_beyond() {
    adam-ctl checkpoint run && [ "$(saved_version)" -gt $(($1 + 12)) ]
}

run_id() {
    adam-ctl store check --json "run/store/$1" | jq -r .run
}

# Everything dies in the same moment.
cut_power() {
    # shellcheck disable=SC2046 # numbers
    kill -KILL "$pid" $(members) || true
    wait_for all_members 0
}

# A run that has a checkpoint, and trained until its stores are newer.
begin_and_cut_power() {
    begin "$@"
    wait_for grep -q '"event":"eval"' run/metrics.jsonl
    wait_for adam-ctl checkpoint run
    saved=$(saved_version)
    had=$(jq -c .run.versions run/latest/manifest.json)
    for server in ps-1 ps-2; do wait_for is_stored $server $((saved + 3)); done
    cut_power
    id=$(run_id ps-1)
    [ "$(run_id ps-2)" = "$id" ]
}

# The run that was resumed trains to its end, as well as one that nothing happened to.
ends_well() {
    wait_end
    cat err
    [ "$status" -eq 0 ]
    [ -e run/DONE ]
    adam-eval --model run/latest --data digits-test.arec --json | is_true '.top1 > 0.9'
    all_members 0
}

@test "after a power cut the run goes on from its stores: the same run, with the same accuracy" {
    begin_and_cut_power
    begin --resume
    ends_well
    grep -q "run $id goes on from its stores" err
    grep -q "ps-1: . shards, of versions [0-9]* to [0-9]*" err
    grep -q "not used: the newest checkpoint, of version $saved" err
    grep -q 'none of its members is there any more' err
    [ "$(run_id ps-1)" = "$id" ]
    # No shard was at an older version than in the checkpoint, and the data were where they had been.
    jq -se --argjson saved "$saved" --argjson had "$had" 'map(select(.event == "revived")) | length == 1 and
        (.[0] | .from == "stores" and .checkpoint == $saved and (.versions | length) == 3 and
        ([.versions, $had] | transpose | all(.[0] >= .[1])) and ([.servers[].shards] | add) == 3)' run/metrics.jsonl
    grep -q 'goes on in epoch' run/log/serve-1.log
    # Nobody gave weights to the servers: their versions went on.
    jq -se 'map(select(.event == "revived" or .event == "ps_returned" or .event == "ps")) |
        (map(.event == "revived") | index(true)) as $at | .[$at].versions as $had |
        .[$at:] | map(select(.event == "ps" and .step > 0)) | all(.step >= ($had | min))' run/metrics.jsonl
}

@test "three controllers come back with what they agreed on, also without one of their records" {
    begin_and_cut_power --controllers 3
    rm run/controller-2.state
    begin --controllers 3 --resume
    ends_well
    grep -q "run $id goes on from its stores" err
}

@test "a store that is gone is said, and a new run begins with the checkpoint" {
    begin_and_cut_power
    rm -r run/store/ps-2
    begin --resume
    ends_well
    grep -q 'not going on from the stores: the stores lack [12] of 3 shards, the first is [01]: .*ps-2' err
    grep -q "a new run begins with the newest checkpoint, of version $saved" err
    [ "$(run_id ps-1)" != "$id" ]
    [ "$(adam-ctl store check --json run/store/ps-1.old | jq -r .run)" = "$id" ]
    jq -se 'map(select(.event == "revived")) | length == 1 and (.[0] | .from == "checkpoint" and
        (.why | contains("shards")) and (.versions | min) == 0)' run/metrics.jsonl
}

# Changes a byte of the weights of the first shard in store $1, as the newest sound record has them.
damage_first_shard() {
    local segment at
    read -r segment at < <(adam-ctl store check --json "$1" |
        jq -r '.shards[0] | "\(.segment) \(.at + 4096 + 11)"')
    python "$ROOT/tests/helper/store_file.py" flip "$(printf '%s/%08d.log' "$1" "$segment")" "$at"
}

@test "a shard that is damaged in its store is said, and a new run begins with the checkpoint" {
    begin_and_cut_power
    # In the last group it would be a torn tail: the one before has to do then, and is damaged, too.
    damage_first_shard run/store/ps-1
    damage_first_shard run/store/ps-1
    begin --resume
    ends_well
    grep -q 'not going on from the stores: the stores lack 1 of 3 shards' err
    grep -q "a new run begins with the newest checkpoint, of version $saved" err
}

@test "stores that are older than the checkpoint are said to be, and it is gone on from" {
    begin_and_cut_power
    cp -r run/store backup
    begin --resume
    wait_for is_beyond "$saved"
    cut_power
    saved=$(saved_version)
    # As from a backup.
    rm -r run/store
    mv backup run/store
    begin --resume
    wait_for grep -q 'worker .* joined' err
    grep -qE 'not going on from the stores: shard [012] is at version [0-9]+ in the stores, and at [0-9]+ in the newest checkpoint' err
    grep -q "a new run begins with the newest checkpoint, of version $saved" err
    wait_for all_members 5
}

@test "what stands in the way of the stores is said: no record, an end, another count of servers" {
    begin_and_cut_power
    cp run/controller.state state
    # Which is more than a power cut does.
    rm run/controller.state
    run_ok adam-ctl -n up run.conf --ps 2 --store --resume
    [[ "$stderr" = *"not going on from the stores: there is no record of the run: "* ]]
    [[ "$output" = *"adam-ctl controller"*"--resume run "* ]]
    sed 's/"version":/"version":1/' state >run/controller.state
    run_ok adam-ctl -n up run.conf --ps 2 --store --resume
    [[ "$stderr" = *"not going on from the stores: "*"controller.state: damaged"* ]]
    cp state run/controller.state
    run_ok adam-ctl -n up run.conf --ps 1 --store --resume
    [[ "$stderr" = *"not going on from the stores: parameter server ps-2 had shards, and is not started now"* ]]
    run_ok adam-ctl -n up run.conf --ps 2 --resume
    [[ "$stderr" = *"warning: the run had stores; it goes on from them only with --store"* ]]
    run_ok adam-ctl -n up run.conf --ps 2 --store --resume
    [[ "$stderr" = *"run $id goes on from its stores"* ]]
    [[ "$output" != *"--resume"* && "$output" != *"controller.state"* ]]
    begin --resume
    wait_for adam-ctl down run
    wait_end
    [ "$status" -eq 75 ]
    run_ok adam-ctl -n up run.conf --ps 2 --store --resume
    [[ "$stderr" = *"not going on from the stores: the run was ended: stopped at epoch "* ]]
}

@test "a run that had saved nothing goes on from its stores" {
    begin
    for server in ps-1 ps-2; do wait_for is_stored $server 3; done
    cut_power
    [ ! -e run/latest ]
    id=$(run_id ps-1)
    begin --resume
    ends_well
    grep -q "run $id goes on from its stores" err
    [ "$(run_id ps-2)" = "$id" ]
}

@test "only the controller's machine dies: what is left goes on, and nobody is let go" {
    begin
    wait_for grep -q '"event":"eval"' run/metrics.jsonl
    kill -KILL "$(working_here '^adam-ctl controller ')"
    ends_well
    grep -q 'the run in run goes on' err
    run ! grep -q 'none of its members' err
}

# Two power cuts with $1 copies of each part, of disks that lose what was not synced.
loses_nothing() {
    ACK=durable COPIES=$1 TMPDIR=$BATS_TEST_TMPDIR run_ok "$ROOT/tests/bench/powercut.sh" 2
    printf '%s\n' "$output"
    [[ $output = *"at most 0 acknowledged pushes of "*" were lost in 2 power cuts, with $1 of each part"* ]]
}

@test "with ack = durable no push that was acknowledged is lost" {
    if [ "${SAN:-}" ]; then skip "what is preloaded comes before a sanitizer"; fi
    loses_nothing 1
}

@test "with ack = durable and three copies no push that was acknowledged is lost" {
    if [ "${SAN:-}" ]; then skip "what is preloaded comes before a sanitizer"; fi
    loses_nothing 3
}

@test "ack = durable without stores is refused before anything starts, and so is a server without one" {
    local command
    for command in up sh systemd sbatch; do
        run_status 2 adam-ctl $command --set ack=durable run.conf
        [[ "$stderr" = *"ack = durable: "*"--store"* ]]
    done
    [ ! -e run ]
    start adam-ctl controller run.conf --set ack=durable --out run --port-file port 2>err
    wait_for test -s port
    run_status 69 adam-ps --controller @port --name ps-1
    [[ "$stderr" = *"bad setting: the run has ack = durable: start the server with --store DIR"* ]]
}

@test "stores elsewhere are not taken from another run" {
    mkdir fast
    begin --store=fast/
    wait_for grep -q '"event":"eval"' run/metrics.jsonl
    compgen -G "fast/ps-1/*.log"
    cut_power
    run_status 73 adam-ctl up run.conf --out other --ps 2 --store=fast
    [[ "$stderr" = *"fast/ps-1 is the store of another run"* ]]
    run_ok adam-ctl -n up run.conf --out other --ps 2 --store=fast/
    grep -qx 'adam-ps --controller @other/controller.port --name ps-2 --store fast/ps-2 --flush 1s &' <<<"$output"
    run_status 2 adam-ctl up run.conf --flush 1s
}
