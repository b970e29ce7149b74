#!/bin/sh
# One model trained by many processes on this machine, twice: each process started by hand,
# found by the others through a port file; and all of them by adam-ctl up.
#
#   examples/up.sh [OUT]        everything goes into OUT (up-run)
#
#   EPOCHS     of each run (4)
#   PICTURES   drawn digits that are trained on (4000)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-up-run}"
cd "${1:-up-run}"
rm -rf by-hand by-up ctl.port

[ -e train.arec ] || adam-prep draw "${PICTURES:-4000}" --seed 1 -o train.arec
[ -e test.arec ] || adam-prep draw 1000 --seed 2 -o test.arec
cat >run.conf <<END
model = $here/digits.net
data = train.arec
test = test.arec
epochs = ${EPOCHS:-4}
batch = 8
rate = 0.02
servers = 2
END

printf '\n# By hand: a controller, two parameter servers, a data server, two workers.\n'
start() {
    printf '$ %s &\n' "$*"
    "$@" &
}
start adam-ctl controller run.conf --out by-hand --port-file ctl.port
run=$!
# Told to end, the controller saves, and tells the others.
trap 'kill "$run"; wait; exit 75' INT TERM
start adam-ps --controller @ctl.port --name ps-1
start adam-ps --controller @ctl.port --name ps-2
start adam-serve train.arec --controller @ctl.port
start adam-worker --controller @ctl.port --name worker-1 --threads 1
start adam-worker --controller @ctl.port --name worker-2 --threads 1
wait "$run"
wait
trap - INT TERM

printf '\n# The same by one command, which also starts again what dies.\n'
printf '$ adam-ctl up run.conf --out by-up --ps 2 --workers 2 --threads 1\n'
adam-ctl up run.conf --out by-up --ps 2 --workers 2 --threads 1

printf '\n# How good they are.\n'
for run in by-hand by-up; do
    printf '%s\t' $run
    adam-eval -q --model $run/latest --data test.arec --json
done
