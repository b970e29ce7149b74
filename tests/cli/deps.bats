#!/usr/bin/env bats
# make deps, with the commands that it uses replaced by others that tell what they were asked.
load ../helper/common

setup() {
    cd "$BATS_TEST_TMPDIR"
    mkdir bin
    # Of all packages but one none is there.
    tool dpkg-query '[[ $* = *libnuma-dev* ]] && echo installed'
    tool sudo 'echo "sudo $*" >>said'
    tool apt-get 'echo "apt-get $*" >>said'
}

tool() {
    printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
}

# Commands that are asked write where the test is. What the make above was told is not for this one.
deps() {
    sed -i "s,>>said,>>'$PWD/said'," bin/*
    PATH="$PWD/bin:$PATH" env -u MAKEFLAGS -u YES make -s -C "$ROOT" deps "$@"
}

@test "root gets what is missing" {
    tool id 'echo 0'
    run_ok deps </dev/null
    [[ $output = "installing "*zlib1g-dev* && $output != *libnuma* ]]
    grep -q '^apt-get install .*libonnx-dev.*zlib1g-dev' said
    ! grep -q libnuma said
}

@test "nobody else has sudo used, unless they say so" {
    tool id 'echo 1000'
    run_status 2 deps </dev/null
    [ ! -e said ]
    [[ $stderr = *"Debian: sudo apt-get install "*libonnx-dev*zlib1g-dev*"Fedora: sudo dnf install "*gcc*glibc-devel*onnx-devel*zlib-devel* ]]
    [[ $stderr != *numa* && $stderr != *"-dev "*dnf*"-dev "* ]]
}

@test "YES=1 says so before" {
    tool id 'echo 1000'
    run_ok deps YES=1 </dev/null
    grep -q '^sudo env DEBIAN_FRONTEND=noninteractive apt-get install .*zlib1g-dev' said
}

# The same at a terminal, where the answer is $1.
deps_at_terminal() {
    sed -i "s,>>said,>>'$PWD/said'," bin/*
    PATH="$PWD/bin:$PATH" env -u MAKEFLAGS -u YES python3 -c '
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(["make", "-s", "-C", sys.argv[1], "deps"])))' "$ROOT" <<<"$1" >asked
}

@test "at a terminal they are asked" {
    tool id 'echo 1000'
    run ! deps_at_terminal n
    grep -q 'run the first of these now' asked
    [ ! -e said ]
    deps_at_terminal y
    grep -q '^sudo env DEBIAN_FRONTEND=noninteractive apt-get install .*zlib1g-dev' said
}
