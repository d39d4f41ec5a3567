"""Behind `sub policy init`: a first policy from the recorded tools, and where it is written."""

import os
from typing import TYPE_CHECKING

from subluminal.clock import now, rfc3339
from subluminal.config.places import Places, make_private_dir
from subluminal.errors import SubluminalError
from subluminal.ledger.client.ledger import Ledger, Page
from subluminal.policy.starter import KnownTool, Starter, starter_policy

if TYPE_CHECKING:
    import apsw

_RUNS = 200
"""Newest runs that tell how many calls a run makes."""


def draft_policy(ledger: Ledger, connection: "apsw.Connection | None", mode: str) -> Starter:
    """Returns a first policy for the tools that the ledger knows."""
    runs = ledger.runs("", Page(_RUNS)).rows
    return starter_policy(
        _known_tools(ledger, connection),
        mode=mode,
        today=rfc3339(now().wall_ms)[:10],
        largest_run=max((run["calls"] for run in runs), default=0),
    )


def _known_tools(ledger: Ledger, connection: "apsw.Connection | None") -> list[KnownTool]:
    if connection is None:
        return []
    from subluminal.ledger.query.tools import tool_annotations

    said = tool_annotations(connection)
    names = [(row["server_name"], row["tool_name"]) for row in ledger.tools()]
    return [KnownTool(*name, said.get(name, {})) for name in names]


def is_user_policy(places: Places, path: str) -> bool:
    """Whether a file is the policy of the user layer, which only a person may write."""
    return os.path.realpath(path) == os.path.realpath(places.policy)


def write_new(places: Places, path: str, text: str, *, force: bool) -> None:
    """Writes a policy file. Raises SubluminalError if there is one, unless `force`."""
    try:
        _make_folder(places, path)
        if force and os.path.lexists(path):
            _replace(os.path.realpath(path), text.encode())
        else:
            _create(path, text.encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot write `{path}`: {reason}") from None


def _make_folder(places: Places, path: str) -> None:
    if is_user_policy(places, path):
        make_private_dir(places.home)
    else:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)


def _create(path: str, data: bytes) -> None:
    """Writes a new file. A policy that appears meanwhile is not overwritten."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise SubluminalError(
            f"`{path}` exists already", hint="`--force` replaces it; `sub policy init -` prints"
        ) from None
    with open(fd, "wb") as file:
        file.write(data)


def _replace(path: str, data: bytes) -> None:
    from subluminal.export.files import write_whole

    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(0, "it is not a regular file")
    write_whole(path, [data], 0o600)
