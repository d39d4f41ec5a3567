"""What events say of runs, policies and tools, as values for their columns.

Pure: ingest writes with it, verify proves with it. Many events tell of the same run, policy or
tool, and they may arrive in any order. So these rows are merged: the earliest run_start says how a
run began, the latest run_end how it ended (shared-runs), the earliest sight of a tool is its first.
"""

from collections.abc import Iterator
from hashlib import sha256

from msgspec import UNSET, Raw

from subluminal.canonical import encode, parse
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.events import Event, PolicyLoaded, RunEnd, RunStart, ToolsListed
from subluminal.errors import SubluminalError
from subluminal.ledger.ingest.batch import RunDelta
from subluminal.ledger.ingest.deriving import json_text
from subluminal.timestamps import parse_rfc3339

Values = tuple[object, ...]

PolicyKey = tuple[str, str, str]
"""policy_id, version and rules_hash: the key of `policy_versions`"""

Sight = tuple[str, str, str, str | None, int, str]
"""server, tool, hash, definition, time in milliseconds, run_id"""

STARTED = (
    "started_at",
    "agent_id",
    "client",
    "env",
    "principal",
    "mode",
    "policy_id",
    "policy_version",
    "policy_hash",
    "metadata_json",
    "workload_json",
    "agent_json",
)
"""The columns of `runs` that a run_start fills."""
ENDED = ("ended_at", "status", "summary_json")
"""The columns of `runs` that a run_end fills."""


def stated_ms(text: str, event_ts: str) -> int:
    """A time that an event states; the event's own time if the text cannot be read."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return parse_rfc3339(event_ts)


def run_started(event: RunStart) -> Values:
    """The values of the `STARTED` columns."""
    run = event.run
    meta = None if run.meta is UNSET else json_text(run.meta)
    policy = policy_key(run.policy)
    agent = None if run.agent is UNSET else json_text(run.agent)
    began = (run_start_ms(event), *_identity(event), run.mode)
    return (*began, *policy, meta, _workload(event), agent)


def run_ended(event: RunEnd) -> Values:
    """The values of the `ENDED` columns."""
    ended_ms = stated_ms(event.run.ended_at, event.ts)
    return ended_ms, event.run.status, json_text(event.run.summary)


def run_seen(run_id: str, run: RunDelta) -> Values:
    """What any event says of its run: run_id, identity, first time, workload, last time, calls."""
    workload = _workload(run.seen)
    return (run_id, *_identity(run.seen), run.first_ms, workload, run.last_ms, run.calls)


def run_start_ms(event: RunStart) -> int:
    """When a run began, in milliseconds."""
    return stated_ms(event.run.started_at, event.ts)


def policy_key(policy: PolicyRef) -> PolicyKey:
    """The key of a policy's row."""
    return policy.policy_id, policy.policy_version, policy.policy_hash


def rules_of(snapshot: Raw, rules_hash: str) -> str | None:
    """`rules_json` of a snapshot; None if its hash is not `rules_hash`.

    `rules_json` is the compiled policy in canonical form and without its hash: `rules_hash` is its
    SHA-256.
    """
    try:
        data = parse(bytes(snapshot)).value
        if not isinstance(data, dict):
            return None
        data.pop("policy_hash", None)
        text = encode(data)
    except (SubluminalError, ValueError):
        return None
    return text.decode() if sha256(text).hexdigest() == rules_hash else None


def policy_of_start(event: RunStart) -> Values:
    """Key, mode and time of the policy that a run began with."""
    return (*policy_key(event.run.policy), event.run.mode, run_start_ms(event))


def policy_loaded(event: PolicyLoaded, at_ms: int) -> Values:
    """Key, mode and time of a policy that came into force."""
    return (*loaded_key(event), None if event.load.mode is UNSET else event.load.mode, at_ms)


def loaded_key(event: PolicyLoaded) -> PolicyKey:
    """The key of a policy that came into force."""
    assert event.policy is not UNSET  # the batch takes no other event
    return policy_key(event.policy)


def tool_sights(event: ToolsListed, at_ms: int) -> Iterator[Sight]:
    """Every tool definition in a tool list."""
    listing = event.listing
    for tool in listing.tools:
        text = None if tool.definition is UNSET else tool.definition
        yield (listing.server_name, tool.name, tool.hash, text, at_ms, event.run_id)


def _identity(event: Event) -> tuple[str, str, str, str | None]:
    principal = None if event.principal is UNSET else event.principal
    return event.agent_id, event.client, event.env, principal


def _workload(event: Event) -> str | None:
    return None if event.workload is UNSET else json_text(event.workload)
