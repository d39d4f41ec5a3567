"""A home with a few runs in it, at fixed times, for the screens."""

import json

from tests.ledger.events import ALLOW, BLOCK, HINT, START_MS, decision_json
from tests.ledger.home import Home

from subluminal.clock import Now, rfc3339
from subluminal.contracts.vocabulary import RunStatus
from subluminal.ledger.upkeep.deferred import index_some

NOW_MS = START_MS + 3_600_000
THROTTLE = decision_json("THROTTLE", "slowly", "RATE_LIMITED").replace(
    b'"severity":"info"', b'"severity":"warn","backoff_ms":500'
)
TERMINATE = decision_json("TERMINATE_RUN", "no-loops", "BREAKER_TRIPPED").replace(
    b'"severity":"info"', b'"severity":"critical"'
)
EVIL = "evil\x1b[31m\u202egnp\r\x07"


def record(home: Home) -> None:
    """One run of each kind: ended, terminated, under way with a call of unknown outcome."""
    ended = home.producer("run-ended", "shim-a")
    ended.run_start()
    for number, decision in enumerate([ALLOW, BLOCK, HINT, ALLOW, THROTTLE, ALLOW]):
        ended.clock_ms += 250
        ended.finish(
            ended.begin(number, decision),
            "ERROR" if decision is not ALLOW or number == 5 else "OK",
        )
    ended.run_end()
    stopped = home.producer("01a1dda7-8a7e-77f9-bd0f-12a8877c4af5", "shim-b")
    stopped.clock_ms += 60_000
    stopped.run_start()
    stopped.call(2, ALLOW)
    stopped.call(2, TERMINATE)
    stopped.run_end(RunStatus.TERMINATED)
    running = home.producer("run-open", "shim-c")
    running.clock_ms += 120_000
    running.run_start()
    running.call(1, ALLOW)
    running.begin(3, ALLOW)
    settle(home)


def settle(home: Home) -> None:
    home.ingest()
    while index_some(home.store.connection, 2 * START_MS):
        pass


def record_evil(home: Home) -> None:
    """What a hostile server may be called, and what it may say."""
    call = {
        "call_id": "evil-1",
        "server_name": EVIL,
        "tool_name": "日本語" + EVIL,
        "args_hash": "0" * 64,
        "transport": "mcp_stdio",
        "bytes_in": 9,
        "seq": 1,
        "preview": {"truncated": False, "args_preview": json.dumps({"x": EVIL})},
    }
    home.take([json.dumps({**_envelope(), "type": "tool_call_start", "call": call}).encode()])


def _envelope():
    source = {"host_id": "h", "proc_id": "p", "shim_id": "evil"}
    names = {"run_id": EVIL, "agent_id": EVIL, "client": "custom", "env": "dev"}
    return {"v": "0.1.0", "ts": rfc3339(START_MS), "source": source, **names}


def fixed_now() -> Now:
    return Now(NOW_MS, 0)
