# bash completion for adam-worker, printed by adam-worker --completion bash
_adam_worker() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=
    offer() {
        local line
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@" -- "$current")
    }
    unfinished() { compopt +o filenames -o nospace 2>/dev/null || :; }
    offer_layer_key() {
        local layer=${current%%.*} word models=()
        unfinished
        if [ "$layer" != "$current" ]; then
            current=${current#*.}
            offer -P "$layer." -S = -W "$1"
            return
        fi
        for word in "${COMP_WORDS[@]}"; do
            if [[ $word = *.net && -f $word ]]; then models+=("$word"); fi
        done
        if [ "${#models[@]}" -eq 0 ]; then return; fi
        offer -S . -W "$(awk '$1 ~ /^[a-z]/ { n = ++count[$1]; print $2 ~ /^[A-Za-z][A-Za-z0-9_-]*$/ ? $2 : $1 (n > 1 || $1 != "input" ? n : "") }' "${models[@]}" 2>/dev/null)"
    }
    # The operation behind the last ';'; readline keeps the quote that opened it.
    offer_operation() {
        local chain=${current#[\"\']} before=
        current=${chain##*;}
        current=${current#"${current%%[! ]*}"}
        before=${chain%"$current"}
        offer -P "$before" -W "$1"
    }
    # bash makes three words of --name=value.
    if [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [ "$current" = = ]; then current=; fi
    COMPREPLY=()
    case $command:$before in
    :--model | :-m) offer -f; return ;;
    :--set) offer_layer_key 'shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay'; return ;;
    :--freeze) return ;;
    :--init-from) return ;;
    :--class-weights) offer -f; return ;;
    :--data | :-d) offer -f; return ;;
    :--labels) offer -f; return ;;
    :--targets) offer -f; return ;;
    :--test) offer -f; return ;;
    :--test-labels) offer -f; return ;;
    :--test-targets) offer -f; return ;;
    :--from) return ;;
    :--spool) offer -f; return ;;
    :--ops) offer_operation 'resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std'; return ;;
    :--mixup) return ;;
    :--cutmix) return ;;
    :--epochs | :-e) return ;;
    :--batch | :-b) return ;;
    :--threads | :-t) return ;;
    :--home) offer -W 'shared copies joined'; return ;;
    :--partitions) return ;;
    :--in-flight) return ;;
    :--optimizer) offer -W 'sgd momentum adagrad nesterov rmsprop adam adamw'; return ;;
    :--rate | :-r) return ;;
    :--schedule) return ;;
    :--warmup) return ;;
    :--momentum) return ;;
    :--beta2) return ;;
    :--decay) return ;;
    :--epsilon) return ;;
    :--ema) return ;;
    :--clip) return ;;
    :--seed | :-s) return ;;
    :--loaders) return ;;
    :--frozen-memory) return ;;
    :--controller | :-c) return ;;
    :--name) return ;;
    :--keys) offer -f; return ;;
    :--out | :-o) offer -d; return ;;
    :--resume) offer -d; return ;;
    :--eval-every) return ;;
    :--checkpoint-every) return ;;
    :--keep-last) return ;;
    :--patience) return ;;
    :--metrics-every) return ;;
    :--completion) offer -W 'bash zsh fish'; return ;;
    esac
    case $command:$current in
    :-*) offer -W '--model -m --set --freeze --init-from --class-weights --data -d --labels --targets --test --test-labels --test-targets --from --spool --ops --mixup --cutmix --epochs -e --batch -b --threads -t --sync --home --partitions --in-flight --optimizer --rate -r --schedule --warmup --momentum --beta2 --decay --epsilon --ema --clip --seed -s --loaders --frozen-memory --controller -c --name --keys --insecure --listen --out -o --resume --force -f --eval-every --checkpoint-every --keep-last --patience --metrics-every --quiet -q --help -h --version -V --completion' ;;
    :*) ;;
    esac
}
complete -o filenames -F _adam_worker adam-worker
