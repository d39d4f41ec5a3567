"""Other policy engines with the same stateless rules. Each module has `decider(rules, call)`."""
