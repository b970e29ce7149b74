# For every bats file: `load ../helper/common`. A test starts in a folder of its
# own, which goes when it ends, with the programs in PATH.

bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
# Where the programs are, whatever the folder a test works in.
BUILD=$(cd "$ROOT" && cd "${BUILD:-build}" && pwd)
export PATH="$BUILD:$PATH" LC_ALL=C
export TERM=xterm # of terminals that tests make
export PYTHONDONTWRITEBYTECODE=1
# Of runs whose members are silent: seconds after which they are missed. Heartbeats of sanitized
# programs may be late.
export SILENCE=$((${SLOWER:-1} > 1 ? 8 : 3))

setup() {
    cd "$BATS_TEST_TMPDIR"
}

teardown() {
    stop_started
}

# Debian's Python, which has the modules of Debian's packages.
python() {
    /usr/bin/python3 "$@"
}

# A port of this machine that nobody has.
free_port() {
    python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Sets $data to the folder or file NAME of the real data, or skips the test.
adam_data() {
    data=${ADAM_DATA:-$ROOT/../shared/data}/$1
    if [ ! -e "$data" ]; then skip "no $1 in \$ADAM_DATA or ../shared/data"; fi
    data=$(realpath "$data")
}

# Fails the test unless all these commands exist: what Debian has must be tested with.
need() {
    local command
    for command; do
        if ! command -v "$command" >/dev/null; then
            echo "no $command here; make test-deps brings it" >&2
            return 1
        fi
    done
}

# Runs a command that must end with status 0; its stdout is $output and $lines,
# its stderr is $stderr, shown when it fails.
run_ok() {
    run_status 0 "$@"
}

# The same for any other status: run_status 2 adam-prep --zork
run_status() {
    local wanted=$1
    shift
    run --separate-stderr "$@"
    if [ "$status" -ne "$wanted" ]; then
        printf 'status %s, not %s: %s\n%s\n%s\n' "$status" "$wanted" "$*" "$output" "$stderr"
        return 1
    fi
}

# Sleeps for $1 milliseconds, below 1000, without a process of its own.
nap() {
    if [ -z "${nap_from:-}" ]; then exec {nap_from}<> <(:); fi
    local thousandths=00$1
    read -rt "0.${thousandths: -3}" -u "$nap_from" || true
}

# Tensors of a safetensors file, without its texts: NAME SHAPE CRC.
tensors_of() {
    python - "$1" <<'END'
import json, struct, sys, zlib
raw = open(sys.argv[1], "rb").read()
end = 8 + struct.unpack("<Q", raw[:8])[0]
for name, entry in sorted(json.loads(raw[8:end]).items()):
    if name != "__metadata__":
        begin, stop = entry["data_offsets"]
        print(name, entry["shape"], "%08x" % zlib.crc32(raw[end + begin : end + stop]))
END
}

# is_true [OPTION...] FILTER: what jq makes of JSON on stdin is `true`. For jq -e alone no JSON at all,
# as of a program that failed, is true enough.
is_true() {
    [ "$(jq "$@")" = true ]
}

# Waits until a command succeeds; fails after a minute, which no sound run takes (under a
# sanitizer: SLOWER minutes). It asks less often the longer it waits: each 0.05 s at first, each
# 0.3 s in the end.
wait_for() {
    local end=$((SECONDS + 60 * ${SLOWER:-1})) pause=50
    while ((SECONDS <= end)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        nap $pause
        pause=$((pause < 300 ? pause + 10 : 300))
    done
    echo "never came true: $*"
    return 1
}

# Starts a command in the background, able to take SIGINT (which a shell takes
# from its background jobs); $pid is its process. Ended with the test.
start() {
    env --default-signal=INT "$@" 3>&- &
    pid=$!
    started+=("$pid")
}

# For setup_file: each worker rests for so many microseconds for each sample that it trains on, so
# that runs which only have to last leave the processors to others. Longer where programs are slow:
# as much of the processors is left.
workers_rest() {
    ${CC:-cc} -shared -fPIC -O1 -o "$BATS_FILE_TMPDIR/rest.so" "$ROOT/tests/helper/preload/rest.c" -ldl
    export LD_PRELOAD=$BATS_FILE_TMPDIR/rest.so REST=$(($1 * (${SLOWER:-1} + 1) / 2))
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
}

# Sets $status to how the started $pid ended.
wait_end() {
    status=0
    wait "$pid" || status=$?
}

stop_started() {
    if [ ${#started[@]} -gt 0 ]; then kill_started "${started[@]}"; fi
    started=()
}

# Kills these of `start`, and waits until they are gone, and what they had locked is free.
kill_started() {
    local process
    kill -KILL "$@" 2>/dev/null || true
    for process; do wait "$process" 2>/dev/null || true; done
}

# Makes small.net, which learns the digits that adam-prep draws in two epochs.
small_net() {
    cat >small.net <<'NET'
input   1x28x28 ops='scale 1/255; mean 0.16; std 0.24'
conv    c1 maps=6 kernel=5 stride=2 act=relu
maxpool    size=2
dense      units=40 act=relu
softmax    units=10
NET
}

# Makes large.net: 20 million parameters, which are 80 MB.
large_net() {
    cat >large.net <<'NET'
input   1x28x28 ops='scale 1/255'
dense   units=4096 act=relu
dense   units=4096 act=relu
softmax units=10
NET
}
