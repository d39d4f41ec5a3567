"""The contracts as JSON Schemas, for producers and consumers in other languages.

`make schema` writes them to `schema/`; a test fails if the files there are stale. This module adds
what the Pack demands and a Python type cannot express: a field that an action requires, the form of
a hash. Subluminal's own readers are more tolerant: see `codec`.
"""

from typing import Any

import msgspec

from subluminal.contracts.bindings import ServerBindings
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.bundle_schemas import add_demands, relax
from subluminal.contracts.decision import Decision, ErrorData
from subluminal.contracts.events import AnyEvent
from subluminal.contracts.identity import Workload
from subluminal.contracts.vocabulary import Action

_CONTRACTS: dict[str, tuple[Any, str]] = {
    "event": (AnyEvent, "Contract A: one line of the event stream"),
    "bundle": (Bundle, "Contract B: a policy bundle"),
    "policy": (Bundle, "A policy as people write it in YAML: a bundle that may leave fields out"),
    "decision": (Decision, "Contract C: a decision"),
    "error_data": (ErrorData, "Contract C: `error.data` of a refused tool call"),
    "workload": (Workload, "Pack 1.3.1: SUB_WORKLOAD and `workload` of every event"),
    "secret_bindings": (ServerBindings, "Pack 4.1: the secret bindings of one server"),
}

# Pack 1.6, 3.1, 3.2: the field that a decision must have, by action.
_REQUIRED_BY_ACTION = {
    Action.THROTTLE: ("backoff_ms", {"type": "integer", "minimum": 0}),
    Action.REJECT_WITH_HINT: ("hint", {"type": "object"}),
    Action.TERMINATE_RUN: ("terminate", {"type": "object"}),
}
_DECISIONS = ("Decision", "DecisionMade")
# Pack 3.2 does not name `terminate`, which is additive.
_ERRORS = ("SubluminalErrorData",)

_TIME: dict[str, Any] = {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}
_SHA256: dict[str, Any] = {"pattern": "^[0-9a-f]{64}$"}
_COUNT: dict[str, Any] = {"minimum": 0}
_FORMS = {
    "ts": _TIME,
    "started_at": _TIME,
    "ended_at": _TIME,
    "requested_at": _TIME,
    "expires_at": _TIME,
    "args_hash": _SHA256,
    "policy_hash": _SHA256,
    "seq": {"minimum": 1},
    "bytes_in": _COUNT,
    "bytes_out": _COUNT,
    "latency_ms": _COUNT,
    "snapshot": {"type": "object"},
    "audit": {"type": "object"},
}
_OWN_FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("TaintChange", "seq"): _COUNT,
    ("AgentResolvedAgain", "seq"): _COUNT,
}
"""Forms of fields that stand for something else in one struct: no call may have been before."""


def schemas() -> dict[str, dict[str, Any]]:
    """Returns every published schema, by the name of its file without the suffix."""
    return {name: _schema(name, *contract) for name, contract in _CONTRACTS.items()}


def _schema(name: str, type_: Any, title: str) -> dict[str, Any]:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"subluminal/{name}.schema.json",
        "title": title,
        **msgspec.json.schema(type_),
    }
    if type_ is Bundle:
        add_demands(schema)
    if name == "policy":
        relax(schema)
    for struct, definition in schema["$defs"].items():
        for field, property_ in definition.get("properties", {}).items():
            property_.update(_OWN_FORMS.get((struct, field), _FORMS.get(field, {})))
        if struct in _DECISIONS:
            definition["allOf"] = [_condition(action) for action in _REQUIRED_BY_ACTION]
        elif struct in _ERRORS:
            definition["allOf"] = [
                _condition(Action.THROTTLE),
                _condition(Action.REJECT_WITH_HINT),
            ]
    return schema


def _condition(action: Action) -> dict[str, Any]:
    field, form = _REQUIRED_BY_ACTION[action]
    return {
        "if": {"properties": {"action": {"const": action.value}}},
        "then": {"required": [field], "properties": {field: form}},
    }
