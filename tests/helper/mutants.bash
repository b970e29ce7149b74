# Mutants: a source of the library broken by a sed script, in a unit test or in a program.

# mutant_object SOURCE SCRIPT: makes ./mutant.o, or says why not in ./log.
mutant_object() {
    sed "$2" "$ROOT/$1" >mutant.c
    if cmp -s mutant.c "$ROOT/$1"; then
        echo "$1 has nothing that it would break" >log
        return 1
    fi
    gcc -std=c11 -pthread -D_GNU_SOURCE -DADAM_VERSION='"0"' -O2 -w -I"$ROOT/lib" -c \
        -o mutant.o mutant.c 2>log
}

# gold is several times as fast, where it is installed.
if command -v ld.gold >/dev/null; then LINKER=-fuse-ld=gold; fi

# mutant_linked PROGRAM OBJECT...: with ./mutant.o in its place of the library.
mutant_linked() {
    gcc -pthread ${LINKER:-} -Wl,--as-needed -Wl,--strip-all -o "$1" mutant.o "${@:2}" \
        "$BUILD/libadam.a" -lnng -lmbedtls -lmbedx509 -lmbedcrypto -larchive -lpng -ljpeg -lz \
        -ljansson -lnuma -lm 2>log
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
