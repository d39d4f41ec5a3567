"""The policy files that a run is under: found, compiled, watched."""
