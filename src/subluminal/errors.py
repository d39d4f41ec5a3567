"""
Every exception Subluminal raises on purpose:

* SubluminalError         one sentence, and a hint: what the operator can do next
  x AmbiguousJSON         JSON that two parsers may read differently (canonical-profiles, byte-transparent)
  x UsageError            the command line is wrong
  x InvalidInput          a file a person wrote is wrong; carries every problem found in it
  x SecretUnavailable     a secret cannot be read; the server that needs it is not started

Anything else that escapes is a bug, and leaves a report (exit code 70).
Specialise only where someone catches.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class ExitCode(IntEnum):
    """What scripts rely on. `sub run` otherwise returns the agent's own code."""

    OK = 0
    """done; the answer is yes"""
    NO = 1
    """done; the answer is no: lint found errors, a test failed, verify found damage"""
    USAGE = 2
    """usage or bad input: nothing was changed"""
    VIOLATION = 3
    """`sub run --strict`: the run violated policy"""
    BUG = 70
    """a bug of ours: says where the report was written"""


class Problem(NamedTuple):
    """One thing wrong in a file that a person wrote, where it is, and what to do about it."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    hint: str | None = None
    severity: str = "error"

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        parts = [self.file] + [str(n) for n in (self.line, self.column) if n]
        return ":".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class SubluminalError(Exception):
    """Base class. `hint` is the one thing the operator can do next."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class AmbiguousJSON(SubluminalError):
    """JSON that a strict parser refuses, because another parser may read it differently."""


class UsageError(SubluminalError):
    """The command line does not say something we can do."""


class InvalidInput(SubluminalError):
    """A file is wrong in one or more places; all of them are in `problems`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        more = len(problems) - 1
        suffix = f" (and {more} more)" if more else ""
        super().__init__(f"{first}{suffix}", hint=first.hint)
        self.problems = tuple(problems)


class SecretUnavailable(SubluminalError):
    """A secret is missing, locked away, or lies where others can read it. Never holds a value."""
