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
    start_run --set sources=3
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
    reader >r.out
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
