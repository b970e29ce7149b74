# Programs that only pretend to be the parts of a run, for tests of what starts and watches
# them: `load ../helper/parts`, then `pretend` in setup.
#
# Each writes its command line to calls, its number to pids/NAME and a line to its log, and
# is there until ends/NAME, or ends/all, holds the status to end with. On SIGTERM, or by
# adam-ctl down, the controller takes a moment, leaves "saved" and run/latest and ends with
# status 75, and the others with it; of several, controller-N by their place in --quorum, those that
# only hear of it end with 75, too. Who was told to end is in terms, a line each.
pretend() {
    mkdir bin pids ends
    cat >bin/part <<'END'
#!/bin/bash
program=${0##*/} name=controller fd=
[[ "$program $1" =~ ^adam-ctl\ (controller|down)$ ]] || [ "$program" != adam-ctl ] || exec "$CTL" "$@"
words=("$@")
if [ "$program $1" = "adam-ctl down" ]; then
    grep -qs ^controller terms || echo "$*" >>downs # who leads hears of it once
    exit
fi
while [ $# -gt 0 ]; do
    case $1 in
    --name) name=$2 ;;
    --ready-fd) fd=$2 ;;
    --port-file) port=$2 ;;
    --quorum) quorum=$2 ;;
    --listen) listen=$2 ;;
    esac
    shift
done
number=1
while [ "${quorum-}" ] && [ "${quorum%%,*}" != "$listen" ]; do
    quorum=${quorum#*,} number=$((number + 1))
done
if [ "${quorum-}" ]; then name=controller-$number; fi
end() {
    echo "$name" >>terms
    if [[ "$name" = controller* ]]; then
        echo "adam-ctl: stopping" >&2
        sleep 0.3
        echo saved >saved
        touch run/latest
        echo "adam-ctl: stopped; --resume goes on with run" >&2
        echo 75 >over
        echo 0 >ends/all
        exit 75
    fi
    exit 143
}
trap end TERM
call="$program ${words[*]}" # written whole: others write at the same time
echo "$call"
echo "$call" >>calls
echo "$name is here" >&2
echo $$ >pids/$name.new && mv pids/$name.new pids/$name
if [ "$port" ]; then echo ipc:///nowhere >"$port"; fi
if [ -s "ends/$name" ]; then exit "$(cat "ends/$name")"; fi
if [ "$fd" ]; then echo >&$fd; fi
while :; do
    if [[ "$name" = controller* ]] && rm downs 2>/dev/null; then end; fi
    for file in ends/$name ends/all; do
        if [ -s $file ]; then
            echo "$name ends"
            if [[ "$name" = controller* ]] && [ -s over ]; then file=over; fi
            exit "$(cat $file)"
        fi
    done
    sleep 0.05
done
END
    chmod +x bin/part
    local program
    for program in adam-ctl adam-ps adam-serve adam-worker; do ln -s part bin/$program; done
    export CTL=$BUILD/adam-ctl PATH=$PWD/bin:$PATH
    printf 'model = small.net\ndata = train.arec\n' >run.conf
}

# The processes of the pretended parts that are there, whoever started them.
parts_left() {
    grep -l "$BATS_TEST_TMPDIR/bi[n]/" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3
}
none_left() {
    [ -z "$(parts_left)" ]
}
all_here() { # NAME...
    local name
    for name; do
        [ -s "pids/$name" ] && kill -0 "$(cat "pids/$name")" || return
    done
}
