#!/usr/bin/env bats
# adam-protocol(5) says what the tables of lib/proto/messages.h say.
load ../helper/common

@test "adam-protocol(5) has the tables of messages, fields and limits, as they are" {
    "$BUILD/tests/helper/proto_table" >table
    [ "$(wc -l <table)" -gt 300 ]
    awk '/^\.Sh MESSAGES/ { on = 1 } /^\.Sh SEE ALSO/ { on = 0 } on' \
        "$ROOT/man/adam-protocol.5" >manual
    diff table manual
}

@test "it says which version it is of" {
    local version
    version=$(sed -nE 's/^#define PROTO_VERSION (.*)/\1/p' "$ROOT/lib/proto/messages.h")
    grep -qx "This is version $version\." "$ROOT/man/adam-protocol.5"
}

@test "the limits named in its text are those of the code" {
    local name
    for name in PROTO_BODY_MAX PROTO_PAYLOAD_MAX PROTO_STRANGER_MAX PROTO_SHARD_FLOATS; do
        local value=$(($(sed -nE "s/^#define $name (.*)/\1/p" "$ROOT/lib/proto/messages.h")))
        [ "$value" -gt 0 ]
        grep -q "\b$value\b" "$ROOT/man/adam-protocol.5" || { echo "$name is $value"; return 1; }
    done
}
