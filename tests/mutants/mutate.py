"""Single-line mutants of a C source: where they can be made, and what each changes.

A mutant is (kind, line, begin, end, text): the bytes [begin, end) of the source become `text`.
Five kinds:

  comparison   < to >, <= to >=, == to !=, and back
  off by one   < to <=, > to >=, and back; a number n to n + 1
  condition    an if or while negated, never or always; one side of && or || dropped
  statement    a call, an assignment, a break or a continue removed
  operator     + to -, * to /, & to |, << to >>, && to ||, true to false ..., and back; a number
               to 0, and 0 to 1

It relies on clang-format: a binary operator has a space on both sides, a unary one has not.
"""
import re
from collections import namedtuple

KINDS = ("comparison", "off by one", "condition", "statement", "operator")
Mutant = namedtuple("Mutant", "kind line begin end text")
Token = namedtuple("Token", "text begin end")

FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "!=", "!=": "=="}
SHIFTED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OTHER = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "&": "|", "|": "&", "^": "&", "<<": ">>",
         ">>": "<<", "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=",
         "|=": "&=", "&=": "|=", "^=": "|=", "<<=": ">>=", ">>=": "<<=", "++": "--", "--": "++",
         "true": "false", "false": "true"}
LEXEME = re.compile(r"""
    //[^\n]*|/\*.*?\*/ |                                # comments
    ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]* |                    # the preprocessor's lines
    "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' |             # text
    [A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|[\w.])* |         # names and numbers
    <<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\| | [^\s]""", re.X | re.S | re.M)
OPENS, CLOSES = "([{", ")]}"
TYPES = {"const", "static", "struct", "enum", "union", "unsigned", "extern", "typedef", "_Atomic",
         "char", "int", "float", "double", "bool", "void", "long", "short", "size_t", "static_assert",
         "__attribute__"}
CONTROL = {"if", "while", "for", "switch"}


def tokens_of(source):
    """What counts of it: no comment and no line of the preprocessor."""
    found = (Token(m.group(), m.start(), m.end()) for m in LEXEME.finditer(source))
    return [t for t in found
            if not t.text.startswith(("//", "/*")) and not t.text.lstrip().startswith("#")]


def partners(tokens):
    """Index of the bracket that closes, or opens, the one at each index."""
    open_ones, pairs = [], {}
    for i, token in enumerate(tokens):
        if token.text in OPENS and len(token.text) == 1:
            open_ones.append(i)
        elif token.text in CLOSES and len(token.text) == 1:
            pairs[i] = open_ones.pop()
            pairs[pairs[i]] = i
    return pairs


class Source:
    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.pairs = partners(self.tokens)

    def is_binary(self, i):
        token = self.tokens[i]
        return self.text[token.begin - 1].isspace() and self.text[token.end].isspace()

    def replaced(self, kind, i, text):
        token = self.tokens[i]
        return self.change(kind, token.begin, token.end, text)

    def change(self, kind, begin, end, text):
        text += "\n" * self.text.count("\n", begin, end)  # lines keep their numbers
        return Mutant(kind, self.text.count("\n", 0, begin) + 1, begin, end, text)

    def span(self, first, last):
        return self.text[self.tokens[first].begin:self.tokens[last].end]

    def operators(self):
        for i, (text, _, _) in enumerate(self.tokens):
            if text in ("true", "false", "++", "--"):
                yield self.replaced("operator", i, OTHER[text])
                continue
            if not self.is_binary(i):
                continue
            if text in FLIPPED:
                yield self.replaced("comparison", i, FLIPPED[text])
            if text in SHIFTED:
                yield self.replaced("off by one", i, SHIFTED[text])
            if text in OTHER:
                yield self.replaced("operator", i, OTHER[text])

    def is_size(self, i):
        """Whether the number is the size of an array that is declared."""
        line = self.text.rfind("\n", 0, self.tokens[i].begin) + 1
        head = self.text[line:self.tokens[i].begin]
        return re.match(r"\s*((static|const|struct|unsigned) )*\w+ \**\w+(\[\w+\])*\[$", head)

    def numbers(self):
        for i, (text, _, _) in enumerate(self.tokens):
            match = re.fullmatch(r"(\d[\d.]*|0[xX][0-9a-fA-F]+)([uUlLfF]*)", text)
            if not match or self.is_size(i):
                continue
            number, suffix = match.groups()
            zero = not number.lower().strip("0x.")
            yield self.replaced("off by one", i, f"({number} + 1{suffix.strip('fF')})")
            yield self.replaced("operator", i, ("1" if zero else "0") + suffix.strip("fF"))

    def conditions(self):
        for i, (text, _, _) in enumerate(self.tokens[:-1]):
            if text in ("if", "while") and self.tokens[i + 1].text == "(":
                close = self.pairs[i + 1]
                inside = self.span(i + 2, close - 1)
                begin, end = self.tokens[i + 2].begin, self.tokens[close - 1].end
                yield self.change("condition", begin, end, "!(" + one_line(inside) + ")")
                yield self.change("condition", begin, end, "false")
                if text == "if":
                    yield self.change("condition", begin, end, "true")

    def sides(self):
        """The two sides of && and ||, up to the bracket, the comma or the like around them."""
        for i, (text, _, _) in enumerate(self.tokens):
            if text not in ("&&", "||"):
                continue
            first, last = i - 1, i + 1
            ends = {"&&", "||", ",", ";", "?", ":", "=", "return", "|=", "&="}
            while self.tokens[first].text not in ends | set(OPENS):
                first = self.pairs[first] - 1 if self.tokens[first].text in CLOSES else first - 1
            while self.tokens[last].text not in ends | set(CLOSES):
                last = self.pairs[last] + 1 if self.tokens[last].text in OPENS else last + 1
            begin, end = self.tokens[first + 1].begin, self.tokens[last - 1].end
            yield self.change("condition", begin, self.tokens[i].end, "")
            yield self.change("condition", self.tokens[i].begin, end, "")

    def statements(self):
        for i, (text, _, _) in enumerate(self.tokens):
            if not self.begins_statement(i):
                continue
            last = i
            while self.tokens[last].text != ";":
                if self.tokens[last].text in ("{", "}"):
                    break
                last = self.pairs[last] + 1 if self.tokens[last].text in "([" else last + 1
            if self.tokens[last].text == ";" and self.is_effect(i, last):
                yield self.change("statement", self.tokens[i].begin, self.tokens[last].begin, "")

    def begins_statement(self, i):
        """Within a function: behind a ; { } or the head of an if or a loop."""
        if i == 0 or self.text[self.tokens[i].begin - 1] in "\n":
            return False
        before = self.tokens[i - 1].text
        if before == ")":
            return self.tokens[self.pairs[i - 1] - 1].text in CONTROL
        return before in (";", "{", "}", "else", ":") and not self.in_brackets(i)

    def in_brackets(self, i):
        """Whether it is within ( ) or an initialiser."""
        depth = 0
        for token in reversed(self.tokens[:i]):
            depth += (token.text in CLOSES) - (token.text in OPENS)
            if depth < 0:
                return token.text != "{"
        return True

    def is_effect(self, i, last):
        head, words = self.tokens[i].text, [t.text for t in self.tokens[i:last]]
        if head in ("break", "continue"):
            return True
        if head in TYPES or head in ("return", "goto", "case", "default", "do") or head in CONTROL:
            return False
        if not (head == "*" or re.match(r"[A-Za-z_]", head)) or len(words) < 2:
            return False
        if head != "*" and (re.match(r"[A-Za-z_]", words[1]) or self.declares_pointer(i)):
            return False
        return any(w in ("=", "++", "--", "(") or re.fullmatch(r"[+\-*/%&|^]=|<<=|>>=", w)
                   for w in words)

    def declares_pointer(self, i):
        star = self.tokens[i + 1]
        return star.text == "*" and not self.text[star.end].isspace()


def one_line(text):
    return re.sub(r"\s*\n\s*", " ", text)


def mutants_of(text):
    """All mutants, in the order of the source."""
    source = Source(text)
    found = set()
    for maker in (source.operators, source.numbers, source.conditions, source.sides,
                  source.statements):
        found.update(maker())
    return sorted(found, key=lambda m: (m.begin, m.end, m.kind, m.text))


def applied(text, mutant):
    return text[:mutant.begin] + mutant.text + text[mutant.end:]
