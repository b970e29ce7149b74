# Mutants: a source of the library broken by a sed script, in a unit test or in a program. A table of
# them has one a line: what it breaks, and fields that a bats file's functions understand:
#   row FIELD...  sets $source and $script, and what else it needs of the fields
#   noticed       whether the tests notice that mutant; 2: there is none, and ./log says why

# mutant_text SOURCE SCRIPT: makes ./mutant.c; fails, and says so in ./log, if it is the source.
mutant_text() {
    sed "$2" "$ROOT/$1" >mutant.c
    if cmp -s mutant.c "$ROOT/$1"; then
        echo "$1 has nothing that it would break" >log
        return 1
    fi
}

# mutant_object SOURCE SCRIPT: makes ./mutant.o, or says why not in ./log.
mutant_object() {
    mutant_text "$1" "$2" || return 1
    gcc -std=c11 -pthread -D_GNU_SOURCE -DADAM_VERSION='"0"' -O1 -w -I"$ROOT/lib" -I"$BUILD/lib/onnx" -c \
        -o mutant.o mutant.c 2>log
}

# gold is several times as fast, where it is installed.
if command -v ld.gold >/dev/null; then LINKER=-fuse-ld=gold; fi

# mutant_linked PROGRAM OBJECT...: with ./mutant.o in its place of the library.
mutant_linked() {
    gcc -pthread ${LINKER:-} -Wl,--as-needed -Wl,--strip-all -o "$1" mutant.o "${@:2}" \
        "$BUILD/libadam.a" -lnng -lmicrohttpd -lmbedtls -lmbedx509 -lmbedcrypto -larchive -lpng -ljpeg -lz \
        -ljansson -lnuma -lprotobuf-c -lm 2>log
}

# mutant_made SOURCE SCRIPT TEST: makes ./mutant of a unit test, or says why not in ./log.
mutant_made() {
    mutant_object "$1" "$2" && mutant_linked mutant "$BUILD/tests/unit/$3.o"
}

# mutant_programs SOURCE SCRIPT PROGRAM: makes the folder ./programs of all programs, that one
# broken, or says why not in ./log.
mutant_programs() {
    local objects=("$BUILD/cmd/$3.o")
    if [ -d "$BUILD/cmd/$3" ]; then objects+=("$BUILD/cmd/$3"/*.o); fi
    rm -rf programs
    mkdir programs
    ln -s "$BUILD"/adam-* programs/
    rm "programs/$3"
    mutant_object "$1" "$2" && mutant_linked "programs/$3" "${objects[@]}"
}

# mutant_passes SECONDS [NAME=VALUE...]: whether ./mutant ends well within that time. One that fails
# a test is ended at once. What it said is in ./log.
mutant_passes() {
    local child line good=1
    rm -f said
    mkfifo said
    env "${@:2}" timeout "$1" stdbuf -oL ./mutant >said 2>&1 3>&- &
    child=$!
    while IFS= read -r line; do
        printf '%s\n' "$line"
        if [[ $line == 'not ok'* ]]; then
            good=0
            kill "$child" 2>/dev/null || true
        fi
    done <said >log
    wait "$child" && [ $good = 1 ]
}

# every_mutant TABLE LEAST: fails unless the table has more rows than LEAST, each changes its source,
# and each mutant is noticed, of a share of them: about AT_A_TIME, or with MUTANTS_SHARE=N one in N.
# Which, depends on the sources that the table breaks: all have their turn as the code changes, and one tree is tested
# the same way each time.
AT_A_TIME=12
every_mutant() {
    if [ -n "${SAN:-}" ]; then skip "mutants are built without sanitizers"; fi
    local rows line source script share turn bad=
    mapfile -t rows < <(grep -v '^#' "$1")
    share=${MUTANTS_SHARE:-$((${#rows[@]} / AT_A_TIME + 1))}
    [ "${#rows[@]}" -gt "$2" ]
    local -A sources=()
    for line in "${rows[@]}"; do
        read_row "$line"
        sources[$ROOT/$source]=1
        mutant_text "$source" "$script" || bad+="no mutant: ${line%%$'\t'*}: $(cat log)"$'\n'
    done
    turn=$(printf '%s\0' "${!sources[@]}" | sort -z | xargs -0 cat "$1" | cksum | cut -d ' ' -f 1)
    for line in "${rows[@]}"; do
        turn=$((turn + 1))
        if [ $((turn % share)) -eq 0 ]; then
            read_row "$line"
            bad+=$(verdict_of "${line%%$'\t'*}")
        fi
    done
    printf '%s' "$bad"
    [ -z "$bad" ]
}

# Sets $source and $script of a row, and what else its bats file needs.
read_row() {
    local fields
    IFS=$'\t' read -ra fields <<<"$1"
    row "${fields[@]:1}"
}

# Says what is wrong with the mutant of that name.
verdict_of() {
    local verdict=0
    noticed || verdict=$?
    case $verdict in
    0) ;;
    2) printf 'no mutant: %s: %s; ' "$1" "$(head -n 3 log)" ;;
    *) printf 'not noticed: %s; ' "$1" ;;
    esac
}
