"""What a person decides about runs and agents: kill switch, approvals, grants, the registry.

And the seals on their files.
"""
