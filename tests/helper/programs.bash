# What there is: programs, their subcommands, and the options of each as --help
# and as the manual page tell them. Nothing is listed by hand.

# The programs, by their sources.
programs() {
    local source
    for source in "$ROOT"/cmd/*.c; do
        source=${source##*/}
        echo "${source%.c}"
    done
}

# Asks each command for its --help, once for all tests of a file: called in setup_file. Then
# help/COMMAND is what "adam-prep stat" and the like print, `commands` lists them, and `options`
# has lines "COMMAND<TAB>OPTION", sorted by their bytes.
ask_all() {
    local program sub
    cd "$BATS_FILE_TMPDIR"
    mkdir help
    for program in $(programs); do
        "$program" --help >"help/$program"
        for sub in $(subcommands "$program"); do "$program" "$sub" --help >"help/$program $sub"; done
    done
    (cd help && printf '%s\n' *) >commands
    awk '
        !match($0, /^  (-., |    )--[a-z0-9-]+/) { next }
        { command = substr(FILENAME, 6) }
        substr($0, 3, 1) == "-" { print command "\t" substr($0, 3, 2) }
        { print command "\t" substr($0, 7, RLENGTH - 6) }' help/* | sort >options
}

# The --help of a command (given as words).
help_of() {
    cat "$BATS_FILE_TMPDIR/help/$*"
}

# The subcommands of a program.
subcommands() {
    awk '/^Commands/ { on = 1; next } on && /^  [a-z]/ { print $1 } on && !NF { exit }' \
        "$BATS_FILE_TMPDIR/help/$1"
}

# Every command there is, one a line: "adam-prep", "adam-prep stat", ...
commands() {
    cat "$BATS_FILE_TMPDIR/commands"
}

# The options of a command, sorted: --copies, -c
help_options() {
    awk -F '\t' -v command="$*" '$1 == command { print $2 }' "$BATS_FILE_TMPDIR/options"
}

# The options that the items of a manual page describe, as "SECTION OPTION".
# SECTION is which of the subcommands ("stat sheet") the heading names, or "-".
#   .Ss adam-prep stat
#   .It Fl o Ar FILE , Fl -output Ar FILE
manual_options() {
    awk -v subs=" $2 " '
        BEGIN { section = "-" }
        /^\.S[hs] / {
            last = $NF
            section = index(subs, " " last " ") ? last : "-"
        }
        /^\.It .*Fl / {
            flags = 0
            for (i = 2; i <= NF; i++) {
                if ($i == "Fl")
                    flags = 1
                else if ($i == ",")
                    continue
                else if ($i ~ /^(Ar|Ns|Op|Cm|Xo|Xc|Pq|Ql|=|\|)$/)
                    flags = 0
                else if (flags)
                    print section, "-" $i
            }
        }' "$1" | sort -u
}
