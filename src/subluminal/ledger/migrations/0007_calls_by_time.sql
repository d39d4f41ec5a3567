-- Lists are in the order of time, not of ingest, so every index ends with the time. `args_hash` is
-- indexed whole (spec 001 section 11.3).

DROP INDEX calls_by_tool;
DROP INDEX calls_by_outcome;
DROP INDEX calls_by_args;
DROP INDEX calls_by_rule;

CREATE INDEX calls_by_time ON tool_calls (created_at);
CREATE INDEX calls_by_tool ON tool_calls (server_name, tool_name, created_at);
CREATE INDEX calls_by_outcome ON tool_calls (decision, status, created_at);
CREATE INDEX calls_by_args ON tool_calls (args_hash, created_at);
CREATE INDEX calls_by_rule ON tool_calls (rule_id, created_at) WHERE rule_id IS NOT NULL;

CREATE INDEX runs_by_time ON runs (started_at);
CREATE INDEX hints_by_time ON hints (created_at);
CREATE INDEX approvals_by_time ON approvals (requested_at);
