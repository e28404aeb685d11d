"""Codes and words of `ocria parse`."""

import json

import pytest

from .conftest import Run, Script


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing argument 'INPUT'"),
        (["doc.pdf", "--pgaes", "3"], "No such option: --pgaes"),
        (["doc.pdf", "--dpi", "x"], "--dpi must be `auto` or a whole number"),
        (["doc.pdf", "--dpi", "5"], "--dpi must be `auto` or 18 to 1200, not 5"),
        (["doc.pdf", "--max-tokens", "0"], "--max-tokens must be at least 1"),
        (["doc.pdf", "--dpi", "٣٠٠"], "--dpi must be `auto` or a whole number"),
        (["doc.pdf", "--max-tokens", "x"], "'OCRIA_MAX_TOKENS'): it must be a whole number\n"),
        (["doc.pdf", "-f", "docx"], "'OCRIA_FORMAT'): 'docx' is not one of"),
        (["doc.pdf", "--drafter", "magic"], "'magic' is not one of"),
        (["doc.pdf", "--images", "figures"], "--images is reserved"),
        (["doc.pdf", "-v", "-q"], "`-v` and `-q` exclude each other"),
        (["doc.pdf", "second.pdf"], "second.pdf"),
    ],
)
def test_usage_errors(run: Run, script: Script, arguments: list[str], words: str) -> None:
    script({"text": "x"})
    done = run("parse", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and words in done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr


def test_an_unknown_command_and_no_command(run: Run) -> None:
    done = run("prse")
    assert done.returncode == 2 and "Did you mean 'parse'?" in done.stderr
    done = run()
    assert done.returncode == 2 and "Usage: ocria" in done.stderr


@pytest.mark.parametrize(
    ("fatal", "code"),
    [
        ("UsageError", 2),
        ("InputError", 3),
        ("PasswordError", 3),
        ("OutputError", 4),
        ("DeviceError", 5),
        ("WeightsError", 6),
    ],
)
def test_each_kind_of_error_has_its_code(run: Run, script: Script, fatal: str, code: int) -> None:
    done = run("parse", script(fatal=fatal))
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.endswith("error: boom\n\nhint: do something\n")


def test_a_missing_file(run: Run) -> None:
    done = run("parse", "missing.pdf")
    assert done.returncode == 3 and "error: no such file: missing.pdf" in done.stderr


def test_a_text_file_named_pdf(run: Run, script: Script) -> None:
    script().write_text("plain text")
    done = run("parse", "doc.pdf")
    assert done.returncode == 3
    assert "error: not a document: doc.pdf\n  caused by: JSONDecodeError: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_says_so_and_verbose_shows_where(run: Run, script: Script) -> None:
    done = run("parse", script({"error": "bug"}))
    assert done.returncode == 1
    assert (
        "error: internal error: KeyError: 'x'" in done.stderr
        and "hint: this is a bug" in done.stderr
    )
    assert "Traceback" not in done.stderr
    done = run("parse", script({"error": "bug"}), "-v")
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_failed_and_truncated_pages_are_named(run: Run, script: Script) -> None:
    document = script({"text": "one"}, {"status": "failed"}, {"text": "cut", "status": "truncated"})
    done = run("parse", document, "-q")
    assert done.returncode == 7
    assert done.stdout == "one\n\n<!-- page 2: failed: no page tree -->\n\ncut\n"
    assert done.stderr == (
        "warning: page 2: failed (page_broken): no page tree\n"
        "warning: page 3: truncated after 3 tokens (see --max-tokens)\n"
    )


@pytest.mark.parametrize("status", ["blank", "repaired"])
def test_blank_and_repaired_pages_are_success(run: Run, script: Script, status: str) -> None:
    assert run("parse", script({"status": status})).returncode == 0


def test_quiet_says_nothing_when_all_is_well(run: Run, script: Script) -> None:
    assert run("parse", script({"text": "x"}), "-q").stderr == ""


def test_progress_as_plain_lines(run: Run, script: Script) -> None:
    done = run("parse", script({"text": "abc"}, {"status": "blank"}))
    lines = done.stderr.splitlines()
    assert lines[0] == "reading doc.pdf: 2 pages"
    assert lines[1].startswith("page 1 (1/2): ok, 3 tokens, ")
    assert lines[2].startswith("page 2 (2/2): blank, 0 tokens, ")


def test_progress_as_json_lines(run: Run, script: Script) -> None:
    done = run("parse", script({"text": "abc"}), "--progress", "json", "--stats")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert [event["event"] for event in events] == ["begin", "page", "stats"]
    assert events[1]["number"] == 1 and events[1]["num_tokens"] == 3


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_warnings_among_json_lines_are_json_lines(
    run: Run, script: Script, quiet: list[str]
) -> None:
    document = script({"text": "abc", "status": "truncated"}, {"interrupt": True})
    done = run("parse", document, "--progress", "json", *quiet)
    *events, last = done.stderr.splitlines()
    assert last == "interrupted: stopped before the end"
    assert json.loads(events[-1]) == {"event": "note", "message": "kept 1 finished page"}
    done = run("parse", script({"text": "a", "status": "truncated"}), "--progress", "json", *quiet)
    *_, last = [json.loads(line) for line in done.stderr.splitlines()]
    words = "page 1: truncated after 1 token (see --max-tokens)"
    assert last == {"event": "warning", "message": words}


def test_a_variable_counts_less_than_a_flag(run: Run, script: Script) -> None:
    document = script({"text": "x"})
    variables = {"OCRIA_PAGE_MARKERS": "1", "OCRIA_MODEL": "from-variable"}
    done = run("parse", document, env=variables)
    assert done.stdout.startswith("<!-- page 1 -->")
    done = run("parse", document, "-f", "json", "--model", "from-flag", env=variables)
    assert json.loads(done.stdout)["generator"]["model"]["name"] == "from-flag"
    done = run("parse", document, "-f", "json", env=variables)
    assert json.loads(done.stdout)["generator"]["model"]["name"] == "from-variable"


@pytest.mark.parametrize("drafter", ["auto", "none", "ngram", "text-layer"])
def test_a_drafter_is_taken_without_a_word(run: Run, script: Script, drafter: str) -> None:
    done = run("parse", script({"text": "x"}), "--drafter", drafter)
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert "drafter" not in done.stderr


def test_control_characters_do_not_reach_the_terminal(run: Run) -> None:
    done = run("parse", "a\x1b[31m.pdf")
    assert done.returncode == 3
    assert "\x1b" not in done.stderr and "a\\x1b[31m.pdf" in done.stderr
