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

# The README's block "Who includes whom" as lines "folder folder".
told_pairs() {
    awk '/^Who includes whom/ { wanted = 1 }
        wanted && /->/ && $1 != "cmd" && $1 != "core" { for (i = 3; i <= NF; i++) print $1, $i }
        wanted && /^##/ { exit }' lib/README.md | sort
}

# The same as the code has it.
pairs() {
    our_includes lib | sed 's,^lib/,,' | awk -F '[/:]' '{ from = $1; sub("[^:]*:", "") }
        { split($0, to, "/"); if (from != to[1]) print from, to[1] }' | sort -u
}

# Every #include of ours, as lines "file:included".
our_includes() {
    grep -rHoE '^ *# *include "[^"]+"' "$@" | sed -E 's/: *# *include "/:/; s/"$//'
}

# A binutils command on all objects of the library, their names relative to $BUILD.
on_objects() {
    (cd "$BUILD" && find lib -name '*.o' | sort | xargs "$@")
}

@test "folders include each other exactly as the README's table says" {
    told_pairs >"$BATS_TEST_TMPDIR/told"
    pairs >"$BATS_TEST_TMPDIR/true"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/true")" -gt 50 ]
    diff "$BATS_TEST_TMPDIR/told" "$BATS_TEST_TMPDIR/true"
}

# The order of the README's first column.
@test "includes go downward only: no folder includes one above it" {
    local -A floor=()
    local n=0 bad=
    while read -r folder; do floor[$folder]=$((n += 1)); done < <(
        awk '/^Who includes whom/ { wanted = 1 } wanted && /->/ { print $1 }' lib/README.md)
    while read -r from to; do
        [ "${floor[$from]}" -lt "${floor[$to]}" ] || bad+="$from includes $to"$'\n'
    done < <(pairs)
    nothing "$bad"
}

@test "the README's map has each folder, and no other" {
    diff <(awk '/^cmd\// { wanted = 1 } /^```/ && wanted { exit }
        wanted && /^  [a-z]+\// { sub("/", "", $1); print $1 }' lib/README.md | sort) \
        <(find lib -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort)
}

@test "private headers are included by their own folder only" {
    local bad=
    while IFS=: read -r file included; do
        case $included in
        *_internal.h | *_kind.h)
            [ "${file%/*}" = "lib/${included%/*}" ] ||
                bad+="$file includes $included"$'\n' ;;
        esac
    done < <(our_includes lib cmd tests)
    nothing "$bad"
}

# A private header that lists sources at its head.
@test "private headers that say which sources share them name each of these" {
    local header source bad='' lists=0
    while read -r header; do
        [ "$(sed '/^#ifndef/q' "$header" | grep -oE '[a-z_]+\.c\b' | sort -u | wc -l)" -ge 3 ] || continue
        lists=$((lists + 1))
        while read -r source; do
            sed '/^#ifndef/q' "$header" | grep -qw -- "${source##*/}" || bad+="$header: no $source"$'\n'
        done < <(grep -lF "/${header##*/}\"" "${header%/*}"/*.c)
        while read -r source; do
            [ -e "${header%/*}/$source" ] || bad+="$header: there is no $source"$'\n'
        done < <(sed '/^#ifndef/q' "$header" | grep -oE '\b[a-z_]+\.c\b')
    done < <(find lib -name '*_internal.h' -o -name '*_inside.h' | sort)
    [ "$lists" -gt 10 ]
    nothing "$bad"
}

@test "roles know nothing of each other" {
    local bad=
    while IFS=: read -r file included; do
        local own=${file#lib/role/}
        if [[ $included == role/*/* && ${included#role/} != "${own%%/*}"/* ]]; then
            bad+="$file includes $included"$'\n'
        fi
    done < <(our_includes lib/role)
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
        [onnx.pb-c.h]=onnx
        [microhttpd.h]=answer [mbedtls/base64.h]=answer
        [jansson.h]=core [numa.h]=core [numaif.h]=core)
    # Whatever libc, the kernel and the compiler bring may be used anywhere.
    { dpkg -L libc6-dev linux-libc-dev; find "$(gcc -print-file-name=include)"; } |
        grep '\.h$' >"$BATS_TEST_TMPDIR/system"
    grep -rHoE '^ *# *include <[^>]+>' lib cmd | sed -E 's/: *# *include </:/; s/>$//' >"$BATS_TEST_TMPDIR/used"
    # Each header once: it is there, whatever folder of the system it is in.
    awk -F : 'FNR == NR { wanted[$2]; next }
        { for (path = $0; sub("^[^/]*/", "", path);) if (path in wanted) print path }' \
        "$BATS_TEST_TMPDIR/used" "$BATS_TEST_TMPDIR/system" | sort -u >"$BATS_TEST_TMPDIR/there"
    local -A there=()
    local bad='' header
    while read -r header; do there[$header]=yes; done <"$BATS_TEST_TMPDIR/there"
    while IFS=: read -r file header; do
        local folder=${file#lib/}
        if [ -n "${home[$header]:-}" ]; then
            [ "${folder%%/*}" = "${home[$header]}" ] || bad+="$file includes <$header>"$'\n'
        elif [ -z "${there[$header]:-}" ]; then
            bad+="$file includes <$header>, which has no folder"$'\n'
        fi
    done <"$BATS_TEST_TMPDIR/used"
    nothing "$bad"
}

# An .inc.h is a part of a source that is compiled several times.
@test "every header can be included first, and is guarded by its own name" {
    local headers
    mapfile -t headers < <(find lib -name '*.h' ! -name '*.inc.h' | sort)
    # gcc compiles each by itself.
    gcc -std=c11 -D_GNU_SOURCE -Ilib -fsyntax-only -x c "${headers[@]}"
    nothing "$(awk '
        FNR == 1 {
            guard = "ADAM_" toupper(substr(FILENAME, 5))
            gsub(/[\/.-]/, "_", guard)
            wanted[FILENAME] = guard
        }
        $0 == "#define " guard { delete wanted[FILENAME] }
        END { for (file in wanted) print file ": no guard " wanted[file] }' "${headers[@]}")"
}

# Of libadam others are the users; names of kernels are made by macros. A header's own macros and inline functions use what it declares.
@test "what a header shows another file uses: a program, a test or another part of the library" {
    on_objects nm -A -g --defined-only | sed -nE 's/\.o:[0-9a-f]+ T / /p' |
        grep -v -e '^lib/api/' -e '^lib/kernels/' -e 'onnx\.pb-c' >"$BATS_TEST_TMPDIR/defined"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/defined")" -gt 100 ]
    grep -rowE '[a-z][a-z0-9_]+' --include='*.[ch]' lib cmd tests >"$BATS_TEST_TMPDIR/words"
    nothing "$(awk -F '[: ]' '
        FILENAME ~ /defined$/ { home[$2] = $1 ".c"; next }
        !($2 in home) { next }
        $1 ~ /_internal\.h$/ { inside[$2] }
        $1 ~ /\.h$/ && $1 !~ /^tests/ && ++shown[$2] < 2 { next }
        $1 != home[$2] { used[$2] }
        END { for (name in home) if (!(name in used) && !(name in inside)) print home[name] ": " name }' \
        "$BATS_TEST_TMPDIR/defined" "$BATS_TEST_TMPDIR/words")"
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
    # A table of kernels is a constant, and OpenBLAS is loaded only where it is used. What the
    # processor can do is asked once.
    local allowed='lib/cli/talk\.o: (stop_flag|end_process)|lib/kernels/blas/gemm\.o: loaded|lib/core/cpu\.o: known'
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
