# zsh -f complete.zsh FILE 'WORDS...': what an interactive zsh that sourced the
# completion FILE lists when TAB is pressed behind the words, one a line.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= PS2= LISTMAX=100000; stty -echo columns 300 rows 1000; COLUMNS=300 LINES=1000"
zpty -w shell "autoload -U compinit; compinit -D -u; bindkey '^I' complete-word; setopt list_ambiguous no_beep auto_list"
zpty -w shell "zstyle ':completion:*' list-separator ' '; source ${(q)1}; echo READY"
zpty -r -m shell line '*READY*'
zpty -n -w shell "$2"$'\t'
zpty -n -w shell $'\x15'"echo DONE"$'\n'
zpty -r -m shell line '*DONE*'
print -r -- $line | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' | tr -d '\r' | grep -oE -- '(^|[[:space:]])--[a-z0-9-]+' | tr -d ' \t'
zpty -d shell
