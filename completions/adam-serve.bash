# bash completion for adam-serve, printed by adam-serve --completion bash
_adam_serve() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=
    offer() {
        local line
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@" -- "$current")
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
    :--labels) offer -f; return ;;
    :--targets) offer -f; return ;;
    :--from) return ;;
    :--ops) offer_operation 'resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std'; return ;;
    :--range) return ;;
    :--cursor) offer -f; return ;;
    :--controller | :-c) return ;;
    :--name) return ;;
    :--keys) offer -f; return ;;
    :--listen | :-l) return ;;
    :--port-file) offer -f; return ;;
    :--pid-file) offer -f; return ;;
    :--ready-fd) return ;;
    :--cache) return ;;
    :--ahead) return ;;
    :--threads | :-t) return ;;
    :--completion) offer -W 'bash zsh fish'; return ;;
    esac
    case $command:$current in
    :-*) offer -W '--labels --targets --from --ops --range --cursor --controller -c --name --keys --insecure --listen -l --port-file --pid-file --ready-fd --cache --ahead --threads -t --quiet -q --help -h --version -V --completion' ;;
    :*) offer -f ;;
    esac
}
complete -o filenames -F _adam_serve adam-serve
