"""One file a family of warnings. Each function yields misfits for a list of rules."""
