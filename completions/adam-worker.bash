# bash completion for adam-worker, printed by adam-worker --completion bash
_adam_worker() {
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
    :--model | :-m) offer -f; return ;;
    :--set) return ;;
    :--data | :-d) offer -f; return ;;
    :--labels) offer -f; return ;;
    :--test) offer -f; return ;;
    :--test-labels) offer -f; return ;;
    :--from) return ;;
    :--spool) offer -f; return ;;
    :--ops) return ;;
    :--epochs | :-e) return ;;
    :--batch | :-b) return ;;
    :--threads | :-t) return ;;
    :--optimizer) offer -W 'sgd momentum adagrad'; return ;;
    :--rate | :-r) return ;;
    :--schedule) return ;;
    :--warmup) return ;;
    :--momentum) return ;;
    :--decay) return ;;
    :--epsilon) return ;;
    :--clip) return ;;
    :--seed | :-s) return ;;
    :--loaders) return ;;
    :--controller | :-c) return ;;
    :--name) return ;;
    :--keys) offer -f; return ;;
    :--out | :-o) offer -d; return ;;
    :--resume) offer -d; return ;;
    :--eval-every) return ;;
    :--checkpoint-every) return ;;
    :--keep-last) return ;;
    :--metrics-every) return ;;
    :--completion) offer -W 'bash zsh fish'; return ;;
    esac
    case $command:$current in
    :-*) offer -W '--model -m --set --data -d --labels --test --test-labels --from --spool --ops --epochs -e --batch -b --threads -t --sync --optimizer --rate -r --schedule --warmup --momentum --decay --epsilon --clip --seed -s --loaders --controller -c --name --keys --insecure --out -o --resume --force -f --eval-every --checkpoint-every --keep-last --metrics-every --quiet -q --help -h --version -V --completion' ;;
    :*) ;;
    esac
}
complete -o filenames -F _adam_worker adam-worker
