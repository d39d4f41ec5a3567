-- Who acted when the run began, if a rule asked: what is known of the agent, and its proof.

ALTER TABLE runs ADD COLUMN agent_json TEXT;
