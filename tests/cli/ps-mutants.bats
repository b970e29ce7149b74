#!/usr/bin/env bats
# The tests of a parameter server's core notice every way to break it that we know.
load ../helper/common
load ../helper/mutants

@test "every mutant of a parameter server's core fails in its tests" {
    if [ -n "${SAN:-}" ]; then skip "mutants are built without sanitizers"; fi
    local name source script count=0 bad=
    while IFS=$'\t' read -r name source script; do
        [[ "$name" != \#* ]] || continue
        if ! mutant_made "lib/$source" "$script" test_ps; then
            bad+="no mutant: $name $(head -n 3 log)"$'\n'
        elif mutant_passes 20 &&
            mutant_linked mutant "$BUILD/tests/unit/test_ps_threads.o" && mutant_passes 20; then
            bad+="not noticed: $name"$'\n'
        fi
        count=$((count + 1))
    done <"$ROOT/tests/helper/ps_mutants"
    [ "$count" -gt 30 ]
    printf '%s' "$bad"
    [ -z "$bad" ]
}
