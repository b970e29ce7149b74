# The processes of a run, found by the folder that they work in, whoever started them:
# `load ../helper/working_here`, and say in members() which commands are meant.

# Those that work in this folder and whose command line matches.
working_here() {
    local process
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/cwd")" = "$PWD" ] || continue
        if [[ $(tr '\0' ' ' <"$process/cmdline") =~ $1 ]]; then echo "${process#/proc/}"; fi
    done
}

all_members() {
    [ "$(members | wc -l)" = "$1" ]
}
end_members() {
    stop_started
    members | xargs -r kill -KILL || true
}
