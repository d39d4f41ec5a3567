"""The contracts as JSON Schemas, for producers and consumers in other languages.

`make schema` writes them to `schema/`; a test fails when the files there are stale.
"""

from typing import Any

import msgspec

from subluminal.contracts.bindings import ServerBindings
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.decision import Decision, ErrorData
from subluminal.contracts.events import AnyEvent
from subluminal.contracts.identity import Workload

_CONTRACTS: dict[str, tuple[Any, str]] = {
    "event": (AnyEvent, "Contract A: one line of the event stream"),
    "bundle": (Bundle, "Contract B: a policy bundle"),
    "decision": (Decision, "Contract C: a decision"),
    "error_data": (ErrorData, "Contract C: `error.data` of a refused tool call"),
    "workload": (Workload, "Pack 1.3.1: SUB_WORKLOAD and `workload` of every event"),
    "secret_bindings": (ServerBindings, "Pack 4.1: the secret bindings of one server"),
}


def schemas() -> dict[str, dict[str, Any]]:
    """Returns every published schema by its file's stem."""
    return {name: _schema(name, *contract) for name, contract in _CONTRACTS.items()}


def _schema(name: str, type_: Any, title: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"subluminal/{name}.schema.json",
        "title": title,
        **msgspec.json.schema(type_),
    }
