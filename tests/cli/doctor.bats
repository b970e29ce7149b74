#!/usr/bin/env bats
# adam-ctl doctor: what would end or hinder a run is named before it begins. Machines are those
# of a pretended ssh; tests/cli/up-ssh.bats has real ones.
load ../helper/common

setup() {
    cd "$BATS_TEST_TMPDIR"
    export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
    adam-prep draw 60 --seed 3 -q --split test=0.2 -o digits.arec
    printf '%s\n' "input 1x28x28 ops='scale 1/255'" 'dense units=20 act=relu' 'softmax units=10' \
        >small.net
    printf '%s\n' 'model = small.net' 'data = digits.arec' 'test = digits-test.arec' >run.conf
}

# Findings of the last run that match, one a line: "RESULT WHERE CHECK FOUND".
found() {
    grep -E "^$1 +$2 +$3 +$4" <<<"$output"
}

# doctor and up with the same options: the status, the check and what is said.
same() { # STATUS CHECK TEXT OPTION...
    run_status "$1" adam-ctl doctor run.conf "${@:4}"
    found problem here "$2" ".*$3"
    [ "$(grep -c ^problem <<<"$output")" = 1 ]
    run_status "$1" adam-ctl up -q run.conf --set epochs=1 "${@:4}"
    rm -rf run
}

@test "before a sound run on this machine all is well, and nothing is left behind" {
    ls -I 'separate-*' >before
    run_ok adam-ctl doctor run.conf --ps 2 --workers 4
    [ -z "$stderr" ]
    [ "$(awk '{ print $1 }' <<<"$output" | sort -u | tr '\n' ' ')" = "RESULT ok " ]
    found ok here data 'digits.arec: [0-9]+ samples of 10 classes'
    found ok here programs version
    ls -I 'separate-*' -I adam | diff before -
    # The same as an object.
    run_ok adam-ctl doctor run.conf --json
    jq -e '.status == 0 and ([.checks[] | select(.result != "ok")] | length) == 0' <<<"$output"
    jq -e '.checks[] | select(.check == "model" and .where == "here") | .found | test("15910 parameters")' <<<"$output"
    # And it is true.
    run_ok adam-ctl up -q run.conf --threads 1 --set epochs=1
    run_status 73 adam-ctl doctor run.conf
    found problem here folder '.*--resume.*--force'
    run_ok adam-ctl doctor run.conf --force
}

@test "each problem is a line of its own, and the status is that of the first" {
    printf '%s\n' 'model = small.net' 'data = gone.arec' 'test = digits-test.arec' >run.conf
    run_status 66 adam-ctl doctor run.conf --out run.conf/run --listen tcp://no-such-host.invalid:70 --insecure
    found problem here data '.*gone.arec: No such file'
    found ok here test '.*samples of 10 classes'
    found problem here folder 'cannot write in run.conf'
    found problem here listen ".*host name 'no-such-host.invalid' is not known here"
    [[ "$stderr" = "adam-ctl: error: "[34]" problems would end this run" ]]
    sed -i 's/units=10/units=9/' small.net
    run_status 65 adam-ctl doctor run.conf --set data=digits.arec
    found problem here data 'digits.arec has 10 classes, but the model has 9 outputs'
    echo 'conv kernal=3' >>small.net
    run_status 65 adam-ctl doctor run.conf --set data=digits.arec --json
    jq -e '.status == 65 and .checks[0].check == "model" and .checks[0].result == "problem"' <<<"$output"
}

@test "what the start would refuse is a problem with the same status" {
    same 2 settings 'ack = durable.*--store' --set ack=durable
    run_ok adam-ctl doctor run.conf --set ack=durable --store --flush 2s
    same 66 init-from 'nosuch' --set init-from=nosuch
    printf 'no such class\t2\n' >weights
    same 66 resume 'no run to go on with: run: No such file' --resume
    same 65 class-weights 'no such class' --set class-weights=weights
    same 2 model 'frozen|rate' --set '*.rate=0'
    same 2 settings 'test = auto=0.2 is for adam-worker alone' --set test=auto=0.2
    same 2 settings 'factors=d2 and partitions=2' --partitions 2 --set factors=d2
}

@test "what a run would begin with is read to the end, and must have layers of the model" {
    run_ok adam-ctl up -q run.conf --threads 1 --set epochs=1 --out first
    run_ok adam-ctl doctor run.conf --set init-from=first
    found ok here init-from '2 of 2 layers, 15910 of 15910 parameters, are those of first$'
    run_ok adam-ctl doctor run.conf --set init-from=first --partitions 2 --workers 1
    found ok here init-from '2 of 2 layers'
    sed 's/dense/dense d7/; s/softmax/softmax out/' small.net >other.net
    same 65 init-from 'no layer of first has name and shape of a layer of other' \
        --set model=other.net --set init-from=first
    # A byte in the middle of the weights, and then no weights at all.
    local weights=first/latest/model.safetensors
    printf x | dd of="$weights" bs=1 seek=9000 conv=notrunc status=none
    same 65 init-from 'model.safetensors' --set init-from=first
    rm "$weights"
    same 66 init-from 'model.safetensors' --set init-from=first
}

@test "what a run would go on with is read to the end, and what it would have begun with is not" {
    run_ok adam-ctl up -q run.conf --threads 1 --set epochs=1
    run_ok adam-ctl doctor run.conf --resume --set epochs=2 --set init-from=nosuch
    found ok here resume 'run: a checkpoint of epoch 1, 15910 parameters'
    run ! found '.*' here init-from
    # A byte in the middle of the weights of each.
    local weights
    for weights in run/ckpt-*/model.safetensors; do
        printf x | dd of="$weights" bs=1 seek=9000 conv=notrunc status=none
    done
    run_status 65 adam-ctl doctor run.conf --resume --set epochs=2
    found problem here resume '.*model.safetensors'
    run_status 65 adam-ctl up -q run.conf --resume --threads 1 --set epochs=2
}

@test "settings that would be ignored are refused, in RUN.conf and in --set, by up and by doctor" {
    local set kind
    printf '%s\n' 'model = small.net' 'data = digits.arec' >untested.conf
    for kind in "up -q" doctor "controller --out run"; do
        for set in epochs=0 state-since=5000 last-epoch=5 in-flight=4; do
            run_status 2 adam-ctl $kind run.conf --set $set
            grep -q "${set%=*}" <<<"$stderr$output$(cat run/log/controller.log 2>/dev/null)"
        done
        run_status 2 adam-ctl $kind untested.conf --set patience=2
        grep -q 'patience=2 needs tests' <<<"$stderr$output$(cat untested/log/controller.log 2>/dev/null)"
    done
    for set in 'epochs = 0' 'state-since = 5000' 'last-epoch = 5'; do
        printf '%s\n' "$set" 'model = small.net' 'data = digits.arec' >bad.conf
        run_status 65 adam-ctl up bad.conf
        [[ "$stderr" = *"bad.conf:1:"*"error: ${set%% *} is "* ]]
    done
    run_status 2 adam-worker --model small.net --data digits.arec --out alone --in-flight 2
    [[ "$stderr" = *"in-flight is of partitions"* ]]
}

@test "models that are cut and several controllers are looked at, too" {
    run_ok adam-ctl doctor run.conf --partitions 2 --workers 2 --set class-weights=auto
    found ok here class-weights auto
    run_ok adam-ctl doctor run.conf --controllers 3 --ps 2 --copies 2 -t 1
    [ "$(grep -c 'listen  *ipc://.*/run/controller-[123].socket$' <<<"$output")" = 3 ]
    run_status 2 adam-ctl doctor run.conf --controllers 4
    local port
    port=$(free_port)
    start /usr/bin/python3 -c "import socket, time; s = socket.create_server(('127.0.0.1', $port)); time.sleep(1000)"
    wait_for bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
    run_status 69 adam-ctl doctor run.conf --controllers 3 \
        --listen "tcp://127.0.0.1:$port,tcp://127.0.0.1:$(free_port),tcp://127.0.0.1:$(free_port)"
    found problem here listen "cannot listen on tcp://127.0.0.1:$port"
    [ "$(grep -c '^ok .* is free' <<<"$output")" = 2 ]
}

@test "a port that is taken, a program that is missing, and one of another version" {
    local port
    port=$(free_port)
    start /usr/bin/python3 -c "import socket, time; s = socket.create_server(('127.0.0.1', $port)); time.sleep(1000)"
    wait_for bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
    mkdir bin
    printf '#!/bin/sh\necho adam-ps 0.0.1\n' >bin/adam-ps
    chmod +x bin/adam-ps
    # Whatever lies beside adam-ctl would be found, too.
    cp "$BUILD/adam-ctl" bin
    PATH=$PWD/bin:/usr/bin:/bin
    run_status 69 adam-ctl doctor run.conf --listen "tcp://127.0.0.1:$port"
    found problem here listen "cannot listen on tcp://127.0.0.1:$port: Address already in use"
    found problem here programs 'adam-serve is not found: install it'
    found problem here programs 'adam-ps 0.0.1 is another version than adam-ctl'
}

@test "certificates: expiry is a warning 30 days ahead; what others may read is a problem" {
    adam-ctl keys keys long --days 400 >made
    run_ok adam-ctl doctor run.conf --keys keys/long.pem --listen "tls+tcp://127.0.0.1:$(free_port)"
    found ok here keys 'keys/long.pem is valid until 20'
    adam-ctl keys keys short --days 29 >made
    run_status 1 adam-ctl doctor run.conf --keys keys/short.pem
    found warning here keys 'keys/short.pem expires in 29 days, on 20.* make new keys'
    [ "$stderr" = "adam-ctl: 1 warning; the run would start" ]
    chmod 644 keys/short.pem
    run_status 65 adam-ctl doctor run.conf --keys keys/short.pem
    found problem here keys '.*others may read this key'
}

@test "a certificate that ca.crt beside it has not signed is a problem, here and elsewhere" {
    adam-ctl keys keys run >made
    adam-ctl keys other run >made
    cp other/run.pem keys/other.pem
    run_status 65 adam-ctl doctor run.conf --keys keys/other.pem
    found problem here keys 'keys/other.pem: this certificate is not signed by keys/ca.crt'
    pretend_ssh
    printf '%s\n' 'foreign roles=serve,ps address=127.1' >hosts
    run_status 65 adam-ctl doctor run.conf --hosts hosts --listen "tls+tcp://127.1:$(free_port)" --keys keys/run.pem
    found problem foreign keys 'keys/run.pem: this certificate is not signed by keys/ca.crt'
    run ! found problem here keys
}

# Each name is another machine: "well", "late" by its clock, "bare" without programs and data,
# "gone", "odd" with an authority of its own, "foreign" with a key by another authority, "slow" to
# answer, "ahead" by a few seconds, and "full" of files.
pretend_ssh() {
    mkdir bin bare
    cat >bin/ssh <<'END'
#!/bin/bash
while [ "$1" = -o ]; do shift 2; done
case $1 in
gone) echo "ssh: connect to host gone port 22: Connection refused" >&2 && exit 255 ;;
late) PATH=$PWD/late:$PATH ;;
bare) PATH=/usr/bin:/bin && cd bare && set -- "$1" "${2//cd */cd $PWD/none}" ;;
odd) set -- "$1" "${2//keys\/ca.crt/other/ca.crt}" ;;
foreign) set -- "$1" "${2//keys\/run.pem/other/run.pem}" ;;
slow) sleep 8 ;;
ahead | full) PATH=$PWD/$1:$PATH ;;
esac
exec sh -c "$2"
END
    mkdir late ahead full
    printf '#!/bin/sh\necho $(($(/usr/bin/date +%%s) + 100))\n' >late/date
    printf '#!/bin/sh\necho $(($(/usr/bin/date +%%s) + 6))\n' >ahead/date
    printf '#!/bin/sh\necho Available\necho /dev/x 9 9 0 100%% /\n' >full/df
    chmod +x bin/ssh late/date ahead/date full/df
    PATH=$PWD/bin:$PATH
}

@test "machines of --hosts: each is asked, and said what is wrong there" {
    pretend_ssh
    adam-ctl keys keys run --days 400 >made
    adam-ctl keys other run --days 400 >made
    printf '%s\n' 'well roles=serve,ps address=127.1' 'gone roles=worker' >hosts
    local port
    port=$(free_port)
    run_status 69 adam-ctl doctor run.conf --hosts hosts --listen "tls+tcp://127.1:$port" --keys keys/run.pem
    found ok well ssh 'answers in'
    found ok well folder
    found ok well programs version
    found ok well data 'digits.arec can be read'
    found ok well clock 'within'
    found ok well keys 'keys/run.pem is valid until'
    found ok well address
    found ok well controller "tls\+tcp://127.1:$port is reached"
    found problem gone ssh 'no connection: ssh: connect to host gone port 22: Connection refused; try ssh gone true'
    printf '%s\n' 'late roles=serve,ps,worker address=no-such-host.invalid' 'odd roles=ps address=127.1' >hosts
    run_status 69 adam-ctl doctor run.conf --hosts hosts --listen "tls+tcp://head:$port" --keys keys/run.pem --ps 2
    found warning late clock "(99|100) s ahead of this machine's"
    found problem late address "'no-such-host.invalid' is not known here"
    found problem late controller "cannot reach tls\+tcp://head:$port"
    found problem odd keys 'keys/ca.crt is of another authority than here'
}

@test "a machine that is slow to answer does not hide what is wrong with another one's clock" {
    pretend_ssh
    printf '%s\n' 'slow roles=serve,ps address=127.1' 'ahead roles=worker' >hosts
    run_status 1 adam-ctl doctor run.conf --hosts hosts --listen "tcp://127.1:$(free_port)" --insecure
    found warning ahead clock "[3-6] s ahead of this machine's"
    found ok slow clock
    found ok slow ssh 'answers in ([89]|1[0-9])'
    found ok ahead ssh 'answers in [0-7]\.'
}

@test "machines of --hosts: no room at all, labels that are missing, and keys that others may read" {
    pretend_ssh
    adam-ctl keys keys run --days 400 >made
    printf '%s\n' 'full roles=serve,ps,worker address=127.1' >hosts
    local at=(--hosts hosts --listen "tls+tcp://127.1:$(free_port)" --keys keys/run.pem)
    run_status 1 adam-ctl doctor run.conf "${at[@]}"
    found warning full disk 'only 0 bytes free in the working folder'
    found ok full keys 'keys/run.pem is valid until'
    chmod 640 keys/run.pem
    run_status 65 adam-ctl doctor run.conf "${at[@]}"
    found problem full keys 'keys/run.pem: others may read this key; chmod 600 it'
    chmod 600 keys/run.pem
    run_status 66 adam-ctl doctor run.conf "${at[@]}" --set labels=gone.lab
    found problem full data 'cannot read gone.lab: a data server runs there'
}
