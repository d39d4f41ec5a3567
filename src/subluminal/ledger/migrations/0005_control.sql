-- What people were asked, what they answered, which calls passed by that, and what they stopped.
-- `shim` and `n` say which event a row follows from. The first `approvals` was never filled.

DROP TABLE approvals;

CREATE TABLE approvals (
  id INTEGER PRIMARY KEY,
  approval_id TEXT NOT NULL UNIQUE,
  run_id TEXT NOT NULL,
  call_id TEXT NOT NULL,            -- of the first call that asked
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  layer TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  requirement TEXT NOT NULL,
  reason_code TEXT NOT NULL,
  severity TEXT NOT NULL,
  message TEXT NOT NULL,
  approver_role TEXT,
  requested_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,      -- unless the call is tried again before
  shim INTEGER NOT NULL,
  n INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_by_call ON approvals (run_id, args_hash);
CREATE INDEX approvals_by_event ON approvals (shim, n);

CREATE TABLE approval_answers (
  approval_id TEXT,                 -- NULL: a grant that nobody had asked for
  run_id TEXT NOT NULL,
  answer TEXT NOT NULL,
  decided_at INTEGER NOT NULL,
  decided_by TEXT NOT NULL,
  layer TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  args_hash TEXT,                   -- NULL: whatever the arguments
  reason TEXT,
  ticket TEXT,
  grant_id TEXT,
  uses INTEGER,                     -- NULL: not counted
  expires_at INTEGER,
  shim INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (shim, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_approval ON approval_answers (approval_id, decided_at);

CREATE TABLE grant_uses (
  grant_id TEXT NOT NULL,
  id INTEGER NOT NULL,              -- of the call that passed by it
  used_at INTEGER NOT NULL,
  PRIMARY KEY (grant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX uses_by_call ON grant_uses (id);

CREATE TABLE grant_refusals (
  run_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  server_name TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  args_hash TEXT NOT NULL,
  grant_id TEXT,
  approval_id TEXT,
  problem TEXT NOT NULL,
  detail TEXT NOT NULL,
  refused_at INTEGER NOT NULL,
  shim INTEGER NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (shim, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE switches (             -- one row for each act, in however many runs it is on record
  id INTEGER PRIMARY KEY,
  switch_id TEXT NOT NULL,          -- what `killed` made and `revived` lifted
  state TEXT NOT NULL,
  scope TEXT NOT NULL,
  target TEXT,
  moved_by TEXT NOT NULL,
  hard INTEGER NOT NULL,
  reason TEXT,
  moved_at INTEGER NOT NULL,
  shim INTEGER NOT NULL,
  n INTEGER NOT NULL,
  UNIQUE (switch_id, state)
) STRICT;
