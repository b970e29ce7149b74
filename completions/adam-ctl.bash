# bash completion for adam-ctl, printed by adam-ctl --completion bash
_adam_ctl() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=
    offer() {
        local line
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@" -- "$current")
    }
    # bash makes three words of --name=value.
    if [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [ "$current" = = ]; then current=; fi
    case ${COMP_WORDS[1]} in
    check | time | plot | report) if [ "$COMP_CWORD" -gt 1 ]; then command=${COMP_WORDS[1]}; fi ;;
    esac
    COMPREPLY=()
    case $command:$before in
    :--completion) offer -W 'bash zsh fish'; return ;;
    check:--set) return ;;
    check:--batch | check:-b) return ;;
    check:--threads | check:-t) return ;;
    time:--set) return ;;
    time:--batch | time:-b) return ;;
    time:--seconds | time:-s) return ;;
    plot:--output | plot:-o) offer -f; return ;;
    plot:--x | plot:-x) offer -W 'both epoch time'; return ;;
    report:--output | report:-o) offer -f; return ;;
    report:--data | report:-d) offer -f; return ;;
    report:--from) return ;;
    report:--labels) offer -f; return ;;
    report:--set) return ;;
    report:--threads | report:-t) return ;;
    esac
    case $command:$current in
    :-*) offer -W '--help -h --version -V --completion' ;;
    :*) if [ "$COMP_CWORD" = 1 ]; then offer -W 'check time plot report'; fi; ;;
    check:-*) offer -W '--set --batch -b --threads -t --kernels --json --help -h --version -V' ;;
    check:*) offer -f ;;
    time:-*) offer -W '--set --batch -b --seconds -s --predict --json --help -h --version -V' ;;
    time:*) offer -f ;;
    plot:-*) offer -W '--output -o --x -x --help -h --version -V' ;;
    plot:*) offer -d ;;
    report:-*) offer -W '--output -o --data -d --from --labels --set --threads -t --help -h --version -V' ;;
    report:*) offer -d ;;
    esac
}
complete -o filenames -F _adam_ctl adam-ctl
