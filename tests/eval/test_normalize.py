"""The stated normalisation, step by step."""

import pytest

from ocria.eval.normalize import escape_markdown, normalise, plain_from_markdown, words


@pytest.mark.parametrize(
    ("markdown", "visible"),
    [
        ("# Title", "Title"),
        ("some **bold** and *slanted* and __loud__ text", "some bold and slanted and loud text"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("- item\n* item\n+ item\n1. first", "item item item 1. first"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b 1 2"),
        ("<table><tr><td>x</td><td>y</td></tr></table>", "x y"),
        ("a<br>b &amp; c", "a b & c"),
        ("![alt](picture.png) [text](https://x.y)", "text"),
        ("price \\$5 and \\*star\\*", "price $5 and *star*"),
        ("sum $a_1 * b_2$ done", "sum a_1 * b_2 done"),
        ("Paid $5 to Ann and $6 to Bob.", "Paid $5 to Ann and $6 to Bob."),
        ("| Fees | $5.00 | $6.10 |", "Fees $5.00 $6.10"),
        ("<tr><td>$5.00</td><td>$6.10</td></tr>", "$5.00 $6.10"),
        ("see <https://a.org/b> or <ann@a.org> now", "see https://a.org/b or ann@a.org now"),
        ("our marks \ue0007\ue001 in a page", "our marks 7 in a page"),
        ("$$\nx^{2}\n$$", "x^{2}"),
        ("```python\nx = 1\n```", "x = 1"),
        (r"see \[12\] and \(b\)", "see [12] and (b)"),
        (r"\[ x = 1 \]", "x = 1"),
        ("<!-- page 3 -->\ntext", "text"),
        ("", ""),
    ],
)
def test_markdown_becomes_its_visible_text(markdown: str, visible: str) -> None:
    assert normalise(plain_from_markdown(markdown)) == visible


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("e\u0301te\u0301", "été"),
        ("Tie\u0302\u0301ng Vie\u0323\u0302t", "Tiếng Việt"),
        ("“quoted” – it’s", '"quoted" - it\'s'),
        ("of\ufb01ce", "office"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("exam-\n  ple", "example"),
        ("coopera\u00ad\ntion", "cooperation"),
        ("2020-\n2021", "2020- 2021"),
        ("• one\n• two", "one two"),
        ("Chapter 1 ........ 7", "Chapter 1 ... 7"),
        ("a\u00a0b\tc\r\nd", "a b c d"),
        ("5\u00b5m", "5μm"),
    ],
)
def test_typography_becomes_plain(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_case_digits_and_accents_count() -> None:
    assert normalise("Straße 1.234,50 É") == "Straße 1.234,50 É"


@pytest.mark.parametrize(
    "text", ["a*b_c#d|e<f>g", "1 < 2 & 3 > 2", "[x](y) `code` ~~z~~ $5$", "&amp; \\[a\\]"]
)
def test_escaped_text_comes_back_unchanged(text: str) -> None:
    assert plain_from_markdown(escape_markdown(text)) == text


def test_words_split_scripts_without_spaces_and_drop_outer_marks() -> None:
    assert words('(Hello), "world"! 日本 3.5') == ["Hello", "world", "日", "本", "3.5"]
