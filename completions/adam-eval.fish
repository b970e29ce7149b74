# fish completion for adam-eval, printed by adam-eval --completion fish
function __adam_eval_value
    commandline -ct | string replace -r '^--[a-z-]+=' '' | string replace -r '^["\']' ''
end
function __adam_eval_layer_keys
    set -l layer (__adam_eval_value | string match -r '^[^.=]*\.')
    if test -n "$layer"
        printf "$layer%s=\n" $argv
        return
    end
    for word in (commandline -o)
        if string match -q '*.net' -- $word; and test -f $word
            printf '%s.\n' (awk '$1 ~ /^[a-z]/ { n = ++count[$1]; print $2 ~ /^[A-Za-z][A-Za-z0-9_-]*$/ ? $2 : $1 (n > 1 || $1 != "input" ? n : "") }' $word 2>/dev/null)
        end
    end
end
function __adam_eval_operations
    set -l before (__adam_eval_value | string match -r '^.*; *')
    printf '%s\n' "$before"$argv
end
complete -c adam-eval -f
complete -c adam-eval -s m -l model -x -a '(__fish_complete_directories)' -d 'a run, a checkpoint or its .safetensors file'
complete -c adam-eval -l set -x -a '(__adam_eval_layer_keys shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay)' -d 'override a key of a layer'
complete -c adam-eval -s d -l data -r -F -d 'samples: any kind adam-prep reads, or -'
complete -c adam-eval -l files-from -r -F -d 'paths of pictures, one a line, or -'
complete -c adam-eval -s 0 -l null -d 'paths end in NUL'
complete -c adam-eval -l from -x -d 'kind of --data, if it is not recognised'
complete -c adam-eval -l labels -r -F -d 'labels beside IDX or npy data'
complete -c adam-eval -l targets -r -F -d 'what samples have in the place of labels'
complete -c adam-eval -l label-from -x -a 'default parent column none' -d 'source of the labels'
complete -c adam-eval -l ops -x -a '(__adam_eval_operations resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std)' -d 'operations before those of the model'
complete -c adam-eval -l max-pixels -x -d 'refuse larger pictures before decoding'
complete -c adam-eval -l follow -x -a '(__fish_complete_directories)' -d 'test a run of many processes: its folder, or its controller'\''s address'
complete -c adam-eval -l every -x -d 'time between the starts of two tests'
complete -c adam-eval -l name -x -d 'of this process, for people'
complete -c adam-eval -l keys -r -F -d 'TLS: a NAME.pem of adam-ctl keys, ca.crt beside it'
complete -c adam-eval -l insecure -d 'allow connections beyond this machine without TLS'
complete -c adam-eval -s l -l listen -x -d 'answer at http://HOST:PORT, or at a socket of systemd'
complete -c adam-eval -l port-file -r -F -d 'write the URL there when bound'
complete -c adam-eval -l max-body -x -d 'refuse larger requests'
complete -c adam-eval -l patience -x -d 'time for a request to arrive, and its answer to be taken'
complete -c adam-eval -l print -x -a 'figures predictions' -d 'what goes to standard output'
complete -c adam-eval -s k -l top -x -d 'print the N best classes of each sample'
complete -c adam-eval -l json -d 'print JSON instead of TSV'
complete -c adam-eval -l confusion -r -F -d 'confusion matrix, TSV'
complete -c adam-eval -l per-class -r -F -d 'precision and recall, TSV'
complete -c adam-eval -l per-sample -r -F -d 'all scores of each sample'
complete -c adam-eval -l format -x -a 'tsv json' -d 'of --per-sample'
complete -c adam-eval -l features -x -d 'write what this layer gives, as samples to train on, to --out'
complete -c adam-eval -s o -l out -r -F -d 'of --features: .arec, .npy, .idx; - is arec'
complete -c adam-eval -s f -l force -d 'replace the file of --out if it exists'
complete -c adam-eval -l min-top1 -x -d 'exit with 1 below this accuracy'
complete -c adam-eval -l on-error -x -a 'stop skip' -d 'at a damaged or unlabelled sample'
complete -c adam-eval -l reject -r -F -d 'list the skipped samples: path, reason'
complete -c adam-eval -s t -l threads -x -d 'threads'
complete -c adam-eval -l partitions -x -d 'cut the model over N processes, each with a part of it'
complete -c adam-eval -s b -l batch -x -d 'samples a pass of one thread'
complete -c adam-eval -l exact -d 'compute in 32-bit floats, even if others are faster'
complete -c adam-eval -s q -l quiet -d 'say nothing but errors'
complete -c adam-eval -s h -l help -d 'print this text'
complete -c adam-eval -s V -l version -d 'print the version and the processor features in use'
complete -c adam-eval -l completion -x -a 'bash zsh fish' -d 'print the completion script for a shell'
complete -c adam-eval -F
