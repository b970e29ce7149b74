#!/usr/bin/env bats
# The sources speak of the project alone, are finished, and fit their README.
load ../helper/common
load ../helper/programs

setup_file() {
    ask_all
}

setup() {
    cd "$ROOT"
}

# The files of the project: what is committed, or all there is without git.
files() {
    git ls-files 2>/dev/null ||
        find . \( -path ./build -o -path ./demo -o -path ./.git \) -prune -o -type f -printf '%P\n'
}

# Text files, without this one, which must name what it forbids.
texts() {
    files | grep -vE '^(tests/cli/project\.bats|tests/fuzz/seeds/.*)$' |
        xargs -d '\n' grep -lI '' 2>/dev/null
}

nothing_found() {
    local found
    found=$(cat)
    printf '%s' "$found"
    [ -z "$found" ]
}

@test "nothing is left for later" {
    texts | xargs -d '\n' grep -nIwE 'TODO|FIXME|XXX|HACK|stub|stubbed|[Nn]ot implemented|[Nn]ot yet implemented|[Ff]or now' |
        nothing_found
}

@test "no path of some machine stands in any file" {
    texts | xargs -d '\n' grep -nIE '(^|[^A-Za-z0-9_.])/(home|root|work|Users|mnt|opt)/[A-Za-z]' | nothing_found
}

@test "no code is switched off" {
    files | grep -E '\.[ch]$' | xargs -d '\n' grep -nE '^ *# *if 0' | nothing_found
}

@test "the top level holds what it shall, and nothing else" {
    diff <(printf '%s\n' CONTRIBUTING.md LICENSE Makefile README.md cmd completions examples lib man tests) \
        <(files | cut -d/ -f1 | grep -v '^\.' | sort -u)
}

@test "no built file and no large file is committed" {
    files | grep -E '\.(o|a|so|d|pyc|orig|rej)$' | nothing_found
    files | xargs -d '\n' -I{} find {} -maxdepth 0 -size +300k | nothing_found
}

@test "programs, files and make targets that the README names exist" {
    local name
    for name in $(grep -oE '\badam-[a-z]+\b' README.md | sort -u); do
        [ -e "cmd/$name.c" ] || [ -e "man/$name.5" ] || [ -e "man/$name.7" ] || echo "no $name"
    done | nothing_found
    for name in $(grep -oE '^ *(\$ )?make [a-z-]+' README.md | awk '{ print $NF }' | sort -u); do
        grep -qE "^([a-z -]* )?$name( [a-z -]*)?:" Makefile || echo "no make $name"
    done | nothing_found
    for name in $(grep -oE '\]\([^)#:]+\)' README.md | tr -d '])(' | sort -u); do
        [ -e "$name" ] || echo "no file $name"
    done | nothing_found
}

# The two ways of CONTRIBUTING.md, a file a line.
@test "a reader gets from a JPEG to a changed weight by the files that CONTRIBUTING.md names" {
    local name
    for name in $(grep -oE '`(lib|tests|man|cmd)/[^` ]*\.[a-z0-9]+`' CONTRIBUTING.md | tr -d '`' | sort -u); do
        case $name in *NAME*) ;; *) [ -e "$name" ] || echo "no file $name" ;; esac
    done | nothing_found
    for name in $(grep -oE '^ *make [a-z]+' CONTRIBUTING.md | awk '{ print $2 }' | sort -u); do
        grep -qE "^([a-z -]* )?$name( [a-z -]*)?:" Makefile || echo "no make $name"
    done | nothing_found
    awk '/^On one machine/ { way = 1 } /^Over the wire/ { way = 2 } /^## Add/ { way = 0 }
        way && /^[0-9]+\. `lib/ { n[way]++ } END { exit !(n[1] && n[1] <= 12 && n[2] && n[2] <= 16) }' \
        CONTRIBUTING.md
}

@test "options that the README shows exist" {
    cut -f 2 "$BATS_FILE_TMPDIR/options" | sort -u >"$BATS_TEST_TMPDIR/known"
    # Whole command lines only: blocks of a shell, continued lines joined.
    awk '/^```/ { on = !on; next } on' README.md | sed -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' |
        grep -E '^ *(\$ )?adam-|\| *adam-' | grep -oE ' --[a-z][a-z0-9-]*' | tr -d ' ' | sort -u |
        comm -23 - "$BATS_TEST_TMPDIR/known" | nothing_found
}

@test "every helper, benchmark and example script is executable and begins with its shell" {
    files | grep -E '^(tests/run|tests/(fuzz|chaos)/run|\.ci/run|(tests/bench|examples)/.*\.sh)$' | while read -r script; do
        [ -x "$script" ] || echo "$script is not executable"
        head -n 1 "$script" | grep -q '^#!/' || echo "$script has no #!"
    done | nothing_found
}

@test "flags of the user's own drop none that the sources need" {
    make -n BUILD="$BATS_TEST_TMPDIR/build" CFLAGS='-O0 -g3' CPPFLAGS=-DMINE LDFLAGS=-Wl,-O1 \
        LDLIBS=-ldl all 2>/dev/null >"$BATS_TEST_TMPDIR/commands"
    cd "$BATS_TEST_TMPDIR"
    grep -F -- ' -c -o ' commands >compile
    grep -vF -- ' -c -o ' commands | grep -F 'libadam.a -lnng' >linking
    local flag
    for flag in -O0 -g3 -DMINE -std=c11 -pthread -Ilib -D_GNU_SOURCE -ffp-contract=off -fno-math-errno \
        -fno-trapping-math; do
        grep -vF -- " $flag " compile | nothing_found
    done
    grep -F ' cmd/' compile | grep -vF -- ' -Icmd ' | nothing_found
    for flag in -Wl,-O1 -pthread -Wl,--as-needed -ldl -lz; do
        sed 's/$/ /' linking | grep -vF -- " $flag " | nothing_found
    done
    [ -s compile ]
    [ -s linking ]
}

# make of these targets, with a library of a single object. Programs are linked all the same.
make_little() {
    env -u MAKEFLAGS make -s -C "$ROOT" CC=gcc AR=gcc-ar LDFLAGS=-Wl,--unresolved-symbols=ignore-all \
        BUILD="$BATS_TEST_TMPDIR" LIB_OBJECTS="$BATS_TEST_TMPDIR/lib/core/words.o" "${@/#/$BATS_TEST_TMPDIR/}"
}
export -f make_little

# The command $1, making $2 of the others, has written half of it when it and make are killed: the next
# make makes it anew.
check_killed() {
    local tool=$1 target=$2
    shift 2
    make_little flags "$@"
    mkdir -p bin
    cat >"bin/$tool" <<END
#!/bin/bash
if [ "\$1" = -dumpmachine ]; then exec $(command -v "$tool") "\$@"; fi
while [[ \$1 != -o && \$1 != rc* ]]; do shift; done
printf half >"\$2"
kill -KILL 0
END
    chmod +x "bin/$tool"
    run env PATH="$PWD/bin:$PATH" setsid -w bash -c 'make_little "$1"' killed "$target"
    [ "$status" -eq 137 ]
    rm "bin/$tool"
    run_ok make_little "$target"
    [ -s "$target" ]
    ! grep -qx half "$target"
}

@test "a make that is killed leaves nothing that is half made" {
    cd "$BATS_TEST_TMPDIR"
    export ROOT
    check_killed gcc lib/core/words.o
    check_killed gcc-ar libadam.a lib/core/words.o
    check_killed gcc adam-ps libadam.a cmd/adam-ps.o
    rm api/libadam.a 2>/dev/null || true
    check_killed gcc-ar api/libadam.a libadam.a lib/api/adam.o
}
