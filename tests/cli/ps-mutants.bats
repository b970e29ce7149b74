#!/usr/bin/env bats
# The tests of a parameter server's core notice every way to break it that we know.
load ../helper/common
load ../helper/mutants

row() {
    source=lib/$1
    script=$2
}

noticed() {
    mutant_made "$source" "$script" test_ps || return 2
    ! mutant_passes 20 ||
        ! { mutant_linked mutant "$BUILD/tests/unit/test_ps_copies.o" && mutant_passes 20; } ||
        ! { mutant_linked mutant "$BUILD/tests/unit/test_ps_threads.o" && mutant_passes 20; }
}

@test "every mutant of a parameter server's core fails in its tests" {
    every_mutant "$ROOT/tests/helper/ps_mutants" 30
}
