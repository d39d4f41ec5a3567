"""Policy cases as people write them: a bundle, calls in virtual time, and the wanted decisions.

Each YAML document of a file is one case. This module reads and checks cases, and compares a `want`
with an evaluation; `case_running` runs the calls. Pure: if a case names its bundle by a path, the
caller reads that file.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.identity import Identity
from subluminal.contracts.shape import Misfit, Path, did_you_mean, misfits, struct_of
from subluminal.contracts.vocabulary import (
    POLICY_LAYERS,
    Action,
    Layer,
    Outcome,
    Severity,
    Status,
    Taint,
)
from subluminal.errors import InvalidInput, Problem
from subluminal.policy.case_agents import CaseGiven, CaseIdentity
from subluminal.policy.evaluation import Evaluation
from subluminal.policy.loading import LoadedBundle, bundle_in
from subluminal.policy.outcomes import evaluated_outcome
from subluminal.policy.packs import FindPack, no_packs
from subluminal.policy.predicates import same_value
from subluminal.policy.text.places import problem_of
from subluminal.policy.text.reading import read_documents
from subluminal.policy.text.yaml_nodes import Document
from subluminal.timestamps import parse_rfc3339


class _Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refuses unknown fields: a case with a misspelt field might test nothing."""


class CaseOutcome(_Strict, frozen=True, kw_only=True):
    """How the server answers a forwarded call."""

    status: Status = Status.OK
    """how the call ends"""
    latency_ms: int = 0
    """latency in milliseconds"""


class CaseCall(CaseGiven, frozen=True, kw_only=True):
    """One call, and the decision that is wanted for it."""

    server: str
    """name of the server"""
    tool: str
    """name of the tool"""
    args: dict[str, Any] | None = field(default_factory=dict)
    """arguments; null stands for arguments that are too large to inspect"""
    cwd: str = "/repository"
    """absolute path of the directory in which the call acts, for rules about targets"""
    at_ms: int | None = None
    """milliseconds since the start; by default the time of the call before"""
    outcome: CaseOutcome = CaseOutcome()
    """how the server answers, if the call is forwarded"""
    granted: list[str] = field(default_factory=list)
    """rule_ids of the rules that a person lets this call pass"""
    want: dict[str, Any] = field(default_factory=dict)
    """fields of the decision, with their wanted values; other fields are not compared"""


class Case(_Strict, frozen=True, kw_only=True):
    """One document of a case file."""

    note: str = ""
    """what the case shows"""
    bundle: Any = None
    """a bundle, or the path of its file"""
    layers: dict[str, Any] = field(default_factory=dict)
    """instead of `bundle`: layer to a bundle or the path of its file"""
    identity: CaseIdentity = CaseIdentity()
    """identity of the run"""
    taint: Taint = Taint.SYSTEM
    """level that the run starts with; a lower `defaults.taint` of a policy holds"""
    start: str = "1970-01-01T00:00:00Z"
    """wall clock at `at_ms: 0`, RFC 3339"""
    calls: list[CaseCall]
    """calls of the run, in order"""


class LoadedCase(NamedTuple):
    """A valid case."""

    case: Case
    """the case as written"""
    title: str
    """`case `note``, or `case 2`"""
    policies: list[tuple[Layer, LoadedBundle | str]]
    """policies by layer: a bundle, or the path of its file"""
    start_ms: int
    """wall clock at `at_ms: 0`, in milliseconds"""
    line: int
    """line of the file on which the case begins"""

    @property
    def identity(self) -> Identity:
        """The identity of the run, as an Engine takes it."""
        return self.case.identity.identity

    @property
    def agent(self) -> AgentFacts:
        """The facts about the agent, as an Engine takes them."""
        return self.case.identity.facts


Reader = Callable[[Evaluation], Any]


def _decision(name: str) -> Reader:
    return lambda evaluation: getattr(evaluation.decision, name)


def _hint(name: str) -> Reader:
    return lambda evaluation: getattr(evaluation.decision.hint, name, None)


def _terminate(name: str) -> Reader:
    return lambda evaluation: getattr(evaluation.decision.terminate, name, None)


WANTS: dict[str, Reader] = {
    **{
        name: _decision(name)
        for name in (
            *("action", "rule_id", "reason_code", "severity", "summary", "backoff_ms"),
            "constraints",
        )
    },
    **{name: _hint(name) for name in ("hint_text", "suggested_args", "retry_advice", "hint_kind")},
    **{name: _terminate(name) for name in ("terminate_code", "terminate_message")},
    "outcome": evaluated_outcome,
    "would_be": lambda evaluation: evaluation.would_be,
    "forwarded": lambda evaluation: evaluation.forwarded,
    "risk_classes": lambda evaluation: sorted(evaluation.risk_classes),
    "policy_id": lambda evaluation: evaluation.policy.policy_id,
    "policy_version": lambda evaluation: evaluation.policy.policy_version,
}


_TAINT = "taint"
"""Field of a `want`: the level of the run after the call."""
_WORDS = {"action": Action, "outcome": Outcome, "severity": Severity, _TAINT: Taint}
"""Fields of a `want` whose values are words of a closed set."""


class Difference(NamedTuple):
    """One field of an evaluation that differs from its `want`."""

    field: str
    """name of the field"""
    wanted: Any
    """value in the case"""
    got: Any
    """value in the evaluation"""


def differences(
    want: dict[str, Any], evaluation: Evaluation, taint: Taint = Taint.SYSTEM
) -> list[Difference]:
    """Returns the fields of a `want` that differ from the evaluation.

    `taint` is the level of the run after the call.
    """
    found = []
    for name, wanted in want.items():
        got = taint.value if name == _TAINT else msgspec.to_builtins(WANTS[name](evaluation))
        if name == "would_be":
            got = _asked(wanted, got)
        if name == "risk_classes" and isinstance(wanted, list):
            wanted = sorted(wanted, key=str)
        if not same_value(wanted, got):
            found.append(Difference(name, wanted, got))
    return found


def _asked(wanted: Any, got: Any) -> Any:
    """Reduces `would_be` to what the case compares: its action, or the named fields."""
    if got is None or not isinstance(wanted, str | dict):
        return got
    return got["action"] if isinstance(wanted, str) else {name: got.get(name) for name in wanted}


def parse_cases(data: bytes, file: str, find_pack: FindPack = no_packs) -> list[LoadedCase]:
    """Loads every case of a file. Raises InvalidInput with every problem."""
    documents, problems = read_documents(data, file)
    if not documents and not problems:
        problems = [Problem("the file contains no case", file)]
    cases: list[LoadedCase] = []
    for number, document in enumerate(documents, start=1):
        try:
            cases.append(_load(document, number, file, problems, find_pack))
        except InvalidInput as error:
            problems = problems + [each for each in error.problems if each not in problems]
    if problems:
        raise InvalidInput(problems)
    return cases


def _load(
    document: Document, number: int, file: str, problems: list[Problem], find_pack: FindPack
) -> LoadedCase:
    value, node, _ = document
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
    policies = _policies(case, document, file, problems, find_pack)
    start_ms = wall_ms_of(case.start)
    return LoadedCase(case, title, policies, start_ms or 0, node.place.line)


def _title(value: Any, number: int) -> str:
    note = value.get("note") if isinstance(value, dict) else None
    return f"case `{note[:80]}`" if isinstance(note, str) and note else f"case {number}"


def _policies(
    case: Case, document: Document, file: str, problems: list[Problem], find_pack: FindPack
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
    return [
        (
            layer,
            source
            if isinstance(source, str)
            else bundle_in(source, where, file, problems, find_pack),
        )
        for layer, source, where in sorted(sources, key=lambda each: POLICY_LAYERS.index(each[0]))
    ]


def _case_misfits(case: Case) -> Iterator[Misfit]:
    if (case.bundle is None) == (not case.layers):
        yield Misfit((), "needs either `bundle` or `layers`")
    for name in case.layers:
        if name not in POLICY_LAYERS:
            hint = did_you_mean(name, POLICY_LAYERS)
            yield Misfit(("layers", name), f"unknown layer `{name[:40]}`", hint, at_key=True)
    if wall_ms_of(case.start) is None:
        hint = "write a time such as `2026-01-31T09:00:00Z`"
        yield Misfit(("start",), f"`{case.start[:40]}` is not a time with a time zone", hint)
    now_ms = 0
    for index, call in enumerate(case.calls):
        yield from _call_misfits(call, ("calls", index), now_ms)
        now_ms = now_ms if call.at_ms is None else call.at_ms


def _call_misfits(call: CaseCall, path: Path, now_ms: int) -> Iterator[Misfit]:
    if call.at_ms is not None and call.at_ms < now_ms:
        yield Misfit((*path, "at_ms"), f"time runs backwards: {call.at_ms} after {now_ms}")
    if not call.cwd.startswith("/"):
        yield Misfit((*path, "cwd"), f"`{call.cwd[:40]}` is not an absolute path")
    if call.outcome.latency_ms < 0:
        yield Misfit((*path, "outcome", "latency_ms"), "must be at least 0")
    for name, value in call.want.items():
        where = (*path, "want", name)
        if name not in WANTS and name != _TAINT:
            hint = did_you_mean(name, [*WANTS, _TAINT, *[""] * 13])
            yield Misfit(where, f"unknown field `{name[:60]}`", hint, at_key=True)
        words = _WORDS.get(name)
        if words is not None and value not in list(words):
            hint = did_you_mean(value, list(words))
            yield Misfit(where, f"unknown value `{str(value)[:40]}`", hint)


def wall_ms_of(text: str) -> int | None:
    """Returns the milliseconds of an RFC 3339 time; None if the text is not one."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None
