# bash completion for adam-prep, printed by adam-prep --completion bash
_adam_prep() {
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
    case ${COMP_WORDS[1]} in
    stat | sheet | draw) if [ "$COMP_CWORD" -gt 1 ]; then command=${COMP_WORDS[1]}; fi ;;
    esac
    COMPREPLY=()
    case $command:$before in
    :--from) offer -W 'folder list tar idx cifar10 cifar100 cifar100-coarse pnm npy image arec'; return ;;
    :--files-from) offer -f; return ;;
    :--labels) offer -f; return ;;
    :--label-from) offer -W 'parent column none'; return ;;
    :--classes) offer -f; return ;;
    :--only) return ;;
    :--limit) return ;;
    :--channels) offer -W 'gray rgb'; return ;;
    :--max-pixels) return ;;
    :--max-bytes) return ;;
    :--ops) offer_operation 'resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std'; return ;;
    :--copies) return ;;
    :--name) return ;;
    :--split) return ;;
    :--test-ops) offer_operation 'resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std'; return ;;
    :--memory) return ;;
    :--seed | :-s) return ;;
    :--output | :-o) offer -f; return ;;
    :--to) offer -W 'arec tar folder idx pnm npy'; return ;;
    :--codec) offer -W 'png jpeg pnm raw'; return ;;
    :--quality) return ;;
    :--labels-out) offer -f; return ;;
    :--max-count) return ;;
    :--on-error) offer -W 'stop skip'; return ;;
    :--reject) offer -f; return ;;
    :--threads | :-t) return ;;
    :--completion) offer -W 'bash zsh fish'; return ;;
    stat:--mean) offer -f; return ;;
    stat:--from) offer -W 'folder list tar idx cifar10 cifar100 cifar100-coarse pnm npy image arec'; return ;;
    stat:--files-from) offer -f; return ;;
    stat:--labels) offer -f; return ;;
    stat:--label-from) offer -W 'parent column none'; return ;;
    stat:--classes) offer -f; return ;;
    stat:--only) return ;;
    stat:--limit) return ;;
    stat:--channels) offer -W 'gray rgb'; return ;;
    stat:--max-pixels) return ;;
    stat:--max-bytes) return ;;
    stat:--reject) offer -f; return ;;
    stat:--threads | stat:-t) return ;;
    sheet:--output | sheet:-o) offer -f; return ;;
    sheet:--seed | sheet:-s) return ;;
    sheet:--cell) return ;;
    sheet:--from) offer -W 'folder list tar idx cifar10 cifar100 cifar100-coarse pnm npy image arec'; return ;;
    sheet:--files-from) offer -f; return ;;
    sheet:--labels) offer -f; return ;;
    sheet:--label-from) offer -W 'parent column none'; return ;;
    sheet:--classes) offer -f; return ;;
    sheet:--only) return ;;
    sheet:--limit) return ;;
    sheet:--channels) offer -W 'gray rgb'; return ;;
    sheet:--max-pixels) return ;;
    sheet:--max-bytes) return ;;
    sheet:--reject) offer -f; return ;;
    draw:--size) return ;;
    draw:--ops) offer_operation 'resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std'; return ;;
    draw:--copies) return ;;
    draw:--name) return ;;
    draw:--split) return ;;
    draw:--test-ops) offer_operation 'resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std'; return ;;
    draw:--memory) return ;;
    draw:--seed | draw:-s) return ;;
    draw:--output | draw:-o) offer -f; return ;;
    draw:--to) offer -W 'arec tar folder idx pnm npy'; return ;;
    draw:--codec) offer -W 'png jpeg pnm raw'; return ;;
    draw:--quality) return ;;
    draw:--labels-out) offer -f; return ;;
    draw:--max-count) return ;;
    draw:--threads | draw:-t) return ;;
    esac
    case $command:$current in
    :-*) offer -W '--from --files-from --null -0 --labels --label-from --classes --only --limit --channels --max-pixels --max-bytes --ops --copies --balance --name --split --stratify --test-ops --shuffle --memory --seed -s --output -o --to --codec --quality --labels-out --max-count --force -f --on-error --reject --threads -t --quiet -q --help -h --version -V --completion' ;;
    :*) if [ "$COMP_CWORD" = 1 ]; then offer -W 'stat sheet draw'; fi; offer -f ;;
    stat:-*) offer -W '--json --mean --force -f --from --files-from --null -0 --labels --label-from --classes --only --limit --channels --max-pixels --max-bytes --reject --threads -t --quiet -q --help -h --version -V' ;;
    stat:*) offer -f ;;
    sheet:-*) offer -W '--output -o --force -f --by-class --random --seed -s --cell --from --files-from --null -0 --labels --label-from --classes --only --limit --channels --max-pixels --max-bytes --reject --quiet -q --help -h --version -V' ;;
    sheet:*) offer -f ;;
    draw:-*) offer -W '--size --ops --copies --balance --name --split --stratify --test-ops --shuffle --memory --seed -s --output -o --to --codec --quality --labels-out --max-count --force -f --threads -t --quiet -q --help -h --version -V' ;;
    draw:*) ;;
    esac
}
complete -o filenames -F _adam_prep adam-prep
