"""The refused call behind a hint, as the ledger has recorded it."""

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from subluminal.canonical import AmbiguousJSON, parse
from subluminal.contracts.identity import Identity
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import Layer, Taint
from subluminal.core.contents.source import data_in
from subluminal.errors import SubluminalError
from subluminal.ledger.client.finding import ending_in, several
from subluminal.ledger.client.ledger import Ledger, Page, Row
from subluminal.ledger.query.recorded_agents import agent_of
from subluminal.ledger.query.recorded_runs import RunReader
from subluminal.policy.promoting import RefusedCall
from subluminal.policy.replay.recorded_given import given_on_record, provider_of
from subluminal.timestamps import parse_rfc3339

if TYPE_CHECKING:
    import apsw

_PREFIX = "hint-"
"""A shim names a hint by this prefix and the call's id."""
_FEW = 5
_LIST_HINT = "`sub hints` lists the hints"


class Hinted(NamedTuple):
    """A hint, and the refused call that it was given for."""

    hint_id: str
    rule_id: str | None
    reason_code: str | None
    run_id: str
    args_hash: str
    layer: Layer | None
    """layer of the policy that refused; None if that was not recorded"""
    policy_hash: str | None
    other_layers: list[tuple[Layer, str]]
    """the other layers that were evaluated, with the hash of their policy"""
    call: RefusedCall
    call_id: str
    cause: str | None
    """what tripped the breaker that refused: errors, repeats or latency"""


def find_hinted(ledger: Ledger, connection: "apsw.Connection | None", name: str) -> Hinted:
    """Finds a hint by its id or by the id of its call; the end of either is enough."""
    detail = ledger.call(name.removeprefix(_PREFIX)) or _by_end(ledger, name)
    hint = detail["hint"]
    if hint is None:
        raise SubluminalError(f"call `{name}` was not given a hint", hint=_LIST_HINT)
    call, events = detail["call"], detail["events"]
    args = _args(call)
    decisions = [event["decision"] for event in events if event["type"] == "tool_call_decision"]
    policy_hash = decisions[0]["policy"]["policy_hash"] if decisions else None
    layers = _layers(connection, call["run_id"], decisions)
    layer = next((layer for layer, each in layers if each == policy_hash), None)
    started: Row = next((each["call"] for each in events if each["type"] == "tool_call_start"), {})
    given, hidden = given_on_record(_json(started.get("given")))
    return Hinted(
        hint_id=hint["hint_id"] or _PREFIX + hint["call_id"],
        rule_id=hint["rule_id"],
        reason_code=call["reason_code"],
        run_id=call["run_id"],
        args_hash=call["args_hash"],
        layer=layer,
        policy_hash=policy_hash,
        other_layers=[each for each in layers if each != (layer, policy_hash)],
        call=RefusedCall(
            server_name=call["server_name"],
            tool_name=call["tool_name"],
            args=args,
            identity=_identity(events),
            wall_ms=parse_rfc3339(call["ts"]),
            targets=_targets(events),
            taint=_taint(decisions),
            data=None if args is None else data_in(args),
            agent=None
            if connection is None
            else agent_of(connection, call["run_id"], started.get("seq", 0)),
            provider=provider_of(
                started.get("provider"), started.get("transport", ""), call["server_name"]
            ),
            given=given,
            hidden=hidden,
        ),
        call_id=call["call_id"],
        cause=_cause(events, hint["rule_id"]),
    )


def _targets(events: list[Row]) -> Targets | None:
    """Returns what the call touched, if it was recorded whole."""
    for event in events:
        given = event["call"].get("targets") if event["type"] == "tool_call_start" else None
        if given is not None and not given.get("masked"):
            return msgspec.convert(given, Targets)
    return None


def _json(value: Any) -> bytes:
    return b"" if value is None else msgspec.json.encode(value)


def _taint(decisions: list[Row]) -> Taint:
    """Returns the level of the run before the call; SYSTEM if no policy spoke of it."""
    given = decisions[0].get("taint") if decisions else None
    return Taint(given) if given in list(Taint) else Taint.SYSTEM


def _cause(events: list[Row], rule_id: str | None) -> str | None:
    trips = [event["breaker"] for event in events if event["type"] == "breaker_trip"]
    causes: list[str] = [trip["cause"] for trip in trips if trip.get("rule_id") == rule_id]
    return causes[0] if causes else None


def _by_end(ledger: Ledger, name: str) -> Row:
    where = ending_in("call", name.removeprefix(_PREFIX))
    found = ledger.hints(where, Page(_FEW)).rows
    ids = sorted({row["call_id"] for row in found})
    detail = ledger.call(ids[0]) if len(ids) == 1 else None
    if detail is not None:
        return detail
    if not ids:
        raise SubluminalError(f"there is no hint `{name}`", hint=_LIST_HINT)
    raise several(name, ids)


def _args(call: Row) -> dict[str, Any] | None:
    """Returns the call's arguments; None if the recorded preview is cut or masked.

    The hash of the arguments tells whether the preview is complete.
    """
    text = call["preview"]["args_preview"]
    if text is None or sha256(text.encode()).hexdigest() != call["args_hash"]:
        return None
    try:
        value = parse(text.encode()).value
    except AmbiguousJSON:
        return None
    return value if isinstance(value, dict) else None


def _identity(events: list[Row]) -> Identity:
    names = ("agent_id", "client", "env", "principal", "workload")
    first = events[0] if events else {}
    given = {name: first[name] for name in names if first.get(name) is not None}
    try:
        return msgspec.convert(given, Identity)
    except msgspec.ValidationError:  # values that a newer version has added
        return Identity()


def _layers(
    connection: "apsw.Connection | None", run_id: str, decisions: list[Row]
) -> list[tuple[Layer, str]]:
    """Returns the layers that were evaluated. A decision lists them only if there were several."""
    asked = decisions[0].get("policies", []) if decisions else []
    if asked or connection is None:
        return [(Layer(each["layer"]), each["policy_hash"]) for each in asked]
    hashes = {decision["policy"]["policy_hash"] for decision in decisions}
    loads = RunReader(connection).setting(run_id).loads
    return [(load.layer, load.policy_hash) for load in loads if load.policy_hash in hashes][:1]
