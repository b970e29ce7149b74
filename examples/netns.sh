#!/bin/sh
# One run over four machines, each with an address of its own, on this one: they are
# network namespaces behind a switch, made for the run and gone with it. Root is not
# needed where users may make namespaces, as on Debian.
#
#   examples/netns.sh [OUT]        the run goes into OUT (netns-run)
#
#   10.0.0.1   controller, data server       10.0.0.3   worker
#   10.0.0.2   parameter server              10.0.0.4   worker
#
# All talk over TLS, with keys that adam-ctl makes. In the end it tells how many bytes
# each machine has sent and received. With FACTORS=none dense layers send the gradient of
# every weight, without it the few numbers of which that is made (Adam 3.2.6).
#   EPOCHS     of the run (4)
#   PICTURES   drawn digits that are trained on (4000)
set -eu

if [ -z "${NETNS_WORLD:-}" ]; then
    # Everything within ends with this process: programs, namespaces, and what is mounted.
    if [ "$(id -u)" = 0 ]; then user=; else user=--map-root-user; fi
    # shellcheck disable=SC2086 # no word, or one
    NETNS_WORLD=1 exec unshare $user --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-netns-run}
pictures=${PICTURES:-4000}

# machine N: 10.0.0.N, at the switch.
machine() {
    ip netns add "m$1"
    ip link add "port$1" type veth peer name eth0 netns "m$1"
    ip link set "port$1" master switch up
    ip -n "m$1" addr add "10.0.0.$1/24" dev eth0
    ip -n "m$1" link set eth0 up
    ip -n "m$1" link set lo up
}

# on N COMMAND...: starts it at that machine, in the background; says so.
on() {
    machine=$1
    shift
    printf '10.0.0.%s$ %s\n' "$machine" "$*"
    ip netns exec "m$machine" "$@" &
    last=$!
}

bytes() {
    ip netns exec "m$1" cat "/sys/class/net/eth0/statistics/$2_bytes"
}

mount -t tmpfs none /run # where ip keeps the names of namespaces
ip link add switch type bridge
ip link set switch up
for n in 1 2 3 4; do
    machine $n
done

mkdir -p "$out"
cd "$out"
rm -rf run
[ -e train.arec ] || adam-prep draw "$pictures" --seed 1 -o train.arec
[ -e test.arec ] || adam-prep draw 1000 --seed 2 -o test.arec
[ -e keys ] || for name in controller serve ps worker; do
    adam-ctl keys keys $name
done
cat >run.conf <<END
model = $here/netns.net
data = train.arec
test = test.arec
epochs = ${EPOCHS:-4}
batch = 16
rate = 0.02
protocol = async
push = gradient
factors = ${FACTORS:-auto}
END

controller=tls+tcp://10.0.0.1:7000
on 1 adam-ctl controller run.conf --out run --listen $controller --keys keys/controller.pem
run=$last
on 1 adam-serve train.arec --controller $controller --listen tls+tcp://10.0.0.1:0 --keys keys/serve.pem
on 2 adam-ps --controller $controller --listen tls+tcp://10.0.0.2:0 --keys keys/ps.pem
on 3 adam-worker --controller $controller --threads 1 --keys keys/worker.pem
on 4 adam-worker --controller $controller --threads 1 --keys keys/worker.pem
wait "$run"
wait

printf 'machine\tsent\treceived\n'
for n in 1 2 3 4; do
    printf '10.0.0.%s\t%s\t%s\n' $n "$(bytes $n tx)" "$(bytes $n rx)"
done
adam-eval --model run --data test.arec
