#!/bin/bash
# The core of a parameter server: deltas, gradients and factors that one thread applies,
# beside bare loops over the same memory and beside OpenBLAS.
#   ps.sh [--quick]     --quick: whether it all runs; its figures say little
set -eu
cd "$(dirname "$0")/../.."
bench=${BUILD:-build}/tests/bench/ps
make -s "$bench"
# Its value for another processor may halve OpenBLAS.
exec env -u OPENBLAS_CORETYPE "$bench" "$@"
