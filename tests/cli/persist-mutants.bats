#!/usr/bin/env bats
# The tests of a parameter server's store notice every way to break it that we know.
load ../helper/common
load ../helper/mutants

# The tests, one after the other, until one fails.
passes_all() {
    local test
    for test in test_persist test_persist_damage test_persist_crash; do
        mutant_linked mutant "$BUILD/tests/unit/$test.o" && mutant_passes 60 ADAM_INVARIANTS=1 || return 1
    done
}

@test "every mutant of a parameter server's store fails in its tests" {
    if [ -n "${SAN:-}" ]; then skip "mutants are built without sanitizers"; fi
    local name source script count=0 bad=
    while IFS=$'\t' read -r name source script; do
        [[ "$name" != \#* ]] || continue
        if ! mutant_object "lib/persist/$source" "$script"; then
            bad+="no mutant: $name $(head -n 3 log)"$'\n'
        elif passes_all; then
            bad+="not noticed: $name"$'\n'
        fi
        count=$((count + 1))
    done <"$ROOT/tests/helper/persist_mutants"
    [ "$count" -gt 20 ]
    printf '%s' "$bad"
    [ -z "$bad" ]
}
