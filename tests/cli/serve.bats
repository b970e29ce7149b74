#!/usr/bin/env bats
# adam-serve: what it hands out, counted sample by sample, whoever is killed; how it is
# started and ended.
load ../helper/common
load ../helper/worker

# A run of two epochs in which no sample is left out; $ctl is its controller.
start_run() {
    tiny_set
    cat >run.conf <<'END'
model = tiny.net
data = train.idx
labels = train.lab
epochs = 2
batch = 8
epoch-end = 1
metrics-every = 0.2
END
    start adam-ctl controller run.conf --out run --port-file ctl.port "$@" 2>ctl.log
    ctl=$pid
    start adam-ps --controller @ctl.port 2>ps.log
}

serve() {
    start adam-serve train.idx --labels train.lab --controller @ctl.port "$@" 2>>serve.log
}

reader() {
    start "$BUILD/tests/helper/data_reader" @ctl.port "$@" 2>>reader.log
}

# Lines of a kind that a reader has told so far.
lines() {
    awk -v what="$1" '$1 == what { n++ } END { print n + 0 }' "${@:2}"
}
at_least() {
    [ "$(lines "$1" "${@:3}")" -ge "$2" ]
}

ended() {
    wait "$1"
}

# Every sample of both epochs was finished, and none was handed out when it was.
check_readers() {
    cat "$@" | awk '
        $1 == "take" && done[$2, $3] { print "epoch " $2 ": sample " $3 " again"; bad = 1 }
        $1 == "done" { n += !done[$2, $3]++; }
        END { if (n != 206) { print n " of 206 samples are finished"; bad = 1 } exit bad }'
}

# What was taken more often than once.
again() {
    cat "$@" | awk '$1 == "take" && taken[$2, $3]++ { n++ } END { print n + 0 }'
}

@test "each sample comes once an epoch, and the run ends when all epochs are over" {
    start_run
    serve --cursor cursor --port-file serve.port
    server=$pid
    reader >r.out
    ended "$pid"
    check_readers r.out
    [ "$(again r.out)" -eq 0 ]
    ended "$server"
    ended "$ctl"
    [ -e run/DONE ] && [ ! -e serve.port ]
    grep -q 'adam-serve: all epochs are served: 206 samples' serve.log
    run_ok jq -s 'map(select(.event == "serve")) | last | .epoch == 2 and .samples == 206' run/metrics.jsonl
    [ "$output" = true ]
}

@test "several data servers by ranges have each sample once" {
    start_run --set data-servers=3
    for part in 1 2 3; do serve --range $part/3; done
    reader >r.out
    ended "$pid"
    check_readers r.out
    [ "$(again r.out)" -eq 0 ]
}

@test "kill -9 of the data server: what is finished stays so, nothing is lost" {
    start_run
    serve --cursor cursor
    server=$pid
    reader slow >r.out
    reader=$pid
    for lines in 30 70 120 170; do
        wait_for at_least 'done' $lines r.out
        kill -9 "$server"
        wait "$server" || [ $? -eq 137 ]
        serve --cursor cursor
        server=$pid
    done
    ended "$reader"
    check_readers r.out
    # Beyond open leases: what the reader had asked for when the server died.
    [ "$(again r.out)" -le $((4 * 3 * 8)) ]
    grep -q 'goes on in epoch [01], of which [0-9]* samples are finished' serve.log
    ended "$ctl"
}

@test "kill -9 of a worker: what it had not finished is handed out again" {
    start_run
    serve
    reader hold >held.out
    wait_for at_least take 8 held.out
    reader >r.out
    reader=$pid
    kill -9 "${started[-2]}"
    ended "$reader"
    check_readers r.out
    awk '{ print $2, $3 }' held.out | sort -u >held
    awk '$1 == "done" { print $2, $3 }' r.out | sort -u >finished
    [ -s held ] && [ -z "$(comm -23 held finished)" ]
}

@test "mistakes on the command line are named" {
    tiny_set
    run_status 2 adam-serve --controller @ctl.port
    [[ $stderr == *'needs a data set'* ]]
    run_status 2 adam-serve train.idx
    [[ $stderr == *'--controller is missing'* ]]
    for range in 0/2 3/2 1 a/b 1/2/3; do
        run_status 2 adam-serve train.idx --controller @ctl.port --range $range
        [[ $stderr == *"--range '$range' is not I/N"* ]]
    done
    run_status 2 timeout $((60 * ${SLOWER:-1})) adam-serve train.idx --labels train.lab --controller @ctl.port --ops 'rotat 5'
    [[ $stderr == *"operations 'rotat 5'"*rotate* ]]
    run_status 66 adam-serve none.idx --controller @ctl.port
    run_status 65 timeout $((60 * ${SLOWER:-1})) adam-serve train.idx --labels test.lab --controller @ctl.port
}

@test "pictures of several sizes are refused with what helps" {
    start_run
    adam-prep draw 4 --size 16 -o p16/
    adam-prep draw 4 --size 20 -o p20/
    mkdir pics
    # As many classes as the model has.
    for class in $(ls p16 | head -n 3); do cp -r "p16/$class" pics/; done
    for picture in p20/*/*; do cp "$picture" "pics/$(ls p16 | head -n 1)/z${picture##*/}"; done
    run_status 65 timeout $((60 * ${SLOWER:-1})) adam-serve pics --controller @ctl.port
    [[ $stderr == *'where the first is 1x16x16; operations such as'* ]]
}

@test "a class whose name no checkpoint can hold is refused before the run begins" {
    local class=$'caf\xe9'
    adam-prep draw 4 --size 16 -q -o drawn/
    mkdir -p "pics/$class"
    cp drawn/*/*.png "pics/$class"
    echo tcp://127.0.0.1:1 >ctl.port
    run_status 65 timeout $((60 * ${SLOWER:-1})) adam-serve pics --controller @ctl.port
    [[ $stderr == *"the name of class 'caf\\xe9' is not UTF-8"* ]]
}

# Sets $journal to the first lines of the journal of the run that goes on.
first_journal() {
    serve --cursor first
    wait_for test -s first
    kill -9 "$pid"
    journal=$(head -n 3 first)
}

@test "a journal is obeyed; one of other data, or a damaged one, is refused" {
    start_run
    first_journal
    # Of other data.
    sed 's/ 103 0 103$/ 104 0 104/' first >other
    cp other other.before
    run_status 65 timeout $((60 * ${SLOWER:-1})) adam-serve train.idx --labels train.lab --controller @ctl.port --cursor other
    [[ $stderr == *'other: is of samples 0..104 of 104 (digest '*', not of 0..103 of 103 ('* ]]
    cmp other other.before
    # Damaged.
    printf '%s\n' "$journal" 'done 0 0 8' 'done 0 l6 8' >damaged
    cp damaged damaged.before
    run_status 65 timeout $((60 * ${SLOWER:-1})) adam-serve train.idx --labels train.lab --controller @ctl.port --cursor damaged
    [[ $stderr == *'damaged:5: this is no journal of a data server'* ]]
    cmp damaged damaged.before
    # Its own: what is finished there is not handed out.
    printf '%s\n' "$journal" 'done 0 0 40' >own
    serve --cursor own
    reader >r.out
    ended "$pid"
    [ "$(awk '$1 == "done" && $2 == 0' r.out | wc -l)" -eq 63 ]
    [ "$(awk '$1 == "done" && $2 == 1' r.out | wc -l)" -eq 103 ]
    grep -q 'goes on in epoch 0, of which 40 samples are finished' serve.log
}

@test "the journal of another run says nothing of this one" {
    start_run
    first_journal
    local run
    run=$(awk '$1 == "of" { print $2 }' first)
    printf '%s\n' "${journal/"$run"/ffffffffffffffffffffffffffffffff}" 'done 1 0 103' >cursor
    serve --cursor cursor
    reader >r.out
    ended "$pid"
    check_readers r.out
    grep -q "^of $run " cursor
}

# A run of its own; what its reader took, in order.
digests() {
    local name=$1 options
    shift
    mkdir "$name"
    cd "$name"
    eval "options=(${1-})"
    start_run "${options[@]}"
    serve "${@:2}"
    reader >r.out
    ended "$pid"
    awk '$1 == "take"' r.out | sort >"../$name.digests"
    cd ..
}
# How many samples are the same in both epochs.
same_in_both() {
    awk '$2 == 0 { first[$3] = $4 } $2 == 1 { second[$3] = $4 }
        END { for (s in first) n += first[s] == second[s]; print n + 0 }' "$1"
}

@test "--ops: pictures come augmented, anew in each epoch, from the run's seed" {
    digests plain
    digests noisy '' --ops 'noise 20'
    digests again '' --ops 'noise 20'
    digests settings "--set ops='noise 20'"
    digests seed '--set seed=2' --ops 'noise 20'
    [ "$(wc -l <noisy.digests)" -eq 206 ]
    [ "$(same_in_both plain.digests)" -eq 103 ]
    [ "$(same_in_both noisy.digests)" -eq 0 ]
    [ -z "$(comm -12 plain.digests noisy.digests)" ]
    cmp noisy.digests again.digests
    cmp noisy.digests settings.digests
    [ -z "$(comm -12 noisy.digests seed.digests)" ]
}

# A data server has come to an epoch.
served() {
    [ "$(jq -s "map(select(.event == \"serve\").epoch) | max >= $1" run/metrics.jsonl)" = true ]
}

@test "two data servers, stopped in the middle: --resume has every sample of every epoch once" {
    tiny_set
    printf '%s\n' 'model = tiny.net' 'data = train.idx' 'labels = train.lab' 'test = test.idx' \
        'test-labels = test.lab' 'epochs = 400' 'batch = 8' 'epoch-end = 1' 'rate = 0.01' \
        'metrics-every = 0.1' 'eval-every = 100' >run.conf
    start adam-ctl up run.conf --serve 2 --ps 1 --workers 2 --threads 1 2>err
    wait_for served 20
    kill -TERM "$pid"
    wait_end
    [ "$status" -eq 75 ]
    start adam-ctl up run.conf --serve 2 --ps 1 --workers 2 --threads 1 --resume 2>>err
    wait_for served 100
    run_ok adam-ctl down run
    wait_end
    [ ! -e run/DONE ]
    start adam-ctl up run.conf --serve 2 --ps 1 --workers 2 --threads 1 --resume 2>>err
    wait_end
    cat err
    [ "$status" -eq 0 ] && [ -e run/DONE ]
    run_ok jq -s 'map(select(.event == "eval" and .role == "controller").samples) | max' run/metrics.jsonl
    [ "$output" -eq $((400 * 103)) ]
    # Both journals are at the end.
    [ "$(tail -qn 1 run/serve-?.cursor | cut -d ' ' -f 1-3 | uniq)" = 'at 1 400' ]
}
