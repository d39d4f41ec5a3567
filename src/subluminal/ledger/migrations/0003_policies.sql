-- A policy is asked for by the hash that decisions name.

CREATE INDEX policies_by_hash ON policy_versions (rules_hash);
