"""Policy cases as people write them: a bundle, calls in virtual time, and what each should meet.

One YAML document a case (cli.md, "Policy cases"). Reads and checks; `case_running` runs. Pure: a
bundle that is named by its path is read by the caller.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct, field

from subluminal.contracts.identity import Identity, Workload
from subluminal.contracts.shape import Misfit, Path, did_you_mean, misfits, struct_of
from subluminal.contracts.vocabulary import Action, Client, Env, Layer, Severity, Status
from subluminal.errors import InvalidInput, Problem
from subluminal.policy.case_wants import WANTS
from subluminal.policy.loading import LoadedBundle, bundle_in
from subluminal.policy.text.reading import read_documents
from subluminal.policy.text.telling import problem_of
from subluminal.policy.text.yaml_nodes import Document
from subluminal.timestamps import parse_rfc3339


class _Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A misspelt field must not make a case that tests nothing."""


class CaseWorkload(Workload, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workload, without tolerance."""


class CaseIdentity(_Strict, frozen=True, kw_only=True):
    """Who acts, for the selectors."""

    env: Env = Env.DEV
    agent_id: str = "test"
    client: Client = Client.CUSTOM
    principal: str | None = None
    workload: CaseWorkload = CaseWorkload()


class Outcome(_Strict, frozen=True, kw_only=True):
    """How a forwarded call ended."""

    status: Status = Status.OK
    latency_ms: int = 0


class CaseCall(_Strict, frozen=True, kw_only=True):
    """One call, and what it should meet."""

    server: str
    tool: str
    args: dict[str, Any] | None = field(default_factory=dict)
    """null stands for arguments too large to inspect"""
    at_ms: int | None = None
    """since the start; the time of the call before, if missing"""
    outcome: Outcome = Outcome()
    granted: list[str] = field(default_factory=list)
    """rules that a person has let this call pass"""
    want: dict[str, Any] = field(default_factory=dict)
    """only the fields it names are compared"""


class Case(_Strict, frozen=True, kw_only=True):
    """One document of a case file."""

    note: str = ""
    bundle: Any = None
    """a bundle, or the path of one"""
    layers: dict[str, Any] = field(default_factory=dict)
    """instead of `bundle`: layer to bundle or path"""
    identity: CaseIdentity = CaseIdentity()
    start: str = "1970-01-01T00:00:00Z"
    """wall clock of time zero"""
    calls: list[CaseCall]


class LoadedCase(NamedTuple):
    """A case in which nothing is wrong."""

    case: Case
    title: str
    """`case `note``, or `case 2`"""
    policies: list[tuple[Layer, LoadedBundle | str]]
    """bundles that stand in the case, and paths of those that do not"""
    start_ms: int
    line: int

    @property
    def identity(self) -> Identity:
        """The identity as an engine takes it."""
        given = self.case.identity
        return Identity(
            agent_id=given.agent_id,
            client=given.client,
            env=given.env,
            principal=given.principal,
            workload=given.workload,
        )


def parse_cases(data: bytes, file: str) -> list[LoadedCase]:
    """Loads every case of a file, or raises InvalidInput with every problem."""
    documents, problems = read_documents(data, file)
    if not documents and not problems:
        problems = [Problem("the file has no case", file)]
    cases: list[LoadedCase] = []
    for number, document in enumerate(documents, start=1):
        try:
            cases.append(_load(document, number, file, problems))
        except InvalidInput as error:
            problems = problems + [each for each in error.problems if each not in problems]
    if problems:
        raise InvalidInput(problems)
    return cases


def _load(document: Document, number: int, file: str, problems: list[Problem]) -> LoadedCase:
    value, node = document
    title = _title(value, number)

    def named(path: Path) -> tuple[str, Path]:
        if path[:1] == ("calls",) and len(path) > 1:
            return f"{title}: call {int(path[1]) + 1}: ", path[2:]
        return f"{title}: ", path

    found = misfits(value, Case)
    if not found:
        found = list(_case_misfits(struct_of(value, Case)))
    if found:
        raise InvalidInput([problem_of(misfit, node, file, named) for misfit in found])
    case: Case = struct_of(value, Case)
    policies = _policies(case, document, file, problems)
    start_ms = wall_ms_of(case.start)
    return LoadedCase(case, title, policies, start_ms or 0, node.place.line)


def _title(value: Any, number: int) -> str:
    note = value.get("note") if isinstance(value, dict) else None
    return f"case `{note[:80]}`" if isinstance(note, str) and note else f"case {number}"


def _policies(
    case: Case, document: Document, file: str, problems: list[Problem]
) -> list[tuple[Layer, LoadedBundle | str]]:
    node = document.node
    if case.bundle is not None:
        where = node.below("bundle")
        sources = [(Layer.REPOSITORY, case.bundle, where)]
    else:
        sources = [
            (Layer(name), source, node.below("layers", name))
            for name, source in case.layers.items()
        ]
    order = list(Layer)
    return [
        (layer, source if isinstance(source, str) else bundle_in(source, where, file, problems))
        for layer, source, where in sorted(sources, key=lambda each: order.index(each[0]))
    ]


def _case_misfits(case: Case) -> Iterator[Misfit]:
    if (case.bundle is None) == (not case.layers):
        yield Misfit((), "needs `bundle` or `layers`, and not both")
    for name in case.layers:
        if name not in list(Layer):
            hint = did_you_mean(name, list(Layer))
            yield Misfit(("layers", name), f"unknown layer `{name[:40]}`", hint, at_key=True)
    if wall_ms_of(case.start) is None:
        hint = "write it as `2026-01-31T09:00:00Z`"
        yield Misfit(("start",), f"`{case.start[:40]}` is not a time with a zone", hint)
    now_ms = 0
    for index, call in enumerate(case.calls):
        yield from _call_misfits(call, ("calls", index), now_ms)
        now_ms = now_ms if call.at_ms is None else call.at_ms


def _call_misfits(call: CaseCall, path: Path, now_ms: int) -> Iterator[Misfit]:
    if call.at_ms is not None and call.at_ms < now_ms:
        yield Misfit((*path, "at_ms"), f"time runs backwards: {call.at_ms} after {now_ms}")
    if call.outcome.latency_ms < 0:
        yield Misfit((*path, "outcome", "latency_ms"), "must be at least 0")
    for name, value in call.want.items():
        where = (*path, "want", name)
        if name not in WANTS:
            hint = did_you_mean(name, [*WANTS, *[""] * 13])
            yield Misfit(where, f"unknown field `{name[:60]}`", hint, at_key=True)
        words = {"action": Action, "severity": Severity}.get(name)
        if words is not None and value not in list(words):
            hint = did_you_mean(value, list(words))
            yield Misfit(where, f"unknown value `{str(value)[:40]}`", hint)


def wall_ms_of(text: str) -> int | None:
    """Reads an RFC 3339 time; None if the text is not a time with a zone."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None
