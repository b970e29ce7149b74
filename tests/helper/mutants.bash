# Mutants: a unit test with one source of the library broken by a sed script.

# mutant_made SOURCE SCRIPT TEST: makes ./mutant, or says why not in ./log.
mutant_made() {
    sed "$2" "$ROOT/$1" >mutant.c
    if cmp -s mutant.c "$ROOT/$1"; then
        echo "$1 has nothing that it would break" >log
        return 1
    fi
    gcc -std=c11 -pthread -D_GNU_SOURCE -O2 -w -I"$ROOT/lib" -Wl,--as-needed -o mutant mutant.c \
        "$BUILD/tests/unit/$3.o" "$BUILD/libadam.a" -lnuma -lm 2>log
}
