-- The end of a call that one shim began and another one ended. `end_n` is then a number of `end_shim`.

ALTER TABLE tool_calls ADD COLUMN end_shim INTEGER;          -- NULL: the shim of the start

-- Such ends that arrived before the start of their call.

CREATE TABLE ends_ahead (
  begun_by TEXT NOT NULL,           -- shim_id of the start
  call_id TEXT NOT NULL,
  shim INTEGER NOT NULL,
  n INTEGER NOT NULL,
  event BLOB NOT NULL,              -- the end as JSON, with its preview
  PRIMARY KEY (begun_by, call_id)
) STRICT, WITHOUT ROWID;
