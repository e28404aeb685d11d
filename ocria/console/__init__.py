"""Words on the terminal: errors, notices, progress, and the guard around standard output.

Knows how things are said and where they go; not what a command does.
"""

from ocria.console.failure import print_failure, print_notice
from ocria.console.logs import is_verbose, set_verbosity
from ocria.console.progress import Progress, ProgressMode, can_redraw, open_progress
from ocria.console.stdout import claim_stdout
from ocria.console.streams import guarded_streams, reporting_write_errors, say, silence
from ocria.console.wording import counted, document_title, event_line, printable

__all__ = [
    "Progress",
    "ProgressMode",
    "can_redraw",
    "claim_stdout",
    "counted",
    "document_title",
    "event_line",
    "guarded_streams",
    "is_verbose",
    "open_progress",
    "print_failure",
    "print_notice",
    "printable",
    "reporting_write_errors",
    "say",
    "set_verbosity",
    "silence",
]
