#!/usr/bin/env bats
# The simulation of the controllers' register notices every way to break it that we know.
load ../helper/common
load ../helper/mutants

row() {
    source=lib/cluster/paxos.c
    script=$1
}

noticed() {
    mutant_made "$source" "$script" test_paxos || return 2
    ! mutant_passes 60 PAXOS_SCHEDULES=3000
}

@test "every mutant of the register fails in the simulation" {
    every_mutant "$ROOT/tests/helper/paxos_mutants" 20
}
