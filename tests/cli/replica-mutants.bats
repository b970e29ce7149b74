#!/usr/bin/env bats
# The simulation of the whole cluster notices every way to break replication and stores that we
# know.
load ../helper/common
load ../helper/mutants

# made SOURCE SCRIPT: makes ./mutant of the simulation's unit test, or says why not in ./log. What
# is broken may be a header: all of its folder of the library is compiled anew, from a copy.
made() {
    local folder sources object objects=()
    folder=$(dirname "$1")
    rm -rf copy && mkdir -p "copy/$folder" copy/tests
    ln -s "$ROOT/tests/helper" copy/tests/
    cp "$ROOT/$folder"/*.[ch] "copy/$folder"
    mutant_text "$1" "$2" || return 1
    cp mutant.c "copy/$1"
    case $folder in
    lib/replica | lib/persist) sources=("copy/$folder"/*.c) ;;
    *) sources=("copy/$1") ;;
    esac
    for object in "$BUILD"/tests/sim/*.o; do
        case $object in
        */sim.o | */"$(basename "$1" .c).o") ;;
        *) objects+=("$object") ;;
        esac
    done
    rm -f ./*.o
    gcc -std=c11 -pthread -D_GNU_SOURCE -O2 -w -Icopy/lib -I"$ROOT/lib" -c "${sources[@]}" 2>log &&
        ld -r -o mutant.rel ./*.o 2>>log && mv mutant.rel mutant.o &&
        mutant_linked mutant "$BUILD/tests/unit/test_simulation.o" "${objects[@]}"
}

row() {
    source=$1
    script=$2
    seed=${3:-1}
}

noticed() {
    made "$source" "$script" || return 2
    ! mutant_passes 200 SIM_SEED="$seed" SIM_SCHEDULES=100000 && grep -q ' seed ' log
}

@test "every mutant of replication fails in the simulation" {
    every_mutant "$ROOT/tests/sim/mutants" 20
}
