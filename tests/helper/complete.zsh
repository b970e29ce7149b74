# zsh -f complete.zsh FOLDER: what an interactive zsh that sourced the completions of FOLDER lists
# when TAB is pressed behind each line of stdin and "--": lines "LINE<TAB>OPTION".
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PROMPT= PS2= LISTMAX=100000; stty -echo columns 300 rows 1000; COLUMNS=300 LINES=1000'
zpty -w shell 'autoload -U compinit; compinit -D -u; setopt no_beep auto_list'
for file in $1/_*; do zpty -w shell "source ${(q)file}"; done
# The marks are quoted in two, so that the shell's echo of a line is no mark.
zpty -w shell 'echo REA""DY'
zpty -r -m shell line '*READY*'
while read -r command; do
    zpty -n -w shell "$command --"$'\t'
    # Every command has --help; zsh lists nothing while more keys are waiting.
    zpty -r -m shell list '*--help*'
    zpty -n -w shell $'\x15''echo DO""NE'$'\n'
    zpty -r -m shell line '*DONE*'
    print -r -- $list$line | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' | tr -d '\r' |
        grep -oE '^--[a-z0-9-]+' | sed "s/^/$command"$'\t/'
done
zpty -d shell
