#!/usr/bin/env bats
# Checkpoints in parts, which the parameter servers write: like any other for whoever reads them,
# whole or not at all, and no process holds the model.
load ../helper/common
load ../helper/run

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    digits_conf 1200 8
    sed -i '/^servers/d' run.conf
    printf 'momentum = 0.9\ncheckpoint-parts = shared\n' >>run.conf
    workers_rest 500
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    conf=$BATS_FILE_TMPDIR/run.conf
}

parts() {
    python "$ROOT/tests/helper/parts.py" "$@"
}

# A whole run of 3 servers with more options.
whole_run() {
    run_ok adam-ctl up "$conf" --out run --ps 3 --workers 2 --threads 1 -q "$@"
}

# Starts a run that does not end, as far as it trains.
begin() {
    start adam-ctl up "$conf" --out run --workers 2 --threads 1 -q --set epochs=100000 "$@" 2>up.log
    up=$pid
    wait_for trains
}

trains() {
    adam-ctl status run --json >status.json 2>err && jq -e '.epoch != null and .epoch > 0' status.json
}

end_run() {
    run_ok adam-ctl down run
    pid=$up
    wait_end
    cat up.log
    [ "$status" -eq 75 ]
}

# The process of member $1 of this run.
process_of() {
    pgrep -P "$up" -f -- " --name $1( |\$)"
}

accuracy() {
    adam-eval --model "$1" --data "$BATS_FILE_TMPDIR/test.arec" --json | jq -c '[.top1, .loss]'
}

nothing_half() {
    [ -z "$(find run -name '.ckpt*')" ]
}

@test "a run of three servers saves parts: the index, the sums and every tensor agree" {
    whole_run
    for folder in run/ckpt-*; do
        parts check "$folder" >tensors
        [ "$(grep -c '^momentum\.' tensors)" = "$(grep -vc '^momentum\.' tensors)" ]
        [ "$(grep -vc '^momentum\.' tensors)" = 8 ]
        [ "$(find "$folder" -name 'model-*-of-00003.safetensors' | wc -l)" = 3 ]
    done
    [ "$(jq .top1 run/DONE)" = "$(accuracy run | jq '.[0]')" ]
    # Python makes one file of it, and other parts of that: all predict the same.
    mkdir joined
    parts join run/latest joined/model.safetensors
    parts split joined/model.safetensors split
    [ "$(accuracy joined/model.safetensors)" = "$(accuracy run/latest)" ]
    [ "$(accuracy split/model.safetensors.index.json)" = "$(accuracy run/latest)" ]
    run_ok adam-ctl report run -o page.html
}

@test "a run goes on from parts, with other servers, and from one file with parts" {
    whole_run --set epochs=1
    first=$(readlink run/latest)
    run_ok adam-ctl up "$conf" --out run --resume --ps 2 --workers 1 --threads 1 --set epochs=2 \
        --set checkpoint-parts=off
    grep -q "epochs is 2 now, was 1" run/log/controller.log
    [ -e run/latest/model.safetensors ]
    [ -e "run/$first/model.safetensors.index.json" ]
    run_ok adam-ctl up "$conf" --out run --resume --ps 2 --workers 1 --threads 1 --set epochs=3
    parts check run/latest
    [ "$(find run/latest/ -name 'model-*-of-00002.safetensors' | wc -l)" = 2 ]
    [ "$(jq .epoch run/DONE)" = 3 ]
    [ "$(jq .top1 run/DONE)" = "$(accuracy run | jq '.[0]')" ]
}

# The same run by rule $1, with more options, as one file and in parts, which have $2.
same_in_parts() {
    for how in off shared; do
        run_ok adam-ctl up "$conf" --out $how-$1 --ps 3 --workers 1 --threads 1 -q --set epochs=1 \
            --set protocol=hardsync --set checkpoint-parts=$how --set optimizer=$1 "${@:3}"
    done
    parts join shared-$1/latest joined.safetensors
    tensors_of off-$1/latest/model.safetensors >off.tensors
    tensors_of joined.safetensors >shared.tensors
    grep "^$2 " off.tensors
    diff off.tensors shared.tensors
}

@test "parts have the same weights and the same momentum as one file" {
    same_in_parts momentum momentum.d1.weight
}

@test "and both means of adam" {
    same_in_parts adam adam.exp_avg_sq.d1.weight
}

@test "and the average of the weights" {
    same_in_parts adam trained.d1.weight --set ema=0.99
}

@test "damage is named, with the newest sound checkpoint" {
    begin --ps 3 --set checkpoint-every=0
    run_ok adam-ctl checkpoint run
    wait_for newer_checkpoint "$output"
    end_run
    newest=run/$(readlink run/latest)
    older=$(find run -name 'ckpt-*' | sort | tail -n 2 | head -n 1)
    printf xxxxxxxx | dd of="$newest/model-00002-of-00003.safetensors" bs=1 seek=3000 conv=notrunc status=none
    run_status 65 adam-eval --model run --data "$BATS_FILE_TMPDIR/test.arec"
    [[ $stderr = *"model-00002-of-00003.safetensors: it is damaged: its CRC-32"*"the newest sound checkpoint is $older"* ]]
    rm "$newest/model-00001-of-00003.safetensors"
    run_status 66 adam-eval --model run --data "$BATS_FILE_TMPDIR/test.arec"
    [[ $stderr = *"model-00001-of-00003.safetensors: No such file"*"the newest sound checkpoint is $older"* ]]
    run_status 65 adam-eval --model "$newest/model-00003-of-00003.safetensors" --data "$BATS_FILE_TMPDIR/test.arec"
    run_ok adam-eval --model "$older" --data "$BATS_FILE_TMPDIR/test.arec"
}

@test "a setting that may change while the run goes on, and has few values" {
    run_status 2 adam-ctl up "$conf" --out run --set checkpoint-parts=some
    [[ $stderr = *"checkpoint-parts is one of off, shared, local"* ]]
    begin --ps 2 --set checkpoint-parts=off --set checkpoint-every=0
    run_ok adam-ctl checkpoint run
    [ -e "$output/model.safetensors" ]
    run_ok adam-ctl set run checkpoint-parts=shared keep-last=1
    run_ok adam-ctl checkpoint run
    parts check "$output"
    [ "$(find run -name 'ckpt-*' | wc -l)" = 1 ]
    run_ok adam-ctl set run checkpoint-parts=off
    run_ok adam-ctl checkpoint run
    [ -e "$output/model.safetensors" ]
    end_run
}

# The checkpoint folder $1 has its parts with the servers.
is_apart() {
    [ -z "$(find "$1/" -name 'model-*.safetensors')" ] && [ "$(jq '[.files[] | select(.server)] | length' "$1/manifest.json")" = 3 ]
}

@test "parts that stay with their servers: gathered, they are a checkpoint like any other" {
    begin --ps 3 --set checkpoint-parts=local --set checkpoint-every=0 --set keep-last=2 --set eval-every=0
    newest=
    for _ in 1 2 3; do
        wait_for newer_checkpoint "$newest"
        newest=$output
    done
    is_apart "$newest"
    # As many as the run keeps.
    for name in ps-1 ps-2 ps-3; do
        [ "$(find run/parts/$name -name 'model-*.safetensors' | wc -l)" = 2 ]
    done
    run_status 69 adam-eval --model run --data "$BATS_FILE_TMPDIR/test.arec"
    [[ $stderr = *"model-00001-of-00003.safetensors is on the disk of parameter server 'ps-"*"': adam-ctl gather brings it here"* ]]
    run_ok adam-ctl gather run
    [ "$output" = "$(realpath "$newest")" ]
    parts check "$newest" >tensors
    grep -q '^momentum.d1.weight' tensors
    accuracy "$newest"
    # Damage on a server's disk, a part that is gone, and a server that is gone are told.
    run_ok adam-ctl checkpoint run
    newest=$output
    part=$(find run/parts/ps-2 -name 'model-*.safetensors' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
    printf xxxxxxxx | dd of="$part" bs=1 seek=3000 conv=notrunc status=none
    run_status 65 adam-ctl gather run
    [[ $stderr = *"${part##*/} of parameter server 'ps-2': it is damaged: its CRC-32 is "* ]]
    [ ! -e "$newest/${part##*/}" ]
    printf x >>"$part"
    run_status 65 adam-ctl gather run
    [[ $stderr = *"${part##*/} of parameter server 'ps-2': it has "*" bytes where the manifest says "* ]]
    rm "$part"
    run_status 69 adam-ctl gather run
    [[ $stderr = *"${part##*/} of parameter server 'ps-2': storage failed: ps-2: "*"No such file"* ]]
    end_run
    is_apart run/latest
}

@test "a run goes on from parts that its servers have, and names one that is missing" {
    begin --ps 3 --set checkpoint-parts=local --set checkpoint-every=0 --set eval-every=0
    end_run
    is_apart run/latest
    run_status 69 adam-eval --model run/latest --data "$BATS_FILE_TMPDIR/test.arec"
    epoch=$(jq -r '.epoch | ceil + 1' run/latest/manifest.json)
    old=$(realpath run/latest)
    # With two servers, of which none is ps-3, it waits for that one.
    start adam-ctl up "$conf" --out run --resume --ps 2 --workers 1 --threads 1 -q \
        --set checkpoint-parts=local --set epochs="$epoch" 2>two.log
    up=$pid
    missing() { adam-ctl status run --json | is_true '.members[0].waits_for | contains("parameter server '"'ps-3'"', which has model-0000")'; }
    wait_for missing
    cat two.log
    run_ok adam-ctl down run
    pid=$up
    wait_end
    [ "$(realpath run/latest)" = "$old" ]
    run_ok adam-ctl up "$conf" --out run --resume --ps 3 --workers 1 --threads 1 -q \
        --set checkpoint-parts=local --set epochs="$epoch"
    [ "$(jq .epoch run/DONE)" = "$epoch" ]
    parts check "$old" >tensors
    is_apart run/latest
    # Parts that an earlier run left go with its checkpoint, and what no checkpoint of this folder names
    # stays.
    mkdir -p run/parts/ps-1/00000000000000000000000000000000/00000000000000000000000000000001
    run_ok adam-ctl up "$conf" --out run --resume --ps 3 --workers 1 --threads 1 -q --set keep-last=1 \
        --set checkpoint-parts=local --set epochs=$((epoch + 1))
    [ ! -e "$old" ]
    is_apart run/latest
    jq -r 'select(.parts) | .parts | .run + "/" + .token' run/ckpt-*/manifest.json | sort >kept # the last and the best
    [ "$(wc -l <kept)" -le 2 ]
    grep -qx "$(jq -r '.parts | .run + "/" + .token' run/latest/manifest.json)" kept
    [ "$(ls run/parts/ps-1)" = "$( (cut -d/ -f1 kept; echo 00000000000000000000000000000000) | sort -u)" ]
    for name in ps-2 ps-3; do
        [ "$(cd run/parts/$name && printf '%s\n' ??*/*)" = "$(cat kept)" ]
    done
}

@test "a run that had parts at its servers goes on from them, whatever it saves then" {
    begin --ps 2 --set checkpoint-parts=local --set checkpoint-every=0 --set eval-every=0
    end_run
    [ -z "$(find run/latest/ -name 'model*.safetensors')" ]
    epoch=$(jq -r '.epoch | ceil + 1' run/latest/manifest.json)
    run_ok adam-ctl up "$conf" --out run --resume --ps 2 --workers 1 --threads 1 -q \
        --set checkpoint-parts=off --set epochs="$epoch"
    [ -e run/latest/model.safetensors ]
}

@test "a part that its server has no more ends the run that would go on from it, and is named" {
    begin --ps 1 --set checkpoint-parts=local --set checkpoint-every=0 --set eval-every=0
    end_run
    # A server of the right name that does not know where its parts are.
    start adam-ctl controller "$conf" --out run --resume run --set epochs=100000 2>controller.log
    controller=$pid
    wait_for adam-ctl status run
    start adam-ps --controller @run/controller.port --name ps-1 2>ps.log
    start adam-serve "$BATS_FILE_TMPDIR/train.arec" --controller @run/controller.port --name serve 2>serve.log
    pid=$controller
    wait_end
    [ "$status" -eq 69 ]
    grep "model-00001-of-00001.safetensors of parameter server 'ps-1': storage failed: ps-1: it has no folder for parts: --checkpoints DIR names it" controller.log
    rm "$(find run/parts/ps-1 -name 'model-*.safetensors')"
    run_status 69 adam-ctl up "$conf" --out run --resume --ps 1 --workers 1 --threads 1 --set epochs=100000
    [[ $stderr = *"model-00001-of-00001.safetensors of parameter server 'ps-1': storage failed: ps-1: "*"No such file"*"; no other checkpoint in run is sound"* ]]
}

@test "a server without a folder for the parts that it is to keep does not join" {
    start adam-ctl controller "$conf" --out run --set epochs=100000 --set checkpoint-parts=local 2>controller.log
    wait_for adam-ctl status run
    run_status 69 adam-ps --controller @run/controller.port --name lonely
    [[ $stderr = *"bad setting: the run has checkpoint-parts = local: start the server with --checkpoints DIR"* ]]
    start adam-ps --controller @run/controller.port --name ps-1 --checkpoints parts 2>ps.log
    start adam-serve "$BATS_FILE_TMPDIR/train.arec" --controller @run/controller.port --name serve 2>serve.log
    start adam-worker --controller @run/controller.port --threads 1 --name w 2>w.log
    wait_for trains
    run_ok adam-ctl checkpoint run
}

@test "a folder for parts that cannot be made is refused before the run is joined" {
    : >file
    run_status 73 adam-ps --controller tcp://127.0.0.1:1 --checkpoints file
    [[ $stderr = *"cannot write in file: Not a directory"* ]]
    run_status 73 adam-ps --controller tcp://127.0.0.1:1 --checkpoints file/parts
    run_status 73 adam-ps --controller tcp://127.0.0.1:1 --checkpoints ''
}

@test "where a server has no folder for parts they are not left to servers from now on" {
    start adam-ctl controller "$conf" --out run --set epochs=100000 2>controller.log
    wait_for adam-ctl status run
    start adam-ps --controller @run/controller.port --name lonely 2>ps.log
    wait_for grep -q "(lonely) joined" controller.log
    run_status 2 adam-ctl set run checkpoint-parts=local
    [[ $stderr = *"checkpoint-parts = local: parameter server 1 (lonely) was started without --checkpoints DIR"* ]]
    run_ok adam-ctl set run checkpoint-parts=shared
}

@test "kill -9 of servers while they save: what appears is whole, and the run goes on" {
    begin --ps 3 --copies 2 --set checkpoint-every=0.0005m --set keep-last=0
    for name in ps-1 ps-3; do
        before=$(find run -maxdepth 1 -name 'ckpt-*' | wc -l)
        kill -KILL "$(process_of $name)"
        lost() { jq -es --arg name "$name" 'any(.[]; .event == "ps_lost" and .name == $name)' run/metrics.jsonl; }
        wait_for lost
        more() { [ "$(find run -maxdepth 1 -name 'ckpt-*' | wc -l)" -gt $((before + 1)) ]; }
        wait_for more
        complete() { adam-ctl status run --json | is_true '.buckets | all(.joiner == null and (.secondaries | length) == 1)'; }
        wait_for complete
    done
    end_run
    nothing_half
    for folder in run/ckpt-*; do parts check "$folder" >tensors; done
    accuracy run
}

@test "a server that is killed before it has written its part: the save fails, and the next does not" {
    begin --ps 3 --copies 2 --set checkpoint-every=0
    kill -STOP "$(process_of ps-2)"
    adam-ctl checkpoint run 2>refused &
    asking=$!
    saving() { [ -n "$(find run -name '.ckpt-*.tmp')" ]; }
    wait_for saving
    kill -KILL "$(process_of ps-2)"
    status=0
    wait $asking || status=$?
    [ "$status" -eq 69 ]
    grep "storage failed: cannot save run/ckpt-.*parameter server: ipc:" refused
    nothing_half
    run ! test -e run/latest
    saves() { adam-ctl checkpoint run; }
    wait_for saves
    parts check run/latest
    end_run
}

@test "a full disk fails the save with its text, and leaves nothing; at the end it is status 74" {
    unshare --user --map-root-user --mount true || skip "no mount namespaces here"
    unshare --user --map-root-user --mount bash -c '
        mkdir run && mount -t tmpfs -o size=500k none run || exit
        adam-ctl up "$1" --out run --ps 2 --workers 1 --threads 1 -q --set epochs=1 --set eval-every=0
        echo "status $?"
        find run; cat run/log/controller.log' - "$conf" >out 2>err || true
    cat out err
    grep "^status 74$" out
    grep "cannot save run/ckpt-.*No space left on device" out
    run ! grep "^run/.*ckpt" out
}

@test "a folder that a server does not see is named, and the server" {
    unshare --user --map-root-user --mount true || skip "no mount namespaces here"
    start adam-ctl controller "$conf" --out run --set servers=2 --set epochs=100000 --set checkpoint-every=0 \
        2>controller.log
    controller=$pid
    wait_for adam-ctl status run
    address=$(cat run/controller.port)
    start adam-ps --controller "$address" --name near 2>near.log
    start unshare --user --map-root-user --mount bash -c '
        mount -t tmpfs none run && exec adam-ps --controller "$1" --name far' - "$address" 2>far.log
    start adam-serve "$BATS_FILE_TMPDIR/train.arec" --controller "$address" --name serve 2>serve.log
    start adam-worker --controller "$address" --threads 1 --name w 2>w.log
    wait_for trains
    run_status 69 adam-ctl checkpoint run
    [[ $stderr = *"storage failed: far: $PWD/run/.ckpt-"*" is not the folder that the controller made: is it shared?"* ]]
    nothing_half
    run_ok adam-ctl set run checkpoint-parts=off
    run_ok adam-ctl checkpoint run
    run_ok adam-ctl down run
    pid=$controller
    wait_end
    [ "$status" -eq 75 ]
}

@test "no process holds the model when a run begins, nor while it is saved" {
    case $BUILD in */build) ;; *) skip "sanitizers have memory of their own" ;; esac
    # 60 MiB of weights and as much of momentum.
    printf 'input 1x28x28 ops="scale 1/255"\ndense a units=2000\ndense b units=6500\nsoftmax units=10\n' >large.net
    sed "s|^model .*|model = $PWD/large.net|" "$conf" >large.conf
    conf=large.conf
    sed -i "s|= train.arec|= $BATS_FILE_TMPDIR/train.arec|; /^test/d" large.conf
    begin --ps 3 --set checkpoint-every=0 --set rate=0.0001
    controller=$(pgrep -P "$up" -f -- 'adam-ctl controller')
    peak() { awk '/VmHWM/ { print $2 }' "/proc/$1/status"; }
    peak "$controller"
    [ "$(peak "$controller")" -lt 50000 ]
    for process in "$controller" $(process_of 'ps-[123]'); do echo 5 >"/proc/$process/clear_refs"; done
    run_ok adam-ctl checkpoint run
    path=$output
    [ "$(du -sk "$path" | cut -f1)" -gt 110000 ]
    peak "$controller"
    [ "$(peak "$controller")" -lt 30000 ]
    for process in $(process_of 'ps-[123]'); do
        held=$(peak "$process")
        echo "$held"
        [ "$held" -lt 100000 ]
    done
    parts check "$path"
    end_run
}
