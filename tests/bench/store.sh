#!/usr/bin/env bash
# Delayed persistence: what a parameter server's store takes, beside one plain file with one fsync,
# in turns on the same disk; and how long a server that starts reads it.
#
#   store.sh            1 GiB of shards, groups of 16 and of 64: some minutes, 4 GiB of disk
#   store.sh --quick    whether it all runs
#   STORE=/fast/x store.sh    on another disk than $TMPDIR's
set -euo pipefail

bench=${BUILD:-build}/tests/bench/store
shards=1024 groups=512 turns=7
if [ "${1:-}" = --quick ]; then shards=64 groups=64 turns=3; fi
folder=$(mktemp -d "${STORE:-${TMPDIR:-/tmp}}/adam-store.XXXXXX")
trap 'rm -rf "$folder"' EXIT

printf '%8s %8s %12s %12s %12s\n' shards group MiB/s 'of plain' 'bytes/byte'
for group in 16 64; do
    "$bench" "$folder" "$shards" "$group" $((groups / group)) "$turns"
    rm -rf "$folder/store"
done
echo 'targets: 0.8 of plain; 1024 MiB in 3 s from a warm cache; less than 2 bytes for a byte'
