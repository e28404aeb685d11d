"""Runs a batch: signals, progress, summary, exit code."""

from ocria.batch import BatchOptions, Figures
from ocria.cli.batch_progress import open_batch_progress, status_line
from ocria.cli.interrupt import InterruptGate
from ocria.console import ProgressMode, claim_stdout, counted, event_line, print_notice, say
from ocria.errors import ExitCode


def deliver_batch(options: BatchOptions, mode: ProgressMode, *, quiet: bool) -> ExitCode:
    """Reads everything; standard output stays empty.

    Raises:
        OcriaError: the run could not begin or go on.
        KeyboardInterrupt: stopped by the user; what was finished is kept.
    """
    from ocria.batch.session import run_batch

    with (
        claim_stdout(required=False),
        InterruptGate().installed(),
        open_batch_progress(mode, quiet=quiet) as listener,
    ):
        try:
            exit_code, figures = run_batch(options, listener)
        except (KeyboardInterrupt, SystemExit):
            if mode == "json":
                say(event_line("stopped", summary_fields(listener.figures)))
            elif not quiet:
                done = status_line(listener.figures)
                say(f"stopped after {done}; the same command goes on from here")
            raise
    if mode == "json":
        is_cut_short = figures.num_unread > 0
        say(event_line("summary", summary_fields(figures) | {"stopped_at_failure": is_cut_short}))
    elif not quiet:
        say(summary(figures, options))
        if figures.num_known_failed and not options.retry_failed:
            print_notice("hint", "--retry-failed reads pages again that failed in an earlier run")
    return exit_code


def summary_fields(figures: Figures) -> dict[str, object]:
    """The figures of a run, for programs."""
    elapsed_s = figures.elapsed_s
    return {
        "num_documents": figures.num_found,
        "num_passed_over": figures.num_passed_over,
        "documents": dict(figures.documents),
        "num_skipped": figures.num_skipped,
        "num_skipped_troubled": figures.num_skipped_troubled,
        "num_unread": figures.num_unread,
        "pages": dict(figures.pages),
        "num_resumed_pages": figures.num_resumed_pages,
        "num_tokens": figures.num_tokens,
        "seconds": round(elapsed_s, 3),
        "pages_per_second": round(figures.num_pages / elapsed_s, 3),
        "tokens_per_second": round(figures.num_tokens / elapsed_s, 1),
    }


def summary(figures: Figures, options: BatchOptions) -> str:
    """The figures of a run as a small table."""
    elapsed_s = figures.elapsed_s
    documents = [
        f"{figures.documents[status]:,} {status}" for status in ("ok", "partial", "failed")
    ]
    pages = [f"{number:,} {status}" for status, number in sorted(figures.pages.items())]
    done_before = f"{figures.num_skipped:,} done before"
    if figures.num_skipped_troubled:
        done_before += f", {figures.num_skipped_troubled:,} of these not whole"
    rows = [
        ("documents", f"{figures.num_found:,}: {', '.join(documents)}, {done_before}"),
        ("passed over", counted(figures.num_passed_over, "other file")),
        ("pages read", f"{figures.num_pages:,}" + (f": {', '.join(pages)}" if pages else "")),
        ("pages kept", f"{figures.num_resumed_pages:,} from an earlier run"),
        ("tokens", f"{figures.num_tokens:,}, {figures.num_tokens / elapsed_s:,.0f} a second"),
        ("time", f"{elapsed_s:,.1f} s, {figures.num_pages / elapsed_s:,.2f} pages a second"),
        ("results", f"{options.out_dir} (manifest.jsonl, report.html)"),
    ]
    if figures.num_unread:
        rows.insert(1, ("stopped", f"at the first failure: {figures.num_unread:,} not read"))
    return "\n".join(f"{name:<11} {value}" for name, value in rows)
