"""The document schema and the frozen examples hold each other.

A change of output that is meant: `OCRIA_FREEZE=1 pytest tests/output/test_frozen.py`, and the
difference belongs into the same commit.
"""

import copy
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ocria.document import Document
from ocria.output import render

FROZEN = Path(__file__).parent / "frozen"
NAMES = ["markup", "plain", "stats", "empty"]
SCHEMA: dict[str, Any] = json.loads(
    files("ocria.output").joinpath("schema/document-1.schema.json").read_text(encoding="utf-8")
)


def validator(definition: str | None = None) -> Draft202012Validator:
    reference = {"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]}
    return Draft202012Validator(reference if definition else SCHEMA)


def frozen(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FROZEN / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ["json", "md", "jsonl", "html"])
def test_documents_are_written_as_frozen(
    name: str, suffix: str, example_documents: dict[str, Document]
) -> None:
    path = FROZEN / f"{name}.{suffix}"
    written = render(example_documents[name], suffix)  # type: ignore[arg-type]
    if os.environ.get("OCRIA_FREEZE"):
        path.write_text(written, encoding="utf-8")
    assert written == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_frozen_documents_follow_the_schema(name: str) -> None:
    validator().validate(frozen(name))


@pytest.mark.parametrize("name", NAMES)
def test_json_lines_are_the_same_document(name: str) -> None:
    header, *pages = (FROZEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    validator("header").validate(json.loads(header))
    for page in pages:
        validator("page").validate(json.loads(page))
    assert {**json.loads(header), "pages": [json.loads(page) for page in pages]} == frozen(name)


def test_keys_stand_in_the_order_of_the_contract() -> None:
    document = frozen("stats")
    page = document["pages"][0]
    assert list(document) == ["schema", "source", "generator", "pages"]
    assert list(document["source"]) == ["name", "sha256", "media_type", "num_pages"]
    assert list(document["generator"]) == ["ocria", "model", "settings"]
    assert " ".join(page) == (
        "number label width_pt height_pt rotation status error blocks confidence num_tokens "
        "seconds decoding"
    )
    assert " ".join(page["blocks"][0]) == (
        "id type level bbox text markdown html latex confidence provenance links"
    )


def test_times_appear_only_where_a_page_was_measured() -> None:
    assert "seconds" not in frozen("plain")["pages"][0]
    assert frozen("stats")["pages"][0]["seconds"]["vision"] == 1.2346


WRONG: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "another schema": (("schema",), "ocria.document/2"),
    "page zero": (("pages", 0, "number"), 0),
    "odd rotation": (("pages", 0, "rotation"), 45),
    "unknown status": (("pages", 0, "status"), "fine"),
    "failed without error": (("pages", 0, "status"), "failed"),
    "error without failure": (
        ("pages", 0, "error"),
        {"code": "timeout", "message": "late"},
    ),
    "unknown error code": (("pages", 1, "error", "code"), "oops"),
    "unknown type": (("pages", 0, "blocks", 0, "type"), "title"),
    "level seven": (("pages", 0, "blocks", 0, "level"), 7),
    "heading without level": (("pages", 0, "blocks", 0, "level"), None),
    "paragraph with html": (("pages", 0, "blocks", 1, "html"), "<p>"),
    "table without html": (("pages", 0, "blocks", 3, "html"), None),
    "box of three": (("pages", 0, "blocks", 0, "bbox"), [1, 2, 3]),
    "control character": (("pages", 0, "blocks", 0, "text"), "a\x07b"),
    "too sure": (("pages", 0, "confidence"), 1.2),
    "id of elsewhere": (("pages", 0, "blocks", 0, "id"), "block-1"),
    "digest cut": (("source", "sha256"), "abc"),
    "drafter as a setting": (("generator", "settings", "drafter"), "ngram"),
    "more keys": (("pages", 0, "extra"), 1),
    "seconds alone": (("pages", 0, "seconds"), None),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_documents_are_refused(case: str) -> None:
    (*path, key), value = WRONG[case]
    document = copy.deepcopy(frozen("plain"))
    target: Any = document
    for step in path:
        target = target[step]
    target[key] = value
    assert not validator().is_valid(document)


@pytest.mark.parametrize("key", ["label", "blocks", "confidence", "num_tokens", "error"])
def test_no_page_key_may_be_missing(key: str) -> None:
    document = frozen("plain")
    del document["pages"][0][key]
    assert not validator().is_valid(document)
