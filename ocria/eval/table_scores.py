"""TEDS and TEDS-S: tree edit distance between two tables.

Zhong, ShafieiBavani, Jimeno Yepes: Image-based table recognition: data, model, and evaluation
(ECCV 2020), section 5: TEDS(a, b) = 1 - distance(a, b) / max(|a|, |b|), nodes counted with the
root. The tree is table > row > cell; thead and tbody are left out, and a heading cell is a cell,
since Markdown cannot say either. Inserting and deleting cost 1; two cells differ by 1 where their
spans differ, else by the normalised edit distance of their normalised texts. TEDS-S ignores text.
"""

from __future__ import annotations

from dataclasses import dataclass

from apted import APTED, Config
from rapidfuzz.distance import Indel, Levenshtein

from ocria.eval.normalize import normalise, plain_from_markdown
from ocria.eval.tables import Table

MAX_EXACT_PAIRS = 150_000
"""Node pairs of a page up to which the exact distance is worth its time: about 7 us each."""


@dataclass(frozen=True, kw_only=True)
class TableScores:
    """Similarities in 0..1, meaned over the tables of the truth; a missed table counts 0."""

    teds: float
    teds_structure: float
    num_truth: int
    num_found: int


class _Node:
    __slots__ = ("children", "spans", "tag", "text")

    def __init__(self, tag: str, spans: tuple[int, int] = (1, 1), text: str = "") -> None:
        self.tag = tag
        self.spans = spans
        self.text = text
        self.children: list[_Node] = []


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """What two tables do not have in common: rows equal at both tops or bottoms are gone.

    Mapping such rows onto each other is always among the best edits, as with equal ends of strings:
    a node that another mapping sends to one of them costs at least its own removal. So the
    distance of what is left is that of the tables.
    """

    left: _Node
    right: _Node
    num_nodes: int

    @property
    def cost(self) -> int:
        """Node pairs that the exact distance compares."""
        if not self.left.children or not self.right.children:
            return 0
        return _size(self.left) * _size(self.right)

    def distance(self, *, exact: bool) -> float:
        """Tree edit distance, or an upper bound that maps whole rows onto rows."""
        if not self.cost:
            return float(_size(self.left) + _size(self.right) - 2)
        if exact:
            return float(APTED(self.left, self.right, _Costs()).compute_edit_distance())
        return _row_distance(self.left.children, self.right.children)

    def similarity(self, *, exact: bool) -> float:
        """TEDS in 0..1."""
        return max(0.0, 1.0 - self.distance(exact=exact) / self.num_nodes)


def _pair(truth: Table, found: Table, structure_only: bool) -> _Pair:
    left, right = _tree(truth, structure_only), _tree(found, structure_only)
    _drop_equal_ends(left.children, right.children)
    nodes = max(_num_nodes(truth), _num_nodes(found))
    return _Pair(left=left, right=right, num_nodes=nodes)


def _drop_equal_ends(left: list[_Node], right: list[_Node]) -> None:
    for end in (0, -1):
        while left and right and _cells(left[end]) == _cells(right[end]):
            del left[end], right[end]


class _Costs(Config):
    def rename(self, node1: _Node, node2: _Node) -> float:
        """0 for equal nodes, 1 for another kind or span, else how far apart the texts are."""
        if node1.tag != node2.tag or node1.spans != node2.spans:
            return 1.0
        if node1.text == node2.text:
            return 0.0
        return float(Levenshtein.normalized_distance(node1.text, node2.text))


def teds(truth: Table, found: Table, *, structure_only: bool = False) -> float:
    """TEDS of two tables in 0..1; TEDS-S with `structure_only`."""
    pair = _pair(truth, found, structure_only)
    return pair.similarity(exact=pair.cost <= MAX_EXACT_PAIRS)


def table_distance(truth: Table, found: Table, *, structure_only: bool = False) -> float:
    """Tree edit distance; for big tables an upper bound that maps whole rows onto rows."""
    pair = _pair(truth, found, structure_only)
    return pair.distance(exact=pair.cost <= MAX_EXACT_PAIRS)


def teds_of_page(
    truth: tuple[Table, ...], found: tuple[Table, ...], *, structure_only: bool = False
) -> float:
    """TEDS of all tables of a page as one tree, as OpenDataLoader-bench counts: root not a node.

    Stricter than `score_tables` for a page whose tables come in another order or in parts.
    """
    if not truth or not found:
        return float(not truth and not found)
    roots = _Node("page"), _Node("page")
    for root, tables in zip(roots, (truth, found), strict=True):
        root.children = [_tree(table, structure_only) for table in tables]
    nodes = max(sum(map(_num_nodes, truth)), sum(map(_num_nodes, found)))
    return 1.0 - float(APTED(*roots, _Costs()).compute_edit_distance()) / nodes


def score_tables(truth: tuple[Table, ...], found: tuple[Table, ...]) -> TableScores:
    """Pair each table of the truth with the unused one of most similar text, then score pairs.

    Small tables first: while the page's node pairs stay under MAX_EXACT_PAIRS, distances are exact.
    """
    matched = _matched(truth, found)
    pairs = [_pair(a, b, structure_only) for a, b in matched for structure_only in (False, True)]
    spent = 0
    similarity: dict[int, float] = {}
    for place in sorted(range(len(pairs)), key=lambda place: pairs[place].cost):
        spent += pairs[place].cost
        similarity[place] = pairs[place].similarity(exact=spent <= MAX_EXACT_PAIRS)
    count = max(len(truth), 1)
    return TableScores(
        teds=sum(similarity[place] for place in range(0, len(pairs), 2)) / count,
        teds_structure=sum(similarity[place] for place in range(1, len(pairs), 2)) / count,
        num_truth=len(truth),
        num_found=len(found),
    )


def _matched(truth: tuple[Table, ...], found: tuple[Table, ...]) -> list[tuple[Table, Table]]:
    left = ["\t".join(cell.text for cell in table.cells) for table in truth]
    right = ["\t".join(cell.text for cell in table.cells) for table in found]
    ranked = sorted(
        (-Indel.normalized_similarity(a, b), i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
    )
    used_left: set[int] = set()
    used_right: set[int] = set()
    pairs = []
    for _, i, j in ranked:
        if i not in used_left and j not in used_right:
            used_left.add(i)
            used_right.add(j)
            pairs.append((truth[i], found[j]))
    return pairs


def cell_text(text: str) -> str:
    """Text of a cell as it is compared: without marks, normalised."""
    return normalise(plain_from_markdown(text))


def _num_nodes(table: Table) -> int:
    return 1 + len(table.rows) + len(table.cells)


def _tree(table: Table, structure_only: bool) -> _Node:
    root = _Node("table")
    for row in table.rows:
        node = _Node("tr")
        node.children = [
            _Node("td", (c.rowspan, c.colspan), "" if structure_only else cell_text(c.text))
            for c in row
        ]
        root.children.append(node)
    return root


def _size(node: _Node) -> int:
    return 1 + sum(map(_size, node.children))


def _cells(row: _Node) -> list[tuple[tuple[int, int], str]]:
    return [(cell.spans, cell.text) for cell in row.children]


def _row_distance(left_rows: list[_Node], right_rows: list[_Node]) -> float:
    """Upper bound of the tree distance: rows are mapped as units, cells are equal or cost 1.

    Every such mapping is also a tree edit, so the exact distance is never larger.
    """
    left, right = (list(map(_cells, rows)) for rows in (left_rows, right_rows))
    above = [0.0]
    for row in right:
        above.append(above[-1] + 1 + len(row))
    for row_a in left:
        current = [above[0] + 1 + len(row_a)]
        for index, row_b in enumerate(right):
            substituted = above[index] + Levenshtein.distance(row_a, row_b)
            deleted = above[index + 1] + 1 + len(row_a)
            current.append(min(substituted, deleted, current[index] + 1 + len(row_b)))
        above = current
    return above[-1]
