#!/usr/bin/env bats
# --help, manuals and completions of every program and subcommand say the same.
#
# A manual describes an option as ".It Fl o Ar FILE , Fl -output Ar FILE". Those
# of a subcommand stand below a heading that ends in its name (".Ss adam-prep
# stat"); outside of such headings are the program's own, and --help, --version.
load ../helper/common
load ../helper/programs

setup_file() {
    ask_all
}

# Fails with the lines of what is wrong, if any.
nothing() {
    ! grep . <<<"$1"
}

# Runs a command, whose stdout goes to out and stderr to err; it must end with status $1. As
# run_status, with fewer processes.
ends_with() {
    local wanted=$1 status=0
    shift
    "$@" >out 2>err </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || { echo "status $status: $*" && cat out err && return 1; }
}

@test "--help is on stdout alone, with status 0; so is --version" {
    local command help
    while read -ra command; do
        ends_with 0 "${command[@]}" --help
        help=$(<out)
        [[ "$help" = "usage: "* ]]
        [ ! -s err ]
        ends_with 0 "${command[@]}" -h
        [ "$(<out)" = "$help" ]
        ends_with 0 "${command[@]}" --version
        [[ "$(<out)" = "${command[0]} "[0-9]* ]]
        [ ! -s err ]
    done < <(commands)
}

@test "--help fits into 90 columns and its usage names only options that exist" {
    cd "$BATS_FILE_TMPDIR/help"
    nothing "$(awk 'length($0) > 90 { print FILENAME ": " length($0) " columns: " $0 }' ./*)"
    awk '
        FNR == 1 { usage = 1 }
        !NF { usage = 0 }
        usage {
            while (match($0, /(^|[[ |])--?[a-zA-Z0-9-]+/)) {
                option = substr($0, RSTART, RLENGTH)
                gsub(/[[ |]/, "", option)
                print FILENAME "\t" option
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' * | sort -u >"$BATS_TEST_TMPDIR/named"
    [ -s "$BATS_TEST_TMPDIR/named" ]
    nothing "$(comm -23 "$BATS_TEST_TMPDIR/named" "$BATS_FILE_TMPDIR/options")"
}

@test "no command has two options of one name or letter" {
    nothing "$(uniq -d "$BATS_FILE_TMPDIR/options")"
}

@test "an unknown option is status 2, named on stderr, and stdout stays empty" {
    local command
    while read -ra command; do
        ends_with 2 "${command[@]}" --no-such-option
        [ ! -s out ]
        [[ "$(<err)" = *"unknown option '--no-such-option'"* ]]
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
    if [ "${SAN:-}" = thread ]; then skip "ThreadSanitizer keeps files of its own"; fi
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
        { help_of "$program"; for sub in $(subcommands "$program"); do help_of "$program $sub"; done; } |
            awk '/^usage: / { on = 1; sub(/^usage: /, "") } !NF { on = 0 } on { $1 = $1; print }' |
            grep -v ' SUBCOMMAND ' >usage
        bad+=$(diff <(sort -u manual) <(sort -u usage) | grep '^[<>]' | sed "s/^/$program: /" || true)$'\n'
    done
    nothing "$bad"
}

@test "a letter is the same option in every program" {
    # Of --output FILE and --out DIR: where the results go.
    sed -nE 's/^  (-.), --([a-z0-9-]+).*/\1 \2/p' "$BATS_FILE_TMPDIR"/help/* |
        sed 's/ output$/ out/' | sort -u >letters
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

# Fails unless the lines "COMMAND<TAB>WORD" of stdin offer every option of every command.
offers_all() {
    sort -u >offered
    grep -P '\t--' "$BATS_FILE_TMPDIR/options" >wanted
    nothing "$(comm -23 wanted offered | sed 's/^/not offered: /')"
}

@test "bash offers every option of every command, and the subcommands" {
    local program
    # Lines of words in; out comes "LINE<TAB>WORD" for each that is offered for the last word of
    # a line, where . stands for an empty one.
    complete_bash() {
        bash -euc 'for file in "$0"/*.bash; do source "$file"; done
            while read -r line; do
                read -ra COMP_WORDS <<<"$line"
                COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
                if [ "${COMP_WORDS[COMP_CWORD]}" = . ]; then COMP_WORDS[COMP_CWORD]=; fi
                "_${COMP_WORDS[0]//-/_}"
                for word in "${COMPREPLY[@]}"; do printf "%s\t%s\n" "$line" "${word% }"; done
            done' "$ROOT/completions"
    }
    commands | sed 's/$/ --/' | complete_bash | sed 's/ --\t/\t/' | offers_all
    for program in $(programs); do
        printf '%s\n' "$program ." "$program --completion ." "$program --completion = f"
    done | complete_bash | sort >words
    for program in $(programs); do
        for sub in $(subcommands "$program"); do printf '%s\t%s\n' "$program ." "$sub"; done
        for shell in bash zsh fish; do printf '%s\t%s\n' "$program --completion ." $shell; done
        printf '%s\t%s\n' "$program --completion = f" fish
    done | sort >wanted
    comm -23 wanted words | diff - /dev/null
    diff <(grep -- --completion wanted) <(grep -- '--completion [.=]' words)
}

# Of each line "LINE<TAB>EXPECT" of stdin presses TAB behind LINE in each shell, as a user would;
# what it shows must match EXPECT, and have none of the shell's own errors in it.
tabs() {
    local shell bad=
    cat >lines
    for shell in bash zsh fish; do
        python "$ROOT/tests/helper/press_tab.py" $shell "$ROOT/completions" <lines >shown 2>&1 ||
            bad+="$shell: $(<shown)"$'\n'
        if grep -qE 'bad option|not found|rror|nvalid|_adam' shown; then bad+="$shell: $(<shown)"$'\n'; fi
    done
    nothing "$bad"
}

@test "TAB lists subcommands and completes KEY=, layers and their keys, and operations, in all three shells" {
    need zsh fish
    export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR
    cp "$ROOT/examples/mnist.net" .
    tabs <<'END'
adam-ctl 	systemd
adam-prep 	sheet
adam-ctl up --set r	reference-batch
adam-ctl set run max-	max-staleness=
adam-worker --model mnist.net --set 	maxpool2
adam-ctl check mnist.net --set c1.pa	c1.pad=
adam-prep --ops ro	rotate 
adam-serve --ops 'resize 36; cr	; crop'
END
}

@test "fish offers every option of every command" {
    need fish
    export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR
    commands | fish -c "
        for file in $ROOT/completions/*.fish; source \$file; end
        while read -l line
            for word in (complete -C \"\$line --\")
                printf '%s\t%s\n' \$line (string split -m 1 \t -- \$word)[1]
            end
        end" 2>errors | offers_all
    diff errors /dev/null
}

@test "zsh offers every option of every command" {
    need zsh
    commands | timeout $((300 * ${SLOWER:-1})) zsh -f "$ROOT/tests/helper/complete.zsh" "$ROOT/completions" |
        offers_all
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
    # How often the first line of err names it.
    names_of() {
        local line=
        read -r line <err || true
        grep -oE "$1: |error: $1" <<<"${line:-$1: }" | wc -l
    }
    while read -ra command; do
        if "${command[@]}" /nowhere/a /nowhere/b /nowhere/c >out 2>err </dev/null; then bad+="${command[*]}: status 0"$'\n'; fi
        if [ ! -s err ] || [ "$(names_of "${command[0]}")" -ne 1 ]; then bad+="${command[*]}: $(<err)"$'\n'; fi
        "${command[@]}" >out 2>err </dev/null || true
        if [ "$(names_of "${command[0]}")" -ne 1 ]; then bad+="${command[*]}: $(<err)"$'\n'; fi
    done < <(commands)
    nothing "$bad"
}
