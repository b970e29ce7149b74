# fish completion for adam-ctl, printed by adam-ctl --completion fish
complete -c adam-ctl -f
complete -c adam-ctl -n __fish_use_subcommand -a check -d 'check a model file, and show shapes, parameters, connections and memory'
complete -c adam-ctl -n 'not __fish_seen_subcommand_from check' -s h -l help -d 'print this text'
complete -c adam-ctl -n 'not __fish_seen_subcommand_from check' -s V -l version -d 'print the version and the processor features in use'
complete -c adam-ctl -n 'not __fish_seen_subcommand_from check' -l completion -x -a 'bash zsh fish' -d 'print the completion script for a shell'
complete -c adam-ctl -n '__fish_seen_subcommand_from check' -l set -x -d 'override a key of a layer'
complete -c adam-ctl -n '__fish_seen_subcommand_from check' -s b -l batch -x -d 'samples in a mini-batch of a thread'
complete -c adam-ctl -n '__fish_seen_subcommand_from check' -s t -l threads -x -d 'threads that train'
complete -c adam-ctl -n '__fish_seen_subcommand_from check' -l json -d 'print one JSON object'
complete -c adam-ctl -n '__fish_seen_subcommand_from check' -s h -l help -d 'print this text'
complete -c adam-ctl -n '__fish_seen_subcommand_from check' -s V -l version -d 'print the version and the processor features in use'
complete -c adam-ctl -n '__fish_seen_subcommand_from check' -F
