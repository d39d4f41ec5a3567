-- What came of a hint. `hint_outcome` is `judge` of ledger/hint_outcomes.py.

ALTER TABLE hints ADD COLUMN next_id INTEGER; -- the next decided call of that tool in the run
ALTER TABLE hints ADD COLUMN outcome TEXT NOT NULL DEFAULT 'pending';

DROP INDEX hints_by_run;
CREATE INDEX hints_by_run ON hints (run_id, created_at);
CREATE INDEX hints_by_outcome ON hints (run_id, outcome, rule_id);

UPDATE hints SET next_id = answer.next_id FROM (
  SELECT id, lead(id) OVER (
    PARTITION BY run_id, server_name, tool_name ORDER BY created_at, ifnull(seq, 0), id
  ) AS next_id FROM tool_calls
  WHERE decision IS NOT NULL AND run_id IN (SELECT run_id FROM hints)
) AS answer WHERE answer.id = hints.id;

UPDATE hints SET outcome = (
  SELECT hint_outcome(
    c.args_hash, c.rule_id, n.args_hash, n.decision, n.rule_id, hints.suggested_args_json
  ) FROM tool_calls c, tool_calls n WHERE c.id = hints.id AND n.id = hints.next_id
) WHERE next_id IS NOT NULL;

UPDATE hints SET outcome = 'gave_up' WHERE next_id IS NULL
  AND created_at <= (SELECT ended_at FROM runs WHERE runs.run_id = hints.run_id);
