-- The refused call that a call repeats, after a program waited for an approval or a rate limit.

ALTER TABLE tool_calls ADD COLUMN retry_of TEXT;             -- a call_id

CREATE INDEX calls_by_retry ON tool_calls (retry_of, created_at) WHERE retry_of IS NOT NULL;
