"""The artifact of a run: a directory of files that CI systems show and keep.

Each file is written completely or not at all. `chain.json` is written last, so an artifact without
it is not finished.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from subluminal.errors import SubluminalError
from subluminal.export.chain import CHAIN
from subluminal.export.files import remove, write_whole
from subluminal.export.junit import as_junit
from subluminal.export.markdown import as_markdown
from subluminal.export.sarif import as_sarif
from subluminal.export.summary import Summary
from subluminal.export.violations import Demands
from subluminal.visible import json_shown

EVENTS = "events.jsonl"
SUMMARY = "summary.json"
JUNIT = "junit.xml"
SARIF = "results.sarif"
MARKDOWN = "summary.md"
POLICIES = "policies"
FILES = (EVENTS, SUMMARY, JUNIT, SARIF, MARKDOWN, CHAIN)

_UNFINISHED = r"(?:\.\d+\.part)?"
_OURS = re.compile(f"(?:{'|'.join(map(re.escape, FILES))}){_UNFINISHED}")
_SNAPSHOT = re.compile(rf"[0-9a-f]{{64}}\.json{_UNFINISHED}")

Shown = Callable[[str], str]
"""Returns text with control characters made visible."""


def make_artifact(
    directory: str, lines: Iterable[bytes], shown: Shown, demands: Demands | None = None
) -> Summary:
    """Writes every file from the events of a run, in the order of `ordering`."""
    summary = Summary(demands)
    try:
        written = {EVENTS: _write_events(directory, lines, summary)}
        for name, data in _reports(summary, shown).items():
            written[name] = _write(directory, name, data)
        _write(directory, CHAIN, as_json(summary.chain.chain(written)))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SubluminalError(f"cannot write the artifact to `{directory}`: {reason}") from None
    return summary


def clear_artifact(directory: str) -> None:
    """Removes the files of an earlier run, whose results must not pass for the next run's."""
    policies = os.path.join(directory, POLICIES)
    if os.path.islink(policies):
        # The directory that a symbolic link points to is not ours to clear or write.
        remove(policies)
    for place, ours in ((directory, _OURS), (policies, _SNAPSHOT)):
        for name in _listed(place):
            if ours.fullmatch(name):
                remove(os.path.join(place, name))


def markdown(found: dict[str, Any], shown: Shown) -> bytes:
    """Returns the contents of `summary.md`."""
    return "".join(f"{shown(line)}\n" for line in as_markdown(found)).encode()


def as_json(value: Any) -> bytes:
    """Returns indented JSON, for people to read."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return json_shown(text).encode() + b"\n"


def _reports(summary: Summary, shown: Shown) -> dict[str, bytes]:
    found = summary.as_dict()
    snapshots = {
        f"{POLICIES}/{policy.policy_hash}.json": policy.snapshot.to_json() + b"\n"
        for policy in summary.policies.all()
        if policy.snapshot is not None
    }
    return snapshots | {
        SUMMARY: as_json(found),
        JUNIT: as_junit(summary),
        SARIF: as_json(as_sarif(summary)),
        MARKDOWN: markdown(found, shown),
    }


def _write_events(directory: str, lines: Iterable[bytes], summary: Summary) -> str:
    def counted() -> Iterator[bytes]:
        for line in lines:
            summary.add(line)
            yield line + b"\n"

    return write_whole(os.path.join(directory, EVENTS), counted())


def _write(directory: str, name: str, data: bytes) -> str:
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return write_whole(path, [data])


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
