#!/usr/bin/env bats
# make install and uninstall, into a folder of their own.
load ../helper/common
load ../helper/programs

setup_file() {
    if [ -n "${SAN:-}" ]; then return; fi
    make -s -C "$ROOT" install DESTDIR="$BATS_FILE_TMPDIR" PREFIX=/usr BUILD="${BUILD#"$ROOT/"}"
}

setup() {
    if [ -n "${SAN:-}" ]; then skip "only the plain build is installed"; fi
    cd "$BATS_FILE_TMPDIR/usr"
}

@test "programs run from where they are installed" {
    local program
    for program in $(programs); do
        run_ok "$BATS_FILE_TMPDIR/usr/bin/$program" --version
        [[ "$output" = "$program "* ]]
    done
}

@test "man finds the pages of the programs and the formats" {
    local page section
    for page in "$ROOT"/man/*.[1-9]; do
        section=${page##*.}
        page=$(basename "$page" ".$section")
        run_ok mandoc -Tascii "share/man/man$section/$page.$section"
        if man --version 2>/dev/null | grep -q '^man '; then
            [ "$(man -M share/man -w "$section" "$page")" = "$PWD/share/man/man$section/$page.$section" ]
        fi
    done
}

@test "completions are where each shell looks for them" {
    local program
    for program in $(programs); do
        diff "$ROOT/completions/$program.bash" "share/bash-completion/completions/$program"
        diff "$ROOT/completions/_$program" "share/zsh/site-functions/_$program"
        diff "$ROOT/completions/$program.fish" "share/fish/vendor_completions.d/$program.fish"
    done
}

@test "zsh and fish load them from there by themselves" {
    need zsh fish
    local program
    program=$(programs | head -n 1)
    run_ok zsh -fc "fpath=($PWD/share/zsh/site-functions \$fpath); autoload -U compinit; compinit -D -u
        print \${_comps[$program]}"
    [ "$output" = "_$program" ]
    export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR XDG_DATA_DIRS=$PWD/share
    run_ok fish -c "complete -C '$program --'"
    [[ "$output" = *--version* ]]
}

@test "of the library only libadam is installed" {
    [ "$(find . -name '*.a' -o -name '*.h' -o -name '*.o' -o -name '*.so*' -o -name '*.pc' | sort)" = \
        "./include/adam.h
./lib/libadam.a
./lib/libadam.so
./lib/libadam.so.0
./lib/libadam.so.$("$BUILD/adam-eval" --version | awk '{ print $2; exit }')
./lib/pkgconfig/adam.pc" ]
}

@test "nothing is installed that only a debugger reads" {
    local file
    for file in bin/* lib/libadam.so lib/libadam.a; do
        run_ok readelf -S -W "$file"
        [[ $output = *.text* && $output != *.debug_info* ]]
    done
    [ "$(du -sk --apparent-size bin | cut -f 1)" -lt 20000 ]
}

@test "what is installed can be read and run by everyone" {
    [ -z "$(find . -type f ! -perm -444)" ]
    [ -z "$(find bin -type f ! -perm -555)" ]
}

@test "uninstall leaves nothing behind" {
    cp -r "$BATS_FILE_TMPDIR/usr" "$BATS_TEST_TMPDIR/usr"
    make -s -C "$ROOT" uninstall DESTDIR="$BATS_TEST_TMPDIR" PREFIX=/usr BUILD="${BUILD#"$ROOT/"}"
    [ -z "$(find "$BATS_TEST_TMPDIR/usr" ! -type d)" ]
}
