"""Formats by loss and bytes: what is bought first, and when buying stops."""

import csv
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from ocria.calibration.allocation import Loss, allocate, write_table
from ocria.calibration.sensitivity_plot import write_plot


def loss(site: str, kl: float, num_weights: int = 1600) -> Loss:
    return Loss(site=site, num_weights=num_weights, kl=kl, agreement=0.9, fp8_ratio=0.1)


LOSSES = (loss("a", 0.01), loss("b", 0.04), loss("c", 0.05, 16_000))
# 4.5 bits a weight: 900, 900 and 9000 bytes; FP8 costs 700, 700 and 7000 more.
LEAST = 10_800


def test_least_budget_is_all_nvfp4() -> None:
    assert set(allocate(LOSSES, budget_bytes=LEAST, max_loss=None).values()) == {"nvfp4"}


def test_loss_saved_for_each_byte_comes_first() -> None:
    plan = allocate(LOSSES, budget_bytes=LEAST + 700, max_loss=None)
    assert plan == {"a": "nvfp4", "b": "fp8", "c": "nvfp4"}
    plan = allocate(LOSSES, budget_bytes=LEAST + 1500, max_loss=None)
    assert plan == {"a": "fp8", "b": "fp8", "c": "nvfp4"}


@pytest.mark.parametrize("budget", range(LEAST, 40_000, 1700))
def test_budget_is_kept(budget: int) -> None:
    plan = allocate(LOSSES, budget_bytes=budget, max_loss=None)
    assert sum(item.num_bytes(plan[item.site]) for item in LOSSES) <= budget


def test_a_bound_on_the_loss_ends_it() -> None:
    assert set(allocate(LOSSES, budget_bytes=None, max_loss=0.2).values()) == {"nvfp4"}
    plan = allocate(LOSSES, budget_bytes=None, max_loss=0.07)
    assert sum(item.kl_in(plan[item.site]) for item in LOSSES) <= 0.07
    assert plan["b"] == "fp8" and plan["c"] == "nvfp4"
    assert set(allocate(LOSSES, budget_bytes=None, max_loss=0.0).values()) == {"bf16"}


def test_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_table(path, LOSSES, allocate(LOSSES, budget_bytes=LEAST + 700, max_loss=None))
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["site"] for row in rows] == ["c", "b", "a"]
    assert rows[1]["format"] == "fp8" and rows[1]["kl_nats"] == "0.040000"


@pytest.mark.parametrize("agreement", [0.9, None])
def test_plot(tmp_path: Path, agreement: float | None) -> None:
    path = tmp_path / "table.svg"
    losses = [replace(item, agreement=agreement) for item in (*LOSSES, loss("<d>", 0.0))]
    write_plot(path, losses, allocate(losses, budget_bytes=LEAST + 10_000, max_loss=None))
    svg = ElementTree.parse(path).getroot()
    texts = [text.text or "" for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert ("noise share" if agreement is None else "KL, nats") in texts[0]
    assert [text for text in texts if text in {"a", "b", "c", "<d>"}] == ["a", "b", "c", "<d>"]
    bars = svg.findall("{http://www.w3.org/2000/svg}rect")[-4:]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert widths[2] == 360 and widths[3] == 0 and widths[0] == pytest.approx(72)
