"""Every failure a user can meet, with the exit code it ends the program with.

    OcriaError                  1
    ├── UsageError              2   impossible option value, page out of range
    ├── InputError              3   missing, unreadable or not a document
    │   └── PasswordError       3   encrypted, and no right password was given
    ├── OutputError             4   cannot be written, or exists
    ├── DeviceError             5   no usable device, or out of memory
    ├── WeightsError            6   missing, damaged or of an unknown architecture
    ├── WorkerError             7   a process cannot be started; what was read before is kept
    └── PageError               7   one page could not be read; carries the contract's page code

A message says what happened, `hint` what to do about it. Foreign errors (PDFium, Pillow,
safetensors, CUDA) are translated where they enter.
"""

from enum import IntEnum
from typing import ClassVar, Literal, get_args

PageErrorCode = Literal["page_broken", "timeout", "out_of_memory", "decode_failed", "pixel_limit"]


class ExitCode(IntEnum):
    """Exit codes of the program; scripts depend on them, so they never change meaning."""

    OK = 0
    BUG = 1
    USAGE = 2
    INPUT = 3
    OUTPUT = 4
    DEVICE = 5
    WEIGHTS = 6
    PARTIAL = 7
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class OcriaError(Exception):
    """Base of every error raised on purpose."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUG

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(OcriaError):
    """An option or argument that cannot be meant."""

    exit_code = ExitCode.USAGE


class InputError(OcriaError):
    """The input is missing, unreadable, or not a document."""

    exit_code = ExitCode.INPUT


class PasswordError(InputError):
    """The document is encrypted and no right password was given."""


class OutputError(OcriaError):
    """The result cannot be written, or would overwrite a file."""

    exit_code = ExitCode.OUTPUT


class DeviceError(OcriaError):
    """No usable device, or not enough memory on it."""

    exit_code = ExitCode.DEVICE


class WeightsError(OcriaError):
    """Weights are missing, damaged, or of an unknown architecture."""

    exit_code = ExitCode.WEIGHTS


class WorkerError(OcriaError):
    """A process of ours cannot be started; no document is at fault."""

    exit_code = ExitCode.PARTIAL


class PageError(OcriaError):
    """One page failed; the document goes on without it."""

    exit_code = ExitCode.PARTIAL

    def __init__(self, code: PageErrorCode, message: str, *, hint: str | None = None) -> None:
        assert code in get_args(PageErrorCode), f"{code} is not a page error code"
        super().__init__(message, hint=hint)
        self.code: PageErrorCode = code

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        # Pages fail in worker processes: the default reduction would lose the code.
        return (PageError, (self.code, str(self)))
