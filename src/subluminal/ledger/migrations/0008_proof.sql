-- Which key signed a checkpoint. NULL: an early version did, with HMAC and `ledger.key`.

ALTER TABLE checkpoints ADD COLUMN key_id TEXT;

-- Why retention dropped the events of a segment, signed with the home's key. What early versions
-- dropped is signed once, here, as dropped for an unknown reason (`store/drops.py`).

CREATE TABLE drops (
  segment INTEGER PRIMARY KEY REFERENCES segments (id),
  reason TEXT NOT NULL,             -- age, size, unknown
  newest_at INTEGER NOT NULL,       -- time of the newest event that was dropped
  dropped_at INTEGER NOT NULL,
  keep_days INTEGER NOT NULL,       -- the settings at that time
  max_bytes INTEGER NOT NULL,
  used_bytes INTEGER NOT NULL,      -- the ledger's size at that time
  signature BLOB
) STRICT;

INSERT INTO drops
  SELECT s.id, 'unknown', s.last_ms, 0, 0, 0, 0,
    sign_early_drop(h.shim_id, s.first_n, s.last_n, s.prev, s.head, s.last_ms)
  FROM segments s JOIN shims h ON h.id = s.shim WHERE s.lines IS NULL;

-- Early versions did not narrow the span of a minute when they dropped calls of it.

DELETE FROM buckets;
INSERT INTO buckets SELECT created_at / 60000, min(id), max(id) FROM tool_calls GROUP BY 1;
