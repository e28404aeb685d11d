"""The real program on real files: the bad-input table, and runs with the shipped model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from .conftest import ROOT, Done, Run, clean_environment

SHIPPED = ROOT / "models" / "checkpoints" / "ocria-nano"
LOCKED = ROOT / "tests" / "rasterize" / "files" / "locked.pdf"
BLACK = b"q 0 0 200 100 re f Q"

AUDIT = """
import os, sys

def note(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname"):
        line = f"{event} {arguments[1:]!r}"
    elif event == "socket.__new__" and arguments[1] not in (1, -1):
        line = f"{event} {arguments[1:]!r}"
    else:
        return
    with open(os.environ["AUDIT_FILE"], "a") as file:
        file.write(line + os.linesep)

sys.addaudithook(note)
"""


@pytest.fixture(scope="module", autouse=True)
def shipped_model() -> None:
    if not (SHIPPED / "config.json").is_file():
        pytest.skip("the shipped checkpoint is not in models/checkpoints/")


def pdf_of(*pages: bytes) -> bytes:
    """A PDF whose page objects are `pages`; each may refer to content stream 3 (a black box)."""
    kids = b" ".join(b"%d 0 R" % number for number in range(4, 4 + len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(pages)),
        b"<</Length %d>>stream\n%s\nendstream" % (len(BLACK), BLACK),
        *pages,
    ]
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def page(width_pt: int = 200, height_pt: int = 100, contents: bytes = b"") -> bytes:
    return b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]%s>>" % (width_pt, height_pt, contents)


BLANK = page()
MISSING_PAGE = b"null"


def check_refused(done: Done, code: int, words: str) -> None:
    said = done.stderr
    assert (done.returncode, done.stdout) == (code, ""), said
    assert f"error: {words}" in said and "\nhint: " in said
    assert "Traceback" not in said
    causes = [line.split(": ", 1)[1] for line in said.splitlines() if "caused by: " in line]
    assert [cause for cause in causes if cause in said.splitlines()[0]] == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "a.pdf is empty"),
        (b"plain text, whatever its name says\n", "a.pdf is not a document"),
        (pdf_of(BLANK)[:60], "a.pdf: the PDF cannot be opened"),
        (pdf_of(), "a.pdf: the PDF"),
    ],
    ids=["empty", "text", "truncated", "no pages"],
)
def test_what_is_no_document(run_real: Run, tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "a.pdf").write_bytes(content)
    check_refused(run_real("parse", "a.pdf"), 3, words)
    # The same bytes through a pipe, where there is no name.
    done = run_real("parse", "-", stdin=content)
    check_refused(done, 3, words.replace("a.pdf", "standard input"))


def test_paths_that_are_no_files(run_real: Run, tmp_path: Path) -> None:
    check_refused(run_real("parse", "no.pdf"), 3, "no.pdf does not exist")
    done = run_real("parse", tmp_path)
    check_refused(done, 3, f"{tmp_path.name} is a folder")


@pytest.mark.parametrize("password", [None, "wrong"])
def test_a_locked_pdf(run_real: Run, tmp_path: Path, password: str | None) -> None:
    env = {"OCRIA_PASSWORD": password} if password else None
    done = run_real("parse", LOCKED, env=env)
    check_refused(done, 3, "locked.pdf: the PDF is encrypted")


@pytest.mark.parametrize("by_file", [True, False])
def test_a_locked_pdf_with_its_password(run_real: Run, tmp_path: Path, by_file: bool) -> None:
    (tmp_path / "word").write_text("sesame\n")
    options = ["--password-file", "word"] if by_file else []
    env = {"OCRIA_PASSWORD": "wrong" if by_file else "sesame"}
    # A page that is not there is found after the document was opened, and before any reading.
    done = run_real("parse", LOCKED, "--pages", "9", *options, env=env)
    check_refused(done, 2, "--pages: there is no page 9")


def test_a_password_file_that_is_missing(run_real: Run, tmp_path: Path) -> None:
    done = run_real("parse", LOCKED, "--password-file", "none")
    check_refused(done, 3, "cannot read the password file: none")


def test_a_page_out_of_range(run_real: Run, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(BLANK, BLANK, BLANK))
    done = run_real("parse", "a.pdf", "--pages", "99")
    check_refused(done, 2, "--pages: there is no page 99, the document has 3 pages")


def test_weights_cut_short_and_another_architecture(run_real: Run, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(BLANK))
    model = tmp_path / "model"
    model.mkdir()
    for path in SHIPPED.iterdir():
        (model / path.name).symlink_to(path)
    shard = next(path for path in sorted(model.glob("*.safetensors")))
    content = shard.read_bytes()
    shard.unlink()
    shard.write_bytes(content[: len(content) // 2])
    done = run_real("parse", "a.pdf", "--model", "model")
    check_refused(done, 6, "damaged checkpoint")
    (model / "config.json").unlink()
    (model / "config.json").write_text('{"model_type": "llama"}')
    done = run_real("parse", "a.pdf", "--model", "model")
    check_refused(done, 6, "")
    assert "llama" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--model", "nobody"], 6, "model `nobody` is unknown"),
        (["--drafter", "mtp"], 6, "the model ocria-nano has no MTP head"),
        (["--device", "cuda:99"], 5, "no "),
        (["--device", "quantum"], 2, "unknown device: `quantum`"),
    ],
)
def test_what_cannot_be_had_here(
    run_real: Run, tmp_path: Path, options: list[str], code: int, words: str
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(BLANK))
    check_refused(run_real("parse", "a.pdf", *options), code, words)


def test_bad_pages_among_good_ones(run_real: Run, tmp_path: Path) -> None:
    huge = page(200 * 72, 200 * 72, b"/Contents 3 0 R")
    (tmp_path / "a.pdf").write_bytes(pdf_of(BLANK, MISSING_PAGE, BLANK, huge))
    done = run_real("parse", "a.pdf", "-f", "json", "--dpi", "300")
    assert done.returncode == 7, done.stderr
    pages = json.loads(done.stdout)["pages"]
    assert [entry["status"] for entry in pages] == ["blank", "failed", "blank", "failed"]
    assert pages[1]["error"]["code"] == "page_broken"
    assert pages[3]["error"]["code"] == "pixel_limit"
    assert "warning: page 2: failed (page_broken)" in done.stderr
    assert "warning: page 4: failed (pixel_limit)" in done.stderr


def test_tiny_and_enormous_images(run_real: Run, tmp_path: Path) -> None:
    Image.new("RGB", (1, 1), "white").save(tmp_path / "one.png")
    done = run_real("parse", "one.png", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert [entry["status"] for entry in json.loads(done.stdout)["pages"]] == ["blank"]
    Image.new("1", (20_000, 20_000)).save(tmp_path / "vast.png")
    done = run_real("parse", "vast.png")
    assert done.returncode == 7
    assert "warning: page 1: failed (pixel_limit)" in done.stderr
    assert done.stdout.startswith("<!-- page 1: failed: ")


def test_a_whole_run_opens_no_network_socket_and_says_only_the_result(tmp_path: Path) -> None:
    image = Image.new("RGB", (320, 64), "white")
    ImageDraw.Draw(image).text((20, 20), "Invoice 2024", fill="black", font_size=24)
    image.save(tmp_path / "a.png")
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(AUDIT)
    log = tmp_path / "sockets"
    paths = os.pathsep.join([str(tmp_path / "hook"), str(ROOT)])
    env = {"PYTHONPATH": paths, "AUDIT_FILE": str(log)}
    options = ["-f", "json", "--max-tokens", "8", "--stats", "--progress", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "ocria", "parse", "a.png", *options],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=clean_environment() | env,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 7), done.stderr.decode()
    document = json.loads(done.stdout)
    assert document["schema"] == "ocria.document/1"
    assert document["pages"][0]["num_tokens"] > 0
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith(b"{")]
    warnings = ["warning"] * (done.returncode == 7)
    assert [event["event"] for event in events] == ["begin", "page", *warnings, "stats"]
    assert not log.exists(), log.read_text()
    # The hook itself must be able to fail.
    probe = [sys.executable, "-c", "import socket; socket.socket()"]
    subprocess.run(probe, env=clean_environment() | env, check=True)
    assert log.exists()
