"""Behind `sub run`: name a run, start its agent, watch it, end what it leaves behind, record it."""
