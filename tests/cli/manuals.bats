#!/usr/bin/env bats
# Every manual page is sound, and says nothing that does not run.
load ../helper/common
load ../helper/programs
load ../helper/examples

setup_file() {
    examples_folder "$BATS_FILE_TMPDIR/folder" >"$BATS_FILE_TMPDIR/log" 2>&1 ||
        { cat "$BATS_FILE_TMPDIR/log"; return 1; }
}

@test "every page is valid mdoc" {
    run_ok mandoc -Tlint -Wwarning "$ROOT"/man/*.[1-9]
    [ -z "$output" ]
}

# Its names of authors are macros, where mandoc has text.
@test "groff, with which man of most systems shows pages, loses nothing of them" {
    need groff
    local page
    for page in "$ROOT"/man/*.[1-9]; do
        run_ok groff -ww -Tutf8 -mandoc "$page"
        [ -z "$stderr" ]
    done
}

@test "every program has a page, with the sections that a reader looks for" {
    local program section bad=
    for program in $(programs); do
        if [ ! -e "$ROOT/man/$program.1" ]; then
            bad+="no $program.1"$'\n'
            continue
        fi
        for section in NAME SYNOPSIS DESCRIPTION 'EXIT STATUS' EXAMPLES 'SEE ALSO'; do
            grep -qxE "\.Sh \"?$section\"?" "$ROOT/man/$program.1" || bad+="$program.1: no $section"$'\n'
        done
    done
    printf '%s' "$bad"
    [ -z "$bad" ]
}

@test "pages refer to each other by names that exist" {
    local bad=
    while read -r page name section _; do
        case $name in
        adam*) [ -e "$ROOT/man/$name.$section" ] || bad+="$page: no $name($section)"$'\n' ;;
        esac
    done < <(cd "$ROOT/man" && grep -oE '^\.Xr .*' -- *.[1-9] | sed 's/:\.Xr / /' | sort -u)
    printf '%s' "$bad"
    [ -z "$bad" ]
}

# Each failure of adam-failures(7) with the tests that it names: lines "FAILURE<TAB>FILE: TEST", the
# second empty where it names none.
told_failures() {
    awk 'function end() { if (of && !shown) print of "\t"; of = ""; shown = 0 }
        /^\.Bl -tag/ { listed = 1 } /^\.El/ { end(); listed = 0 }
        listed && /^\.It/ { end(); of = substr($0, 5) }
        /^\.\\" test / { print (of ? of : "none") "\t" substr($0, 10); shown = 1 }' \
        "$ROOT/man/adam-failures.7"
}

@test "each failure that adam-failures(7) tells of is shown by a test that there is" {
    local failure test file bad=
    told_failures >failures
    [ "$(wc -l <failures)" -gt 30 ]
    while IFS=$'\t' read -r failure test; do
        file=$ROOT/tests/${test%%: *}
        grep -qFe "@test \"${test#*: }\"" -e "TEST(tap, \"${test#*: }\"" "$file" ||
            bad+="$failure: no test $test"$'\n'
    done <failures
    printf '%s' "$bad"
    [ -z "$bad" ]
}

@test "no heading is a macro by mistake, and every line fits into 80 columns" {
    local page bad=
    for page in "$ROOT"/man/*.[1-9]; do
        page_text "$page" >text
        # ".Ss In step" would be the heading "<step>".
        # shellcheck disable=SC1112 # the quotes are those of a page
        bad+=$(grep -nE '^( {3})?[<>“”‘(]' text | sed "s/^/${page##*/}: /" || true)$'\n'
        bad+=$(LC_ALL=C.UTF-8 grep -nE '^.{81}' text | grep -v ': error: ' | sed "s/^/${page##*/}: /" || true)$'\n'
        # A display of one line breaks where it is long, and eats quotes.
        bad+=$(grep -nE '^\.Dl .*(adam-(ctl|eval|prep|ps|serve|worker) |")' "$page" | sed "s/^/${page##*/}: /" || true)$'\n'
    done
    ! grep . <<<"$bad"
}

@test "every example of every page runs as it is pasted from a terminal of 80 columns" {
    local page number blocks bad=
    for page in "$ROOT"/man/*.[1-9]; do
        local name=${page##*/}
        blocks=$BATS_TEST_TMPDIR/blocks.$name
        examples_extract "$page" "$blocks"
        cp -r "$BATS_FILE_TMPDIR/folder" "$BATS_TEST_TMPDIR/$name"
        cd "$BATS_TEST_TMPDIR/$name"
        # The page that shows how a run is made makes its own.
        if grep -qs -e '--out run' "$blocks"/*; then rm -rf run; fi
        find "$blocks" -type f -printf "$name %f\n" >>"$BATS_TEST_TMPDIR/all"
        for number in $(find "$blocks" -type f -printf '%f\n' | sort -n); do
            timeout 600 bash -euo pipefail "$blocks/$number" >log 2>&1 </dev/null ||
                bad+="$name: $(cat "$blocks/$number")"$'\n'"$(tail -n 20 log)"$'\n'
        done
    done
    printf '%s' "$bad"
    [ -z "$bad" ]
    # Each program's page has some.
    [ "$(grep -oE '^adam-[a-z]+\.1 ' "$BATS_TEST_TMPDIR/all" | sort -u | wc -l)" -eq "$(programs | wc -l)" ]
}
