"""Writes real events of a call into a journal, as the enforcer does, and verifies a chain."""

from collections.abc import Iterable
from hashlib import sha256

from subluminal.contracts.identity import Source, Workload
from subluminal.contracts.templates import EventTemplates, ToolTemplates, encode_json
from subluminal.journal import Journal
from subluminal.journal.verifying import ChainCheck, Damage

TS = b"2026-11-15T04:00:00.000Z"
ARGS_HASH = sha256(b"{}").hexdigest().encode()
DECISION = (
    b'{"action":"ALLOW","rule_id":null,"severity":"info","explain":{"summary":"ok",'
    b'"reason_code":"DEFAULT_ALLOW"},"policy":{"policy_id":"p","policy_version":"1",'
    b'"policy_hash":"h"}}'
)


def templates(shim_id: str = "shim", workload: Workload | None = None) -> EventTemplates:
    source = Source(host_id="host", proc_id="proc", shim_id=shim_id)
    return EventTemplates(
        run_id="run", agent_id="a", client="custom", env="dev", source=source, workload=workload
    )


def preview_json(name: str, text: str | None) -> bytes:
    if text is None:
        return b"false"
    digest = sha256(text.encode()).hexdigest().encode()
    return b'false,"hash":"%b","%b":%b' % (digest, name.encode(), encode_json(text))


def tool(made: EventTemplates) -> ToolTemplates:
    return made.of_tool("git", "push", "mcp_stdio")


def start_line(
    made: EventTemplates, n: int, prev: bytes, *, call_id: str = "c", text: str | None = "{}"
) -> bytes:
    place = (TS, n, prev, call_id.encode(), ARGS_HASH)
    return tool(made).start % (*place, 300, 1, 7, b"", preview_json("args_preview", text))


def decision_line(made: EventTemplates, n: int, prev: bytes, *, call_id: str = "c") -> bytes:
    return tool(made).decision % (TS, n, prev, call_id.encode(), ARGS_HASH, DECISION)


def end_line(
    made: EventTemplates, n: int, prev: bytes, *, call_id: str = "c", text: str | None = "done"
) -> bytes:
    place = (TS, n, prev, call_id.encode(), ARGS_HASH)
    return tool(made).end % (*place, b"OK", 3, 10, b"", preview_json("result_preview", text))


class Writer:
    """A journal and the templates of its shim."""

    def __init__(self, directory: str, shim_id: str = "shim", **options: int) -> None:
        self.journal = Journal(directory, shim_id, **{"max_bytes": 1 << 30, **options})
        self.templates = templates(shim_id)

    def begin(self, call_id: str = "c", text: str | None = "{}") -> None:
        """Start and decision, in one flush."""
        journal = self.journal
        journal.add(start_line(self.templates, journal.n, journal.prev, call_id=call_id, text=text))
        journal.add(decision_line(self.templates, journal.n, journal.prev, call_id=call_id))
        journal.flush()

    def finish(self, call_id: str = "c", text: str | None = "done") -> None:
        journal = self.journal
        journal.add(end_line(self.templates, journal.n, journal.prev, call_id=call_id, text=text))
        journal.flush()

    def close(self) -> None:
        self.journal.close()


def verify_lines(
    lines: Iterable[bytes], shim_id: str, *, head: bytes | None = None
) -> Damage | None:
    """Returns the first damage of a whole chain; None if it holds.

    Only `head`, the hash after the last event, proves that event.
    """
    check = ChainCheck(shim_id)
    for line in lines:
        if check.feed(line):
            return check.damage
    return check.end(head) if head is not None else None
