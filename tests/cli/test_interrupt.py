"""Signals around a write."""

import os
import signal
from pathlib import Path

import pytest

from ocria.cli.interrupt import InterruptGate

from .conftest import Run, Script, Start, wait_for


def test_a_signal_within_a_write_waits_for_its_end() -> None:
    done = []
    with InterruptGate().installed() as gate, pytest.raises(KeyboardInterrupt), gate.shut():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("the rest of the page")
    assert done == ["the rest of the page"]


def test_a_second_signal_does_not_wait() -> None:
    done = []
    with InterruptGate().installed() as gate, pytest.raises(KeyboardInterrupt), gate.shut():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        done.append("not reached")
    assert done == []


def test_handlers_are_put_back_and_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interrupt = signal.getsignal(signal.SIGINT)
        with InterruptGate().installed():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGINT) != interrupt
        assert signal.getsignal(signal.SIGINT) == interrupt
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_page_is_read(
    start: Start, script: Script, tmp_path: Path, number: signal.Signals
) -> None:
    mark = tmp_path / "second"
    document = script({"text": "one"}, {"text": "two", "mark": str(mark), "sleep": 30})
    process = start("parse", document, "-o", "out.md")
    wait_for(mark)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert out == b"" and b"Traceback" not in err
    assert (tmp_path / "out.partial.md").read_text() == "one\n"
    assert {path.name for path in tmp_path.iterdir()} == {"doc.pdf", "second", "out.partial.md"}


def test_an_interrupt_before_the_first_page_leaves_nothing(
    run: Run, script: Script, tmp_path: Path
) -> None:
    assert run("parse", script({"interrupt": True}), "-o", "out.md").returncode == 130
    assert {path.name for path in tmp_path.iterdir()} == {"doc.pdf"}
