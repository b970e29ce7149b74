#!/usr/bin/env bats
# adam-ops(7) says what the table of operations says.
load ../helper/common

# The lines of the table that begin with the word $1, without it.
table() {
    "$BUILD/tests/helper/ops_list" | sed -n "s/^$1 //p"
}

# Whether standard input has an item whose tag is exactly $1.
has_item() {
    awk -v tag="     $1" '
        index($0, tag) == 1 && substr($0, length(tag) + 1) ~ /^($|  )/ { found = 1 }
        END { exit !found }'
}

# What the manual says of the parameter $2 of the operation $1, or, where this has
# none of its own, of the parameter of that name that several have in common.
description() {
    awk -v op="$1" -v name="$2=" -v names="$(table synopsis | cut -d' ' -f1 | tr '\n' ' ')" '
        /^\.It Cm/ && index(" " names, " " $3 " ") { inside = $3 == op }
        /^\.(It|El)/ { wanted = $3 == name }
        wanted && inside { own = own $0 "\n" }
        wanted && !inside { common = common $0 "\n" }
        END { printf "%s", own != "" ? own : common }' "$ROOT/man/adam-ops.7"
}

@test "the manual has an item with the synopsis of every operation" {
    mandoc -Tascii -O width=1000 "$ROOT/man/adam-ops.7" | col -bx >page
    local synopsis bad=
    while read -r synopsis; do
        has_item "$synopsis" <page || bad+="$synopsis"$'\n'
    done < <(table synopsis)
    printf '%s' "$bad"
    [ -z "$bad" ]
    [ "$(table synopsis | wc -l)" -ge 19 ]
}

@test "the manual describes every word that a parameter takes, and p" {
    local word bad=
    for word in $(table word | sort -u); do
        grep -qE "(Cm|,) $word( |\$)" "$ROOT/man/adam-ops.7" || bad+="$word"$'\n'
    done
    printf '%s' "$bad"
    [ -z "$bad" ]
    grep -q '^\.Cm p= Ns Ar P' "$ROOT/man/adam-ops.7"
}

@test "the manual gives the default of every parameter that has a name" {
    local op name value bad=
    while read -r op name value; do
        description "$op" "$name" | grep -qxF "The default is $value." ||
            bad+="$op $name $value"$'\n'
    done < <(table default)
    printf '%s' "$bad"
    [ -z "$bad" ]
}

@test "every chain that the manual shows is accepted" {
    local chains
    mapfile -t chains < <(sed -n 's/^\.Dl //p' "$ROOT/man/adam-ops.7")
    [ "${#chains[@]}" -ge 19 ]
    run_ok "$BUILD/tests/helper/ops_list" "${chains[@]}"
    run_status 1 "$BUILD/tests/helper/ops_list" 'rotat 3'
}
