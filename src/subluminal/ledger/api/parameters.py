"""Query strings as typed questions. An unknown or misspelt parameter is an error."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct

from subluminal.clock import now
from subluminal.contracts.shape import did_you_mean, misfits, struct_of
from subluminal.contracts.vocabulary import Action, Client, Env, Outcome, RunStatus, Status
from subluminal.ledger.filter.fields import (
    CALL_FIELDS,
    RECORDED_INTENT_FIELDS,
    RUN_FIELDS,
    UNKNOWN,
    Field,
)
from subluminal.ledger.filter.language import Filter, Term, parse_filter
from subluminal.ledger.ingest.hint_outcomes import HintOutcome
from subluminal.ledger.query.questions import (
    DEFAULT_LIMIT,
    ApprovalState,
    CallFilter,
    IntentFilter,
    InvalidQuery,
    Paging,
    RecoveryBy,
    RunFilter,
    call_filter,
)
from subluminal.timestamps import parse_rfc3339

T = TypeVar("T", bound=Struct)

_NUMBERS = frozenset(["limit", "bar_ms", "after"])


AskedStatus = StrEnum(  # type: ignore[misc]  # mypy needs the words spelt out
    "AskedStatus", [*((member.name, member.value) for member in Status), (UNKNOWN, UNKNOWN)]
)
"""How a call ended; UNKNOWN if it was forwarded and its outcome is unknown."""


class NoParameters(Struct, frozen=True, kw_only=True):
    """No parameters."""


class CallParameters(Struct, frozen=True, kw_only=True):
    """Which calls."""

    run: str | None = None
    server: str | None = None
    tool: str | None = None
    decision: Action | None = None
    outcome: Outcome | None = None
    status: AskedStatus | None = None
    rule: str | None = None
    text: str | None = None
    args_hash: str | None = None
    since: str | None = None
    until: str | None = None
    where: str | None = None
    """the filter language of `sub query`"""

    def filter(self) -> CallFilter:
        given = CallFilter(
            run=self.run,
            server=self.server,
            tool=self.tool,
            decision=self.decision,
            status=self.status,
            rule=self.rule,
            text=self.text,
            args_hash=self.args_hash,
            since_ms=_time(self.since),
            until_ms=_time(self.until),
        )
        asked = () if self.outcome is None else (Term("outcome", ":", (self.outcome,)),)
        return call_filter((*asked, *_terms(self.where, CALL_FIELDS)), given)


class PageParameters(Struct, frozen=True, kw_only=True):
    """Which page."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    order: str = "newest"

    def paging(self) -> Paging:
        return _paging(self.limit, self.cursor, self.order)


class CallPageParameters(CallParameters, frozen=True, kw_only=True):
    """A page of calls. Repeats PageParameters, because a struct has one base only."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    order: str = "newest"

    def paging(self) -> Paging:
        return _paging(self.limit, self.cursor, self.order)


class RunPageParameters(PageParameters, frozen=True, kw_only=True):
    """A page of runs."""

    agent: str | None = None
    client: Client | None = None
    env: Env | None = None
    status: RunStatus | None = None
    since: str | None = None
    until: str | None = None
    where: str | None = None
    """the filter language of `sub query runs`"""

    def filter(self) -> RunFilter:
        return RunFilter(
            agent=self.agent,
            client=self.client,
            env=self.env,
            status=self.status,
            since_ms=_time(self.since),
            until_ms=_time(self.until),
            terms=_terms(self.where, RUN_FIELDS),
        )


class HintPageParameters(PageParameters, frozen=True, kw_only=True):
    """A page of hints."""

    run: str | None = None
    outcome: HintOutcome | None = None
    where: str | None = None
    """the filter language, applied to the calls that got the hints"""

    def terms(self) -> Filter:
        return _terms(self.where, CALL_FIELDS)


class IntentPageParameters(PageParameters, frozen=True, kw_only=True):
    """A page of intents."""

    run: str | None = None
    pack: str | None = None
    since: str | None = None
    until: str | None = None
    where: str | None = None
    """the filter language of `sub query intents`, without `status`, which ledgerd does not know"""

    def filter(self) -> IntentFilter:
        return IntentFilter(
            run=self.run,
            pack=self.pack,
            since_ms=_time(self.since),
            until_ms=_time(self.until),
            terms=_terms(self.where, RECORDED_INTENT_FIELDS),
        )


class ApprovalPageParameters(PageParameters, frozen=True, kw_only=True):
    """A page of approvals."""

    state: ApprovalState | None = None
    where: str | None = None
    """the filter language, applied to the calls that needed approval"""

    def terms(self) -> Filter:
        return _terms(self.where, CALL_FIELDS)


class RecoveryParameters(Struct, frozen=True, kw_only=True):
    """How often hints helped: in which time, counted by what."""

    by: RecoveryBy = RecoveryBy.RULE
    since: str | None = None
    until: str | None = None

    def span(self) -> tuple[int | None, int | None]:
        return _time(self.since), _time(self.until)


class HistogramParameters(CallParameters, frozen=True, kw_only=True):
    """A histogram."""

    bar_ms: int = 60_000


class StreamParameters(Struct, frozen=True, kw_only=True):
    """Which events, and from which position on. Without `after`, only new events."""

    after: int | None = None
    run: str | None = None
    server: str | None = None
    tool: str | None = None
    decision: Action | None = None
    status: Status | None = None
    rule: str | None = None
    since: str | None = None
    where: str | None = None
    """the filter language of `sub tail`"""

    def filter(self) -> CallFilter:
        return CallFilter(
            run=self.run,
            server=self.server,
            tool=self.tool,
            decision=self.decision,
            status=self.status,
            rule=self.rule,
            since_ms=_time(self.since),
            terms=_terms(self.where, CALL_FIELDS),
        )


def read_parameters(pairs: Iterable[tuple[str, str]], kind: type[T]) -> T:
    """Reads a query string. Raises InvalidQuery for the first parameter that does not fit."""
    values: dict[str, str | int] = {}
    for name, value in pairs:
        if name not in kind.__struct_fields__:
            hint = did_you_mean(name, kind.__struct_fields__)
            raise InvalidQuery(f"unknown parameter `{name[:40]}`", hint=hint)
        if name in values:
            raise InvalidQuery(f"parameter `{name}` is given twice")
        if "\0" in value:
            raise InvalidQuery(f"parameter `{name}` holds a NUL character")
        values[name] = int(value) if name in _NUMBERS and _is_number(value) else value
    for misfit in misfits(values, kind):
        raise InvalidQuery(f"parameter `{misfit.path[0]}`: {misfit.message}", hint=misfit.hint)
    found: T = struct_of(values, kind)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20


def _paging(limit: int, cursor: str | None, order: str) -> Paging:
    if order not in ("newest", "oldest"):
        raise InvalidQuery(f"unknown order `{order[:40]}`", hint="newest or oldest")
    return Paging(limit=limit, cursor=cursor, newest_first=order == "newest")


def _terms(text: str | None, fields: dict[str, Field]) -> Filter:
    return parse_filter(text, now_ms=now().wall_ms, fields=fields) if text else ()


def _time(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        raise InvalidQuery(
            f"`{text[:40]}` is not a time", hint="write RFC 3339, such as 2026-11-15T12:00:00Z"
        ) from None
