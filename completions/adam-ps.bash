# bash completion for adam-ps, printed by adam-ps --completion bash
_adam_ps() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=
    offer() {
        local line
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@" -- "$current")
    }
    # bash makes three words of --name=value.
    if [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [ "$current" = = ]; then current=; fi
    COMPREPLY=()
    case $command:$before in
    :--controller | :-c) return ;;
    :--name) return ;;
    :--keys) offer -f; return ;;
    :--listen | :-l) return ;;
    :--replication) return ;;
    :--admin) return ;;
    :--port-file) offer -f; return ;;
    :--pid-file) offer -f; return ;;
    :--ready-fd) return ;;
    :--threads | :-t) return ;;
    :--memory) return ;;
    :--store) offer -d; return ;;
    :--flush) return ;;
    :--checkpoints) offer -d; return ;;
    :--completion) offer -W 'bash zsh fish'; return ;;
    esac
    case $command:$current in
    :-*) offer -W '--controller -c --name --keys --insecure --listen -l --replication --admin --port-file --pid-file --ready-fd --threads -t --memory --store --aside --flush --checkpoints --quiet -q --help -h --version -V --completion' ;;
    :*) ;;
    esac
}
complete -o filenames -F _adam_ps adam-ps
