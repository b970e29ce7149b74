#!/usr/bin/env bats
# adam-ctl up with the programs themselves: a small run, whole, stopped, and hurt.
load ../helper/common
load ../helper/working_here

# Files have at most so many KiB from now on.
limit_files() {
    if [ "${SAN:-}" = thread ]; then skip "ThreadSanitizer keeps files of its own"; fi
    ulimit -f "$1"
}

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    adam-prep draw 1500 --seed 3 --split test=0.2 -o digits.arec
    small_net
    printf '%s\n' 'model = small.net' 'data = digits.arec' 'test = digits-test.arec' \
        'rate = 0.05' 'batch = 8' 'epochs = 3' >run.conf
}

setup() {
    cp "$BATS_FILE_TMPDIR"/* "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR"
}

teardown() {
    end_members
}

@test "a run of six processes ends with status 0 and an accuracy; none is left" {
    run_ok adam-ctl up run.conf --ps 2 --workers 2 --set epochs=12
    [[ "$stderr" = *"test accuracy"* ]]
    [ -e run/DONE ]
    adam-eval --model run/latest --data digits-test.arec --json | is_true '.top1 > 0.5'
    all_members 0
}

@test "a run's folder that is not UTF-8 is refused before it begins; the current folder may be" {
    local odd=$'x\xff' kind
    for kind in up sh "controller --out $odd"; do
        run_status 2 adam-ctl $kind run.conf --out "$odd"
        [[ "$stderr" = *"out 'x\xff' is not UTF-8: no checkpoint could keep it"* ]]
        [ ! -e "$odd" ]
    done
    mkdir "$odd"
    cp run.conf small.net digits*.arec "$odd"
    cd "$odd"
    run_ok adam-ctl up run.conf --set epochs=1 --store --controllers 3
    run ! grep -E "warning|out of memory" <<<"$stderr"
    run_ok adam-ctl up run.conf --resume --set epochs=2
    [ -e run/DONE ]
}

# Whatever is asked for, the run that is under way there stays as it was.
second_is_refused() {
    local before more
    before=$(ls run/controller*)
    for more in --resume --force --quiet; do
        run_status 73 adam-ctl up run.conf "$more"
        [[ "$stderr" = *"run: another process is training there"* ]]
        [ "$(ls run/controller*)" = "$before" ]
        adam-ctl status run
    done
}

@test "a run that is under way is neither resumed nor replaced by another" {
    local n
    for n in 1 3; do
        start adam-ctl up run.conf --controllers $n --set epochs=100000 2>err
        wait_for grep -q '"event":"eval"' run/metrics.jsonl
        second_is_refused
        kill -INT "$pid"
        wait_end
        [ "$status" -eq 75 ]
        rm -r run
    done
    start adam-worker --model small.net --data digits.arec --epochs 100000 --out run 2>err
    wait_for grep -q '"event":"train"' run/metrics.jsonl
    run_status 73 adam-worker --model small.net --data digits.arec --out run --force
    [[ "$stderr" = *"run: another process is training there"* ]]
    grep -q '"event":"train"' run/metrics.jsonl
}

@test "Ctrl-C saves and leaves no process" {
    start adam-ctl up run.conf --ps 2 --workers 2 --set epochs=100000 2>err
    wait_for grep -q '"event":"eval"' run/metrics.jsonl
    all_members 6
    kill -INT "$pid"
    wait_end
    cat err
    [ "$status" -eq 75 ]
    all_members 0
    [ -e run/latest/manifest.json ]
}

# Whether the server of that role was heard of once more since the last call, or is gone.
last=
heard_again() {
    local now before=$last
    now=$(adam-ctl status run --json | jq ".members[] | select(.role == \"$1\" and .state != \"gone\") | .silent_ms")
    last=$now
    [ -z "$now" ] || { [ -n "$before" ] && [ "$now" -lt "$before" ]; }
}

@test "a run that ends at once keeps its servers while a worker is there" {
    start adam-ctl up run.conf -q --set epochs=100000 --workers 1 --threads 1
    local up=$pid worker
    wait_for grep -q loss run/log/worker-1.log
    worker=$(working_here '^adam-worker ')
    kill -STOP "$worker"
    run_ok adam-ctl down --now run
    wait_for grep -q stopping run/log/controller.log
    # Each has been told to stop, or to wait.
    local role
    for role in "data server" "parameter server"; do
        last=
        wait_for heard_again "$role"
        wait_for heard_again "$role"
    done
    [ "$(working_here '^adam-(serve|ps) ' | wc -l)" = 2 ]
    kill -CONT "$worker"
    pid=$up
    wait_end
    [ "$status" -eq 75 ]
    [ "$(grep -o '^adam-ctl: [a-z ]* [0-9]* (.*) left' run/log/controller.log | sed -n '1s/ [0-9].*//p')" = "adam-ctl: worker" ]
    ! grep 'have not heard\|waiting for data server' run/log/worker-1.log
}

@test "a parameter server that dies before training began is started again, and the run goes on" {
    echo 'workers = 2' >>run.conf
    start adam-ctl up run.conf --ps 2 --workers 1 2>err
    # Both are there, and the weights are where they belong: with one of them.
    wait_for grep -q '"event":"start"' run/metrics.jsonl
    local server
    server=$(basename "$(grep -l 'adam-ps: holds' run/log/ps-*.log)" .log)
    kill -KILL "$(working_here "^adam-ps .*--name $server ")"
    wait_for grep -q "parameter server [0-9]* ($server) vanished" err
    grep -q "$server was killed by signal 9 (Killed); starts again" err
    start adam-worker --controller @run/controller.port --threads 1 2>by-hand.log
    pid=${started[0]}
    wait_end
    cat err
    [ "$status" -eq 0 ]
    [ -e run/DONE ]
    all_members 0
}

@test "a controller that dies before its only checkpoint is whole: the next one writes it first" {
    ${CC:-cc} -shared -fPIC -O1 -o stop.so "$ROOT/tests/helper/preload/mkdir_stop.c" -ldl
    start env LD_PRELOAD="$PWD/stop.so" STOP_AT=ckpt- STOP_MARK="$PWD/stopped" \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        adam-ctl up run.conf --threads 1 --set epochs=30 --set eval-every=1000 \
        --set checkpoint-every=1000 2>err
    wait_for test -e stopped
    local controller
    controller=$(pgrep -P "$pid" -f '^adam-ctl controller ')
    grep -q '"stage":"saving"' run/controller.state
    [ ! -e run/latest ]
    kill -KILL "$controller"
    wait_end
    cat err
    [ "$status" -eq 0 ]
    grep -q 'controller was killed by signal 9' err
    [ -e run/DONE ] && [ -e run/latest/manifest.json ]
    all_members 0
}

@test "a checkpoint that cannot be written whole ends the run with 74 and its text, never with 0" {
    limit_files 24 # enough for every log, and not for the 37 kB of the weights
    run_status 74 adam-ctl up run.conf --threads 1 --set metrics-every=60
    [[ "$stderr" = *"ckpt-"*"File too large"* ]]
    [ ! -e run/DONE ] && [ ! -e run/latest ]
    all_members 0
}

@test "a run that was stopped and cannot be saved ends with 74, not with 75" {
    limit_files 24
    start adam-ctl up run.conf --threads 1 --set metrics-every=60 --set epochs=100000 \
        --set checkpoint-every=100000 --set eval-every=0 2>err
    wait_for grep -q '"event":"start"' run/metrics.jsonl
    wait_for grep -q '"stage":"training"' run/controller.state
    kill -TERM "$pid"
    wait_end
    cat err
    [ "$status" -eq 74 ]
    grep -q 'ckpt-.*File too large' err
    [ ! -e run/latest ]
    all_members 0
}

@test "kill -9 of adam-ctl up leaves no process" {
    start adam-ctl up run.conf --ps 2 --workers 2 --set epochs=100000 2>err
    wait_for grep -q '"event":"eval"' run/metrics.jsonl
    kill -KILL "$pid"
    wait_for all_members 0
}

@test "examples/up.sh: the same run by hand and by adam-ctl up" {
    run_ok "$ROOT/examples/up.sh" out
    [ -e out/by-hand/DONE ] && [ -e out/by-up/DONE ]
    [ "$(sed -n 's/^by-[a-z]*\t//p' <<<"$output" | jq -c '.top1 > 0.7')" = $'true\ntrue' ]
    all_members 0
}

@test "on a terminal a line at its foot says how far the run is" {
    need script
    start script -qefc 'adam-ctl up run.conf --set epochs=100000 --ps 1 --workers 2' terminal >/dev/null
    wait_for grep -q $'\repoch [0-9.]* of 100000  .*images/s' terminal
    run_ok adam-ctl status run
    [[ "$output" = *worker-2* ]]
    adam-ctl down run
    wait_end
    [ "$status" -eq 75 ]
    all_members 0
    # A line for those who have no terminal is not shown twice.
    ! grep -q '^epoch' terminal
}

@test "going on with a run that has all its epochs says that there is nothing to do" {
    run_ok adam-ctl up run.conf --set epochs=2
    run ! grep "nothing to do" <<<"$stderr$output"
    local epochs
    for epochs in 2 1; do
        run_ok adam-ctl up run.conf --resume --set epochs=$epochs
        grep -q "adam-ctl: nothing to do: all $epochs epochs are done; more by epochs = N" <<<"$stderr"
    done
    run_ok adam-ctl up run.conf --resume --set epochs=3
    run ! grep "nothing to do" <<<"$stderr$output"
}

@test "a run goes on with another optimizer, without what the file gives of the one before" {
    printf '%s\n' 'optimizer = adam' 'momentum = 0.8' 'beta2 = 0.99' 'epsilon = 0.001' >>run.conf
    run_ok adam-ctl up run.conf --set epochs=1
    run_ok adam-ctl up run.conf --resume --set epochs=2 --set optimizer=sgd
    for key in momentum beta2 epsilon; do
        grep -q "$key is .* now, was 0" <<<"$stderr"
    done
    run ! adam-ctl up run.conf --resume --set epochs=3 --set optimizer=sgd --set beta2=0.9
}

@test "the best on another test set no longer counts when a run of many goes on" {
    run_ok adam-ctl up run.conf --workers 1 --set rate=0 --set epochs=2
    run_ok adam-ctl up run.conf --resume --workers 1 --set rate=0 --set epochs=3
    run ! grep "no longer counts" <<<"$stderr"
    run_ok adam-ctl up run.conf --resume --workers 1 --set rate=0 --set epochs=4 --set test=digits.arec
    grep -q "note: digits.arec is not the test set of before" <<<"$stderr"
    grep -q "note: what was best on that test set, epoch .*, no longer counts" <<<"$stderr"
    is_true '.run.best.epoch > 3' <run/latest/manifest.json
}

# Its means are zeros then, and adam corrects them by the steps that they are of.
@test "of a run that pushed deltas the state of the optimizer begins anew where it is kept now" {
    local clock next
    since() { jq '.run.settings."state-since" // 0' "$1/latest/manifest.json"; }
    run_ok adam-ctl up run.conf --set optimizer=adam --set rate=0.001 --set epochs=1
    clock=$(jq .clock run/latest/manifest.json)
    cp -r run alone
    run_ok adam-worker --resume alone --epochs 2
    [ "$(since alone)" = "$clock" ]
    run_ok adam-worker --resume alone --epochs 3
    [ "$(since alone)" = "$clock" ]
    run_ok adam-ctl up run.conf --resume --set optimizer=adam --set rate=0.001 --set epochs=2
    [ "$(since run)" = 0 ]
    next=$(jq .clock run/latest/manifest.json)
    run_ok adam-ctl up run.conf --resume --set optimizer=adam --set rate=0.001 --set epochs=3 --set push=gradient
    [ "$(since run)" = "$next" ]
    run_ok adam-ctl up run.conf --resume --set optimizer=adam --set rate=0.001 --set epochs=4 --set push=gradient
    [ "$(since run)" = "$next" ]
}

@test "patience ends the run, and its best checkpoint stays" {
    run_ok adam-ctl up run.conf --workers 1 --set epochs=100000 --set rate=0 --set patience=3 --set keep-last=1
    [[ "$stderr" = *" tests were not better than that of epoch "*" is the last"* ]]
    is_true '.epoch < 1000 and .epoch == (.epoch | floor)' <run/DONE
    is_true '.epoch == (.epoch | floor)' <run/latest/manifest.json
    best=$(jq .run.best.clock run/latest/manifest.json)
    [ "$(readlink run/best)" = "$(printf 'ckpt-%08d' "$best")" ]
    [ -e run/best/manifest.json ]
    is_true '.run.best.worse >= 3' <run/latest/manifest.json
}

# Workers' rates fall along half a cosine from $1 to $2 in $3 epochs.
follow_cosine() {
    jq -s --argjson from "$1" --argjson to "$2" --argjson epochs "$3" \
        'map(select(.role == "worker" and .event == "train"))
         | length > 0 and all(.[]; ($to + ($from - $to) * (1 + (3.14159265 * .epoch / $epochs | cos)) / 2
                                    - .rate | fabs) < 0.005)' run/metrics.jsonl | is_true .
}

@test "a schedule that lasts as long as the run ends with its tenth epoch where nothing is said" {
    sed -i '/epochs/d' run.conf
    run_ok adam-ctl up run.conf --workers 1 --set schedule=cosine --set metrics-every=0.1
    is_true '.epoch == 10' <run/DONE
    follow_cosine 0.05 0 10
}

@test "where patience ends the run the schedule goes on to where it went" {
    run_ok adam-ctl up run.conf --workers 1 --set epochs=100000 --set schedule=cosine:0.05 --set rate=0 \
        --set patience=3 --set metrics-every=0.1
    is_true '.epoch < 1000 and .epoch == (.epoch | floor)' <run/DONE
    is_true '.run.settings | .epochs == 100000 and .["last-epoch"] < 1000' <run/latest/manifest.json
    follow_cosine 0 0.05 100000
}
