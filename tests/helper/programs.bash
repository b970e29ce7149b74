# What there is: programs, their subcommands, and the options of each as --help
# and as the manual page tell them. Nothing is listed by hand.

# The programs, by their sources.
programs() {
    local source
    for source in "$ROOT"/cmd/*.c; do basename "$source" .c; done
}

# The subcommands of a program, from its --help.
subcommands() {
    "$1" --help | awk '/^Commands/ { on = 1; next } on && /^  [a-z]/ { print $1 } on && !NF { exit }'
}

# Every command there is, one a line: "adam-prep", "adam-prep stat", ...
commands() {
    local program sub
    for program in $(programs); do
        echo "$program"
        for sub in $(subcommands "$program"); do echo "$program $sub"; done
    done
}

# The options in the --help of a command (given as words), sorted: --copies, -c
help_options() {
    "$@" --help | sed -nE 's/^  (-(.), |    )--([a-z0-9-]+).*/--\3 -\2/p' |
        tr ' ' '\n' | grep -vx -- - | sort
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
