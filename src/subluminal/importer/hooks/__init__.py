"""The hooks with which a client runs `sub hook`: commands, entries in its files, a plugin of ours.

`command` is the line that the client runs. `finding` finds it in JSON, and `entries` adds it there
and takes it out again. `plugin` is a whole file. `trusting` edits what Codex trusts. `configured`
says which hooks a client would run now.
"""
