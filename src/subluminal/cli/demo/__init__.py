"""`sub demo`: the whole loop with nothing else installed: a server, an agent, a policy."""
