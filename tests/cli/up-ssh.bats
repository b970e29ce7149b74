#!/usr/bin/env bats
# adam-ctl up --hosts over a real sshd: one that this test starts on loopback, with keys
# that it makes; its two machines are two names in ssh's own configuration.
load ../helper/common
load ../helper/working_here

# What programs that sshd starts need to know of a sanitizer.
of_sanitizers() {
    local name
    for name in ASAN LSAN TSAN UBSAN; do
        name=${name}_OPTIONS
        if [ -n "${!name:-}" ]; then printf ' %s=%s' "$name" "${!name}"; fi
    done
}

# A server for this user alone, and a client's configuration that knows it by two names;
# behind a third nobody listens. The shells that it starts have a home of their own: what
# the user's shell does at its start may take long, and must not be killed in the midst.
make_sshd() {
    port=$(free_port)
    mkdir home
    ssh-keygen -q -t ed25519 -N '' -f host_key
    ssh-keygen -q -t ed25519 -N '' -f user_key
    cat >sshd_config <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $PWD/host_key
AuthorizedKeysFile $PWD/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
SetEnv HOME=$PWD/home PATH=$PATH$(of_sanitizers)
CONF
    cat >ssh_config <<CONF
Host one two three
    Port $port
Host nobody
    Port $(free_port)
Host *
    HostName 127.0.0.1
    IdentityFile $PWD/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $PWD/known_hosts
CONF
    echo "[127.0.0.1]:$port $(cat host_key.pub)" >known_hosts
    if [ "$(id -u)" = 0 ]; then mkdir -p /run/sshd; fi
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    PATH=$PATH:/usr/sbin:/sbin
    need sshd ssh
    make_sshd
    start "$(command -v sshd)" -D -e -f sshd_config 2>sshd.log
    wait_for grep -q listening sshd.log
    adam-prep draw 600 --seed 3 --split test=0.2 -o digits.arec
    printf '%s\n' "input 1x28x28 ops='scale 1/255'" 'dense units=20 act=relu' 'softmax units=10' \
        >small.net
    printf '%s\n' 'model = small.net' 'data = digits.arec' 'test = digits-test.arec' \
        'rate = 0.02' 'batch = 8' 'epochs = 3' >run.conf
    printf '%s\n' 'one roles=serve,ps address=127.0.0.1' \
        'two roles=ps,worker slots=2 threads=1 address=127.0.0.2' >hosts
}

teardown() {
    tail -n 15 err run/log/*.log 2>/dev/null || true # shown where the test failed
    end_members
}

# The programs of the run, and the shells and connections that they came by.
members() {
    working_here '^adam-|^ssh |^sh -c.*adam-'
}
at_least() {
    [ "$(grep -c "$2" "$3")" -ge "$1" ]
}
it_trains() {
    grep -q '"event":"eval"' run/metrics.jsonl
}

up() {
    adam-ctl up run.conf --hosts hosts --ssh "ssh -F ssh_config" --ps 2 \
        --listen "tcp://127.0.0.1:$(free_port)" "$@"
}
# As a process of its own.
begin() {
    start adam-ctl up run.conf --hosts hosts --ssh "ssh -F ssh_config" --ps 2 \
        --listen "tcp://127.0.0.1:$(free_port)" "$@" 2>err
}

@test "a whole run on two machines ends with status 0; nothing is left on them" {
    run_ok up
    [ -e run/DONE ]
    [[ "$stderr" = *"test accuracy"* ]]
    all_members 0
    # One connection each.
    [ "$(grep -c 'Accepted publickey' sshd.log)" = 2 ]
    # Servers of both, and workers of the second; what they say is told here.
    grep -q 'parameter server.*ps-2.*tcp://127.0.0.2:' run/log/controller.log
    grep -q 'data server.*serve-1.*tcp://127.0.0.1:' run/log/controller.log
    [ "$(cd run/log && echo *)" = "controller.log host-one.log host-two.log ps-1.log ps-2.log serve-1.log worker-1.log worker-2.log" ]
}

@test "a model that is cut over workers of two machines" {
    printf '%s\n' 'one roles=serve,ps,worker slots=1 address=127.0.0.1' 'two roles=ps,worker slots=1 address=127.0.0.2' >hosts
    run_ok up --partitions 2
    is_true '.epoch == 3' <run/DONE
    grep -q 'worker.*worker-1.*tcp://127.0.0.1:' run/log/controller.log
    cat run/log/worker-[12].log >workers.log
    grep -q 'epoch .* loss ' workers.log
    grep -qE 'partition 1 of its model  [0-9]+ images ' workers.log
    grep -q 'worker.*worker-2.*tcp://127.0.0.2:' run/log/controller.log
}

# Servers that live have written theirs.
are_stored_by_now() {
    grep -qa adamlog1 run/store/ps-1/*.log && grep -qa adamlog1 run/store/ps-2/*.log &&
        adam-ctl status run
}
# One for each server.
two_shards() {
    printf '%s\n' "input 1x28x28 ops='scale 1/255'" 'dense units=400 act=relu' 'softmax units=10' >small.net
}
# Both servers have written a shard.
are_stored() {
    adam-ctl store check run/store/ps-1 && adam-ctl store check run/store/ps-2
}

@test "stores on the machines: when all died there, --resume goes on from them, unseen" {
    two_shards
    begin --set epochs=1000000 --store --flush 0.1s
    wait_for it_trains
    wait_for are_stored_by_now
    sleep 0.5
    # shellcheck disable=SC2046 # numbers
    kill -KILL "$pid" $(members) || true
    wait_for all_members 0
    wait_for are_stored
    id=$(adam-ctl store check --json run/store/ps-1 | jq -r .run)
    begin --set epochs=1000000 --store --flush 0.1s --resume
    wait_for grep -q "run $id goes on from its stores" err
    wait_for grep -q 'they are on the machines of the servers, and not looked at from here' err
    wait_for grep -q 'has . shards from its store' run/log/ps-1.log
    wait_for grep -q 'has . shards from its store' run/log/ps-2.log
    wait_for grep -q 'worker .* joined' err
    [ "$(adam-ctl status --json run | jq -r .run)" = "$id" ]
    adam-ctl down run
    wait_end
    [ "$status" -eq 75 ]
    # Over: the next run is a new one, and sets the stores aside there.
    begin --store --flush 0.1s --resume --set epochs=1000001
    wait_for grep -q 'not going on from the stores: the run was ended' err
    wait_for grep -q 'what another run left in run/store/ps-1 is now run/store/ps-1.old' run/log/ps-1.log
    [ "$(adam-ctl store check --json run/store/ps-1.old | jq -r .run)" = "$id" ]
    adam-ctl down run
    wait_end
    all_members 0
}

@test "controllers on three machines: the run survives one, and a power cut of all with --resume" {
    printf '%s\n' 'one roles=controller,serve,ps address=127.0.0.1' 'two roles=controller,ps,worker threads=1 address=127.0.0.2' \
        'three roles=controller address=127.0.0.3' >hosts
    two_shards
    listen=tcp://127.0.0.1:$(free_port),tcp://127.0.0.2:$(free_port),tcp://127.0.0.3:$(free_port)
    local up=(adam-ctl up run.conf --hosts hosts --ssh "ssh -F ssh_config" --ps 2 --controllers 3 --listen "$listen"
        --set epochs=1000000 --store --flush 0.1s)
    start "${up[@]}" 2>err
    wait_for it_trains
    [ "$(cd run/log && echo controller-*)" = "controller-1.log controller-2.log controller-3.log" ]
    [ -e run/controller-1.state ] && [ -e run/controller-2.state ] && [ -e run/controller-3.state ]
    # Whoever it is, others go on, and it is started again where it was.
    victim=$(working_here "^adam-ctl controller .*--listen tcp://127.0.0.2:")
    kill -KILL "$victim"
    wait_for grep -q 'controller-2 on two was killed by signal 9' err
    wait_for working_here "^adam-ctl controller .*--listen tcp://127.0.0.2:"
    wait_for are_stored_by_now
    id=$(adam-ctl status --json run | jq -r .run)
    sleep 0.5
    # shellcheck disable=SC2046 # numbers
    kill -KILL "$pid" $(members) || true
    wait_for all_members 0
    start "${up[@]}" --resume 2>err
    wait_for grep -q 'none of its members is there any more' err
    wait_for grep -q 'has . shards from its store' run/log/ps-1.log
    wait_for adam-ctl status run
    [ "$(adam-ctl status --json run | jq -r .run)" = "$id" ]
    wait_for grep -q 'worker .* joined' err
    adam-ctl down run
    wait_end
    cat err
    [ "$status" -eq 75 ]
    all_members 0
}

@test "Ctrl-C saves, and leaves nothing on the machines" {
    begin --set epochs=1000000
    wait_for it_trains
    kill -INT "$pid"
    wait_end
    cat err
    [ "$status" -eq 75 ]
    all_members 0
    [ -e run/latest/manifest.json ]
}

@test "kill -9 of adam-ctl up leaves nothing on the machines" {
    begin --set epochs=1000000
    wait_for it_trains
    kill -KILL "$pid"
    wait_for all_members 0
}

@test "a connection that breaks is made anew, and the workers behind it are started again" {
    printf '%s\n' 'one roles=serve,ps address=127.0.0.1' 'two roles=worker slots=2 address=127.0.0.2' >hosts
    begin --set epochs=1000000 --set batch=16
    wait_for it_trains
    pkill -KILL -P "$pid" -f -- ' -N two$'
    wait_for grep -q 'worker-1 on two .*; starts again' err
    wait_for grep -q 'worker-2 on two .*; starts again' err
    # Both are back as other members.
    wait_for at_least 4 'worker [0-9]* (worker-[12]) joined' err
    kill -INT "$pid"
    wait_end
    cat err
    [ "$status" -eq 75 ]
    all_members 0
}

@test "a machine that does not answer is named, and the run ends" {
    printf '%s\n' 'nobody roles=ps address=127.0.0.1' 'two address=127.0.0.2' >hosts
    run_status 69 up --ps 1
    [[ "$stderr" = *"ps-1| ssh: connect to host 127.0.0.1 port"*"Connection refused"* ]]
    [[ "$stderr" = *"adam-ctl: error: ps-1 on nobody ended with status 255 (no connection)"* ]]
    all_members 0
}

@test "a server that cannot listen on its machine is named with its error, and ends the run" {
    # No interface has a number that is for documentation (RFC 5737). 127.1 is 127.0.0.1, but
    # does not say that others cannot reach it.
    printf '%s\n' 'one roles=serve,worker address=127.1' 'two roles=ps address=198.51.100.7' >hosts
    run_status 69 up --ps 1 --listen "tcp://127.1:$(free_port)" --insecure
    [[ "$stderr" = *"ps-1| adam-ps: error: cannot listen on tcp://198.51.100.7:0: '198.51.100.7' is no address of this machine"* ]]
    [[ "$stderr" = *"adam-ctl: error: ps-1 on two ended with status 69"* ]]
    all_members 0
}

@test "adam-ctl doctor: the machines are asked over the real ssh, and who does not answer is named" {
    doctor() {
        run_status "$1" adam-ctl doctor run.conf --hosts hosts --ssh "ssh -F ssh_config" --ps 2 \
            --listen "tcp://127.0.0.1:$(free_port)"
    }
    doctor 0
    [ "$(grep -cE '^ok +(one|two) +(ssh|folder|programs|clock|disk|address|controller) ' <<<"$output")" = 14 ]
    grep -qE '^ok +one +data +digits.arec can be read' <<<"$output"
    [ ! -e run ]
    sed -i 's/^one/nobody/' hosts
    doctor 69
    grep -qE '^problem +nobody +ssh +no connection: ssh: connect to host 127.0.0.1 port [0-9]+: Connection refused' <<<"$output"
    grep -qE '^ok +two +programs' <<<"$output"
}

@test "nobody is asked for a password" {
    ssh-keygen -q -t ed25519 -N '' -f other_key
    sed -i "s|IdentityFile .*|IdentityFile $PWD/other_key|" ssh_config
    run_status 69 up
    echo "$stderr"
    [[ "$stderr" = *"Permission denied (publickey)"* ]]
    all_members 0
}

@test "-n prints commands that are the run when pasted at a terminal" {
    need script
    up -n >commands
    mkfifo keyboard
    script -qfec 'bash --norc -i' /dev/null <keyboard >/dev/null 3>&- &
    exec 5>keyboard
    cat commands >&5
    wait_for test -e run/DONE
    exec 5>&-
    wait_for all_members 0
}
