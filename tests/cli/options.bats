#!/usr/bin/env bats
# --help, manuals and completions of every program and subcommand say the same.
#
# A manual describes an option as ".It Fl o Ar FILE , Fl -output Ar FILE". Those
# of a subcommand stand below a heading that ends in its name (".Ss adam-prep
# stat"); outside of such headings are the program's own, and --help, --version.
load ../helper/common
load ../helper/programs

# Fails with the lines of what is wrong, if any.
nothing() {
    ! grep . <<<"$1"
}

@test "--help is on stdout alone, with status 0; so is --version" {
    local command
    while read -ra command; do
        run_ok "${command[@]}" --help
        [ "${lines[0]%% *}" = usage: ]
        [ -z "$stderr" ]
        run_ok "${command[@]}" -h
        run_ok "${command[@]}" --version
        [[ "${lines[0]}" = "${command[0]} "[0-9]* ]]
        [ -z "$stderr" ]
    done < <(commands)
}

@test "--help fits into 90 columns and its usage names only options that exist" {
    local command bad=
    while read -ra command; do
        bad+=$("${command[@]}" --help | awk -v name="${command[*]}" \
            'length($0) > 90 { print name ": " length($0) " columns: " $0 }')$'\n'
        help_options "${command[@]}" >known
        bad+=$("${command[@]}" --help | sed '/^$/q' | grep -oE -- '(^|[[ |])--?[a-zA-Z0-9-]+' |
            tr -d '[ |' | grep -vxFf known | grep -vx -- - | sed "s/^/${command[*]}: usage names /" || true)$'\n'
    done < <(commands)
    nothing "$bad"
}

@test "no command has two options of one name or letter" {
    local command
    while read -ra command; do
        nothing "$(help_options "${command[@]}" | uniq -d | sed "s/^/${command[*]}: twice /")"
    done < <(commands)
}

@test "an unknown option is status 2, named on stderr, and stdout stays empty" {
    local command
    while read -ra command; do
        run_status 2 "${command[@]}" --no-such-option
        [ -z "$output" ]
        [[ "$stderr" = *"unknown option '--no-such-option'"* ]]
    done < <(commands)
}

@test "a full disk is noticed by --help" {
    local program
    for program in $(programs); do
        run bash -c "$program --help >/dev/full"
        [ "$status" -eq 74 ]
    done
}

@test "beyond a limit on the size of files every program says so, status 74, and is not killed" {
    local program
    for program in $(programs); do
        run_status 74 bash -c "ulimit -f 1; $program --completion bash >$BATS_TEST_TMPDIR/long"
        [[ "$stderr" = "$program: error: "*"standard output: File too large" ]]
    done
}

@test "every option of --help is in the manual, and no other" {
    local program sub subs bad=
    for program in $(programs); do
        local page=$ROOT/man/$program.1
        if [ ! -e "$page" ]; then
            bad+="$program has no manual"$'\n'
            continue
        fi
        subs=$(subcommands "$program" | tr '\n' ' ')
        manual_options "$page" "$subs" >manual
        sed -n 's/^- //p' manual >common
        help_options "$program" >own
        bad+=$(comm -13 common own | sed "s/^/$program.1 lacks /")$'\n'
        # What stands outside of any subcommand is the program's or everyone's.
        cp own everyone
        for sub in $subs; do
            help_options "$program" "$sub" >help
            sed -n "s/^$sub //p" manual >section
            bad+=$(sort -u section common | comm -13 - help | sed "s/^/$program.1, $sub, lacks /")$'\n'
            bad+=$(comm -23 section help | sed "s/^/$program $sub has no /")$'\n'
            cat help >>everyone
        done
        bad+=$(sort -u everyone | comm -23 common - | sed "s/^/$program has no /")$'\n'
    done
    nothing "$bad"
}

# The SYNOPSIS of a page as plain lines, one for each form, blanks made one.
synopsis() {
    mandoc -Tascii -O width=500 "$1" | col -b | awk '
        /^SYNOPSIS/ { on = 1; next }
        on && /^[A-Z]/ { exit }
        on && NF { $1 = $1; print }'
}

@test "the SYNOPSIS of every manual is the usage of --help" {
    local program bad=
    for program in $(programs); do
        [ -e "$ROOT/man/$program.1" ] || continue
        synopsis "$ROOT/man/$program.1" >manual
        { "$program" --help; for sub in $(subcommands "$program"); do "$program" "$sub" --help; done; } |
            awk '/^usage: / { on = 1; sub(/^usage: /, "") } !NF { on = 0 } on { $1 = $1; print }' |
            grep -v ' SUBCOMMAND ' >usage
        bad+=$(diff <(sort -u manual) <(sort -u usage) | grep '^[<>]' | sed "s/^/$program: /" || true)$'\n'
    done
    nothing "$bad"
}

@test "a letter is the same option in every program" {
    local command
    # Of --output FILE and --out DIR: where the results go.
    while read -ra command; do
        "${command[@]}" --help | sed -nE 's/^  (-.), --([a-z0-9-]+).*/\1 \2/p' | sed 's/ output$/ out/'
    done < <(commands) | sort -u >letters
    [ -s letters ]
    nothing "$(awk 'seen[$1]++ { print }' letters)"
    # What was a letter of others once is refused by name.
    run_status 2 adam-prep -n 5 photos -o x.arec
    [[ "$stderr" = *"unknown option '-n'"* ]]
    run_status 2 adam-ctl top -n 1 run
    run_status 2 adam-ctl time -s 1 x.net
}

@test "completions/ holds what the programs print (make completions)" {
    local program
    for program in $(programs); do
        "$program" --completion bash | diff "$ROOT/completions/$program.bash" -
        "$program" --completion zsh | diff "$ROOT/completions/_$program" -
        "$program" --completion fish | diff "$ROOT/completions/$program.fish" -
    done
    # And nothing else.
    [ "$(find "$ROOT/completions" -type f | wc -l)" -eq $((3 * $(programs | wc -l))) ]
}

# Fails unless stdin offers every option of the command.
offers_all() {
    sed 's/[[:space:]].*//' | sort -u >offered
    nothing "$(help_options "$@" | grep -- ^-- | comm -23 - offered | sed "s/^/$*: not offered: /")"
}

@test "bash offers every option of every command, and the subcommands" {
    local command program
    complete_bash() { # FILE WORD... : what the function offers for the last word
        bash -euc 'source "$0"; name=$1; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            "_${name//-/_}"; if [ "${#COMPREPLY[@]}" -gt 0 ]; then printf "%s\n" "${COMPREPLY[@]}"; fi' "$@"
    }
    while read -ra command; do
        complete_bash "$ROOT/completions/${command[0]}.bash" "${command[@]}" -- | offers_all "${command[@]}"
    done < <(commands)
    for program in $(programs); do
        complete_bash "$ROOT/completions/$program.bash" "$program" "" >words
        subcommands "$program" | sort | comm -23 - <(sort words) | diff - /dev/null
        complete_bash "$ROOT/completions/$program.bash" "$program" --completion "" |
            diff - <(printf '%s\n' bash zsh fish)
        complete_bash "$ROOT/completions/$program.bash" "$program" --completion = f | diff - <(echo fish)
    done
}

# Presses TAB behind LINE in each shell, as a user would; what it shows must match EXPECT, and
# have none of the shell's own errors in it.
tab() { # LINE EXPECT
    local shell file shown bad=
    for shell in bash zsh fish; do
        file=$ROOT/completions/${1%% *}.$shell
        if [ "$shell" = zsh ]; then file=$ROOT/completions/_${1%% *}; fi
        shown=$(python "$ROOT/tests/helper/press_tab.py" "$shell" "$file" "$1" "$2" 2>&1) ||
            bad+="$shell, $1: $shown"$'\n'
        if grep -qE 'bad option|not found|rror|nvalid|_adam' <<<"$shown"; then bad+="$shell: $shown"$'\n'; fi
    done
    nothing "$bad"
}

@test "TAB on the first word lists the subcommands, in all three shells, without errors" {
    need zsh fish
    export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR
    tab 'adam-ctl ' systemd
    tab 'adam-prep ' sheet
}

@test "TAB completes KEY=, layers and their keys, and operations" {
    need zsh fish
    export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR
    cp "$ROOT/examples/mnist.net" .
    tab 'adam-ctl up --set r' reference-batch
    tab 'adam-ctl set run max-' max-staleness=
    tab 'adam-worker --model mnist.net --set ' maxpool2
    tab 'adam-ctl check mnist.net --set c1.pa' c1.pad=
    tab 'adam-prep --ops ro' 'rotate '
    tab "adam-serve --ops 'resize 36; cr" "; crop'"
}

@test "fish offers every option of every command" {
    need fish
    local command
    export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR
    while read -ra command; do
        fish -c "source $ROOT/completions/${command[0]}.fish; complete -C '${command[*]} --'" 2>errors |
            offers_all "${command[@]}"
        diff errors /dev/null
    done < <(commands)
}

@test "zsh offers every option of every command" {
    need zsh
    local command
    while read -ra command; do
        timeout 60 zsh -f "$ROOT/tests/helper/complete.zsh" "$ROOT/completions/_${command[0]}" "${command[*]} --" |
            offers_all "${command[@]}"
    done < <(commands)
}

@test "a closed standard output, input or error takes nobody's place" {
    local program
    for program in $(programs); do
        run_status 74 bash -c "$program --help >&-"
        [[ "$stderr" = *"cannot write to standard output"* ]]
        run_status 2 bash -c "$program --zork <&- 2>&-"
        [ -z "$stderr" ]
    done
    adam-prep draw 50 -q -o d.arec
    mkdir empty
    run_status 74 env TMPDIR="$PWD/empty" bash -c 'adam-prep d.arec -o - >&-'
    [[ "$stderr" = *"cannot write standard output: Bad file descriptor"* ]]
    run_status 74 bash -c 'adam-prep d.arec -q -o - 0>&- 1>&- 2>&-'
    run_status 74 bash -c 'adam-prep - -o x.arec <&-'
    [[ "$stderr" = *"cannot read standard input"* ]]
    run_status 74 bash -c 'adam-prep stat d.arec >&-'
    # Who writes none of the three needs none.
    run_ok bash -c 'adam-prep d.arec -o x.arec 0>&- 1>&- 2>&-'
    cmp d.arec x.arec
    run_ok bash -c "adam-worker --model '$ROOT/examples/digits.net' --data d.arec --epochs 1 --out run/ 0>&- 1>&- 2>&-"
    run_status 74 bash -c 'adam-eval --model run/latest --data d.arec >&-'
    run_status 74 bash -c 'adam-eval --model run/latest --data d.arec --per-class - >&-'
    run_status 74 bash -c 'adam-ctl plot run/ >&-'
    run_status 74 bash -c 'adam-ctl report run/ >&-'
}

@test "errors name the program once" {
    local command bad=
    while read -ra command; do
        run --separate-stderr "${command[@]}" /nowhere/a /nowhere/b /nowhere/c </dev/null
        [ "$status" -ne 0 ]
        [ "$(grep -oE "${command[0]}: |error: ${command[0]}" <<<"${stderr_lines[0]}" | wc -l)" -eq 1 ] ||
            bad+="${command[*]}: $stderr"$'\n'
        run --separate-stderr "${command[@]}" </dev/null
        [ "$(grep -oE "${command[0]}: |error: ${command[0]}" <<<"${stderr_lines[0]:-${command[0]}: }" | wc -l)" -eq 1 ] ||
            bad+="${command[*]}: $stderr"$'\n'
    done < <(commands)
    nothing "$bad"
}
