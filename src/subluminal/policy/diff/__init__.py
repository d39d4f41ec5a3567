"""Compares two policies, for `sub policy diff`: what changed, and whether the change loosens."""
