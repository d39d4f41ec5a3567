"""
Every exception Subluminal raises on purpose:

* SubluminalError         one sentence, and a hint that says what the operator can do next
  x AmbiguousJSON         JSON that two parsers may read differently (canonical-profiles)
  x UsageError            the command line is wrong
  x InvalidInput          a file that a person wrote is wrong; carries every problem found in it
  x PolicyError           the policy that a program gave cannot be used
  x SecretUnavailable     a secret cannot be read; the server that needs it is not started
  x PackConformanceError  a pack does not have its shape; carries every problem found in it
  x PlanConformanceError  a plan shows a model more than it may see

Any other exception that escapes is a bug: `sub` writes a report and exits with code 70.
Add a subclass only where some code catches it.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class ExitCode(IntEnum):
    """Exit codes that scripts rely on. `sub run` otherwise returns the agent's own exit code."""

    OK = 0
    """done; the answer is yes"""
    NO = 1
    """done; the answer is no: lint found errors, a test failed, or verify found damage"""
    USAGE = 2
    """the command line or an input file is wrong; nothing was changed"""
    VIOLATION = 3
    """`sub run --strict`: the run violated the policy"""
    BUG = 70
    """a bug in `sub`; the message says where the report was written"""


class Problem(NamedTuple):
    """One mistake in a file that a person wrote: what is wrong, where, and what to do about it."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    hint: str | None = None
    severity: str = "error"

    @property
    def place(self) -> str:
        """The known parts of `file:line:column`."""
        parts = [self.file] + [str(n) for n in (self.line, self.column) if n]
        return ":".join(part for part in parts if part)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class SubluminalError(Exception):
    """Base class. `hint` says what the operator can do next."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class AmbiguousJSON(SubluminalError):
    """JSON that is refused because two parsers may read it differently."""


class UsageError(SubluminalError):
    """The command line is wrong."""


class InvalidInput(SubluminalError):
    """A file is wrong in one or more places. `problems` lists all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        more = len(problems) - 1
        suffix = f" (and {more} more)" if more else ""
        super().__init__(f"{first}{suffix}", hint=first.hint)
        self.problems = tuple(problems)


class PolicyError(SubluminalError):
    """The policy that a program gave cannot be used. A traceback shows the hint too."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        if hint is not None:
            self.add_note(f"hint: {hint}")


class SecretUnavailable(SubluminalError):
    """A secret is missing, locked, or readable by other users. Never contains the secret itself."""


class NotExecuted(SubluminalError):
    """A handler raises this to say that nothing was executed, so that a retry may run."""


class PackConformanceError(SubluminalError):
    """A pack does not have its shape. `problems` says all that is wrong."""

    def __init__(self, pack_id: str, problems: Sequence[str]) -> None:
        super().__init__(f"pack `{pack_id}`: {'; '.join(problems)}")
        self.problems = tuple(problems)


class PlanConformanceError(SubluminalError):
    """A plan shows a tool that is not READ, or proposes what its pack does not have."""

    def __init__(
        self,
        message: str,
        *,
        mutating_tools_leaked: Sequence[str] = (),
        intents_leaked: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.mutating_tools_leaked = tuple(mutating_tools_leaked)
        self.intents_leaked = tuple(intents_leaked)
