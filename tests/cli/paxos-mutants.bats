#!/usr/bin/env bats
# The simulation of the controllers' register notices every way to break it that we know.
load ../helper/common
load ../helper/mutants

@test "every mutant of the register fails in the simulation" {
    if [ -n "${SAN:-}" ]; then skip "mutants are built without sanitizers"; fi
    local name script count=0 bad=
    while IFS=$'\t' read -r name script; do
        [[ "$name" != \#* ]] || continue
        if ! mutant_made lib/cluster/paxos.c "$script" test_paxos; then
            bad+="no mutant: $name $(head -n 3 log)"$'\n'
        elif mutant_passes 60 PAXOS_SCHEDULES=3000; then
            bad+="not noticed: $name"$'\n'
        else
            echo "$name: $(grep -m 1 seed log)"
        fi
        count=$((count + 1))
    done <"$ROOT/tests/helper/paxos_mutants"
    [ "$count" -gt 20 ]
    printf '%s' "$bad"
    [ -z "$bad" ]
}
