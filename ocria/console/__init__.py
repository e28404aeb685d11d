"""Words on the terminal: errors, notices, progress, and the guard around standard output.

Knows how things are said and where they go; not what a command does.
"""

from ocria.console.failure import print_failure, print_notice
from ocria.console.logs import is_verbose, set_verbosity
from ocria.console.progress import Progress, ProgressMode, open_progress
from ocria.console.stdout import claim_stdout

__all__ = [
    "Progress",
    "ProgressMode",
    "claim_stdout",
    "is_verbose",
    "open_progress",
    "print_failure",
    "print_notice",
    "set_verbosity",
]
