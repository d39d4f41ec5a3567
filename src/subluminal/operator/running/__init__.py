"""`sub run`: an agent as one run. Stamped, started, watched, ended, recorded; one module each."""
