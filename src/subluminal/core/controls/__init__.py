"""What a person decides about runs and agents: kill switch, approvals, grants, the registry; and the
seals on their files."""
