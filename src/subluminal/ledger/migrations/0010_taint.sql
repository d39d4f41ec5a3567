-- The level of the run before the call, if a policy speaks of it.

ALTER TABLE tool_calls ADD COLUMN taint TEXT;                -- SYSTEM, TRUSTED, UNTRUSTED
