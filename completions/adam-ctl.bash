# bash completion for adam-ctl, printed by adam-ctl --completion bash
_adam_ctl() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=
    offer() {
        local line
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@" -- "$current")
    }
    unfinished() { compopt +o filenames -o nospace 2>/dev/null || :; }
    offer_key() { unfinished; offer -S = -W "$1"; }
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
    # bash makes three words of --name=value.
    if [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [ "$current" = = ]; then current=; fi
    case ${COMP_WORDS[1]} in
    check | time | export | import | plot | report | compare | controller | status | top | set | checkpoint | down | prom | drain | gather | up | sh | systemd | sbatch | doctor | keys | store) if [ "$COMP_CWORD" -gt 1 ]; then command=${COMP_WORDS[1]}; fi ;;
    esac
    COMPREPLY=()
    case $command:$before in
    :--completion) offer -W 'bash zsh fish'; return ;;
    check:--set) offer_layer_key 'shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay'; return ;;
    check:--batch | check:-b) return ;;
    check:--threads | check:-t) return ;;
    check:--partitions) return ;;
    time:--set) offer_layer_key 'shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay'; return ;;
    time:--batch | time:-b) return ;;
    time:--seconds) return ;;
    export:--output | export:-o) offer -f; return ;;
    export:--set) offer_layer_key 'shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay'; return ;;
    import:--out | import:-o) offer -d; return ;;
    import:--ops) return ;;
    import:--shape) return ;;
    import:--classes) offer -f; return ;;
    import:--scores) offer -W 'softmax logistic linear'; return ;;
    plot:--output | plot:-o) offer -f; return ;;
    plot:--x | plot:-x) offer -W 'both epoch time'; return ;;
    plot:--range) offer_key 'loss accuracy rate staleness'; return ;;
    report:--output | report:-o) offer -f; return ;;
    report:--title) return ;;
    report:--data | report:-d) offer -f; return ;;
    report:--from) return ;;
    report:--labels) offer -f; return ;;
    report:--set) offer_layer_key 'shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay'; return ;;
    report:--threads | report:-t) return ;;
    compare:--sort) offer -W 'parameters epoch seconds images/s loss top1 map r2 at'; return ;;
    controller:--out | controller:-o) offer -d; return ;;
    controller:--resume) offer -d; return ;;
    controller:--set) offer_key 'data labels targets test test-labels test-targets from ops mixup cutmix init-from class-weights epochs batch partitions in-flight optimizer rate schedule warmup momentum beta2 decay epsilon clip ema eval-every checkpoint-every keep-last patience metrics-every seed threads model protocol push push-every pull-every overlap factors modulate reference-batch max-staleness ack warm-start on-peer-loss on-data-loss data-patience server-patience controller-patience silence epoch-end servers copies data-servers workers checkpoint-parts'; return ;;
    controller:--copies) return ;;
    controller:--listen | controller:-l) return ;;
    controller:--quorum) return ;;
    controller:--http) return ;;
    controller:--port-file) offer -f; return ;;
    controller:--pid-file) offer -f; return ;;
    controller:--ready-fd) return ;;
    controller:--keys) offer -f; return ;;
    status:--keys) offer -f; return ;;
    top:--every) return ;;
    top:--keys) offer -f; return ;;
    set:--keys) offer -f; return ;;
    checkpoint:--keys) offer -f; return ;;
    down:--keys) offer -f; return ;;
    prom:--keys) offer -f; return ;;
    drain:--keys) offer -f; return ;;
    gather:--keys) offer -f; return ;;
    up:--out | up:-o) offer -d; return ;;
    up:--serve) return ;;
    up:--ps) return ;;
    up:--copies) return ;;
    up:--partitions) return ;;
    up:--controllers) return ;;
    up:--set) offer_key 'data labels targets test test-labels test-targets from ops mixup cutmix init-from class-weights epochs batch partitions in-flight optimizer rate schedule warmup momentum beta2 decay epsilon clip ema eval-every checkpoint-every keep-last patience metrics-every seed threads model protocol push push-every pull-every overlap factors modulate reference-batch max-staleness ack warm-start on-peer-loss on-data-loss data-patience server-patience controller-patience silence epoch-end servers copies data-servers workers checkpoint-parts'; return ;;
    up:--workers) return ;;
    up:--threads | up:-t) return ;;
    up:--hosts) offer -f; return ;;
    up:--ssh) return ;;
    up:--listen | up:-l) return ;;
    up:--flush) return ;;
    up:--keys) offer -f; return ;;
    sh:--out | sh:-o) offer -d; return ;;
    sh:--serve) return ;;
    sh:--ps) return ;;
    sh:--copies) return ;;
    sh:--partitions) return ;;
    sh:--controllers) return ;;
    sh:--set) offer_key 'data labels targets test test-labels test-targets from ops mixup cutmix init-from class-weights epochs batch partitions in-flight optimizer rate schedule warmup momentum beta2 decay epsilon clip ema eval-every checkpoint-every keep-last patience metrics-every seed threads model protocol push push-every pull-every overlap factors modulate reference-batch max-staleness ack warm-start on-peer-loss on-data-loss data-patience server-patience controller-patience silence epoch-end servers copies data-servers workers checkpoint-parts'; return ;;
    sh:--workers) return ;;
    sh:--threads | sh:-t) return ;;
    sh:--flush) return ;;
    systemd:--out | systemd:-o) offer -d; return ;;
    systemd:--serve) return ;;
    systemd:--ps) return ;;
    systemd:--copies) return ;;
    systemd:--partitions) return ;;
    systemd:--controllers) return ;;
    systemd:--set) offer_key 'data labels targets test test-labels test-targets from ops mixup cutmix init-from class-weights epochs batch partitions in-flight optimizer rate schedule warmup momentum beta2 decay epsilon clip ema eval-every checkpoint-every keep-last patience metrics-every seed threads model protocol push push-every pull-every overlap factors modulate reference-batch max-staleness ack warm-start on-peer-loss on-data-loss data-patience server-patience controller-patience silence epoch-end servers copies data-servers workers checkpoint-parts'; return ;;
    systemd:--workers) return ;;
    systemd:--threads | systemd:-t) return ;;
    systemd:--flush) return ;;
    systemd:--units) offer -d; return ;;
    sbatch:--out | sbatch:-o) offer -d; return ;;
    sbatch:--serve) return ;;
    sbatch:--ps) return ;;
    sbatch:--copies) return ;;
    sbatch:--partitions) return ;;
    sbatch:--controllers) return ;;
    sbatch:--set) offer_key 'data labels targets test test-labels test-targets from ops mixup cutmix init-from class-weights epochs batch partitions in-flight optimizer rate schedule warmup momentum beta2 decay epsilon clip ema eval-every checkpoint-every keep-last patience metrics-every seed threads model protocol push push-every pull-every overlap factors modulate reference-batch max-staleness ack warm-start on-peer-loss on-data-loss data-patience server-patience controller-patience silence epoch-end servers copies data-servers workers checkpoint-parts'; return ;;
    sbatch:--workers) return ;;
    sbatch:--threads | sbatch:-t) return ;;
    sbatch:--flush) return ;;
    sbatch:--host) return ;;
    sbatch:--warning) return ;;
    sbatch:--keys) offer -f; return ;;
    doctor:--out | doctor:-o) offer -d; return ;;
    doctor:--serve) return ;;
    doctor:--ps) return ;;
    doctor:--copies) return ;;
    doctor:--partitions) return ;;
    doctor:--controllers) return ;;
    doctor:--set) offer_key 'data labels targets test test-labels test-targets from ops mixup cutmix init-from class-weights epochs batch partitions in-flight optimizer rate schedule warmup momentum beta2 decay epsilon clip ema eval-every checkpoint-every keep-last patience metrics-every seed threads model protocol push push-every pull-every overlap factors modulate reference-batch max-staleness ack warm-start on-peer-loss on-data-loss data-patience server-patience controller-patience silence epoch-end servers copies data-servers workers checkpoint-parts'; return ;;
    doctor:--workers) return ;;
    doctor:--threads | doctor:-t) return ;;
    doctor:--hosts) offer -f; return ;;
    doctor:--ssh) return ;;
    doctor:--listen | doctor:-l) return ;;
    doctor:--flush) return ;;
    doctor:--keys) offer -f; return ;;
    keys:--days) return ;;
    esac
    case $command:$current in
    :-*) offer -W '--help -h --version -V --completion' ;;
    :*) if [ "$COMP_CWORD" = 1 ]; then offer -W 'check time export import plot report compare controller status top set checkpoint down prom drain gather up sh systemd sbatch doctor keys store'; fi; ;;
    check:-*) offer -W '--set --batch -b --threads -t --partitions --kernels --json --help -h --version -V' ;;
    check:*) offer -f ;;
    time:-*) offer -W '--set --batch -b --seconds --predict --json --help -h --version -V' ;;
    time:*) offer -f ;;
    export:-*) offer -W '--output -o --force -f --set --help -h --version -V' ;;
    export:*) ;;
    import:-*) offer -W '--out -o --force -f --ops --shape --classes --scores --help -h --version -V' ;;
    import:*) offer -f ;;
    plot:-*) offer -W '--output -o --x -x --range --help -h --version -V' ;;
    plot:*) offer -d ;;
    report:-*) offer -W '--output -o --title --data -d --from --labels --set --threads -t --help -h --version -V' ;;
    report:*) offer -d ;;
    compare:-*) offer -W '--sort --json --help -h --version -V' ;;
    compare:*) ;;
    controller:-*) offer -W '--out -o --resume --set --copies --quiet -q --listen -l --quorum --rejoin --http --port-file --pid-file --ready-fd --keys --insecure --help -h --version -V' ;;
    controller:*) offer -f ;;
    status:-*) offer -W '--json --buckets --keys --insecure --help -h --version -V' ;;
    status:*) offer -d ;;
    top:-*) offer -W '--every --keys --insecure --help -h --version -V' ;;
    top:*) offer -d ;;
    set:-*) offer -W '--keys --insecure --help -h --version -V' ;;
    set:*) if [ "$COMP_CWORD" -gt 2 ]; then offer_key 'rate schedule warmup momentum beta2 decay epsilon clip eval-every checkpoint-every keep-last patience metrics-every push-every pull-every modulate reference-batch max-staleness on-peer-loss on-data-loss data-patience server-patience controller-patience workers checkpoint-parts'; return; fi; offer -d ;;
    checkpoint:-*) offer -W '--keys --insecure --help -h --version -V' ;;
    checkpoint:*) offer -d ;;
    down:-*) offer -W '--now --keys --insecure --help -h --version -V' ;;
    down:*) offer -d ;;
    prom:-*) offer -W '--keys --insecure --help -h --version -V' ;;
    prom:*) offer -d ;;
    drain:-*) offer -W '--no-wait --keys --insecure --help -h --version -V' ;;
    drain:*) offer -d ;;
    gather:-*) offer -W '--keys --insecure --help -h --version -V' ;;
    gather:*) offer -d ;;
    up:-*) offer -W '--out -o --serve --ps --copies --partitions --controllers --set --resume --force -f --workers --threads -t --hosts --ssh --listen -l --store --flush --keys --insecure --dry-run -n --quiet -q --help -h --version -V' ;;
    up:*) offer -f ;;
    sh:-*) offer -W '--out -o --serve --ps --copies --partitions --controllers --set --resume --force -f --workers --threads -t --store --flush --help -h --version -V' ;;
    sh:*) offer -f ;;
    systemd:-*) offer -W '--out -o --serve --ps --copies --partitions --controllers --set --resume --workers --threads -t --store --flush --user --units --help -h --version -V' ;;
    systemd:*) offer -f ;;
    sbatch:-*) offer -W '--out -o --serve --ps --copies --partitions --controllers --set --resume --force -f --workers --threads -t --store --flush --host --warning --keys --insecure --help -h --version -V' ;;
    sbatch:*) offer -f ;;
    doctor:-*) offer -W '--out -o --serve --ps --copies --partitions --controllers --set --resume --force -f --workers --threads -t --hosts --ssh --listen -l --store --flush --keys --insecure --json --help -h --version -V' ;;
    doctor:*) offer -f ;;
    keys:-*) offer -W '--days --help -h --version -V' ;;
    keys:*) offer -d ;;
    store:-*) offer -W '--json --help -h --version -V' ;;
    store:*) offer -d ;;
    esac
}
complete -o filenames -F _adam_ctl adam-ctl
