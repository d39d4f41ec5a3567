-- What packs of the kernel decided about calls. An event `audit_record` adds the nonce and the
-- principal. The status of an execution is not here: the execution ledger has it.

CREATE TABLE intents (
  id INTEGER PRIMARY KEY REFERENCES tool_calls (id),
  call_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  pack TEXT NOT NULL,
  version TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  intent_kind TEXT NOT NULL,
  intent_hash TEXT NOT NULL,
  nonce TEXT,                       -- NULL: no audit record; so is principal
  principal TEXT,                   -- llm, user, system
  taint TEXT NOT NULL,              -- level of the intent
  decision_kind TEXT NOT NULL,
  refusal_code TEXT,
  guard TEXT,
  divergence TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX intents_by_time ON intents (created_at);
CREATE INDEX intents_by_run ON intents (run_id, created_at);
CREATE INDEX intents_by_hash ON intents (intent_hash);
