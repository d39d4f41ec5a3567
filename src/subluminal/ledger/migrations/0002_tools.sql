-- Tools as their servers described them, one row for every definition that was ever seen.

CREATE TABLE tool_definitions (
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  definition_json TEXT,             -- redacted; NULL where no event had room for it
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  run_id TEXT NOT NULL,             -- of the first sight
  PRIMARY KEY (server_name, tool_name, definition_hash)
) STRICT, WITHOUT ROWID;

-- What waits, or waited, for a person. No event tells of these rows: who asks and answers writes them.

CREATE TABLE approvals (
  approval_id TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  args_preview TEXT,
  rule_id TEXT,
  reason_code TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  expires_at INTEGER,
  state TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_state ON approvals (state, requested_at);
