#!/bin/bash
# The compute core against PyTorch on the same processor (compute/README):
#   compute.sh [--quick] [TABLE...]     (train layers odd threads predict single partitions memory start)
#   PYTHON   the Python that has PyTorch (/usr/bin/python3)
set -eu
cd "$(dirname "$0")/../.."
export PYTHONDONTWRITEBYTECODE=1
quick=()
if [ "${1:-}" = --quick ]; then
    quick=(--quick)
    shift
fi
[ $# -gt 0 ] || set -- train layers odd threads predict single partitions memory start
for table; do
    /usr/bin/python3 "tests/bench/compute/$table.py" "${quick[@]}"
    echo
done
