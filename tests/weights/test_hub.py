"""Checkpoints by id: the local cache, a hub on the loopback, and every way of having neither."""

import logging
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ocria.errors import WeightsError
from ocria.weights import hub, hub_cache

from .hub_server import COMMIT, HubServer, serving

REPO = "someone/reader"
ID = hub_cache.HubId(repo=REPO)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "preprocessor_config.json"):
        (folder / name).write_text("{}")
    save_file({"weight": torch.arange(60_000.0)}, folder / "model.safetensors")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    (folder / "README.md").write_text("words")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    pytest.importorskip("huggingface_hub")
    with serving(REPO, files) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
        yield running


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b", ("a/b", "main")),
        ("datalab-to/chandra-ocr-2", ("datalab-to/chandra-ocr-2", "main")),
        ("a/b@v1.0", ("a/b", "v1.0")),
        ("a/b@refs/pr/3", ("a/b", "refs/pr/3")),
        ("plain", None),
        ("/a/b", None),
        ("./a/b", None),
        ("../b", None),
        ("a/b/c", None),
        ("a/b@../../x", None),
        ("a b/c", None),
    ],
)
def test_what_an_id_looks_like(name: str, expected: tuple[str, str] | None) -> None:
    found = hub_cache.parse_hub_id(name)
    assert (found and (found.repo, found.revision)) == expected


def test_the_cache_is_where_the_library_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("HF_HOME", raising=False)
    assert hub_cache.cache_folder() == Path("/x/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "/h")
    assert hub_cache.cache_folder() == Path("/h/hub")


def test_a_fetch_brings_what_is_needed_and_says_so(
    server: HubServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(hub.NOTICE, "ocria.weights.hub")
    folder = hub.fetch(ID)
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "tokenizer.json", "preprocessor_config.json"),
        *("chat_template.jinja", "model.safetensors"),
    }
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == f"fetching {REPO} from the hub: 0.0 GB"
    assert told[-1] == f"fetched {REPO}, revision {COMMIT}"
    assert hub_cache.missing_files(folder) == ()


def test_what_lies_in_the_cache_opens_no_socket(
    server: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hub.fetch(ID)

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert hub.fetch(ID) == folder
    assert hub.fetch(hub_cache.HubId(repo=REPO, revision=COMMIT)) == folder


def test_a_broken_fetch_goes_on_where_it_stopped(
    server: HubServer, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_LARGE_BYTES", 1000)
    server.cut_after = 100_000
    with pytest.raises(
        WeightsError, match=r"fetching model\.safetensors of someone/reader stopped"
    ):
        hub.fetch(ID)
    assert hub_cache.cached_snapshot(ID) is None
    first, server.cut_after = server.sent["model.safetensors"], None
    assert first == 100_000
    folder = hub.fetch(ID)
    size = (files / "model.safetensors").stat().st_size
    assert server.sent["model.safetensors"] == size
    assert (folder / "model.safetensors").read_bytes() == (files / "model.safetensors").read_bytes()


def test_a_damaged_transfer_is_not_kept(
    server: HubServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_LARGE_BYTES", 1000)
    server.cut_after = 100_000
    with pytest.raises(WeightsError):
        hub.fetch(ID)
    server.cut_after = None
    (part,) = cache.rglob("*.part")
    part.write_bytes(b"x" * part.stat().st_size)
    with pytest.raises(WeightsError, match="came damaged"):
        hub.fetch(ID)
    assert list(cache.rglob("*.part")) == [] and hub_cache.cached_snapshot(ID) is None
    assert hub.fetch(ID) == hub_cache.cached_snapshot(ID)


def test_a_repository_without_safetensors_is_refused(server: HubServer, files: Path) -> None:
    (files / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"it lacks .*model\.safetensors"):
        hub.fetch(ID)


def test_an_unknown_repository_says_so(server: HubServer) -> None:
    with pytest.raises(WeightsError, match="the hub has no such repository"):
        hub.fetch(hub_cache.HubId(repo="someone/else"))


def test_switched_off_names_the_files_and_opens_no_socket(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(WeightsError, match="switched off by HF_HUB_OFFLINE") as caught:
        hub.fetch(ID)
    hint = caught.value.hint or ""
    assert "config.json, tokenizer.json" in hint and "*.safetensors" in hint
    assert str(cache / "models--someone--reader") in hint and "--model DIR" in hint


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(WeightsError, match=r"pip install 'ocria\[hub\]'"):
        hub.fetch(ID)


def test_a_hub_that_never_answers_costs_less_than_five_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "DEADLINE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(WeightsError, match="the hub cannot be reached"):
            hub.fetch(ID)
        # The deadline is half a second; a busy machine gets the rest.
        assert time.monotonic() - started < 10


def test_the_deadline_holds_when_the_system_hangs() -> None:
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        hub._within(0.05, lambda: time.sleep(60))
    assert time.monotonic() - started < 20
    assert hub.DEADLINE_S < 5


def test_refused_connections_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(WeightsError, match="the hub cannot be reached"):
        hub.fetch(ID)


def test_a_drafter_needs_no_tokenizer(server: HubServer, files: Path) -> None:
    from ocria.models.finding import named_drafter

    (files / "tokenizer.json").unlink()
    (files / "preprocessor_config.json").unlink()
    folder = named_drafter(REPO)
    assert folder is not None and (folder / "model.safetensors").is_file()
    assert named_drafter(str(files)) == files and named_drafter(None) is None
    assert hub_cache.cached_snapshot(ID) is None
    with pytest.raises(WeightsError, match=r"it lacks tokenizer\.json"):
        hub.fetch(ID)


def test_a_half_fetched_folder_lacks_its_shards(files: Path) -> None:
    (files / "model.safetensors").unlink()
    (files / "config.json").unlink()
    assert hub_cache.missing_files(files) == ("config.json", "model.safetensors")
    (files / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "model-00001-of-00002.safetensors"}}'
    )
    assert "model-00001-of-00002.safetensors" in hub_cache.missing_files(files)


def test_notices_are_seen_without_verbosity(capsys: pytest.CaptureFixture[str]) -> None:
    from ocria.console import set_verbosity

    logger = logging.getLogger("ocria")
    before = logger.handlers[:], logger.level, logger.propagate
    try:
        set_verbosity(0, quiet=False)
        logging.getLogger("ocria.weights.hub").log(hub.NOTICE, "fetching %s", "x")
        set_verbosity(0, quiet=True)
        logging.getLogger("ocria.weights.hub").log(hub.NOTICE, "fetching %s", "y")
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
        logging.captureWarnings(False)
    assert capsys.readouterr().err == "note: fetching x\n"
