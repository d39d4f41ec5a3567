"""The door of agents that are written in Python: calls come from the agent's own process."""
