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

# Every program that takes --keys, with what it needs beside them.
keyed_commands() {
    printf '%s\n' "adam-ctl controller run.conf --out run" "adam-ps --controller @ctl.port" \
        "adam-serve train.idx --labels train.lab --controller @ctl.port" \
        "adam-worker --controller @ctl.port" \
        "adam-eval --follow @ctl.port --data test.idx --labels test.lab" "adam-ctl status @ctl.port"
}

# A key whose certificate, signed by the authority of ours/, counts from $2 to $3.
dated_key() { # NAME FROM TO
    mkdir -p signing
    : >signing/index
    cat >signing/conf <<END
[ca]
default_ca = own
[own]
database = signing/index
new_certs_dir = signing
default_md = sha256
rand_serial = yes
policy = any
[any]
commonName = supplied
END
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=adam \
        -keyout "signing/$1.key" -out "signing/$1.csr" 2>said
    openssl ca -batch -config signing/conf -cert ours/ca.crt -keyfile ours/ca.key -notext \
        -in "signing/$1.csr" -out "signing/$1.crt" -startdate "$2" -enddate "$3" 2>said
    cat "signing/$1.crt" "signing/$1.key" >"ours/$1.pem"
    chmod 600 "ours/$1.pem"
}

@test "a certificate of one's own that has expired, or is not valid yet, is named at the start" {
    need openssl
    dated_key old 20200101000000Z 20210203040506Z
    dated_key young 20900101000000Z 20910101000000Z
    local command
    while read -r command; do
        run_status 65 timeout 30 $command --keys ours/old.pem
        [[ "$stderr" = *"ours/old.pem: this certificate expired on 2021-02-03 04:05 UTC, and the clock says 2"*"adam-ctl keys" ]]
        run_status 65 timeout 30 $command --keys ours/young.pem
        [[ "$stderr" = *"ours/young.pem: this certificate is not valid before 2090-01-01 00:00 UTC, and the clock says 2"* ]]
    done < <(keyed_commands)
    # What an authority that has expired signs would be of no use.
    cp ours/old.pem ours/ca.crt
    openssl pkey -in ours/old.pem -out ours/ca.key
    run_status 65 adam-ctl keys ours more
    [[ "$stderr" = *"ours/ca.crt: this certificate expired on"* ]]
    [ ! -e ours/more.pem ]
}

@test "a certificate of another authority than ca.crt beside it, or with another's key, is named at the start" {
    need openssl
    adam-ctl keys theirs ps >made
    cp theirs/ps.pem ours/other.pem
    # The certificate of one, the key of another, of the same authority.
    { openssl x509 -in ours/ps.pem; openssl pkey -in ours/serve.pem; } >ours/mixed.pem
    chmod 600 ours/mixed.pem
    local command
    while read -r command; do
        run_status 65 timeout 30 $command --keys ours/other.pem
        [[ "$stderr" = *"ours/other.pem: this certificate is not signed by ours/ca.crt: copy the ca.crt"*"adam-ctl keys" ]]
        run_status 65 timeout 30 $command --keys ours/mixed.pem
        [[ "$stderr" = *"ours/mixed.pem: its key is not that of its certificate" ]]
    done < <(keyed_commands)
}

@test "keys are made of all names or of none" {
    adam-ctl keys new one >made
    ls new >before
    run_status 73 adam-ctl keys new two one three
    [ "$stderr" = "adam-ctl: error: new/one.pem: File exists" ]
    run_status 2 adam-ctl keys new two three two
    [[ "$stderr" = *"'two' is named twice"* ]]
    ls new | diff before -
    run_status 2 adam-ctl keys fresh two two
    [ ! -e fresh/ca.key ]
}

@test "where ca.key or ca.crt is missing, that is said" {
    mv ours/ca.key .
    run_status 66 adam-ctl keys ours more
    [[ "$stderr" = "adam-ctl: error: ours/ca.key: No such file or directory; "*"where the first were made" ]]
    mv ca.key ours
    rm ours/ca.crt
    run_status 66 adam-ctl keys ours more
    [[ "$stderr" = "adam-ctl: error: ours/ca.crt: No such file or directory; "* ]]
    [ ! -e ours/more.pem ]
}

@test "a host name that does not resolve is named" {
    local address=tcp://no-such-host.invalid:7000
    run_status 69 adam-ctl status $address --insecure
    [[ "$stderr" = *"$address: the host name 'no-such-host.invalid' is not known here"* ]]
    run_status 69 adam-ctl controller run.conf --out run --listen $address --insecure
    [[ "$stderr" = *"cannot listen on $address: 'no-such-host.invalid' is no address of this machine"* ]]
}

@test "an authority that could not be written leaves no half of it behind" {
    mkdir half
    ln -s nowhere half/ca.crt
    run_status 73 adam-ctl keys half ps
    rm half/ca.crt
    [ -z "$(ls half)" ]
    run_ok adam-ctl keys half ps
}
