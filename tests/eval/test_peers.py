"""Peers: absent ones say what to install; those of stand-in packages hand over what they read."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ocria.cli import main
from ocria.errors import ExitCode, WeightsError
from ocria.eval.engines import PageImage, make_engine
from ocria.eval.options import EvalOptions
from ocria.eval.peers import docling as docling_peer
from ocria.eval.peers.liteparse import LiteParse
from ocria.eval.peers.rapidocr import RapidOcr

OPTIONS = EvalOptions(dataset=Path(), threads=2)
PAGE = PageImage(number=3, image=Image.new("RGB", (80, 60), (200, 10, 10)), dpi=143.9)


@pytest.mark.parametrize(
    ("engine", "hint"),
    [
        ("tesseract", "tesseract-ocr"),
        ("rapidocr", "pip install"),
        ("docling", "pip install docling"),
        ("liteparse", "pip install liteparse"),
    ],
)
def test_an_absent_peer_says_how_to_install_it(
    engine: str, hint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises(WeightsError) as caught:
        make_engine(engine, OPTIONS)
    assert caught.value.hint is not None and hint in caught.value.hint
    (tmp_path / "a.txt").write_text("a")
    PAGE.image.save(tmp_path / "a.png")
    work = str(tmp_path / "work")
    assert main(["eval", str(tmp_path), "--engine", engine, "--work", work]) == ExitCode.WEIGHTS
    assert "hint: " in capfd.readouterr().err


def test_docling_without_weights_is_told_of_and_fetches_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = fake_docling(monkeypatch, tmp_path / "none")
    with pytest.raises(WeightsError, match="no weights") as caught:
        make_engine("docling", OPTIONS)
    assert "docling-tools" in str(caught.value.hint)
    assert made == []


def test_docling_gets_the_page_as_a_picture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = fake_docling(monkeypatch, tmp_path)
    monkeypatch.setattr(docling_peer, "version", lambda name: "9")
    (read,) = make_engine("docling", OPTIONS).read([PAGE], lang="en")
    assert (read.number, read.markdown) == (3, "page-3.png of 80x60")
    assert made == [{"artifacts_path": tmp_path, "threads": 2, "device": "auto"}]


def test_docling_that_cannot_load_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_docling(monkeypatch, tmp_path, fails=True)
    with pytest.raises(WeightsError, match="layout model is missing"):
        make_engine("docling", OPTIONS)


def test_liteparse_is_told_language_data_and_resolution(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[dict[str, Any]] = []

    class Parser:
        def __init__(self, **options: Any) -> None:
            built.append(options)

        def parse(self, pdf: bytes) -> Any:
            assert pdf.startswith(b"%PDF")
            return types.SimpleNamespace(text="# read")

    tesseract: Any = types.SimpleNamespace(languages=lambda lang: "deu", data_folder="/data")
    monkeypatch.setattr("ocria.eval.peers.liteparse.version", lambda name: "2")
    reader = LiteParse(Parser, tesseract)
    read = [page for _ in range(2) for page in reader.read([PAGE], lang="de")]
    assert [page.markdown for page in read] == ["# read", "# read"]
    (options,) = built
    assert (options["ocr_language"], options["tessdata_path"]) == ("deu", "/data")
    assert (options["dpi"], options["num_workers"]) == (144.0, 1)


def test_rapidocr_gets_blue_first_and_gives_scored_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_image(pixels: Any) -> Any:
        assert tuple(pixels[0, 0]) == (10, 10, 200)
        return types.SimpleNamespace(txts=("a*b", "c"), scores=(0.5, 0.75))

    monkeypatch.setattr("ocria.eval.peers.rapidocr.version", lambda name: "3")
    (page,) = RapidOcr(read_image).read([PAGE], lang="en")
    assert page.markdown == "a\\*b\nc"
    assert [block.confidence for block in page.blocks] == [0.5, 0.75]


def test_rapidocr_that_finds_nothing_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocria.eval.peers.rapidocr.version", lambda name: "3")
    empty = types.SimpleNamespace(txts=None, scores=None)
    (page,) = RapidOcr(lambda pixels: empty).read([PAGE], lang="en")
    assert (page.markdown, page.blocks) == ("", ())


def fake_docling(
    monkeypatch: pytest.MonkeyPatch, weights: Path, *, fails: bool = False
) -> list[dict[str, Any]]:
    """A package with the names that the adapter uses; returns the options of its pipelines."""
    made: list[dict[str, Any]] = []

    class Converter:
        def __init__(self, format_options: dict[str, Any]) -> None:
            made.append(format_options["image"])

        def initialize_pipeline(self, kind: str) -> None:
            if fails:
                raise FileNotFoundError("layout model is missing")

        def convert(self, source: Any) -> Any:
            with Image.open(source.stream) as picture:
                text = f"{source.name} of {picture.width}x{picture.height}"
            document = types.SimpleNamespace(export_to_markdown=lambda: text)
            return types.SimpleNamespace(document=document)

    names: dict[str, dict[str, Any]] = {
        "docling": {},
        "docling.datamodel": {},
        "docling.datamodel.accelerator_options": {
            "AcceleratorOptions": lambda num_threads, device: (num_threads, device)
        },
        "docling.datamodel.base_models": {
            "DocumentStream": types.SimpleNamespace,
            "InputFormat": types.SimpleNamespace(IMAGE="image"),
        },
        "docling.datamodel.pipeline_options": {
            "ThreadedPdfPipelineOptions": lambda artifacts_path, accelerator_options: {
                "artifacts_path": artifacts_path,
                "threads": accelerator_options[0],
                "device": accelerator_options[1],
            }
        },
        "docling.datamodel.settings": {
            "settings": types.SimpleNamespace(artifacts_path=weights, cache_dir=weights)
        },
        "docling.document_converter": {
            "DocumentConverter": Converter,
            "ImageFormatOption": lambda pipeline_options: pipeline_options,
        },
    }
    for name, values in names.items():
        module = types.ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    return made
