"""Makes stored events small: events repeat each other, and most of all themselves.

Runs behind the ingest. The dictionary is part of the format: a ledger needs it to be read.
"""

import zlib

import apsw

RAW, DEFLATED = 0, 1
"""`segments.codec`"""

BATCH = 64

_DICTIONARY = (
    b'{"type":"run_start","v":"0.1.0","ts":"2026-11-15T00:00:00.000Z","run":{"started_at":"'
    b'"mode":"guardrails","calls_total":,"calls_allowed":,"calls_blocked":,"calls_throttled":'
    b'{"type":"shim_health","v":"0.1.0","health":{"state":"spawned","server_name":","pid":'
    b'"error":{"class":"upstream_error","message":"policy_block","code":,"retryable":false},'
    b'"hint":{"hint_text":"","suggested_args":null,"retry_advice":null,"hint_kind":"SAFETY"}'
    b'{"type":"tool_call_end","v":"0.1.0","ts":"2026-11-15T00:00:00.000Z","run_id":"'
    b'"},"status":"ERROR","status":"OK","latency_ms":1,"bytes_out":1,"preview":{"truncated":false,'
    b'"hash":"{"type":"tool_call_start","v":"0.1.0","ts":"2026-11-15T00:00:00.000Z","run_id":"'
    b'","agent_id":"","client":"claude","env":"dev","source":{"host_id":"","proc_id":"","shim_id":"'
    b'","n":1,"prev":""},"principal":"","workload":{"user":"root","repo_path":"/home/","repo":"'
    b'","branch":"main"},"call":{"call_id":"","server_name":"","tool_name":"","args_hash":"'
    b'","transport":"mcp_stdio","bytes_in":100,"seq":1,"preview":{"truncated":false,"hash":""}}}\n'
    b'{"type":"tool_call_decision","v":"0.1.0","decision":{"action":"BLOCK","action":"ALLOW",'
    b'"rule_id":null,"severity":"info","explain":{"summary":"no rule matched","reason_code":"'
    b'DEFAULT_ALLOW"},"policy":{"policy_id":"none","policy_version":"","policy_hash":""}}}\n'
)


def pack(raw: bytes) -> bytes:
    """Deflates a segment's lines."""
    deflater = zlib.compressobj(level=6, zdict=_DICTIONARY)
    return deflater.compress(raw) + deflater.flush()


def unpack(packed: bytes) -> bytes:
    """Inflates them again. Raises zlib.error if they are damaged."""
    inflater = zlib.decompressobj(zdict=_DICTIONARY)
    return inflater.decompress(packed) + inflater.flush()


def pack_some(connection: apsw.Connection) -> bool:
    """Packs one batch of segments. Whether there may be more."""
    sql = "SELECT id, lines FROM segments WHERE codec = 0 AND lines IS NOT NULL ORDER BY id LIMIT ?"
    rows = list(connection.execute(sql, (BATCH,)))
    if not rows:
        return False
    with connection:
        connection.executemany(
            "UPDATE segments SET codec = ?, lines = ? WHERE id = ?",
            [(DEFLATED, pack(lines), number) for number, lines in rows],
        )
    return len(rows) == BATCH
