"""Typesets a text as a book of so many pages, to read.

    python benchmarks/batch/book.py TEXT.txt BOOK.pdf [--pages 300]

Paragraphs of TEXT are parted by empty lines; every thirtieth begins a chapter. Needs `typst`.
"""

import argparse
from io import BytesIO
from pathlib import Path

import pypdfium2 as pdfium
import typst

_STYLE = """
#set page("a5", margin: (x: 18mm, y: 20mm), numbering: "1", header: align(center)[_{title}_])
#set text(10pt)
#set par(justify: true, first-line-indent: 1em)
#show heading: it => block(above: 2em, below: 1em, it)
"""
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\#*_`$<>@~[]=-+/\"'"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("book", type=Path)
    parser.add_argument("--pages", type=int, default=300)
    given = parser.parse_args()
    paragraphs = [" ".join(part.split()) for part in given.text.read_text().split("\n\n")]
    given.book.write_bytes(typeset([part for part in paragraphs if part], given.pages))


def typeset(paragraphs: list[str], num_pages: int) -> bytes:
    """A PDF of exactly `num_pages`, the text from its beginning as often as that takes."""
    source = [_STYLE.replace("{title}", "A Book to Read")]
    for number in range(12 * num_pages):
        if number % 30 == 0:
            source.append(f"= Chapter {number // 30 + 1}")
        source.append(paragraphs[number % len(paragraphs)].translate(_MARKS))
    pdf = typst.compile("\n\n".join(source).encode(), format="pdf")
    with pdfium.PdfDocument(pdf) as whole, pdfium.PdfDocument.new() as book:
        assert len(whole) >= num_pages, f"the text fills {len(whole)} pages alone"
        book.import_pages(whole, list(range(num_pages)))
        written = BytesIO()
        book.save(written)
    return written.getvalue()


if __name__ == "__main__":
    main()
