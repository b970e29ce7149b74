# bash completion for adam-eval, printed by adam-eval --completion bash
_adam_eval() {
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
    :--model | :-m) offer -d; return ;;
    :--set) offer_layer_key 'shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay'; return ;;
    :--data | :-d) offer -f; return ;;
    :--files-from) offer -f; return ;;
    :--from) return ;;
    :--labels) offer -f; return ;;
    :--targets) offer -f; return ;;
    :--label-from) offer -W 'default parent column none'; return ;;
    :--ops) offer_operation 'resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std'; return ;;
    :--max-pixels) return ;;
    :--follow) offer -d; return ;;
    :--every) return ;;
    :--name) return ;;
    :--keys) offer -f; return ;;
    :--listen | :-l) return ;;
    :--port-file) offer -f; return ;;
    :--max-body) return ;;
    :--patience) return ;;
    :--print) offer -W 'figures predictions'; return ;;
    :--top | :-k) return ;;
    :--confusion) offer -f; return ;;
    :--per-class) offer -f; return ;;
    :--per-sample) offer -f; return ;;
    :--format) offer -W 'tsv json'; return ;;
    :--features) return ;;
    :--out | :-o) offer -f; return ;;
    :--min-top1) return ;;
    :--on-error) offer -W 'stop skip'; return ;;
    :--reject) offer -f; return ;;
    :--threads | :-t) return ;;
    :--partitions) return ;;
    :--batch | :-b) return ;;
    :--completion) offer -W 'bash zsh fish'; return ;;
    esac
    case $command:$current in
    :-*) offer -W '--model -m --set --data -d --files-from --null -0 --from --labels --targets --label-from --ops --max-pixels --follow --every --name --keys --insecure --listen -l --port-file --max-body --patience --print --top -k --json --confusion --per-class --per-sample --format --features --out -o --force -f --min-top1 --on-error --reject --threads -t --partitions --batch -b --exact --quiet -q --help -h --version -V --completion' ;;
    :*) offer -f ;;
    esac
}
complete -o filenames -F _adam_eval adam-eval
