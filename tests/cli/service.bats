#!/usr/bin/env bats
# adam-eval --listen: what it answers, whom it refuses, and how it ends. The reference of its scores is
# adam-eval on the same pictures.
load ../helper/common
load ../helper/run

setup_file() {
    small_run "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    model=$BATS_FILE_TMPDIR/run
    pictures=$BATS_FILE_TMPDIR/pictures
    picture=$pictures/4/000004.png
}

# serve OPTION...: starts one; $url and $pid are its.
serve() {
    start adam-eval --model "$model" --listen http://127.0.0.1:0 --port-file port -q "$@"
    wait_for test -s port
    url=$(cat port)
}

# post STATUS CURL-OPTION...: the answer, which must have that status, in ./answer.
post() {
    local code
    code=$(curl -s --max-time 100 -o answer -w '%{http_code}' "${@:2}" "$url/predict")
    if [ "$code" != "$1" ]; then
        echo "status $code, not $1: $(cat answer)"
        return 1
    fi
}

# refused STATUS WHY CURL-OPTION...
refused() {
    post "$1" "${@:3}"
    jq -e --arg why "$2" '.error | contains($why)' answer >/dev/null || { cat answer; return 1; }
}

# figure NAME: of /metrics.
figure() {
    curl -s "$url/metrics" | awk -v name="adam_predict_$1" '$1 == name { print $2 }'
}

caller() {
    python "$ROOT/tests/helper/service.py" "$@"
}

@test "a picture has the scores of adam-eval, to the last digit, whatever its format" {
    local file
    adam-prep "$picture" --to pnm -o a.pgm -q
    adam-prep "$picture" --to folder --codec jpeg --ops 'resize 40x40; resize 28x28' -o folder -q
    cp "$(find folder -name '*.jpg')" a.jpg
    serve --top 10
    for file in "$picture" a.pgm a.jpg; do
        adam-eval --model "$model" --top 10 --json -q --data "$file" | jq -c .top >wanted
        post 200 --data-binary "@$file"
        jq -c '.predictions[] | .top' answer | diff wanted -
    done
    [ "$(jq '.predictions[0].top | length' answer)" -eq 10 ]
}

@test "many of a form or of JSON come in their order, with the scores of adam-eval" {
    local files=() form=() file
    mapfile -t files < <(find "$pictures" -name '*.png' | sort | head -n 20)
    [ "${#files[@]}" -eq 20 ]
    adam-eval --model "$model" --batch 16 --top 2 --json -q --ops 'resize 20x20; resize 28x28' "${files[@]}" | jq -c .top >wanted
    for file in "${files[@]}"; do form+=(-F "file=@$file"); done
    serve --top 2 --batch 16 --threads 1 --ops 'resize 20x20; resize 28x28'
    post 200 "${form[@]}"
    jq -c '.predictions[] | .top' answer | diff wanted -
    for file in "${files[@]}"; do base64 -w 0 "$file" | jq -R '{b64: .}'; done | jq -s '{instances: .}' >body
    post 200 -H 'Content-Type: application/json' --data-binary @body
    jq -c '.predictions[] | .top' answer | diff wanted -
}

@test "requests of any length are answered, by several threads" {
    local files=() form=() file
    mapfile -t files < <(find "$pictures" -name '*.png' | sort)
    while [ "${#files[@]}" -lt 150 ]; do files+=("${files[@]}"); done
    adam-eval --model "$model" --json -q "${files[@]}" | jq -c '.top[0].class' >wanted
    for file in "${files[@]}"; do form+=(-F "file=@$file"); done
    serve --threads 3
    post 200 "${form[@]}"
    jq -c '.predictions[] | .top[0].class' answer | diff wanted -
    [ "$(caller together "$url" "$picture" 60)" -eq 60 ]
    [ "$(figure samples_total)" -eq $((${#files[@]} + 60)) ]
}

@test "ready floats have the scores of their picture" {
    adam-prep "$picture" --to pnm -o a.pgm -q
    python - >body <<'END'
import json
pixels = open("a.pgm", "rb").read()[-784:]
rows = [[(p / 255 - 0.16) / 0.24 for p in pixels[28 * y : 28 * y + 28]] for y in range(28)]
print(json.dumps({"instances": [[rows]]}))
END
    serve --top 10
    post 200 -H 'Content-Type: application/json' --data-binary @body
    mv answer floats
    post 200 --data-binary @a.pgm
    python - <<'END'
import json
a, b = ({t["class"]: t["score"] for t in json.load(open(f))["predictions"][0]["top"]} for f in ("floats", "answer"))
assert len(a) == 10 and all(abs(a[c] - b[c]) < 1e-6 for c in b)
END
}

@test "requests that come at once share passes, as many as --batch allows" {
    serve --threads 1
    [ "$(caller together "$url" "$picture" 40 "$pid")" -eq 40 ]
    [ "$(figure samples_total)" -eq 40 ]
    [ "$(figure passes_total)" -le 20 ]
    kill "$pid"
    wait "$pid"
    serve --threads 1 --batch 4
    [ "$(caller together "$url" "$picture" 40 "$pid")" -eq 40 ]
    [ "$(figure passes_total)" -ge 10 ]
}

@test "what cannot be answered has a status of HTTP, and says why" {
    serve --max-pixels 2000 --max-body 100K
    refused 422 'neither JPEG' -d abc
    head -c 200 "$picture" >cut.png
    refused 422 truncated --data-binary @cut.png
    adam-prep "$picture" --ops 'resize 20x20' --to pnm -o small.pgm -q
    refused 422 'the model reads 1x28x28' --data-binary @small.pgm
    refused 422 'instance 1: ' -F "a=@$picture" -F b=@cut.png
    # A bomb: some bytes that say they are 81 million pixels.
    python - >bomb.png <<'END'
import struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
sys.stdout.buffer.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 9000, 9000, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(bytes(10000))) + chunk(b"IEND", b""))
END
    refused 422 "more than the limit of 2000" --data-binary @bomb.png
    refused 400 'line 1' -H 'Content-Type: application/json' -d '{"instances": ['
    refused 400 'not the 784' -H 'Content-Type: application/json' -d '{"instances": [[1]]}'
    refused 400 boundary -H 'Content-Type: multipart/form-data' -d abc
    refused 405 POST
    refused 405 POST -X PUT -d abc
    url+=/nowhere
    refused 404 'no such page'
    refused 404 'no such page' -d abc
    refused 404 'no such page' -X PUT -d abc
}

@test "who uses another method is told those of the page" {
    serve
    # allowed METHOD PAGE: what the answer allows.
    allowed() { curl -s --max-time 20 -o answer -D - -X "$1" "$url$2" | tr -d '\r' | awk '$1 == "HTTP/1.1" { print $2 } tolower($1) == "allow:" { $1 = ""; print $0 }' | paste -s -d ' '; }
    [ "$(allowed GET /predict)" = '405  POST' ]
    [ "$(curl -s -I "$url/predict" | tr -d '\r' | awk 'tolower($1) == "allow:" { print $2 }')" = POST ]
    [ "$(allowed DELETE /predict)" = '405  POST' ]
    [ "$(allowed POST /)" = '405  GET, HEAD' ]
    [ "$(allowed PUT /metrics)" = '405  GET, HEAD' ]
    [ "$(allowed PUT /none)" = 404 ]
}

# black_png SIDE CHANNELS: few bytes that are many pixels.
black_png() {
    python - "$@" <<'END'
import struct, sys, zlib
side, channels = map(int, sys.argv[1:])
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
sys.stdout.buffer.write(b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, {1: 0, 3: 2}[channels], 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(bytes(1 + side * channels) * side)) + chunk(b"IEND", b""))
END
}

# kilobytes NAME: of memory, as /proc/PID/status has them.
kilobytes() {
    awk -v name="$1:" '$1 == name { print $2 }' "/proc/$pid/status"
}

@test "a few bytes that are many pixels take the memory of one picture, and for its time alone" {
    if [ -n "${SAN:-}" ]; then skip "sanitizers keep what was freed"; fi
    black_png 10000 1 >large.png
    serve --threads 1
    local before
    before=$(kilobytes VmRSS)
    refused 422 'the model reads 1x28x28' --data-binary @large.png
    [ $(($(kilobytes VmHWM) - before)) -lt 150000 ]
    [ $(($(kilobytes VmRSS) - before)) -lt 20000 ]
}

@test "large pictures wait for each other, however many threads decode" {
    if [ -n "${SAN:-}" ]; then skip "sanitizers keep what was freed"; fi
    black_png 5000 3 >large.png
    serve --threads 16 --batch 1 --max-pixels 25000000
    local before n callers=()
    before=$(kilobytes VmRSS)
    for n in {1..16}; do
        curl -s --max-time 100 -o "$n.answer" --data-binary @large.png "$url/predict" &
        callers+=($!)
    done
    wait "${callers[@]}"
    for n in {1..16}; do jq -e '.error | contains("the model reads 1x28x28")' "$n.answer"; done
    # Four of 75 MB at a time.
    [ $(($(kilobytes VmHWM) - before)) -lt 400000 ]
}

@test "large documents of JSON wait for each other, however many threads read" {
    if [ -n "${SAN:-}" ]; then skip "sanitizers keep what was freed"; fi
    python -c 'print("{\"instances\": [" + "[]," * 600000 + "[]]}")' >body
    serve --threads 16
    local before n callers=()
    before=$(kilobytes VmRSS)
    for n in {1..16}; do
        curl -s --max-time 100 -o "$n.answer" -H 'Content-Type: application/json' --data-binary @body "$url/predict" &
        callers+=($!)
    done
    wait "${callers[@]}"
    for n in {1..16}; do jq -e '.error | contains("instance 0: 0 numbers")' "$n.answer"; done
    # Three at a time, and all bodies.
    [ $(($(kilobytes VmHWM) - before)) -lt 500000 ]
    [ $(($(kilobytes VmRSS) - before)) -lt 100000 ]
}

@test "where memory is out 503 says so, and it goes on when there is some again" {
    if [ -n "${SAN:-}" ]; then skip "a sanitizer has memory of its own"; fi
    need prlimit
    serve --threads 1
    post 200 --data-binary "@$picture"
    python -c 'print("{\"instances\": [" + "[]," * 1900000 + "[]]}")' >body
    local size
    size=$(kilobytes VmSize)
    prlimit --pid "$pid" --as="$(((size + 40000) * 1024)):unlimited"
    refused 503 'out of memory' -H 'Content-Type: application/json' -H Expect: --data-binary @body
    prlimit --pid "$pid" --as=unlimited
    refused 400 'instance 0: 0 numbers' -H 'Content-Type: application/json' -H Expect: --data-binary @body
    post 200 --data-binary "@$picture"
}

# answered STATUS HEADERS BODY: a POST of exactly these, whose end proxies may see elsewhere.
answered() {
    said_to "$1" "POST /predict HTTP/1.1\r\nHost: x\r\nConnection: close\r\n$2\r\n$3"
}

# said_to STATUS REQUEST
said_to() {
    local said
    printf '%b' "$2" >request
    said=$(timeout 20 python -c 'import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1].rsplit(":")[-1])))
sock.sendall(open("request", "rb").read())
while data := sock.recv(65536): sys.stdout.write(data.decode())' "$url")
    [[ "$said" = "HTTP/1.1 $1 "* ]] || { echo "not $1: $said"; return 1; }
    [ "$(grep -c ^HTTP/ <<<"$said")" = 1 ]
}

@test "a request whose end is told twice, or in no way that is known, is refused" {
    serve
    local next='GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
    answered 422 'Content-Length: 3\r\n' abc
    answered 422 'Transfer-Encoding: chunked\r\n' '3\r\nabc\r\n0\r\n\r\n'
    answered 400 'Content-Length: 3\r\nContent-Length: 43\r\n' "abc$next"
    answered 400 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n' "0\r\n\r\n$next"
    answered 400 'Content-Length : 40\r\n' "$next"
    answered 501 'Transfer-Encoding: gzip\r\n' "$next"
    answered 400 'Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n' '3\r\nabc\r\n0\r\n\r\n'
    # And plain ones are not.
    post 200 --data-binary "@$picture"
    post 200 -H 'Transfer-Encoding: Chunked' --data-binary "@$picture"
}

@test "a request names its host once, and its target may be absolute" {
    serve
    local end='Connection: close\r\n\r\n'
    said_to 200 "GET /healthz HTTP/1.1\r\nHost: a\r\n$end"
    said_to 400 "GET /healthz HTTP/1.1\r\n$end"
    said_to 400 "GET /healthz HTTP/1.1\r\nHost: a\r\nhost: b\r\n$end"
    said_to 200 "GET /healthz HTTP/1.0\r\n\r\n"
    said_to 400 "GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"
    said_to 200 "GET http://a.example:8080/healthz HTTP/1.1\r\nHost: b\r\n$end"
    said_to 200 "GET HTTP://a.example HTTP/1.1\r\nHost: b\r\n$end"
    said_to 404 "GET http://a.example/other HTTP/1.1\r\nHost: b\r\n$end"
    said_to 400 "GET http:///healthz HTTP/1.1\r\nHost: b\r\n$end"
    said_to 422 "POST http://a.example/predict HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n${end}abc"
}

@test "100 MB are refused at once, with a length and without" {
    serve
    local how
    for how in 'Expect:' 'Transfer-Encoding: chunked'; do
        head -c 100000000 /dev/zero | refused 413 --max-body -H "$how" -H 'Content-Type: image/png' -X POST -T -
    done
    head -c 100000000 /dev/zero >large
    refused 413 --max-body --data-binary @large
    refused 413 --max-body -H Expect: --data-binary @large
    # Not more than the body may have was kept; what a sanitizer keeps does not count.
    [ -n "${SAN:-}" ] || [ "$(awk '/VmHWM/ { print $2 }' "/proc/$pid/status")" -lt 200000 ]
    post 200 --data-binary "@$picture"
}

@test "slow callers are told so, and do not keep others" {
    serve --patience 1s
    run_ok caller slow "$url" body
    [[ $output == '408 {"error":"the request did not arrive in time"}' ]]
    run_ok caller slow "$url" nothing
    [[ $output == 408* ]]
    run_ok caller slow "$url" head
    [[ $output == '408 {"error":"the request did not arrive in time"}' ]]
    run_ok caller slow "$url" line
    [[ $output == 408* ]]
    run_ok caller slow "$url" silent
    [[ $output == 0* ]]
    [ "$(figure 'requests_total{code="408"}')" -eq 4 ]
    post 200 --data-binary "@$picture"
}

@test "who does not read the answers does not keep others, and is let go" {
    serve --patience 2s
    start python "$ROOT/tests/helper/service.py" deaf "$url" 3000 >deaf
    wait_for grep -q asked deaf
    post 200 --data-binary "@$picture"
    # In the middle of an answer: no status.
    let_go() { [ "$(figure 'requests_total{code="0"}')" = 1 ]; }
    wait_for let_go
    alone() { [ "$(figure connections)" = 1 ]; }
    wait_for alone
}

@test "a body that is cut short is nobody's answer, and harms nobody" {
    serve
    caller cut "$url"
    went_away() { [ "$(figure 'requests_total{code="0"}')" = 1 ]; }
    wait_for went_away
    post 200 --data-binary "@$picture"
}

@test "a crowd of silent callers makes room for those who ask" {
    serve --patience 1h
    start python "$ROOT/tests/helper/service.py" crowd "$url" 600 >crowd
    wait_for grep -q open crowd
    post 200 --max-time 40 --data-binary "@$picture"
    [ "$(figure connections)" -le 320 ]
}

@test "who has no descriptors left goes on when callers have left" {
    local most
    most=$(ulimit -S -n)
    ulimit -S -n 64
    serve --patience 1h
    ulimit -S -n "$most"
    start python "$ROOT/tests/helper/service.py" crowd "$url" 100 >crowd
    wait_for grep -q open crowd
    kill "$pid"
    post 200 --max-time 40 --data-binary "@$picture"
}

@test "nor do silent callers keep others out who leave it no descriptors" {
    local most threads
    most=$(ulimit -S -n)
    for threads in 1 4; do
        ulimit -S -n 64
        serve --patience 1h --threads "$threads"
        ulimit -S -n "$most"
        start python "$ROOT/tests/helper/service.py" crowd "$url" 200 >crowd
        wait_for grep -q open crowd
        post 200 --max-time 40 --data-binary "@$picture"
        rm port crowd
    done
}

@test "who has asked when it is stopped is answered, and it ends with 0" {
    local threads
    for threads in 1 4; do
        serve --threads "$threads"
        run_ok caller last "$url" "$picture" "$pid"
        [[ $output == '200 {"predictions":'* ]]
        wait "$pid"
        [ ! -e port ]
    done
}

@test "more callers than there are places have asked when it is stopped, and all are answered" {
    local threads
    for threads in 1 4; do
        serve --threads "$threads"
        run_ok caller line "$url" "$picture" "$pid" 600
        [ "$output" = 600 ]
        wait "$pid"
    done
}

@test "of a socket that others have, too, it leaves them to the next" {
    run_ok caller queue "$picture" 600 adam-eval --model "$model" --listen systemd --threads 2 -q
    [ "$output" = 600 ]
}

@test "a line that does not end keeps it for --patience at most" {
    serve --patience 2s --threads 1
    local server=$pid
    kill -STOP "$server"
    start python "$ROOT/tests/helper/service.py" crowd "$url" 900 >crowd
    wait_for grep -q open crowd
    kill "$server"
    kill -CONT "$server"
    wait "$server"
}

@test "a successor takes the socket over, and no request is lost" {
    run_ok caller handover "$picture" adam-eval --model "$model" --listen systemd --threads 4 -q
    [ "$output" = 'answered True lost 0' ]
}

@test "the page shows no answer about an earlier picture" {
    need node
    run_ok node "$ROOT/tests/helper/page_asks.js" "$ROOT/lib/answer/page.html"
    [ -z "$output" ]
}

@test "the page, the figures and the health are there" {
    serve
    curl -s "$url/" | cmp - "$ROOT/lib/answer/page.html"
    [ "$(curl -s "$url/healthz")" = ok ]
    post 200 --data-binary "@$picture"
    post 422 -d abc
    curl -s "$url/metrics" >figures
    python - <<'END'
import re
figures, buckets, types = {}, [], {}
for line in open("figures"):
    if line.startswith("# TYPE"):
        types[line.split()[2]] = line.split()[3]
    elif not line.startswith("#"):
        name, value = re.fullmatch(r'([a-z_]+(?:\{[a-z]+="[^"]+"\})?) ([0-9.e+-]+)\n', line).groups()
        figures[name] = float(value)
        if "_bucket" in name:
            buckets.append(float(value))
assert figures['adam_predict_requests_total{code="200"}'] == 3
assert figures['adam_predict_requests_total{code="422"}'] == 1
assert figures["adam_predict_samples_total"] == 1 == figures["adam_predict_seconds_count"]
assert buckets == sorted(buckets) and buckets[-1] == 1 and figures["adam_predict_seconds_sum"] > 0
assert types["adam_predict_seconds"] == "histogram" and types["adam_predict_requests_total"] == "counter"
END
}

@test "what is wrong with the command line is said" {
    run_status 2 adam-eval --model "$model" --listen http://0.0.0.0:0
    [[ $stderr == *'0.0.0.0:0 can be reached from other machines: say --insecure'* ]]
    [[ $stderr != *tls* ]]
    run_status 2 adam-eval --model "$model" --listen localhost:80
    [[ $stderr == *'give http://HOST:PORT'* ]]
    run_status 2 adam-eval --model "$model" --listen systemd
    [[ $stderr == *'was passed no socket'* ]]
    run_status 2 adam-eval --listen http://127.0.0.1:0
    [[ $stderr == *--model* ]]
    run_status 2 adam-eval --model "$model" --listen http://127.0.0.1:0 --data "$picture"
    run_status 2 adam-eval --model "$model" --patience 3s --data "$picture"
    [[ $stderr == *--listen* ]]
    run_status 2 adam-eval --model "$model" --listen http://127.0.0.1:0 --max-body 0
    run_status 2 adam-eval --model "$model" --listen http://127.0.0.1:0 --keys a.pem
    [[ $stderr == *'no TLS'* ]]
    serve
    run_status 69 adam-eval --model "$model" --listen "$url" --port-file port
    [[ $stderr == *'in use'* ]]
    [ -e port ]
}
