#!/usr/bin/env bats
# Peers that mean no good, or no longer know what they do, beside a run that goes on.
load ../helper/common

peer() {
    python "$ROOT/tests/helper/peer.py" "$@"
}

teardown() {
    stop_started
    if [ -z "${BATS_TEST_COMPLETED:-}" ]; then tail -n 15 ./*.log; fi
}

# A run of one part of each kind over TCP, which trains until it is told to stop: $controller,
# $ps, $worker are its processes, ctl.log... what they say.
start_run() {
    adam-prep draw 400 --seed 3 -o digits.arec 2>draw.log
    printf '%s\n' "input 1x28x28 ops='scale 1/255'" 'dense units=40 act=relu' \
        'softmax units=10' >small.net
    printf '%s\n' 'model = small.net' 'rate = 0.01' 'batch = 8' 'epochs = 100000' \
        'push-every = 1' 'metrics-every = 0.1' >run.conf
    http=$(free_port)
    local at=(--listen tcp://127.0.0.1:0)
    start adam-ctl controller "${at[@]}" --http "127.0.0.1:$http" --out run run.conf 2>ctl.log
    controller=$pid
    wait_for test -s run/controller.port
    start adam-ps --controller @run/controller.port "${at[@]}" --threads 1 --port-file ps.port 2>ps.log
    ps=$pid
    start adam-serve --controller @run/controller.port "${at[@]}" --threads 1 --port-file serve.port \
        digits.arec 2>serve.log
    start_worker
    wait_for is_training
}

refused_are() {
    [ "$(of_worker refused)" = "$1" ]
}

start_worker() {
    start adam-worker --controller @run/controller.port --threads 1 2>worker.log
    worker=$pid
}

is_training() {
    [ "$(of_worker rate)" != 0 ] && grep -q '"role":"worker".*"event":"train"' run/metrics.jsonl
}

run_ends() {
    wait "$worker"
    wait "$controller" || [ $? = 75 ]
}

end_run() {
    adam-ctl down --now run
    run_ends
}

# Thousands of strangers who dial again can leave the command no place within its patience.
end_besieged_run() {
    wait_for adam-ctl down --now run
    run_ends
}

# The figure of the only worker that is there, of `status`.
of_worker() {
    adam-ctl status --json run |
        jq ".members | map(select(.role == \"worker\" and .state != \"gone\")) | .[0].$1"
}

@test "a push as another that was believed does not go unnoticed: its worker says so and joins anew" {
    start_run
    local session
    session=$(of_worker member) # both are counted from 1 by the order of joining
    run_ok peer thief "$(sed -n 1p ps.port)" "$session" # says hello as it, and so is believed
    [ "$output" = 0x8302 ]
    wait_for grep -q "did not apply push .*somebody else pushes in its session $session; joining anew" worker.log
    wait_for grep -q "worker $session .* left: its session is over, or not its own: it joins anew" ctl.log
    wait_for grep -q "worker 4 .* joined" ctl.log
    wait_for is_training
    wait_for refused_are 1
    adam-ctl status run | grep -qE '^worker +4'
    wait_for grep -qE '"rank":4,"event":"train".*"pushes_refused":[1-9]' run/metrics.jsonl
    end_run
}

@test "nobody beats, reports, leases or leaves as another" {
    start_run
    local session
    session=$(of_worker member)
    run_ok peer impostor "$(cat run/controller.port)" "$session"
    echo "$output"
    [ "$(grep -cE "^(leave|heartbeat|report) refused 9 $session " <<<"$output")" = 3 ]
    grep -q "refused a leave of a worker (tcp://127.0.0.1:.*): session $session is not its own; 1 so far" ctl.log
    run_ok peer impostor "$(cat serve.port)" "$session"
    echo "$output"
    [ "$(grep -cE "^(leave|lease|finish) refused 9 $session " <<<"$output")" = 3 ]
    [ "$(of_worker member)" = "$session" ]
    end_run
}

@test "a huge delta and a negative learning rate are refused, and who sent them is named everywhere" {
    start_run
    local session
    session=$(of_worker member)
    run_ok peer push "$(sed -n 1p ps.port)" "$session" 3.4e38 -0.1
    echo "$output"
    [ "${lines[0]}" = "refused 13 0 not finite, or so large that weights would become so" ]
    [ "${lines[1]}" = "refused 20 0 the learning rate is not from 0 to 1e9" ]
    wait_for grep -q "refused a push of worker peer (tcp://127.0.0.1:.*): not finite, detail 0; 1 so far" ps.log
    wait_for grep -q "parameter server .* refused a push of worker peer .*: bad setting, .*; it is worker $session " ctl.log
    wait_for grep -q "\"event\":\"refused\".*\"session\":$session,\"reason\":\"not finite\",\"count\":1" run/metrics.jsonl
    wait_for refused_are 2
    wait_for is_training
    end_run
}

# So many connections at an address, for a while, that say nothing, or a hello.
besiege() { # ADDRESS COUNT [greet]
    start /usr/bin/python3 "$ROOT/tests/helper/peer.py" "${3:-silent}" "$1" "$2" 600 >siege
    wait_for grep -q there siege
    rm siege
}

page_is_there() {
    curl -sSf --max-time 10 "http://127.0.0.1:$http/metrics" | grep -q adam_epoch
}

@test "silent strangers that dial again keep no newcomer out, and nobody who asks how the run is" {
    ulimit -n 4096
    start_run
    besiege "$(cat run/controller.port)" 300
    besiege "$(sed -n 1p ps.port)" 300
    besiege "$(cat serve.port)" 300
    besiege "tcp://127.0.0.1:$http" 1100
    for _ in 1 2 3; do
        adam-ctl status run >status
        grep -q '^worker' status
        page_is_there
    done
    kill -TERM "$worker"
    wait "$worker" || [ $? = 75 ]
    start_worker
    # It joins once more if strangers took its place before it had the answer.
    wait_for grep -qE 'worker [4-9] .* joined' ctl.log
    wait_for grep -qE '"rank":[4-9],"event":"train"' run/metrics.jsonl
    # The descriptors of the controller are bounded.
    [ "$(find "/proc/$controller/fd" -mindepth 1 | wc -l)" -lt 700 ]
    end_besieged_run
}

@test "strangers that say hello, and never ask anything, keep nobody out either" {
    ulimit -n 8192
    start_run
    besiege "$(cat run/controller.port)" 1100 greet
    besiege "$(sed -n 1p ps.port)" 1100 greet
    besiege "$(cat serve.port)" 1100 greet
    for _ in 1 2 3; do
        adam-ctl status run >status
        grep -q '^worker' status
    done
    kill -TERM "$worker"
    wait "$worker" || [ $? = 75 ]
    start_worker
    # It joins once more if strangers took its place before it had the answer.
    wait_for grep -qE 'worker [4-9] .* joined' ctl.log
    wait_for grep -qE '"rank":[4-9],"event":"train"' run/metrics.jsonl
    end_besieged_run
}

# Asks a controller how its run is, through a peer.py that is bad to its first three callers.
status_through() { # full|fickle
    printf 'input 1x1x4\nsoftmax units=2\n' >small.net
    printf 'model = small.net\n' >run.conf
    start adam-ctl controller --listen tcp://127.0.0.1:0 --out run run.conf 2>ctl.log
    wait_for test -s run/controller.port
    start /usr/bin/python3 "$ROOT/tests/helper/peer.py" "$1" "$(cat run/controller.port)" 3 >peer
    wait_for grep -q tcp peer
    run_ok adam-ctl status @peer
    [[ "$output" = *controller* ]]
}

@test "status dials again when it is turned away without a word" {
    status_through full
}

@test "status dials again when it loses its place before it is answered" {
    status_through fickle
}

# The status that port $http answers to a request of these lines.
ask() {
    exec 7<>"/dev/tcp/127.0.0.1/$http"
    printf '%s\r\n' "$@" '' >&7
    timeout 30 cat <&7 | sed -n '1s/^HTTP\/1.1 \([0-9]*\) .*/\1/p'
    exec 7>&-
}

@test "the HTTP port answers what it should, and stands in a file" {
    printf 'input 1x1x4\nsoftmax units=2\n' >small.net
    printf 'model = small.net\n' >run.conf
    start adam-ctl controller --http 127.0.0.1:0 --out run run.conf 2>ctl.log
    wait_for test -s run/controller.http
    http=$(sed -n 's|^http://127.0.0.1:\([1-9][0-9]*\)$|\1|p' run/controller.http)
    wait_for page_is_there
    curl -sSI "http://127.0.0.1:$http/metrics" >headers
    grep -q '^HTTP/1.1 200 OK' headers
    [ "$(curl -s -o other -w '%{http_code}' "http://127.0.0.1:$http/")" = 404 ]
    [ "$(curl -s -o other -w '%{http_code} %header{allow}' -d x "http://127.0.0.1:$http/metrics")" = '405 GET, HEAD' ]
    # The host must be named once (RFC 9112, 3.2), and may stand in the target, which then counts.
    [ "$(ask "GET /metrics HTTP/1.1")" = 400 ]
    [ "$(ask "GET /metrics HTTP/1.1" 'Host: a' 'hOST: b')" = 400 ]
    [ "$(ask "GET /metrics HTTP/1.1" 'Host : a')" = 400 ]
    [ "$(ask "GET /metrics HTTP/1.1" 'Host:')" = 200 ]
    [ "$(ask "GET /metrics HTTP/1.1" 'X-Host: b' 'Host: a')" = 200 ]
    [ "$(ask "GET /metrics HTTP/1.0")" = 200 ]
    [ "$(ask "GET /metrics HTTP/1.0" 'Host: a' 'Host: b')" = 400 ]
    [ "$(ask "GET http://a.example:80/metrics?x HTTP/1.1" 'Host: a')" = 200 ]
    [ "$(ask "HEAD HTTP://a.example/metrics HTTP/1.1" 'Host: a')" = 200 ]
    [ "$(ask "GET http://a.example/metrics HTTP/1.1")" = 400 ]
    [ "$(ask "GET http://a.example HTTP/1.1" 'Host: a')" = 404 ]
    [ "$(ask "GET http:///metrics HTTP/1.1" 'Host: a')" = 400 ]
    [ "$(ask "GET ftp://a.example/metrics HTTP/1.1" 'Host: a')" = 404 ]
    # Half a request, and nobody else who wants its place.
    exec 7<>"/dev/tcp/127.0.0.1/$http"
    printf 'GET /metr' >&7
    run_status 0 timeout 30 cat <&7
    exec 7>&-
    head -c 8000 /dev/zero | tr '\0' x >long
    [ "$(curl -s -o other -w '%{http_code}' -H "x: $(cat long)" "http://127.0.0.1:$http/metrics")" = 431 ]
    kill -TERM "$pid"
    wait_end
    [ ! -e run/controller.http ]
}

# Megabytes of memory that a process takes.
resident() {
    awk '$1 == "VmRSS:" { print int($2 / 1024) }' "/proc/$1/status"
}

@test "a pull of gigabytes is refused, and who asks without reading costs little and is hung up on" {
    start_run
    run_ok peer huge "$(sed -n 1p ps.port)" 4096
    [ "${lines[0]}" = "refused 4 33554432 the answer would be: pull in parts" ]
    [ "${lines[1]}" = 0x8304 ]
    local before
    before=$(resident "$ps")
    run_ok timeout 30 /usr/bin/python3 "$ROOT/tests/helper/peer.py" deaf "$(sed -n 1p ps.port)" 0 100000
    echo "$output"
    [[ $output = *"hung up on"* ]]
    [ "$(resident "$ps")" -lt $((before + 20)) ]
    wait_for is_training
    end_run
}
