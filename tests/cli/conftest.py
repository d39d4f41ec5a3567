"""Runs `sub` inside the test process, and gives back what a shell would see."""

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from subluminal.cli.main import main


class Ran(NamedTuple):
    """One command's exit code and its two streams."""

    code: int
    out: str
    err: str


class Stream(io.TextIOWrapper):
    """A text stream over bytes that may claim to be a terminal."""

    def __init__(self, data: bytes = b"", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode("utf-8")


@pytest.fixture
def sub(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """`sub("version", stdin=b"")`: runs a command and returns code, stdout and stderr."""

    def run(*words: str, stdin: bytes = b"", terminal: bool = False) -> Ran:
        out, err = Stream(terminal=terminal), Stream(terminal=terminal)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", Stream(stdin))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            try:
                code = int(main(list(words)))
            except SystemExit as leaving:  # argparse, after --help
                code = int(leaving.code or 0)
        return Ran(code, out.text(), err.text())

    return run
