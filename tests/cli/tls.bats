#!/usr/bin/env bats
# Runs over TLS: each process with a key of its own by the run's authority; and addresses
# that are refused, with words that help.
load ../helper/common
load ../helper/worker

setup() {
    cd "$BATS_TEST_TMPDIR"
    adam-ctl keys ours controller ps serve worker eval >made
    tiny_set
    cat >run.conf <<'END'
model = tiny.net
data = train.idx
labels = train.lab
epochs = 2
batch = 8
END
}

tls_controller() {
    start adam-ctl controller run.conf --out run --port-file ctl.port \
        --keys ours/controller.pem --listen tls+tcp://127.0.0.1:0 2>ctl.log
    controller=$pid
    wait_for test -s ctl.port
}

@test "a run of every role goes over TLS from the first weights to DONE" {
    tls_controller
    start adam-ps --controller @ctl.port --keys ours/ps.pem --listen tls+tcp://127.0.0.1:0 \
        --port-file ps.port 2>ps.log
    ps=$pid
    start adam-serve train.idx --labels train.lab --controller @ctl.port --keys ours/serve.pem \
        --listen tls+tcp://127.0.0.1:0 --port-file serve.port 2>serve.log
    serve=$pid
    wait_for test -s ps.port
    wait_for test -s serve.port
    grep -c '^tls+tcp://127\.0\.0\.1:' ctl.port ps.port serve.port >count
    [ "$(sort count)" = "$(printf 'ctl.port:1\nps.port:3\nserve.port:1')" ]
    run_ok adam-ctl status @ctl.port --keys ours/worker.pem
    start adam-eval --follow @ctl.port --keys ours/eval.pem --data test.idx --labels test.lab \
        --every 0.2s >tests 2>eval.log
    eval=$pid
    wait_for grep -q 'evaluator.*joined' ctl.log
    run_ok adam-worker --controller @ctl.port --keys ours/worker.pem --threads 1
    for pid in $controller $ps $serve $eval; do
        wait_end
        [ "$status" -eq 0 ]
    done
    [ -e run/DONE ]
    [ "$(jq -s 'last.samples_tested' tests)" = 60 ]
    jq -se 'map(select(.event == "done" and .role == "controller")) | last.samples >= 150' \
        run/metrics.jsonl
}

@test "a TLS address without keys, and one beyond this machine without TLS, are refused" {
    local command option
    for command in "adam-ps" "adam-serve train.idx --labels train.lab" "adam-worker" \
        "adam-eval --data test.idx --labels test.lab"; do
        option=--controller
        if [[ $command = adam-eval* ]]; then option=--follow; fi
        run_status 2 $command $option tcp://192.0.2.1:7000
        [[ "$stderr" = *"'tcp://192.0.2.1:7000' can be reached from other machines: use tls+tcp:// with --keys, or say --insecure"* ]]
        run_status 2 $command $option tls+tcp://127.0.0.1:7000
        [[ "$stderr" = *"'tls+tcp://127.0.0.1:7000' needs keys"*--keys* ]]
    done
    for command in "adam-ctl controller run.conf --out run" "adam-ps --controller @ctl.port" \
        "adam-serve train.idx --labels train.lab --controller @ctl.port"; do
        run_status 2 $command --listen tcp://0.0.0.0:0
        [[ "$stderr" = *"'tcp://0.0.0.0:0' can be reached from other machines"*--insecure* ]]
        run_status 2 $command --listen tls+tcp://127.0.0.1:0
        [[ "$stderr" = *"needs keys"* ]]
    done
    run_status 2 adam-ctl status tcp://192.0.2.1:7000
    [[ "$stderr" = *--insecure* ]]
}

# A parameter server that will not be let in, and its words in `log`.
outsider() {
    start adam-ps --controller @ctl.port "$@" 2>log
    outsider=$pid
}

# It waits for the controller until it is told to end, and has never joined.
end_outsider() {
    kill -TERM "$outsider"
    pid=$outsider
    wait_end
    [ "$status" -eq 75 ]
    run ! grep -q 'parameter server [0-9].*joined:' ctl.log
}

@test "a certificate of another authority is not let in, and it is said why" {
    adam-ctl keys theirs ps >made
    tls_controller
    outsider --keys theirs/ps.pem --listen tls+tcp://127.0.0.1:0
    wait_for grep -q 'waiting for controller: no answer from tls+tcp://.*certificate' log
    end_outsider
}

@test "who speaks plainly to a TLS address is not let in, and hears what helps" {
    tls_controller
    sed -i 's/^tls+//' ctl.port
    outsider
    wait_for grep -q 'waiting for controller: no answer from tcp://.*TLS' log
    end_outsider
}
