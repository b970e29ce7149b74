"""press_tab.py SHELL FOLDER: what an interactive bash, zsh or fish that sourced the completions of
FOLDER shows when, for each line "LINE<TAB>EXPECT" of stdin, LINE is typed and TAB pressed behind it.

It waits until the screen shows EXPECT, a regular expression, and then for what else comes
before the answer to one more command. Fails when an EXPECT does not come within a minute.
"""
import glob
import os
import pty
import re
import select
import signal
import struct
import sys
import fcntl
import termios
import time

SHELLS = {
    'bash': (['bash', '--norc', '--noprofile', '-i'], "PS1=; bind 'set bell-style none'; bind 'set show-all-if-ambiguous on'"),
    'zsh': (['zsh', '-f', '-i'],
            'PROMPT= PS2= LISTMAX=100000; autoload -U compinit; compinit -D -u; '
            'setopt no_beep auto_list'),
    'fish': (['fish', '--no-config', '-i'], 'function fish_prompt; end; set -g fish_greeting'),
}
PATIENCE = 60


class Terminal:
    def __init__(self, words):
        self.seen = ''
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.execvp(words[0], words)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack('HHHH', 200, 200, 0, 0))

    def read(self, seconds):
        """Whether something came within the time."""
        if not select.select([self.file], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.file, 65536)
        except OSError:
            data = b''
        if not data:
            sys.exit('the shell has ended: ' + self.seen)
        if b'\x1b[c' in data:  # fish asks what it talks to
            os.write(self.file, b'\x1b[?62c')
        self.seen += data.decode(errors='replace')
        return True

    def plain(self):
        text = re.sub(r'\x1b(\[[0-9;?>=]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>])', '', self.seen)
        return re.sub(r'.\x08|[\r\x0e\x0f]', '', text)

    def wait(self, pattern):
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, self.plain()):
            left = end - time.monotonic()
            if left <= 0:
                sys.exit(f'never showed {pattern}: {self.plain()}')
            self.read(left)

    def type(self, text):
        os.write(self.file, text.encode())


def press(terminal, number, line, expect):
    terminal.seen = ''
    terminal.type(line + '\t')
    terminal.wait(expect)
    terminal.type(f'\x15\x15echo DO""NE{number}\n')
    terminal.wait(f'DONE{number}')
    print(terminal.plain())


def main():
    shell, folder = sys.argv[1:]
    words, setup = SHELLS[shell]
    terminal = Terminal(words)
    files = {'bash': '*.bash', 'zsh': '_*', 'fish': '*.fish'}[shell]
    sources = ''.join(f'source {path}\n' for path in sorted(glob.glob(f'{folder}/{files}')))
    # The marks are quoted in two, so that the shell's echo of a line is no mark.
    terminal.type(f'{setup}\n{sources}echo REA""DY\n')
    terminal.wait('READY')
    for number, line in enumerate(sys.stdin.read().splitlines()):
        press(terminal, number, *line.split('\t'))
    os.kill(terminal.process, signal.SIGKILL)


main()
