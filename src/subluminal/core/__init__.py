"""The enforcer: begin(call) -> Ruling, finish(call, outcome); redaction, inspection, run."""
