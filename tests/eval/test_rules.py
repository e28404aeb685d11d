"""Each rule type of olmOCR-bench on hand-made pages."""

from typing import Any

import pytest

from ocria.eval.rules import RuleError, read_rule, tail_repeats, with_baseline

TABLE = (
    "<table><thead><tr><th rowspan='2'>Item</th><th colspan='2'>Year Ended</th></tr>"
    "<tr><th>2023</th><th>2024</th></tr></thead>"
    "<tr><td>Revenue</td><td>1,136</td><td>2,532</td></tr>"
    "<tr><td>Costs</td><td>680</td><td>1,892</td></tr></table>"
)


def holds(markdown: str, **fields: Any) -> bool:
    return read_rule({"pdf": "x.pdf", "page": 1, "id": "r", **fields}).holds(markdown)


def test_present_and_absent_are_opposites() -> None:
    for page, there in (("The Master Bath is here", True), ("nothing", False), ("", False)):
        assert holds(page, type="present", text="Master Bath") is there
        assert holds(page, type="absent", text="Master Bath") is not there


def test_present_allows_max_diffs_and_case() -> None:
    assert not holds("master bath", type="present", text="Master Bath")
    assert holds("master bath", type="present", text="Master Bath", case_sensitive=False)
    assert holds("Master Bqth", type="present", text="Master Bath", max_diffs=1)
    assert not holds("Mqster Bqth", type="present", text="Master Bath", max_diffs=1)


def test_present_at_the_ends_only() -> None:
    page = "199 " + "text " * 40 + "200"
    assert not holds(page, type="absent", text="200", last_n=20)
    assert holds(page, type="absent", text="199", last_n=20)
    assert holds(page, type="present", text="199", first_n=10)


def test_marks_and_typography_are_normalised() -> None:
    assert holds("it’s **very**<br>good", type="present", text="it's very good")
    assert holds("cafe\u0301", type="present", text="café")


def test_order() -> None:
    rule = {"type": "order", "before": "first part", "after": "second part", "max_diffs": 2}
    assert holds("first part, then second part", **rule)
    assert holds("second part. frst part then second pert", **rule)
    assert not holds("second part, then first part", **rule)
    assert not holds("first part only", **rule)
    assert not holds("", **rule)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cell": "1,136"}, True),
        ({"cell": "absent cell"}, False),
        ({"cell": "680", "up": "1,136"}, True),
        ({"cell": "680", "down": "1,136"}, False),
        ({"cell": "1,136", "left": "Revenue", "right": "2,532"}, True),
        ({"cell": "1,892", "top_heading": "Year Ended"}, True),
        ({"cell": "1,892", "top_heading": "2024"}, True),
        ({"cell": "1,892", "top_heading": "2023"}, False),
        ({"cell": "1,892", "left_heading": "Costs"}, True),
        ({"cell": "Year Ended", "down": "2023"}, True),
        ({"cell": "2023", "left": "Item"}, True),
    ],
)
def test_table(fields: dict[str, str], expected: bool) -> None:
    # `2023` and `2024` are alike by three quarters: only max_diffs 0 tells them apart.
    assert holds(TABLE, type="table", **fields) is expected


def test_table_in_markdown_without_its_rule() -> None:
    assert holds("| a | b |\n| 1 | 2 |", type="table", cell="2", up="b", left_heading="1")
    assert not holds("no table", type="table", cell="2")


def test_math_is_compared_as_normalised_latex() -> None:
    assert holds(r"so $x ^ {2}$ it is", type="math", math="x^2")
    assert not holds("x^2 without marks", type="math", math="x^2")


def test_baseline() -> None:
    assert holds("text", type="baseline")
    assert not holds("", type="baseline")
    assert not holds("--- !", type="baseline")
    assert not holds("word " + "ab" * 40, type="baseline")
    assert holds("word " + "ab" * 10, type="baseline")
    assert not holds("日本", type="baseline")
    assert not holds("fine 😀", type="baseline")


def test_baseline_of_a_blank_page_bounds_the_length() -> None:
    assert holds("", type="baseline", max_length=10)
    assert not holds("twelve letters", type="baseline", max_length=10)


def test_tail_repeats_counts_each_size() -> None:
    assert tail_repeats("abcabcabcabc") == (1, 1, 4, 1, 1)
    assert tail_repeats("a" * 100) == (100, 50, 33, 25, 20)
    assert tail_repeats("") == (0, 0, 0, 0, 0)


def test_a_page_gets_one_baseline() -> None:
    present = read_rule({"type": "present", "text": "a", "id": "p"})
    own = read_rule({"type": "baseline", "max_length": 0, "id": "b"})
    assert [rule.type for rule in with_baseline([present])] == ["present", "baseline"]
    assert with_baseline([own]) == (own,)


@pytest.mark.parametrize(
    "row",
    [
        {"type": "flavour"},
        {},
        {"type": "present"},
        {"type": "present", "text": " "},
        {"type": "order", "before": "abc", "after": "abd", "max_diffs": 3},
        {"type": "baseline", "max_length": []},
        {"type": "math", "math": " "},
        {"type": "table", "up": "x"},
    ],
)
def test_bad_rules_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(RuleError):
        read_rule(row)
