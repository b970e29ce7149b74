# Machines for tests: network namespaces behind a switch, with addresses 10.0.0.1 and on,
# in a world of their own that ends with the test, whatever happens in it. Root is not
# needed where users may make namespaces.

# netns_run COUNT FUNCTION: calls a function of the bats file in a world of COUNT
# machines; its output is $output. In it all functions here can be used.
netns_run() {
    local user=()
    if [ "$(id -u)" != 0 ]; then user=(--map-root-user); fi
    export ROOT
    run unshare "${user[@]}" --net --mount --pid --fork --kill-child --mount-proc \
        bash -euo pipefail -c "$(declare -f); netns_make $1; $2"
    if [ "$status" -ne 0 ]; then
        printf 'status %s\n%s\n' "$status" "$output"
        tail -n 20 -- *.log
        return 1
    fi
}

netns_make() {
    local n
    declare -gA process=()
    mount -t tmpfs none /run # where ip keeps the names of namespaces
    ip link add switch type bridge
    ip link set switch up
    for ((n = 1; n <= $1; n++)); do
        ip netns add "m$n"
        ip link add "port$n" type veth peer name eth0 netns "m$n"
        ip link set "port$n" master switch up
        ip -n "m$n" addr add "10.0.0.$n/24" dev eth0
        ip -n "m$n" link set eth0 up
        ip -n "m$n" link set lo up
    done
}

# on N NAME COMMAND...: starts the command at machine N in the background; what it says
# goes to NAME.log, its process is ${process[NAME]}.
on() {
    local n=$1 name=$2
    shift 2
    ip netns exec "m$n" "$@" >"$name.log" 2>&1 &
    # shellcheck disable=SC2034
    process[$name]=$! # of those who load this
}

# Kills all that was started so, and removes the run's folder.
end_all() {
    local name
    for name in "${!process[@]}"; do kill -KILL "${process[$name]}" 2>/dev/null || true; done
    for name in "${!process[@]}"; do wait "${process[$name]}" 2>/dev/null || true; done
    process=()
    rm -rf run
}

# The machine's cable is pulled out of the switch, or put back.
unplug() {
    ip link set "port$1" down
}
plug() {
    ip link set "port$1" up
}

# Bytes that the machine has sent, or received ("rx"), until now.
traffic() {
    ip netns exec "m$1" cat "/sys/class/net/eth0/statistics/${2:-tx}_bytes"
}

# Waits until a file has a line that matches, at most so many seconds (SLOWER times as many
# under a sanitizer).
said() {
    local file=$1 pattern=$2 seconds=$3 start=$SECONDS
    until grep -qsE -- "$pattern" "$file"; do
        if ((SECONDS - start >= seconds * ${SLOWER:-1})); then
            echo "$file says nothing like '$pattern'"
            return 1
        fi
        sleep 0.05
    done
}
