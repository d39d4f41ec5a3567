-- Times are milliseconds since 1970 UTC. Text that a closed vocabulary spells is stored as spelt.

-- What shims wrote, as they wrote it (provable-ledger). Everything further down follows from it.

CREATE TABLE shims (
  id INTEGER PRIMARY KEY,
  shim_id TEXT NOT NULL UNIQUE,
  run_id TEXT NOT NULL,             -- of its first event; a shim serves one run
  is_chained_here INTEGER NOT NULL, -- its events carry no `prev`, so the ledger chains them itself
  last_n INTEGER NOT NULL,
  head BLOB NOT NULL,               -- the chain's hash after event last_n
  anchored BLOB                     -- the head that the last checkpoint signed
) STRICT;

CREATE INDEX shims_by_run ON shims (run_id);

CREATE TABLE segments (
  id INTEGER PRIMARY KEY,
  shim INTEGER NOT NULL REFERENCES shims (id),
  first_n INTEGER NOT NULL,
  last_n INTEGER NOT NULL,
  first_pos INTEGER NOT NULL,       -- place of its first event in the order of ingest
  prev BLOB NOT NULL,               -- the chain's hash before first_n
  head BLOB NOT NULL,               -- and after last_n
  last_ms INTEGER NOT NULL,
  codec INTEGER NOT NULL,           -- 0: lines as they are, 1: deflate with our dictionary
  lines BLOB                        -- chained forms, joined by newlines; NULL: dropped by retention
) STRICT;
CREATE INDEX segments_by_n ON segments (shim, first_n);
CREATE INDEX segments_by_pos ON segments (first_pos);
CREATE INDEX segments_by_age ON segments (last_ms) WHERE lines IS NOT NULL;
CREATE INDEX segments_unpacked ON segments (id) WHERE codec = 0;

CREATE TABLE gaps (
  shim INTEGER NOT NULL REFERENCES shims (id),
  first_n INTEGER NOT NULL,
  last_n INTEGER NOT NULL,
  PRIMARY KEY (shim, first_n)
) STRICT, WITHOUT ROWID;

CREATE TABLE unnumbered (
  digest BLOB PRIMARY KEY           -- of a line without `source.n`, so that it is taken once
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
  id INTEGER PRIMARY KEY,
  created_at INTEGER NOT NULL,
  pos INTEGER NOT NULL,             -- events in the ledger then
  digest BLOB NOT NULL,
  signature BLOB NOT NULL
) STRICT;

CREATE TABLE checkpoint_heads (
  checkpoint INTEGER NOT NULL REFERENCES checkpoints (id),
  shim_id TEXT NOT NULL,
  n INTEGER NOT NULL,
  head BLOB NOT NULL,
  PRIMARY KEY (checkpoint, shim_id)
) STRICT, WITHOUT ROWID;

-- Where events came from.

CREATE TABLE journal_offsets (
  path TEXT PRIMARY KEY,            -- below the journal directory
  offset INTEGER NOT NULL,
  ingested_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantine (
  id INTEGER PRIMARY KEY,
  origin TEXT NOT NULL,
  offset INTEGER NOT NULL,
  reason TEXT NOT NULL,
  head BLOB NOT NULL,               -- how the line begins
  seen_at INTEGER NOT NULL,
  UNIQUE (origin, offset)
) STRICT;

CREATE TABLE counters (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Spec 001 section 11.3. `shim` and the `_n` columns say which events a row follows from.

CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  client TEXT NOT NULL,
  env TEXT NOT NULL,
  principal TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  status TEXT,
  mode TEXT,
  policy_id TEXT,
  policy_version TEXT,
  policy_hash TEXT,
  metadata_json TEXT,
  workload_json TEXT,
  summary_json TEXT,
  last_event_at INTEGER NOT NULL,
  calls INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE tool_calls (
  id INTEGER PRIMARY KEY,
  call_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  decision TEXT,
  rule_id TEXT,
  status TEXT,
  latency_ms INTEGER,
  bytes_in INTEGER,
  bytes_out INTEGER,
  preview_truncated INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  reason_code TEXT,
  severity TEXT,
  would_be TEXT,
  error_class TEXT,
  seq INTEGER,
  transport TEXT,
  shim INTEGER NOT NULL REFERENCES shims (id),
  start_n INTEGER,
  decision_n INTEGER,
  end_n INTEGER
) STRICT;
CREATE INDEX calls_by_call_id ON tool_calls (call_id);
CREATE INDEX calls_by_run ON tool_calls (run_id, created_at);
CREATE INDEX calls_by_tool ON tool_calls (server_name, tool_name);
CREATE INDEX calls_by_outcome ON tool_calls (decision, status);
-- 48 bits of a hash tell rows apart as well as 256 do, in a quarter of the index.
CREATE INDEX calls_by_args ON tool_calls (substr(args_hash, 1, 12));
CREATE INDEX calls_by_rule ON tool_calls (rule_id) WHERE rule_id IS NOT NULL;

CREATE TABLE previews (
  id INTEGER PRIMARY KEY REFERENCES tool_calls (id),
  call_id TEXT NOT NULL,
  args_preview TEXT,
  result_preview TEXT,
  redaction_flags TEXT
) STRICT;

CREATE TABLE hints (
  id INTEGER PRIMARY KEY REFERENCES tool_calls (id),
  call_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  hint_id TEXT,
  rule_id TEXT,
  hint_kind TEXT NOT NULL,
  hint_text TEXT NOT NULL,
  suggested_args_json TEXT,
  retry_advice TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX hints_by_run ON hints (run_id);

CREATE TABLE policy_versions (
  policy_id TEXT NOT NULL,
  version TEXT NOT NULL,
  rules_hash TEXT NOT NULL,
  mode TEXT,
  rules_json TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (policy_id, version, rules_hash)
) STRICT, WITHOUT ROWID;

-- Counts that would otherwise be scans: facets, histogram, and which ids a time span has.

CREATE TABLE rollups (
  bucket INTEGER NOT NULL,          -- created_at in minutes
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  decision TEXT NOT NULL,           -- empty where a call has none yet; so are status and rule_id
  status TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  calls INTEGER NOT NULL,
  PRIMARY KEY (bucket, server_name, tool_name, decision, status, rule_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE totals (                -- the same over all time
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  decision TEXT NOT NULL,
  status TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  calls INTEGER NOT NULL,
  PRIMARY KEY (server_name, tool_name, decision, status, rule_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE buckets (
  bucket INTEGER PRIMARY KEY,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL
) STRICT;

-- Text search over previews. It may run behind: `search_done` in counters is the last call it knows,
-- `search_again` holds earlier calls that changed since.

CREATE VIRTUAL TABLE search USING fts5 (
  args, result, content = '', contentless_delete = 1, detail = full
);

CREATE TABLE search_again (
  id INTEGER PRIMARY KEY
) STRICT;
