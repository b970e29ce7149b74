#!/usr/bin/env bats
# The simulation of the controllers' register notices every way to break it that we know.
load ../helper/common

@test "every mutant of the register fails in the simulation" {
    if [ -n "${SAN:-}" ]; then skip "mutants are built without sanitizers"; fi
    local name script count=0 bad=
    while IFS=$'\t' read -r name script; do
        [[ "$name" != \#* ]] || continue
        sed "$script" "$ROOT/lib/consensus/paxos.c" >mutant.c
        if cmp -s mutant.c "$ROOT/lib/consensus/paxos.c" ||
            ! gcc -std=c11 -D_GNU_SOURCE -O2 -w -I"$ROOT/lib" -o mutant mutant.c \
                "$BUILD/tests/unit/test_paxos.o" "$BUILD/libadam.a" -lnuma -lm 2>log; then
            bad+="no mutant: $name $(head -n 3 log)"$'\n'
        elif PAXOS_SCHEDULES=3000 timeout 60 ./mutant >log 2>&1; then
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
