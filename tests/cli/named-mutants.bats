#!/usr/bin/env bats
# Defects that no test noticed once: each is noticed from then on.
load ../helper/common
load ../helper/mutants

# The tests of ./programs in a file of this folder whose names have a text in them.
passes_in() {
    env -u BATS_TEST_DIRNAME -u BATS_TMPDIR -u BATS_RUN_TMPDIR BUILD="$PWD/programs" \
        timeout 150 bats -f "$2" "$ROOT/tests/cli/$1" >log 2>&1
}

# Whether the mutant of a table's row is noticed; says in ./log why there is none.
noticed() {
    local source=$1 script=$2 test=$3
    case $test in
    unit/*)
        mutant_made "$source" "$script" "${test#unit/}" || return 2
        ! mutant_passes 60
        ;;
    cli/*)
        mutant_programs "$source" "$script" adam-ctl || return 2
        test=${test#cli/}
        ! passes_in "${test%%:*}" "${test#*:}"
        ;;
    esac
}

@test "every defect of tests/mutants/named is noticed by the test that it names" {
    if [ -n "${SAN:-}" ]; then skip "mutants are built without sanitizers"; fi
    local name source script test count=0 bad=
    while IFS=$'\t' read -r name source script test; do
        [[ "$name" != \#* ]] || continue
        local verdict=0
        noticed "$source" "$script" "$test" || verdict=$?
        case $verdict in
        0) ;;
        2) bad+="no mutant: $name: $(head -n 3 log)"$'\n' ;;
        *) bad+="not noticed: $name"$'\n' ;;
        esac
        count=$((count + 1))
    done <"$ROOT/tests/mutants/named"
    [ "$count" -gt 20 ]
    printf '%s' "$bad"
    [ -z "$bad" ]
}
