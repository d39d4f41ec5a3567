"""Who acts in a run: how an agent was launched, how it proved itself, what follows for rules.

Nothing here is loaded by a shim that runs without `sub run --agent-id` and without rules that ask
about agents.
"""
