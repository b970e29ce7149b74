#!/usr/bin/env bats
# The tests of a parameter server's store notice every way to break it that we know.
load ../helper/common
load ../helper/mutants

row() {
    source=lib/persist/$1
    script=$2
}

# The tests, one after the other, until one fails.
noticed() {
    local test
    mutant_object "$source" "$script" || return 2
    for test in test_persist test_persist_damage test_persist_crash; do
        mutant_linked mutant "$BUILD/tests/unit/$test.o" || return 2
        mutant_passes 60 ADAM_INVARIANTS=1 || return 0
    done
    return 1
}

@test "every mutant of a parameter server's store fails in its tests" {
    every_mutant "$ROOT/tests/helper/persist_mutants" 20
}
