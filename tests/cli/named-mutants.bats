#!/usr/bin/env bats
# Defects that no test noticed once: each is noticed from then on.
load ../helper/common
load ../helper/mutants

# The tests of ./programs in a file of this folder whose names have a text in them.
passes_in() {
    env -u BATS_TEST_DIRNAME -u BATS_TMPDIR -u BATS_RUN_TMPDIR BUILD="$PWD/programs" \
        timeout 150 bats -f "$2" "$ROOT/tests/cli/$1" >log 2>&1
}

row() {
    source=$1
    script=$2
    test=$3
    program=${4:-adam-ctl} # of tests in this folder: which is broken
}

noticed() {
    case $test in
    unit/*)
        mutant_made "$source" "$script" "${test#unit/}" || return 2
        ! mutant_passes 60
        ;;
    cli/*)
        mutant_programs "$source" "$script" "$program" || return 2
        local file=${test#cli/}
        ! passes_in "${file%%:*}" "${file#*:}"
        ;;
    esac
}

@test "every defect of tests/mutants/named is noticed by the test that it names" {
    every_mutant "$ROOT/tests/mutants/named" 20
}

@test "lines of which tests/mutants/equivalent tells are in their sources" {
    local source kind line bad='' rows=0
    while IFS=$'\t' read -r source kind line _; do
        rows=$((rows + 1))
        grep -qxE "[[:space:]]*$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$line")" "$ROOT/$source" ||
            bad+="$source: no $kind of: $line"$'\n'
    done < <(grep -v '^#' "$ROOT/tests/mutants/equivalent")
    [ "$rows" -gt 20 ]
    printf '%s' "$bad"
    [ -z "$bad" ]
}
