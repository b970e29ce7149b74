"""Checks pages and drawings of adam-ctl as a strict reader.

  page.py html FILE    balanced tags, nothing loaded or run; prints the text
  page.py svg FILE     well-formed XML; prints "polylines N" and the texts
"""
import base64
import html.parser
import sys
import xml.etree.ElementTree

VOID = {"meta", "img", "br", "hr", "wbr"}
DRAWN = {"svg", "title", "rect", "line", "polyline", "circle", "text"}
KNOWN = VOID | DRAWN | set(
    "html head style body h1 h2 h3 p div span b table thead tbody tfoot tr th td pre code "
    "figure figcaption".split())


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text, self.pictures = [], [], 0

    def handle_starttag(self, tag, attributes):
        assert tag in KNOWN, f"unexpected element {tag}"
        for name, value in attributes:
            assert not name.startswith("on"), f"{tag} has {name}"
            assert name not in ("href", "xlink:href", "srcset", "action"), f"{tag} has {name}"
            if name == "src":
                head = "data:image/png;base64,"
                assert value.startswith(head), value
                assert base64.b64decode(value[len(head):], validate=True)[:4] == b"\x89PNG"
                self.pictures += 1
            if name == "style":
                assert "url" not in value, value
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            assert "url(" not in data and "@import" not in data
        elif data.strip():
            self.text.append(data.strip())


def check_html(text):
    assert text.startswith("<!DOCTYPE html>")
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open, page.open
    print("pictures", page.pictures)
    print("\n".join(page.text))


def check_svg(text):
    root = xml.etree.ElementTree.fromstring(text)
    names = [element.tag.split("}")[1] for element in root.iter()]
    assert set(names) <= DRAWN, set(names) - DRAWN
    for element in root.iter():
        for name, value in element.attrib.items():
            assert "nan" not in value and "inf" not in value, (name, value)
            assert "href" not in name and not name.startswith("on")
    print("polylines", names.count("polyline"))
    print("\n".join(e.text for e in root.iter() if e.text and e.text.strip()))


with open(sys.argv[2], encoding="utf-8") as file:
    {"html": check_html, "svg": check_svg}[sys.argv[1]](file.read())
