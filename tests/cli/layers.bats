#!/usr/bin/env bats
# The library is layered as lib/README.md says, and keeps its manners.
load ../helper/common

setup() {
    cd "$ROOT"
}

# Fails with the text of what is wrong, if any.
nothing() {
    ! grep . <<<"$1"
}

# The README's block "Who may include whom" as lines "folder folder".
allowed_pairs() {
    awk '/^Who may include whom/ { wanted = 1 }
        wanted && /->/ {
            split($0, side, "->")
            n = split(side[1], from, " ")
            m = split(side[2], to, " ")
            for (i = 1; i <= n; i++)
                for (j = 1; j <= m; j++)
                    print from[i], to[j]
        }
        wanted && /^##/ { exit }' lib/README.md
}

# Every #include of ours, as lines "file:included".
our_includes() {
    grep -rHoE '^ *# *include "[^"]+"' "$@" | sed -E 's/: *# *include "/:/; s/"$//'
}

# A binutils command on all objects of the library, their names relative to $BUILD.
on_objects() {
    (cd "$BUILD" && find lib -name '*.o' | sort | xargs "$@")
}

@test "includes go downward only, as the README's table allows" {
    allowed_pairs >"$BATS_TEST_TMPDIR/pairs"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/pairs")" -gt 10 ]
    local bad=
    while IFS=: read -r file included; do
        local from=${file#lib/} to=${included%%/*}
        from=${from%%/*}
        if [ "$from" != "$to" ] && ! grep -qx "$from $to" "$BATS_TEST_TMPDIR/pairs"; then
            bad+="$file includes $included"$'\n'
        fi
    done < <(our_includes lib)
    nothing "$bad"
}

@test "includes are written from lib/ or cmd/, and name files that exist" {
    local bad=
    while IFS=: read -r file included; do
        [ -e "lib/$included" ] || [[ $file == cmd/* && -e cmd/$included ]] ||
            bad+="$file includes $included"$'\n'
    done < <(our_includes lib cmd)
    nothing "$bad"
}

@test "a foreign header stays in its folder" {
    need dpkg
    declare -A home=(
        [png.h]=image [jpeglib.h]=image [jerror.h]=image
        [zlib.h]=store [archive.h]=store [archive_entry.h]=store
        [cblas.h]=kernels
        [nng/nng.h]=net [nng/supplemental/tls/tls.h]=net [nng/supplemental/util/platform.h]=net
        [mbedtls/ctr_drbg.h]=net [mbedtls/ecp.h]=net [mbedtls/entropy.h]=net [mbedtls/error.h]=net
        [mbedtls/pk.h]=net [mbedtls/platform_util.h]=net [mbedtls/x509_crt.h]=net
        [jansson.h]=core [numa.h]=core [numaif.h]=core)
    # Whatever libc, the kernel and the compiler bring may be used anywhere.
    { dpkg -L libc6-dev linux-libc-dev; find "$(gcc -print-file-name=include)"; } |
        grep '\.h$' >"$BATS_TEST_TMPDIR/system"
    local bad=
    while IFS=: read -r file header; do
        local folder=${file#lib/}
        if [ -n "${home[$header]:-}" ]; then
            [ "${folder%%/*}" = "${home[$header]}" ] || bad+="$file includes <$header>"$'\n'
        elif ! grep -qE "/$header\$" "$BATS_TEST_TMPDIR/system"; then
            bad+="$file includes <$header>, which has no folder"$'\n'
        fi
    done < <(grep -rHoE '^ *# *include <[^>]+>' lib cmd | sed -E 's/: *# *include </:/; s/>$//')
    nothing "$bad"
}

# Headers one folder further down are parts of a source compiled several times.
@test "every header can be included first, and is guarded by its own name" {
    local header guard bad=
    for header in lib/*/*.h; do
        gcc -std=c11 -D_GNU_SOURCE -Ilib -fsyntax-only -x c "$header" || bad+="$header alone"$'\n'
        guard=ADAM_$(tr 'a-z/.-' 'A-Z___' <<<"${header#lib/}")
        grep -qx "#define $guard" "$header" || bad+="$header: no guard $guard"$'\n'
    done
    nothing "$bad"
}

@test "only cmd/ and lib/cli print, and nothing in lib/ ends the process" {
    local ends='_*exit|_Exit|quick_exit|abort|__assert_fail|errx?'
    local prints='(__)?v?printf(_chk)?|puts|putchar|perror|stdout|stderr|vwarnx?|warnx?'
    on_objects nm -A -u | awk '{ print $1, $NF }' >"$BATS_TEST_TMPDIR/used"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/used")" -gt 100 ]
    nothing "$(grep -E " ($ends)\$" "$BATS_TEST_TMPDIR/used")"
    nothing "$(grep -v '^lib/cli/' "$BATS_TEST_TMPDIR/used" | grep -E " ($prints)\$")"
}

@test "there are no globals that change, but those listed here" {
    if [ -n "${SAN:-}" ]; then skip "sanitizers add their own"; fi
    # A signal handler has no argument to reach its caller's data; cli/talk.c says more.
    # A table of kernels is a constant, and OpenBLAS is loaded only where it is used.
    local allowed='lib/cli/talk\.o: stop_flag|lib/kernels/blas/gemm\.o: loaded'
    # Constants that hold pointers are in .data.rel.ro, and read-only.
    on_objects objdump -t | awk '
        /file format/ { object = $1; next }
        / O (\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && !/ O \.data\.rel\.ro/ {
            sub(/\.[0-9]+$/, "", $NF)
            print object, $NF
        }' >"$BATS_TEST_TMPDIR/globals"
    grep -qxE "$allowed" "$BATS_TEST_TMPDIR/globals"
    nothing "$(grep -vxE "$allowed" "$BATS_TEST_TMPDIR/globals")"
}
