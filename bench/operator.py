"""How long an operator waits for `sub query` and `sub tail`, on a ledger with a million calls.

SQL writes the rows directly, in the ledger's own schema: readers do not see the difference.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.harness import Result, interleaved
from subluminal.config.places import Places
from subluminal.ledger.client.ledgerd import start, stop
from subluminal.ledger.store.database import open_writer

SUB = str(Path(sys.executable).with_name("sub"))
CALLS = 1_000_000
RUNS = 1_000
_SERVERS = "CASE i % 5 WHEN 0 THEN 'git' WHEN 1 THEN 'github' ELSE 'fs' END"
_TOOLS = "'tool_' || (i % 20)"
_DECISION = "CASE WHEN i % 100 = 0 THEN 'BLOCK' ELSE 'ALLOW' END"
_STATUS = "CASE WHEN i % 50 = 7 THEN 'ERROR' ELSE 'OK' END"
_RULE = "CASE WHEN i % 100 = 0 THEN 'no-push' END"
_BEGIN_MS = 1_790_000_000_000
_FILL = f"""
CREATE TEMP TABLE n AS
  WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {CALLS})
  SELECT i FROM c;
INSERT INTO shims VALUES (1, 'shim', 'run-1', 0, 0, x'00', NULL);
INSERT INTO runs (run_id, agent_id, client, env, started_at, last_event_at, calls)
  SELECT 'run-' || i, 'agent', 'custom', 'dev', {_BEGIN_MS} + i * 1000, {_BEGIN_MS} + i * 1000,
    {CALLS // RUNS} FROM n WHERE i <= {RUNS};
INSERT INTO tool_calls (id, call_id, run_id, server_name, tool_name, args_hash, decision, rule_id,
    status, latency_ms, bytes_in, bytes_out, preview_truncated, created_at, reason_code, severity,
    seq, transport, shim)
  SELECT i, printf('call-%08d', i), 'run-' || (1 + i / {CALLS // RUNS}), {_SERVERS}, {_TOOLS},
    printf('%064x', i * 7919), {_DECISION}, {_RULE}, {_STATUS}, i % 900, 120, 640, 0,
    {_BEGIN_MS} + i * 40, 'DEFAULT_ALLOW', 'info', i, 'mcp_stdio', 1 FROM n;
INSERT INTO previews (id, call_id, args_preview, result_preview)
  SELECT i, printf('call-%08d', i), printf('{{"path":"/src/file%d.py"}}', i), 'all is well' FROM n;
INSERT INTO rollups SELECT created_at / 60000, server_name, tool_name, ifnull(decision, ''),
    ifnull(status, ''), ifnull(rule_id, ''), count(*) FROM tool_calls GROUP BY 1, 2, 3, 4, 5, 6;
INSERT INTO totals SELECT server_name, tool_name, decision, status, rule_id, sum(calls)
  FROM rollups GROUP BY 1, 2, 3, 4, 5;
INSERT INTO buckets SELECT created_at / 60000, min(id), max(id) FROM tool_calls GROUP BY 1;
INSERT INTO counters VALUES ('events_total', {CALLS}), ('search_done', {CALLS});
DROP TABLE n;
"""


def measure() -> Iterator[Result]:
    """Compares with a bare interpreter, and with `sub version`."""
    with tempfile.TemporaryDirectory(prefix="subluminal-bench-") as home:
        places = Places(home, os.path.join(home, "run"))
        _fill(places)
        start(places, port=None)
        try:
            yield from _measure(places)
        finally:
            stop(places)


def _measure(places: Places) -> Iterator[Result]:
    environ = {**os.environ, "SUB_HOME": places.home, "SUB_RUNTIME_DIR": places.runtime_dir}
    # An installed package has its byte code; in a checkout, the first run writes it.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def command(*words: str) -> Callable[[], object]:
        return lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True, env=environ)

    bare, version, query, tail, few, found = interleaved(
        [
            command(sys.executable, "-c", "pass"),
            command(SUB, "version"),
            command(SUB, "query", "--limit", "1"),
            command(SUB, "tail", "--no-follow"),
            command(SUB, "query", "--limit", "50"),
            command(SUB, "query", "decision:BLOCK server:git* latency>500", "--limit", "50"),
        ],
        rounds=25,
    )
    for name, seconds in (("sub query", query), ("sub tail", tail)):
        detail = f"{seconds * 1e3:.1f} ms against {bare * 1e3:.1f} ms"
        yield Result(f"{name} over python -c pass", seconds / bare, 4.0, False, detail)
    for name, seconds in (("50 newest", few), ("50 by filter", found)):
        detail = f"{seconds * 1e3:.1f} ms against {version * 1e3:.1f} ms"
        yield Result(f"{name} of 1,000,000 over sub version", seconds / version, 4.0, False, detail)


def _fill(places: Places) -> None:
    connection = open_writer(places.ledger)
    try:
        with connection:
            connection.execute(_FILL)
    finally:
        connection.close()
