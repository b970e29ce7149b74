# The processes of a run, found by the folder that they work in, whoever started them:
# `load ../helper/working_here`.

# Those that work in this folder and whose command line matches. It starts no process of its own:
# it looks at all of the machine's, and is asked again and again. One that is about to end has no
# command line any more, and may still have files locked: it counts.
working_here() {
    local process words IFS=' '
    for process in /proc/[0-9]*; do
        [ "$process/cwd" -ef . ] || continue
        mapfile -d '' words 2>/dev/null <"$process/cmdline" || continue
        if [[ ${#words[@]} = 0 || "${words[*]} " =~ $1 ]]; then echo "${process#/proc/}"; fi
    done
}

# The parts of the run, without what started them; a file may mean other commands.
members() {
    working_here '^adam-(ctl controller|serve|ps|worker) '
}

all_members() {
    [ "$(members | wc -l)" = "$1" ]
}
end_members() {
    stop_started
    members | xargs -r kill -KILL || true
}
