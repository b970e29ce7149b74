# fish completion for adam-serve, printed by adam-serve --completion fish
function __adam_serve_value
    commandline -ct | string replace -r '^--[a-z-]+=' '' | string replace -r '^["\']' ''
end
function __adam_serve_operations
    set -l before (__adam_serve_value | string match -r '^.*; *')
    printf '%s\n' "$before"$argv
end
complete -c adam-serve -f
complete -c adam-serve -l labels -r -F -d 'labels of IDX or .npy, in a file of their own'
complete -c adam-serve -l targets -r -F -d 'what samples have in the place of labels: classes of each, or numbers'
complete -c adam-serve -l from -x -d 'kind of the data'
complete -c adam-serve -l ops -x -a '(__adam_serve_operations resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std)' -d 'augment each picture, see adam-ops(7)'
complete -c adam-serve -l range -x -d 'serve only part I of N of the samples'
complete -c adam-serve -l cursor -r -F -d 'record finished leases there, to continue from'
complete -c adam-serve -s c -l controller -x -d 'the controller'\''s address, or @FILE with it'
complete -c adam-serve -l name -x -d 'name of this process, for people'
complete -c adam-serve -l keys -r -F -d 'TLS: a NAME.pem of adam-ctl keys, ca.crt beside it'
complete -c adam-serve -l insecure -d 'allow connections beyond this machine without TLS'
complete -c adam-serve -s l -l listen -x -d 'address for workers and controllers'
complete -c adam-serve -l port-file -r -F -d 'write the addresses there when bound'
complete -c adam-serve -l pid-file -r -F -d 'write the process'\''s number there'
complete -c adam-serve -l ready-fd -x -d 'write a newline to this descriptor when ready'
complete -c adam-serve -l cache -x -d 'keep decoded pictures'
complete -c adam-serve -l ahead -x -d 'make batches ahead of demand'
complete -c adam-serve -s t -l threads -x -d 'threads that decode and augment'
complete -c adam-serve -s q -l quiet -d 'say nothing but errors'
complete -c adam-serve -s h -l help -d 'print this text'
complete -c adam-serve -s V -l version -d 'print the version and the processor features in use'
complete -c adam-serve -l completion -x -a 'bash zsh fish' -d 'print the completion script for a shell'
complete -c adam-serve -F
