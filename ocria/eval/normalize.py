"""The stated normalisation: what two texts must agree on before characters are counted.

Every accuracy figure except the raw one is taken after these steps, on truth and prediction alike:

1. Markdown becomes plain text (prediction, and truth that is Markdown): page comments, HTML tags,
   emphasis, heading marks, list bullets, table pipes and rules, code fences, link targets, picture
   references and formula dollars go; backslash escapes and HTML entities are resolved. Visible
   characters, list numbers and the LaTeX between the dollars stay.
2. Unicode NFC; typographic ligatures are opened (U+FB00..FB06); soft hyphens, zero-width
   characters and other control characters go; curly quotes, dashes, the ellipsis, the micro sign
   and no-break spaces become their plain forms.
3. A hyphen at a line end followed by a letter is joined with the next line, a soft one always.
4. Bullet glyphs at the start of a line go. Leaders (four and more equal marks) become three.
5. Every run of white space becomes one space; the ends are trimmed.

Letter case, digits, accents and punctuation count.
"""

from __future__ import annotations

import html
import re
import unicodedata

_PLAIN = str.maketrans(
    {
        "‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"',
        "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "―": "-", "−": "-",
        "…": "...", "\u00b5": "\u03bc", "\uff3f": "_", "\u00a0": " ", "\u2007": " ",
        "\u202f": " ", "\u3000": " ", "\u00ad": None, "\u200b": None, "\u200c": None,
        "\u200d": None, "\ufeff": None, "\u2060": None,
        "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st",
    }
)  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_SOFT_LINE_HYPHEN = re.compile("\u00ad[ \t]*\r?\n[ \t]*")
_LINE_HYPHEN = re.compile(r"(?<=\w)-[ \t]*\r?\n[ \t]*(?=[^\W\d_])")
_BULLET = re.compile(r"^[ \t]*[•◦▪▫‣·●○■□\uf0b7\uf0a7][ \t]+", re.MULTILINE)
_LEADER = re.compile(r"([.\-_·=*])(?:[ ]?\1){3,}")
_SPACE = re.compile(r"\s+")

_BLOCK_TAG = re.compile(
    r"</?(?:br|p|div|tr|td|th|li|ul|ol|h[1-6]|table|thead|tbody)\b[^<>]*>", re.IGNORECASE
)
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,400}>")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto):[^<>\s]{1,4000}|[^<>\s@]{1,400}@[^<>\s@]{1,400})>")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+", re.MULTILINE)
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*+]|>)[ \t]+(?:\[[ xX]\][ \t]+)?", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*$", re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\[\]\n]{0,2000})\]\([^)\n]{0,4000}\)")
_LINK = re.compile(r"\[([^\[\]\n]{0,2000})\]\([^)\s]{0,4000}\)")
# No delimiter may hold its own opening: a page of unclosed ones is read in linear time.
_MATH = re.compile(
    r"\$\$((?:(?!\$\$).)+)\$\$"
    r"|(?<!\\)\\\[((?:(?!(?<!\\)\\[\[\]]).)+)\\\]"
    r"|(?<!\\)\\\(((?:(?!\\[()]).)+)\\\)"
    # A blank before the second dollar only if one follows the first, and no digit behind it: `$5
    # and $6` is money.
    r"|(?<![\\$])\$(?=\s|[^$\n]{0,2000}(?<!\s)\$)([^$\n]{1,2000})\$(?!\d)",
    re.DOTALL,
)
_LATEX_SIGN = re.compile(r"\\[A-Za-z]|[\^_=]")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~$&:])")
_MARKED_UNDERSCORE = re.compile(r"(?<![^\W_])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![^\W_])")
_HELD = "\ue000{}\ue001"
_HELD_BACK = re.compile("\ue000(\\d+)\ue001")
# Private-use marks of a page would be taken for ours.
_NOT_HELD = {0xE000: None, 0xE001: None}


def plain_from_markdown(markdown: str) -> str:
    """Visible text of Markdown (step 1), formulas as their LaTeX source."""
    held: list[str] = []

    def hold(text: str) -> str:
        held.append(text)
        return _HELD.format(len(held) - 1)

    text = _without_comments(markdown.translate(_NOT_HELD))
    text = _FENCE.sub("", text)
    text = _MATH.sub(lambda match: hold(_formula(match)), text)
    text = _ESCAPE.sub(lambda match: hold(match.group(1)), text)
    text = _PICTURE.sub(r" ", text)
    text = _LINK.sub(r"\1", text)
    text = _TABLE_RULE.sub("", text)
    text = _HEADING.sub("", text)
    text = _LIST_MARK.sub("", text)
    text = _AUTOLINK.sub(lambda match: hold(match.group(1)), text)
    text = _BLOCK_TAG.sub("\n", text)
    text = _TAG.sub("", text)
    text = text.replace("**", "").replace("~~", "").replace("`", "").replace("|", " ")
    text = _MARKED_UNDERSCORE.sub("", text).replace("*", "")
    return html.unescape(_HELD_BACK.sub(lambda match: held[int(match.group(1))], text))


def _without_comments(markdown: str) -> str:
    parts: list[str] = []
    start = 0
    while (opened := markdown.find("<!--", start)) >= 0:
        closed = markdown.find("-->", opened + 4)
        if closed < 0:
            break
        parts.append(markdown[start:opened])
        start = closed + 3
    return " ".join([*parts, markdown[start:]])


def _formula(match: re.Match[str]) -> str:
    """LaTeX between delimiters; `\\[12\\]` without any LaTeX in it is an escaped bracket pair."""
    dollars_display, brackets, parens, dollars = match.groups()
    escaped = brackets or parens
    if escaped and not _LATEX_SIGN.search(escaped):
        return f"[{escaped}]" if brackets else f"({escaped})"
    return dollars_display or escaped or dollars


def normalise(text: str) -> str:
    """Steps 2 to 5: the form in which characters and words are compared."""
    text = _SOFT_LINE_HYPHEN.sub("", unicodedata.normalize("NFC", text)).translate(_PLAIN)
    text = _CONTROL.sub("", text)
    text = _LINE_HYPHEN.sub("", text)
    text = _BULLET.sub("", text)
    text = _LEADER.sub(lambda match: match.group(1) * 3, text)
    return _SPACE.sub(" ", text).strip()


def words(text: str) -> list[str]:
    """Words of a normalised text, split at white space; marks at a word's ends are dropped.

    A run of Han, kana or Thai letters has no spaces, so each such character is a word.
    """
    found: list[str] = []
    for token in text.split():
        stripped = token.strip(".,;:!?()[]{}\"'«»¿¡*|")
        if stripped:
            found.extend(_split_unspaced(stripped))
    return found


_UNSPACED_RANGES = r"\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f"
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]")
_UNSPACED_OR_REST = re.compile(f"[{_UNSPACED_RANGES}]|[^{_UNSPACED_RANGES}]+")


def _split_unspaced(token: str) -> list[str]:
    return _UNSPACED_OR_REST.findall(token) if _UNSPACED.search(token) else [token]


def escape_markdown(text: str) -> str:
    """Plain text as Markdown that shows it unchanged: how engines without Markdown hand over.

    Brackets become an entity, since `\\[` also opens a formula.
    """
    escaped = re.sub(r"([\\`*_#|>$~])", r"\\\1", text)
    return escaped.replace("&", "&amp;").replace("[", "&#91;").replace("<", "&lt;")
