#!/bin/bash
# Messages between members: links over TCP and Unix sockets beside plain TCP sockets.
# Each figure is also given as a share of what plain sockets do in the same run.
set -eu
cd "$(dirname "$0")/../.."
bench=${BUILD:-build}/tests/bench/net
make -s "$bench"
exec "$bench"
