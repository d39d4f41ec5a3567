"""Asks Codex which hooks it knows and trusts (`codex app-server`, method `hooks/list`).

Codex runs no hook that it does not trust, and does not say so.
"""

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

from subluminal.errors import SubluminalError
from subluminal.importer.clients.description import Scene
from subluminal.importer.clients.table import CODEX
from subluminal.importer.hooks.command import recognise_line
from subluminal.operator.trials import run_for_a_moment

_TIMEOUT_S = 20.0
_REQUESTS: tuple[dict[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {"clientInfo": {"name": "subluminal", "version": "1"}},
    },
    {"method": "initialized"},
)
_ANSWER_ID = 2


class CodexHook(NamedTuple):
    """One of our hooks as Codex sees it."""

    key: str
    hash: str
    is_enabled: bool
    is_trusted: bool


def our_codex_hooks(scene: Scene) -> list[CodexHook]:
    """Returns our hooks in the user's `hooks.json`. Raises SubluminalError if Codex cannot tell."""
    program = shutil.which("codex", path=scene.environ.get("PATH"))
    if program is None:
        raise SubluminalError("`codex` is not in PATH")
    cwd = scene.user_home
    listing = {"id": _ANSWER_ID, "method": "hooks/list", "params": {"cwds": [cwd]}}
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in (*_REQUESTS, listing))
    try:
        trial = run_for_a_moment(
            [program, "app-server"],
            lines,
            _TIMEOUT_S,
            environ=scene.environ,
            cwd=cwd,
            is_enough=lambda written: _answer(written) is not None,
        )
    except OSError as error:
        raise SubluminalError(f"cannot start `{program}`: {error.strerror}") from None
    answer = _answer(trial.stdout)
    if answer is None or "result" not in answer:
        raise SubluminalError("this version of Codex does not tell which hooks it trusts")
    assert CODEX.hooks is not None, "Codex has hooks"
    return list(_ours(answer["result"], os.path.realpath(CODEX.hooks.file(scene))))


def _answer(written: bytes) -> dict[str, Any] | None:
    for line in written.split(b"\n")[:-1]:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("id") == _ANSWER_ID:
            return message
    return None


def _ours(result: Any, file: str) -> Iterator[CodexHook]:
    try:
        for hook in (hook for each in result["data"] for hook in each["hooks"]):
            command = hook.get("command") or ""
            if os.path.realpath(hook["sourcePath"]) == file and recognise_line(command, "codex"):
                yield CodexHook(
                    hook["key"],
                    hook["currentHash"],
                    is_enabled=hook["enabled"],
                    is_trusted=hook["trustStatus"] == "trusted",
                )
    except (KeyError, TypeError, AttributeError):
        raise SubluminalError("this version of Codex lists its hooks in another form") from None
