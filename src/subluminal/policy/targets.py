"""Tests of what a call touches: programs, paths and hosts (one-matcher-per-idea).

A rule that lets calls pass, or that exempts them from taint, matches if *every* command, path and
host of the call matches, there is at least one, and nothing is opaque. Other rules match if one
command, one path and one host match, as far as the rule names them. What an opaque call is known to
touch counts as well; the unknown rest is matched by `opaque: true` and by nothing else.
"""

from collections.abc import Callable
from typing import Any

from msgspec import field

from subluminal.canonical import encode
from subluminal.contracts.targets import PathTarget, Targets
from subluminal.policy.texts import text_test

UNREAD = Targets(opaque=True, why=["the targets of this call were not read"])
"""Stands for the targets of a call that nobody read."""

_HERE = "."
_Command = Callable[[list[str]], bool]
_Path = Callable[[PathTarget, list[str]], bool]
_Host = Callable[[str], bool]


class HiddenTargets(Targets, frozen=True, kw_only=True):
    """Targets that are not known: each test gets a chosen answer. For replay."""

    known: Targets | None = None
    """what is known in spite of that: everything but paths"""
    chosen: dict[bytes, bool]
    """key of a test to its answer"""
    asked: set[bytes] = field(default_factory=set)
    """keys of the tests that have no chosen answer"""

    def answer(self, key: bytes) -> bool:
        """Returns the chosen answer of a test; False if there is none yet."""
        if key not in self.chosen:
            self.asked.add(key)
        return self.chosen.get(key, False)


class TargetsTest:
    """The test of a call's targets that one rule makes."""

    __slots__ = ("_command", "_every", "_host", "_opaque", "_path", "key")

    def __init__(self, spec: dict[str, Any], *, needs_all: bool) -> None:
        self._every = needs_all
        self._opaque: bool = spec["opaque"]
        self._command = _command_test(spec["program"], spec["argv"])
        self._path = _path_test(spec["path"], spec["access"])
        self._host = _text(spec["host"])
        self.key = encode([self._every, spec])
        """the same for tests that always give the same answer"""

    def __call__(self, targets: Targets | None) -> bool:
        """Whether the targets match."""
        if isinstance(targets, HiddenTargets):
            if targets.known is not None and self._path is None and not self._every:
                return self._any(targets.known)
            return targets.answer(self.key)
        found = UNREAD if targets is None else targets
        return self._all(found) if self._every else self._any(found)

    def _any(self, targets: Targets) -> bool:
        if self._opaque and not targets.opaque:
            return False
        if self._command is not None and not any(map(self._command, targets.commands)):
            return False
        path, roots = self._path, targets.roots
        if path is not None and not any(path(each, roots) for each in targets.paths):
            return False
        return self._host is None or any(map(self._host, targets.hosts))

    def _all(self, targets: Targets) -> bool:
        if targets.opaque or not (targets.commands or targets.paths or targets.hosts):
            return False
        path, roots = self._path, targets.roots
        return (
            _every(self._command, targets.commands)
            and _every(self._host, targets.hosts)
            and (
                not targets.paths
                or (path is not None and all(path(each, roots) for each in targets.paths))
            )
        )


def targets_test(spec: dict[str, Any] | None, *, needs_all: bool) -> TargetsTest | None:
    """Builds the test of a call's targets from `match.targets` of a snapshot."""
    return None if spec is None else TargetsTest(spec, needs_all=needs_all)


def _every(test: Callable[[Any], bool] | None, targets: list[Any]) -> bool:
    """Whether all targets of one kind match. A rule that does not name the kind matches none."""
    return not targets or (test is not None and all(map(test, targets)))


def _text(spec: dict[str, Any] | None) -> _Host | None:
    return None if spec is None else text_test(spec)


def _command_test(program: dict[str, Any] | None, argv: dict[str, Any] | None) -> _Command | None:
    by_name, by_words = _text(program), _text(argv)
    if by_name is None and by_words is None:
        return None

    def holds(words: list[str]) -> bool:
        name = words[0].rpartition("/")[2]
        if by_name is not None and not by_name(name):
            return False
        return by_words is None or by_words(" ".join((name, *words[1:])))

    return holds


def _path_test(spec: dict[str, Any] | None, access: list[str]) -> _Path | None:
    if spec is None and not access:
        return None
    given = spec or {"names": None, "inside": [], "outside": []}
    by_name, inside, outside = _text(given["names"]), given["inside"], given["outside"]
    wanted = frozenset(access)

    def holds(target: PathTarget, roots: list[str]) -> bool:
        path = target.path
        return (
            (not wanted or target.access in wanted)
            and (by_name is None or by_name(path))
            and (not inside or _is_in(path, inside, roots))
            and not (outside and _is_in(path, outside, roots))
        )

    return holds


def _is_in(path: str, directories: list[str], roots: list[str]) -> bool:
    for directory in directories:
        for each in roots if directory == _HERE else (directory,):
            if path == each or path.startswith(each if each.endswith("/") else f"{each}/"):
                return True
    return False
