#!/usr/bin/env bats
# The simulation of the whole cluster notices every way to break replication that we know.
load ../helper/common
load ../helper/mutants

# made SOURCE SCRIPT: makes ./mutant of the simulation's unit test, or says why not in ./log. What
# is broken may be a header: all of the folder is compiled anew, from a copy.
made() {
    rm -rf copy && mkdir -p copy/lib copy/tests
    cp -r "$ROOT/lib/replica" copy/lib/ && cp -r "$ROOT/tests/sim" copy/tests/
    mkdir -p copy/lib/cluster && cp "$ROOT"/lib/cluster/placement.c copy/lib/cluster/
    mutant_text "$1" "$2" || return 1
    cp mutant.c "copy/$1"
    local sources=(copy/lib/replica/*.c copy/lib/cluster/placement.c)
    local objects=("$BUILD"/tests/sim/{world,faults,controllers,clients,checks}.o)
    if [ "$1" = tests/sim/servers.c ]; then
        sources=("copy/$1")
    else
        objects+=("$BUILD/tests/sim/servers.o")
    fi
    rm -f ./*.o
    gcc -std=c11 -pthread -D_GNU_SOURCE -O2 -w -Icopy/lib -I"$ROOT/lib" -c "${sources[@]}" 2>log &&
        ld -r -o mutant.rel ./*.o 2>>log && mv mutant.rel mutant.o &&
        mutant_linked mutant "$BUILD/tests/unit/test_simulation.o" "${objects[@]}"
}

row() {
    source=$1
    script=$2
}

noticed() {
    made "$source" "$script" || return 2
    ! mutant_passes 200 SIM_SCHEDULES=100000 && grep -q ' seed ' log
}

@test "every mutant of replication fails in the simulation" {
    every_mutant "$ROOT/tests/sim/mutants" 20
}
