"""What a person can do to runs: kill switch, approvals, grants; and the seals on their files."""
