# bash completion for adam-eval, printed by adam-eval --completion bash
_adam_eval() {
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
    :--model | :-m) offer -d; return ;;
    :--set) return ;;
    :--data | :-d) offer -f; return ;;
    :--files-from) offer -f; return ;;
    :--from) return ;;
    :--labels) offer -f; return ;;
    :--label-from) offer -W 'default parent column no'; return ;;
    :--ops) return ;;
    :--max-pixels) return ;;
    :--follow) offer -d; return ;;
    :--every) return ;;
    :--name) return ;;
    :--keys) offer -f; return ;;
    :--print) offer -W 'figures predictions'; return ;;
    :--top | :-k) return ;;
    :--confusion) offer -f; return ;;
    :--per-class) offer -f; return ;;
    :--per-sample) offer -f; return ;;
    :--format) offer -W 'tsv json'; return ;;
    :--min-top1) return ;;
    :--on-error) offer -W 'stop skip'; return ;;
    :--reject) offer -f; return ;;
    :--threads | :-t) return ;;
    :--batch | :-b) return ;;
    :--completion) offer -W 'bash zsh fish'; return ;;
    esac
    case $command:$current in
    :-*) offer -W '--model -m --set --data -d --files-from --null -0 --from --labels --label-from --ops --max-pixels --follow --every --name --keys --insecure --print --top -k --json --confusion --per-class --per-sample --format --min-top1 --on-error --reject --threads -t --batch -b --exact --quiet -q --help -h --version -V --completion' ;;
    :*) offer -f ;;
    esac
}
complete -o filenames -F _adam_eval adam-eval
